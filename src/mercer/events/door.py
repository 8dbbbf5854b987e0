"""The only door: `emit` says it, `observe` hears it. Observers live in a context variable: each thread has its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from mercer.errors import Cancelled, InvalidInput, message
from mercer.events.event import Event

__all__ = ["Observer", "emit", "observe", "observed"]


@runtime_checkable
class Observer(Protocol):
    """Anything with `on_event(event)`.

    An observer that is a context manager too is entered with the `observe` block and left with it.

    Examples
    --------
    >>> class Count:
    ...     total = 0
    ...     def on_event(self, event):
    ...         self.total += 1
    >>> isinstance(Count(), Observer)
    True
    """

    def on_event(self, event: Event) -> None:
        """Hear one event; raise `Cancelled` to stop what emits it."""


class _Seat:
    """One observer's place at the door; emptied when the observer fails, so that a broken one cannot lose a fit."""

    __slots__ = ("entered", "observer")

    def __init__(self, observer: Observer) -> None:
        self.observer: Observer | None = observer
        self.entered: AbstractContextManager[object] | None = None

    def tell(self, event: Event) -> None:
        if self.observer is None:
            return
        try:
            self.observer.on_event(event)
        except Cancelled:
            raise
        except Exception:
            self.drop(self.observer)

    def enter(self) -> None:
        if isinstance(self.observer, AbstractContextManager):
            try:
                self.observer.__enter__()
                self.entered = self.observer
            except Exception:
                self.drop(self.observer)

    def leave(self) -> None:
        if self.entered is not None:
            try:
                self.entered.__exit__(None, None, None)
            except Exception:
                self.drop(self.entered)

    def drop(self, broken: object) -> None:
        self.observer = None
        name = type(broken).__name__
        logging.getLogger("mercer").warning("%s failed and hears no more; the work goes on.", name, exc_info=True)


_seats: ContextVar[tuple[_Seat, ...]] = ContextVar("mercer_observers", default=())


def emit(event: Event) -> None:
    """Tell every observer of this context; nearly free where there is none.

    Raises
    ------
    Cancelled
        When an observer asks for it. Any other exception of an observer is logged once, and that observer is dropped.

    Examples
    --------
    >>> from mercer.events import StageDone
    >>> emit(StageDone("solve", seconds=0.25))  # nobody listens
    """
    for seat in _seats.get():
        seat.tell(event)


def observed() -> bool:
    """Does anybody listen? For a caller that would have to work to make the event.

    >>> observed()
    False
    """
    return bool(_seats.get())


@contextmanager
def observe(*observers: Observer) -> Iterator[None]:
    """Let these observers hear what happens within the block, beside those of the blocks around it.

    Examples
    --------
    >>> from mercer.events import TilesDone
    >>> class Show:
    ...     def on_event(self, event):
    ...         print(event)
    >>> with observe(Show()):
    ...     emit(TilesDone("K @ V", done=1, total=2))
    TilesDone(what='K @ V', done=1, total=2)
    """
    for observer in observers:
        _refuse_a_stranger(observer)
    seats = tuple(_Seat(observer) for observer in observers)
    token = _seats.set(_seats.get() + seats)
    try:
        for seat in seats:
            seat.enter()
        yield
    finally:
        _seats.reset(token)
        for seat in reversed(seats):
            seat.leave()


def _refuse_a_stranger(observer: object) -> None:
    if isinstance(observer, type):
        name = observer.__name__
        raise InvalidInput(message("observe", f"{name} is a class", f"give an instance, {name}()"))
    if not isinstance(observer, Observer):
        given = f"{observer!r} has no on_event(event)"
        raise InvalidInput(message("observe", given, "give Progress(), Log(), Cancel(...) or an object that has one"))
