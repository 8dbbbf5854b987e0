"""Keeping: what fits and solvers tell the checkpoint around them, and the state that they get back from it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Protocol

from numpy.typing import NDArray

__all__ = ["Keeper", "Kept", "Run", "Trail", "keeper", "kept_by", "run_of"]

Arrays = Mapping[str, NDArray[Any]]


class Kept(Protocol):
    """A state that can be kept: it names its arrays, and it is never changed in place."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The state as named arrays."""


class Trail:
    """A list of arrays taken from the states of a run, which a checkpoint keeps with the state.

    Parameters
    ----------
    take : callable
        What to record of a state, an array or None, given the state and the array recorded last.

    Examples
    --------
    >>> even = Trail(lambda state, last: None if state % 2 else state)
    >>> [even(step) for step in range(4)], even.arrays
    ([None, None, None, None], [0, 2])
    """

    def __init__(self, take: Callable[[Any, Any], NDArray[Any] | None]) -> None:
        self._take = take
        self.arrays: list[NDArray[Any]] = []

    def __call__(self, state: Any) -> None:
        """Record a state."""
        found = self._take(state, self.arrays[-1] if self.arrays else None)
        if found is not None:
            self.arrays.append(found)


class Run:
    """A run of the loop that nobody keeps. `arrays` are those of the state to go on from, if there is one."""

    arrays: Arrays | None = None

    def offer(self, state: Kept) -> None:
        """Say that the run has come to this state."""


class Keeper(Protocol):
    """Keeps the states of runs, and gives them back in the process that repeats the computation."""

    def begin(self, model: Any, method: str, given: Mapping[str, Any]) -> None:
        """An estimator's fit begins, with these arguments by name. Refuse it if another one was kept in its place."""

    def opened(self, solver: object, start: Kept, trail: Trail | None) -> AbstractContextManager[Run]:
        """A context manager that gives the `Run` of a solver from this state."""


_keeper: ContextVar[tuple[Keeper, int, int] | None] = ContextVar("mercer_keeper", default=None)
"""The keeper, with the process and the thread that it is of: others may compute in another order."""

_NOBODY = Run()


def keeper() -> Keeper | None:
    """The keeper of this thread, or None.

    Examples
    --------
    >>> keeper() is None
    True
    """
    found = _keeper.get()
    if found is None or found[1:] != (os.getpid(), threading.get_ident()):
        return None
    return found[0]


@contextmanager
def kept_by(one: Keeper) -> Iterator[None]:
    """Tell this keeper of the fits and runs within the block."""
    token = _keeper.set((one, os.getpid(), threading.get_ident()))
    try:
        yield
    finally:
        _keeper.reset(token)


def run_of(solver: object, start: Kept, each: object = None) -> AbstractContextManager[Run]:
    """The run of a solver from a state, which it does not hold. If it was kept, its trail is filled as it was."""
    own = keeper()
    if own is None:
        return nullcontext(_NOBODY)
    return own.opened(solver, start, each if isinstance(each, Trail) else None)
