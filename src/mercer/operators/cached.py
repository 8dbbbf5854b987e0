"""A cache of an operator's rows, which drops the least recently used ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators.arrays import Array, row_blocks
from mercer.operators.base import Dense, Operator

__all__ = ["CachedRows"]


class CachedRows(Operator):
    """V ↦ A V with a cache of rows of A.

    Parameters
    ----------
    A : Operator
    size : int
        The size of the cache in bytes.

    Attributes
    ----------
    computed : int
        How many rows were computed so far.

    Raises
    ------
    InvalidInput
        If the size is negative.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> A = CachedRows(Dense([[2.0, 1.0], [1.0, 3.0]]), size=16)
    >>> A.rows([0]), A.rows([0, 0]), A.computed
    (array([[2., 1.]]), array([[2., 1.],
           [2., 1.]]), 1)
    """

    def __init__(self, A: Operator, size: int) -> None:
        super().__init__(A.shape, A.dtype, symmetric=A.symmetric)
        if size < 0:
            raise InvalidInput(message("CachedRows", f"size={size}", "give bytes"))
        self.A, m = A, A.shape[0]
        places = min(m, size // max(1, A.shape[1] * A.dtype.itemsize))
        self.computed = 0
        self._kept = np.empty((places, A.shape[1]), A.dtype)
        self._place = np.full(m, -1, np.intp)
        self._owner = np.full(places, -1, np.intp)
        self._used = np.zeros(places, np.int64)
        self._clock = 0

    def _matmat(self, V: Array) -> Array:
        return self.A._matmat(V)

    def _transpose(self) -> Operator:
        return self if self.symmetric else self.A._transpose()

    def diagonal(self) -> Array:
        return self.A.diagonal()

    def principal(self, I: ArrayLike | slice) -> Operator:
        index = self._index(I, 0)
        return Dense(self.rows(index)[:, index], symmetric=self.symmetric)

    def _block_times(self, rows: NDArray[np.intp], columns: NDArray[np.intp], V: Array) -> Array:
        """A[I, J] V; for a symmetric A by the cached rows J, some at a time."""
        if not self.symmetric:
            return self.A._block_times(rows, columns, V)
        out = np.zeros((len(rows), V.shape[1]), V.dtype)
        for some in row_blocks(len(columns), self.shape[1]):
            kept = self.rows(columns[some])[:, rows]
            out += kept.astype(np.result_type(self.dtype, V.dtype), copy=False).T @ V[some]
        return out

    def rows(self, I: ArrayLike | slice) -> Array:
        index = self._index(I, 0)
        wanted, back = np.unique(index, return_inverse=True)
        self._clock += 1
        known = wanted[self._place[wanted] >= 0]
        self._used[self._place[known]] = self._clock
        new = wanted[self._place[wanted] < 0]
        out = np.empty((len(wanted), self.shape[1]), self.dtype)
        at = np.searchsorted(wanted, known)
        out[at] = self._kept[self._place[known]]
        if len(new):
            self.computed += len(new)
            fresh = self.A.rows(new)
            out[np.searchsorted(wanted, new)] = fresh
            self._keep(new, fresh)
        return out if np.array_equal(back, np.arange(len(wanted))) else out[back]

    def _keep(self, new: NDArray[np.intp], fresh: Array) -> None:
        """Store rows in place of the least recently used ones, but not of rows that this call uses."""
        old = np.argsort(self._used, kind="stable")
        places = old[self._used[old] < self._clock][: len(new)]
        taken = self._owner[places]
        self._place[taken[taken >= 0]] = -1
        chosen = new[: len(places)]
        self._kept[places] = fresh[: len(places)]
        self._place[chosen], self._owner[places], self._used[places] = places, chosen, self._clock

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return self.A.astype(dtype)
