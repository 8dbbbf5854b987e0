"""The suite of interrupted fits: an estimator must be unchanged, to the bit, after a call that was cut off."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from mercer.errors import Cancelled
from mercer.events import Event, observe

__all__ = ["check_atomic"]

SOURCE = str(Path(__file__).parents[1])


class _Events:
    """Counts the events within a block, and raises `Cancelled` at one of them."""

    def __init__(self, place: int | None = None) -> None:
        self.place, self.count = place, 0

    def block(self) -> AbstractContextManager[None]:
        return observe(self)

    def on_event(self, event: Event) -> None:
        self.count += 1
        if self.count - 1 == self.place:
            raise Cancelled(f"at event {self.place}")


class _Calls:
    """Counts the calls of mercer's functions within a block, and raises `KeyboardInterrupt` at one of them."""

    def __init__(self, place: int | None = None) -> None:
        self.place, self.count = place, 0

    @contextmanager
    def block(self) -> Iterator[None]:
        former = sys.getprofile()
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(former)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        # Closing a generator is a call too, and errors in it are ignored.
        if event != "call" or not code.co_filename.startswith(SOURCE) or code.co_flags & inspect.CO_GENERATOR:
            return
        self.count += 1
        if self.count - 1 == self.place:
            raise KeyboardInterrupt(f"at call {self.place}")


def check_atomic(estimator: Any, call: Callable[[Any], object], most: int | None = None) -> int:
    """Check that a call cut off at any event, or at any call of a mercer function, does not change the estimator.

    Parameters
    ----------
    estimator : object
        Fitted or not. It must be picklable.
    call : callable
        Takes the estimator and makes the call to cut off.
    most : int, optional
        Number of cuts of each kind, evenly spaced; None means all.

    Returns
    -------
    int
        The number of cuts.

    Raises
    ------
    AssertionError
        With the first cut that changed the estimator.

    Examples
    --------
    >>> from mercer import KernelRidge
    >>> model = KernelRidge().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> check_atomic(model, lambda one: one.fit([[0.0, 1.0]], [2.0]), most=5) > 5
    True
    """
    own, made = deepcopy(estimator), 0
    before = pickle.dumps(own)
    for cut in (_Events, _Calls):
        whole = cut()
        with whole.block():
            call(deepcopy(estimator))
        for place in _spaced(whole.count, most):
            try:
                with cut(place).block():
                    call(own)
            except (Cancelled, KeyboardInterrupt) as error:
                made += 1
                if pickle.dumps(own) != before:
                    raise AssertionError(f"cut off {error}, {type(estimator).__name__} is not as it was") from error
            else:  # caches can make a later call shorter, so that it ends before the cut
                own = deepcopy(estimator)
                before = pickle.dumps(own)
    return made


def _spaced(count: int, most: int | None) -> list[int]:
    """`most` evenly spaced numbers below `count`, including the first and the last."""
    if most is None or most >= count:
        return list(range(count))
    return sorted(set(np.linspace(0, count - 1, most).round().astype(int).tolist()))
