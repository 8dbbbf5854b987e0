"""Observers that write a log and that stop a computation; `progress` has the bars."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from mercer.errors import Cancelled, InvalidInput, message
from mercer.events.event import Event, SolverStep, StageDone, StageStarted, TilesDone

__all__ = ["Cancel", "Log", "RateLimit", "topic"]


def topic(event: Event) -> str:
    """The solver, the sweep or the stage that the event is about.

    >>> topic(TilesDone("K @ V", done=1, total=2))
    'K @ V'
    """
    match event:
        case SolverStep():
            return event.solver
        case TilesDone():
            return event.what
        case StageStarted() | StageDone():
            return event.name


class RateLimit:
    """Allows one action in `every` seconds for each key; the first is allowed at once.

    >>> limit = RateLimit(every=60.0)
    >>> limit.due("a"), limit.due("a"), limit.due("b")
    (True, False, True)
    """

    def __init__(self, every: float) -> None:
        self.every = every
        self._last: dict[object, float] = {}

    def due(self, key: object = None) -> bool:
        """Whether the action is allowed now; if so, the next interval of the key starts."""
        now = time.monotonic()
        if now - self._last.get(key, -float("inf")) < self.every:
            return False
        self._last[key] = now
        return True


class Log:
    """Log each event in a line of level INFO, but at most one in `every` seconds for each solver or sweep.

    The end of a stage, and a step of a solver that reaches the tolerance, are always logged. The beginning of a stage
    is logged if the fit has a prediction of its time.

    Parameters
    ----------
    logger : logging.Logger, optional
        The logger to write to; by default the logger "mercer".
    every : float
        The least number of seconds between two lines about the same solver or sweep.

    Raises
    ------
    InvalidInput
        If `every` is negative or NaN.

    Examples
    --------
    >>> import logging, sys
    >>> from mercer.events import StageDone, emit, observe
    >>> logger = logging.getLogger("example")
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> logger.addHandler(handler); logger.setLevel(logging.INFO)
    >>> with observe(Log(logger)):
    ...     emit(StageDone("solve", seconds=0.25))
    solve: done in 0.25 s
    >>> logger.removeHandler(handler)
    """

    def __init__(self, logger: logging.Logger | None = None, every: float = 1.0) -> None:
        self.logger = logging.getLogger("mercer") if logger is None else logger
        self.every = _seconds("Log", "every", every)
        self._limit = RateLimit(self.every)

    def on_event(self, event: Event) -> None:
        """Log the event, unless the last line about the same solver or sweep is less than `every` seconds old."""
        match event:
            case SolverStep(solver, step, residual, tolerance):
                if self._limit.due(solver) or residual <= tolerance:
                    self.logger.info("%s: step %d, residual %.2e (stops at %.1e)", solver, step, residual, tolerance)
            case TilesDone(what, done, total):
                if self._limit.due(what):
                    self.logger.info("%s: %d of %d tiles", what, done, total)
            case StageStarted(name, of, predicted):
                if predicted and self._limit.due((of, predicted)):
                    plan = ", ".join(f"{stages} {seconds:.2g} s" for stages, seconds in predicted)
                    self.logger.info("%s: %s begins; predicted: %s", of, name, plan)
            case StageDone(name, seconds):
                self.logger.info("%s: done in %.3g s", name, seconds)


class Cancel:
    """Raise `Cancelled` at the first event after `after_seconds` seconds, or at which `when()` is true.

    Parameters
    ----------
    after_seconds : float, optional
        Seconds from the beginning of the `observe` block.
    when : callable, optional
        A function without arguments, such as the `is_set` of a `threading.Event`; it is called at each event.

    Raises
    ------
    InvalidInput
        If neither is given, if `after_seconds` is negative or NaN, or if `when` cannot be called.

    Examples
    --------
    >>> import threading
    >>> from mercer.events import StageDone, emit, observe
    >>> stop = threading.Event()
    >>> with observe(Cancel(when=stop.is_set)):
    ...     emit(StageDone("centre", seconds=0.1))
    ...     stop.set()
    ...     emit(StageDone("solve", seconds=0.2))
    Traceback (most recent call last):
        ...
    mercer.errors.Cancelled: Cancel: when() was true at 'solve'; fit again without it, or let it run longer.
    """

    def __init__(self, after_seconds: float | None = None, when: Callable[[], bool] | None = None) -> None:
        if after_seconds is None and when is None:
            raise InvalidInput(
                message("Cancel", "neither a time nor a condition is given", "give after_seconds=... or when=...")
            )
        if when is not None and not callable(when):
            raise InvalidInput(
                message("Cancel", f"when={when!r} cannot be called", "give a function without arguments")
            )
        self.after_seconds = None if after_seconds is None else _seconds("Cancel", "after_seconds", after_seconds)
        self.when = when
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        """Start the clock."""
        self._start = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: there is nothing to close."""

    def on_event(self, event: Event) -> None:
        """Raise `Cancelled` if the time is over or the condition is true."""
        reason = self._reason()
        if reason:
            given = f"{reason} at {topic(event)!r}"
            raise Cancelled(message("Cancel", given, "fit again without it, or let it run longer"))

    def _reason(self) -> str | None:
        if self.after_seconds is not None and time.monotonic() - self._start >= self.after_seconds:
            return f"{self.after_seconds:g} seconds had passed"
        if self.when is not None and self.when():
            return "when() was true"
        return None


def _seconds(who: str, name: str, value: float) -> float:
    seconds = float(value)
    if not seconds >= 0:
        raise InvalidInput(message(who, f"{name}={value!r} is not a length of time", "give seconds, zero or more"))
    return seconds
