"""Progress bars in notebooks: one output of plain HTML that is redrawn; it needs no other package."""

from __future__ import annotations

import html
import sys
import time
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NotebookBars", "in_notebook", "time_left"]

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


def time_left(share: float, elapsed: float) -> str:
    """elapsed (1 − s)/s for a completed share s, as minutes and seconds; "" if s is 0 or 1.

    >>> time_left(0.25, 30.0), time_left(0.0, 30.0)
    ('1:30 left', '')
    """
    if not 0 < share < 1:
        return ""
    seconds = round(elapsed * (1 - share) / share)
    return f"{seconds // 60}:{seconds % 60:02d} left"


@dataclass
class _Bar:
    name: str
    total: float
    note: str
    completed: float = 0.0
    start: float = field(default_factory=lambda: time.monotonic())

    @property
    def share(self) -> float:
        return min(self.completed / self.total, 1.0) if self.total else 0.0


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

    def add_task(self, name: str, total: float, note: str) -> int:
        """Add a bar and return its number."""
        self.bars.append(_Bar(name, total, note))
        return len(self.bars) - 1

    def update(self, task: int, completed: float, total: float, note: str) -> None:
        """Move a bar."""
        bar = self.bars[task]
        if completed < bar.completed:
            bar.start = time.monotonic()  # the same work has started again
        bar.completed, bar.total, bar.note = completed, total, note

    def say(self, line: str) -> None:
        """Add a line above the bars."""
        self.lines.append(line)

    def _repr_html_(self) -> str:
        said = "<br>".join(html.escape(line) for line in self.lines[-SHOWN:])
        now, rows = time.monotonic(), []
        for bar in self.bars:
            note = ", ".join(filter(None, [bar.note, time_left(bar.share, now - bar.start)]))
            drawn = f'<progress value="{bar.share:.4f}" max="1"></progress>'
            rows.append(f"<tr><td>{html.escape(bar.name)}</td><td>{drawn}</td><td>{html.escape(note)}</td></tr>")
        return f"<div>{said}</div><table>{''.join(rows)}</table>"

    def __repr__(self) -> str:
        return "\n".join([*self.lines[-SHOWN:], *(f"{bar.name}: {bar.share:.0%} {bar.note}" for bar in self.bars)])
