"""`emit` passes an event to the observers of the `observe` blocks around it; each thread has its own observers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from mercer.errors import Cancelled, InvalidInput, message
from mercer.events.event import Event

__all__ = ["Observer", "emit", "observe", "observed", "unobserved"]


@runtime_checkable
class Observer(Protocol):
    """Any object with a method `on_event(event)`.

    If the observer is also a context manager, `observe` enters it at the start of the block and exits it at the end.

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
        """Receive an event; raise `Cancelled` to stop the computation that emits it."""


class _Subscription:
    """An observer within its `observe` block. An observer that fails is dropped, so that it cannot end a fit."""

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
        logging.getLogger("mercer").warning("%s failed and gets no more events.", name, exc_info=True)


_subscriptions: ContextVar[tuple[_Subscription, ...]] = ContextVar("mercer_observers", default=())


def emit(event: Event) -> None:
    """Pass an event to every observer of this context; without observers it costs almost nothing.

    Parameters
    ----------
    event : SolverStep, TilesDone, StageStarted or StageDone

    Raises
    ------
    Cancelled
        If an observer raises it. Any other exception of an observer is logged once, and that observer is dropped.

    Examples
    --------
    >>> from mercer.events import StageDone
    >>> emit(StageDone("solve", seconds=0.25))  # no observer receives it
    """
    for subscription in _subscriptions.get():
        subscription.tell(event)


def observed() -> bool:
    """Whether there is an observer; ask first if the event takes work to compute.

    Examples
    --------
    >>> observed()
    False
    """
    return bool(_subscriptions.get())


@contextmanager
def observe(*observers: Observer) -> Iterator[None]:
    """Pass the events within the block to these observers, and to those of the blocks around it.

    Parameters
    ----------
    *observers : Observer
        `Progress()`, `Log()`, `Cancel(...)`, or objects with a method `on_event(event)`.

    Raises
    ------
    InvalidInput
        If an observer has no such method, or is a class instead of an instance.

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
        _check_observer(observer)
    new = tuple(_Subscription(observer) for observer in observers)
    token = _subscriptions.set(_subscriptions.get() + new)
    try:
        for subscription in new:
            subscription.enter()
        yield
    finally:
        _subscriptions.reset(token)
        for subscription in reversed(new):
            subscription.leave()


@contextmanager
def unobserved() -> Iterator[None]:
    """Pass the events within the block to nobody: for work that is not part of what the user called.

    >>> with unobserved():
    ...     observed()
    False
    """
    token = _subscriptions.set(())
    try:
        yield
    finally:
        _subscriptions.reset(token)


def _check_observer(observer: object) -> None:
    if isinstance(observer, type):
        name = observer.__name__
        raise InvalidInput(message("observe", f"{name} is a class", f"give an instance, {name}()"))
    if not isinstance(observer, Observer):
        given = f"{observer!r} has no on_event(event)"
        raise InvalidInput(message("observe", given, "give Progress(), Log(), Cancel(...) or an object that has it"))
