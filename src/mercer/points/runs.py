"""Runs of consecutive numbers in an array of indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["index_runs", "run_ends"]


def index_runs(index: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """The positions (first, last) of each run of consecutive numbers.

    >>> list(index_runs(np.array([4, 5, 6, 2, 3])))
    [(0, 2), (3, 4)]
    """
    first = 0
    for last in run_ends(index):
        yield first, int(last)
        first = int(last) + 1


def run_ends(index: NDArray[np.intp]) -> list[int]:
    """The last position of each run of consecutive numbers.

    >>> run_ends(np.array([4, 5, 6, 2, 3]))
    [2, 4]
    """
    return [*map(int, np.flatnonzero(np.diff(index) != 1)), len(index) - 1] if len(index) else []
