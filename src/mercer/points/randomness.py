"""Seeds from `random_state` parameters, and random rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message

__all__ = ["as_seed", "sample_rows"]


def as_seed(random_state: Any, who: str) -> int:
    """An integer seed: the given number, or one drawn from a `RandomState`, or for None from NumPy's global one.

    Parameters
    ----------
    random_state : int ≥ 0, RandomState or None
    who : str
        The caller, which messages name.

    Raises
    ------
    InvalidInput
        If `random_state` is anything else, or negative.

    Examples
    --------
    >>> as_seed(3, "suggest")
    3
    >>> as_seed(-1, "suggest")
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: suggest: random_state=-1; give a whole number ≥ 0, a numpy.random.RandomState, or None.
    """
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.RandomState):
        from sklearn.utils import check_random_state

        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    given, do = f"random_state={random_state!r:.60}", "give a whole number ≥ 0, a numpy.random.RandomState, or None"
    raise InvalidInput(message(who, given, do))


def sample_rows(n: int, count: int, seed: Any) -> NDArray[np.intp]:
    """The indices of `count` of n rows drawn at random, in ascending order; all of them if there are no more.

    Parameters
    ----------
    n, count : int
    seed : int, list of int or Generator
        A generator is not used if all rows are taken.

    Returns
    -------
    array of shape (min(count, n),)

    Examples
    --------
    >>> sample_rows(10, 4, 0), sample_rows(3, 4, 0)
    (array([2, 4, 5, 7]), array([0, 1, 2]))
    """
    if count >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, count, replace=False))
