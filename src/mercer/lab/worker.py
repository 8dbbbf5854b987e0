"""One thread that computes what was asked last: a request that moves on cancels the one before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

from mercer.errors import Cancelled
from mercer.events import Cancel, observe

__all__ = ["Worker"]

Asked = TypeVar("Asked")
Found = TypeVar("Found")


class Worker(Generic[Asked, Found]):
    """Computes on a thread of its own; at most one request runs and at most one waits.

    Parameters
    ----------
    compute : callable
        From a request to an iterator over results.
    deliver : callable
        Takes a request and a result, or a request and the exception that ended it. It is called on the worker's thread,
        and not for a request that another has replaced.
    turn : context manager, optional
        Entered for each computation: a lock lets several workers take turns.

    Examples
    --------
    >>> import threading
    >>> done = threading.Event()
    >>> worker = Worker(lambda n: iter([n * n]), lambda asked, found: (print(asked, found), done.set()))
    >>> worker.submit(3); _ = done.wait(10); worker.close()
    3 9
    """

    def __init__(
        self,
        compute: Callable[[Asked], Iterator[Found]],
        deliver: Callable[[Asked, Found | Exception], object],
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self._compute, self._deliver, self._turn = compute, deliver, turn or nullcontext()
        self._change = threading.Condition()
        self._waiting: list[Asked] = []
        self._stale = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="mercer lab", daemon=True)
        self._thread.start()

    def submit(self, asked: Asked) -> None:
        """Ask; what was asked before and is not done is cancelled."""
        with self._change:
            self._stale.set()
            self._waiting = [asked]
            self._change.notify()

    def close(self, wait: float = 0.0) -> None:
        """Cancel what runs; then the thread ends, for which this waits this many seconds at most."""
        with self._change:
            self._closed = True
            self._stale.set()
            self._change.notify()
        if wait:
            self._thread.join(wait)

    def _run(self) -> None:
        while (asked := self._next()) is not None:
            try:
                with self._turn, observe(Cancel(when=self._stale.is_set)):
                    self._finish(asked[0])
            except Cancelled:
                pass
            except Exception as error:
                self._deliver_current(asked[0], error)

    def _next(self) -> tuple[Asked] | None:
        with self._change:
            self._change.wait_for(lambda: self._closed or self._waiting)
            if self._closed:
                return None
            self._stale.clear()
            return (self._waiting.pop(),)

    def _finish(self, asked: Asked) -> None:
        if self._stale.is_set():  # while it waited for its turn
            return
        for found in self._compute(asked):
            self._deliver_current(asked, found)
            if self._stale.is_set():
                return

    def _deliver_current(self, asked: Asked, found: Found | Exception) -> None:
        with self._change:
            if not self._stale.is_set():
                self._deliver(asked, found)
