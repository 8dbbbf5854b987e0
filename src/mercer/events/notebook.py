"""Progress bars in notebooks: one output of plain HTML that is redrawn; it needs no other package."""

from __future__ import annotations

import html
import sys
from dataclasses import dataclass
from typing import Any

__all__ = ["NotebookBars", "in_notebook"]

SHOWN = 8
"""How many lines about finished stages are shown."""


def in_notebook() -> bool:
    """Whether this process is a Jupyter kernel. The check does not import IPython.

    >>> in_notebook()
    False
    """
    found = sys.modules.get("IPython")
    shell = found.get_ipython() if found is not None else None
    return hasattr(shell, "kernel")


@dataclass
class _Bar:
    name: str
    total: float | None
    note: str
    completed: float = 0.0

    @property
    def share(self) -> float:
        return min(self.completed / self.total, 1.0) if self.total else 0.0

    @property
    def drawn(self) -> str:
        """A bar without a total is drawn as one whose end is not known."""
        value = "" if self.total is None else f' value="{self.share:.4f}" max="1"'
        return f"<progress{value}></progress>"

    def __str__(self) -> str:
        share = "" if self.total is None else f" {self.share:.0%}"
        return f"{self.name}:{share} {self.note}"


class NotebookBars:
    """Bars in the output of a notebook cell, with the methods that `Progress` calls."""

    def __init__(self) -> None:
        self.bars: list[_Bar] = []
        self.lines: list[str] = []
        self._handle: Any = None

    def start(self) -> None:
        """Open the output."""
        from IPython.display import display

        self._handle = display(self, display_id=True)

    def stop(self) -> None:
        """Leave the output as it is."""
        self._handle = None

    def refresh(self) -> None:
        """Redraw the output."""
        if self._handle is not None:
            self._handle.update(self)

    def add_task(self, name: str, total: float | None, note: str) -> int:
        """Add a bar and return its number."""
        self.bars.append(_Bar(name, total, note))
        return len(self.bars) - 1

    def update(self, task: int, completed: float, total: float | None, note: str) -> None:
        """Move a bar."""
        bar = self.bars[task]
        bar.completed, bar.total, bar.note = completed, total, note

    def say(self, line: str) -> None:
        """Add a line above the bars."""
        self.lines.append(line)

    def _repr_html_(self) -> str:
        said = "<br>".join(html.escape(line) for line in self.lines[-SHOWN:])
        cells = ((html.escape(bar.name), bar.drawn, html.escape(bar.note)) for bar in self.bars)
        rows = "".join(f"<tr><td>{name}</td><td>{drawn}</td><td>{note}</td></tr>" for name, drawn, note in cells)
        return f"<div>{said}</div><table>{rows}</table>"

    def __repr__(self) -> str:
        return "\n".join([*self.lines[-SHOWN:], *map(str, self.bars)])
