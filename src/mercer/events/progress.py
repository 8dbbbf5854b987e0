"""Progress bars: drawn by rich on terminals, as HTML in notebooks, and not elsewhere."""

from __future__ import annotations

import logging
import math
import sys
import time
from types import TracebackType
from typing import Any, Self

from mercer.events.event import Event, SolverStep, StageDone, StageStarted, TilesDone
from mercer.events.forecast import Forecast, time_left
from mercer.events.notebook import NotebookBars, in_notebook
from mercer.events.observers import RateLimit

__all__ = ["Progress", "share_done"]


def share_done(first: float, residual: float, tolerance: float) -> float:
    """log(r₀/r) / log(r₀/tol), between 0 and 1: the progress of a residual r from the first one, r₀, to the tolerance.

    >>> share_done(1.0, 1e-4, 1e-8)
    0.5
    """
    if residual <= tolerance:
        return 1.0
    if not (math.isfinite(first) and math.isfinite(residual) and 0 < tolerance < first):
        return 0.0
    return min(max(math.log(first / residual) / math.log(first / tolerance), 0.0), 1.0)


class Progress:
    """Show a bar for the fit, and one for each solver and each sweep, with the time that is left.

    The fit's bar is filled by the seconds that its stages have taken and are predicted to take. It names a stage whose
    time is not predicted, and has no end if that is so for all of them. A solver's bar is filled by
    log(r₀/r) / log(r₀/tol), for its first residual r₀ and the present one, r. In notebooks
    the bars are HTML. On terminals rich draws them on standard error (`pip install "mercer[progress]"`); without rich a
    warning is logged. Elsewhere nothing is drawn.

    Examples
    --------
    >>> from mercer.events import TilesDone, emit, observe
    >>> with observe(Progress()):
    ...     emit(TilesDone("K @ V", done=1, total=2))
    """

    def __init__(self) -> None:
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._since: dict[str, tuple[float, float]] = {}
        self._fit: Forecast | None = None
        self._first: dict[str, float] = {}
        self._limit = RateLimit(every=0.1)

    def __enter__(self) -> Self:
        """Open the display if this is a notebook, or if standard error is a terminal."""
        if in_notebook():
            self._bars = NotebookBars()
        elif sys.stderr is not None and sys.stderr.isatty():
            self._bars = _rich_bars()
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Draw the final state and close the display."""
        if self._bars is not None:
            self._bars.refresh()
            self._bars.stop()
        self._bars = None
        self._fit = None
        for kept in (self._tasks, self._since, self._first):
            kept.clear()

    def on_event(self, event: Event) -> None:
        """Update the bar of the event's solver or sweep."""
        if self._bars is None:
            return
        match event:
            case SolverStep(solver, step, residual, tolerance):
                first = residual if step <= 1 else self._first.get(solver, residual)
                self._first[solver] = first
                share = share_done(first, residual, tolerance)
                if self._fit is not None:
                    self._fit.solved = share
                self._move_timed(solver, share, 1.0, f"step {step}, residual {residual:.1e}")
            case TilesDone(what, done, total):
                self._move_timed(what, done, total, f"{done} of {total}")
            case StageStarted():
                self._fit = Forecast(event)
            case StageDone(name, seconds):
                if self._fit is not None:
                    self._fit.end(event)
                self._say(f"{name}: {seconds:.3g} s")
        if self._fit is not None:
            filled = self._fit.share
            self._move(self._fit.stage.of, filled or 0.0, None if filled is None else 1.0, self._fit.note)
        if self._limit.due():
            self._bars.refresh()

    def _say(self, line: str) -> None:
        if isinstance(self._bars, NotebookBars):
            self._bars.say(line)
        else:
            self._bars.console.print(line, markup=False, highlight=False)

    def _move_timed(self, name: str, completed: float, total: float, note: str) -> None:
        """Move a bar whose time left is (1 − s)/s of its time so far, for a completed share s."""
        now = time.monotonic()
        start, before = self._since.get(name, (now, 0.0))
        if completed < before:
            start = now  # the same work has started again
        self._since[name] = start, completed
        share = min(completed / total, 1.0) if total else 0.0
        left = time_left((now - start) * (1 - share) / share) if 0 < share < 1 else ""
        self._move(name, completed, total, ", ".join(filter(None, [note, left])))

    def _move(self, name: str, completed: float, total: float | None, note: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total, note=note)
        self._bars.update(self._tasks[name], completed=completed, total=total, note=note)


def _rich_bars() -> Any:
    """rich's display, which we refresh ourselves: a refreshing thread of its own would not survive a fork."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars
    except ImportError:
        advice = 'Progress: rich is not installed, so no bar is drawn; pip install "mercer[progress]".'
        logging.getLogger("mercer").warning(advice)
        return None
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    return Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), auto_refresh=False, transient=True)
