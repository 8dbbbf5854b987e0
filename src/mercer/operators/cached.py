"""Operators that keep entries: the rows that were used last, or all of them once they were needed often enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators.arrays import Array, row_blocks
from mercer.operators.base import Dense, Operator

__all__ = ["CachedRows", "StoredLater"]


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


class StoredLater(Operator):
    """V ↦ A V with entries that are computed anew until `after` of them were, and stored from then on.

    Who does not know how often entries will be needed computes them anew for as long as storing them would take. That
    costs at most twice as much as the better of both ways.

    Parameters
    ----------
    A : Operator
    after : float
        How many entries are computed before A is stored.

    Attributes
    ----------
    stored : bool
        Whether A is stored.

    Examples
    --------
    >>> from mercer.operators import LowRank
    >>> A = StoredLater(LowRank([[1.0], [2.0]]), after=4)
    >>> A.group_sums([0, 1]), A.stored
    (array([[1., 2.],
           [2., 4.]]), False)
    >>> A.rows([1]), A.stored
    (array([[2., 4.]]), True)
    """

    def __init__(self, A: Operator, after: float) -> None:
        super().__init__(A.shape, A.dtype, symmetric=A.symmetric)
        self.A, self.stored, self._left = A, False, float(after)

    def _for(self, rows: int, columns: int) -> Operator:
        """The operator that computes the next entries, of so many rows and columns."""
        if not self.stored and self._left <= 0:
            self.A.release()
            self.A, self.stored = Dense(self.A.toarray(), symmetric=self.symmetric), True
        self._left -= float(rows) * columns
        return self.A

    def release(self) -> None:
        self.A.release()

    def _matmat(self, V: Array) -> Array:
        return self._for(*self.shape)._matmat(V)

    def _transpose(self) -> Operator:
        return self if self.symmetric else self.A._transpose()

    def diagonal(self) -> Array:
        return self.A.diagonal()

    def rows(self, I: ArrayLike | slice) -> Array:
        index = self._index(I, 0)
        return self._for(len(index), self.shape[1]).rows(index)

    def group_sums(
        self, labels: ArrayLike, groups: int | None = None, weights: ArrayLike | None = None, columns: Any = None
    ) -> NDArray[np.float64]:
        return self._for(self.shape[0], np.size(labels)).group_sums(labels, groups, weights, columns)

    def several_group_sums(
        self, labellings: Sequence[ArrayLike], groups: int, weights: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        if self.stored:
            return self.A.several_group_sums(labellings, groups, weights)
        return super().several_group_sums(labellings, groups, weights)

    def moved_sums(
        self, sums: NDArray[np.float64], columns: ArrayLike, old: ArrayLike, new: ArrayLike,
        weights: ArrayLike | None = None
    ) -> NDArray[np.float64]:  # fmt: skip
        return self._for(self.shape[0], np.size(columns)).moved_sums(sums, columns, old, new, weights)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return self.A.astype(dtype)
