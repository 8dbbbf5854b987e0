"""Sums of an operator's columns by groups, and their update after some columns changed their group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput

__all__ = ["GroupSums", "Groups", "Moves"]


class Groups(NamedTuple):
    """Columns, the group of each, the number of groups, and the weights of the columns or None."""

    columns: NDArray[np.intp]
    labels: NDArray[Any]
    size: int
    weights: NDArray[np.float64] | None


class Moves(NamedTuple):
    """Columns that moved, their groups before and after, and the weights of the columns or None."""

    columns: NDArray[np.intp]
    old: NDArray[Any]
    new: NDArray[Any]
    weights: NDArray[np.float64] | None


class GroupSums(ABC):
    """Sums of an operator's columns by groups, from products; a subclass may override them with faster ways."""

    shape: Any  # untyped in SciPy's class

    @abstractmethod
    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]: ...

    @abstractmethod
    def _index(self, I: ArrayLike | slice, axis: int) -> NDArray[np.intp]: ...

    @abstractmethod
    def _invalid(self, given: str, do: str) -> InvalidInput: ...

    def group_sums(
        self, labels: ArrayLike, groups: int | None = None, weights: ArrayLike | None = None, columns: Any = None
    ) -> NDArray[np.float64]:
        """S[i, g] = Σ wⱼ Aᵢⱼ over the columns j of group g.

        Parameters
        ----------
        labels : integers of shape (m,)
            The group of each column, from 0.
        groups : int, optional
            The number of groups, by default the largest label + 1.
        weights : array of shape (m,), optional
            wⱼ, 1 by default.
        columns : integers of shape (m,), optional
            The columns to sum, without duplicates; by default all.

        Returns
        -------
        array of shape (n, groups), float64

        Examples
        --------
        >>> from mercer.operators import Dense
        >>> Dense([[1.0, 2.0, 3.0], [0.0, 1.0, 5.0]]).group_sums([0, 1, 1])
        array([[1., 5.],
               [0., 6.]])
        """
        of = self._groups(labels, groups, weights, columns)
        E = np.zeros((self.shape[1], of.size))
        E[of.columns, of.labels] = 1.0 if of.weights is None else of.weights
        return np.asarray(self._matmat(E))

    def several_group_sums(
        self, labellings: Sequence[ArrayLike], groups: int, weights: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """``group_sums(labels, groups, weights)`` for each labelling; a subclass may compute several in one pass.

        Examples
        --------
        >>> from mercer.operators import Dense
        >>> [one.tolist() for one in Dense([[1.0, 2.0], [2.0, 5.0]]).several_group_sums([[0, 0], [1, 0]], 2)]
        [[[3.0, 0.0], [7.0, 0.0]], [[2.0, 1.0], [5.0, 2.0]]]
        """
        return (self.group_sums(labels, groups, weights) for labels in labellings)

    def moved_sums(
        self, sums: NDArray[np.float64], columns: ArrayLike, old: ArrayLike, new: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """The sums by groups after some columns moved, computed from these columns alone.

        Parameters
        ----------
        sums : array of shape (n, groups)
            The former result of `group_sums`, which is not changed.
        columns : integers of shape (m,)
            The columns that moved, without duplicates.
        old, new : integers of shape (m,)
            Their groups before and after.
        weights : array of shape (m,), optional
            The weights of these columns, 1 by default.

        Returns
        -------
        array of shape (n, groups), float64

        Examples
        --------
        >>> from mercer.operators import Dense
        >>> A = Dense([[1.0, 2.0, 3.0], [0.0, 1.0, 5.0]])
        >>> A.moved_sums(A.group_sums([0, 1, 1]), [2], [1], [0])
        array([[4., 2.],
               [5., 1.]])
        """
        of, k, out = self._moves(sums, columns, old, new, weights), sums.shape[1], sums.copy()
        moves, move = np.unique(of.old * k + of.new, return_inverse=True)
        for first in range(0, len(moves), 2 * k):  # not all k² pairs of groups at once, to save memory
            some = moves[first : first + 2 * k]
            on = np.flatnonzero((move >= first) & (move < first + len(some)))
            w = None if of.weights is None else of.weights[on]
            carried = self.group_sums(move[on] - first, len(some), w, of.columns[on])
            change = np.zeros((len(some), k))
            change[np.arange(len(some)), some % k] += 1.0
            change[np.arange(len(some)), some // k] -= 1.0
            out += carried @ change
        return out

    def _moves(self, sums: NDArray[np.float64], columns: Any, old: Any, new: Any, weights: Any) -> Moves:
        """The columns that moved, checked."""
        if np.ndim(sums) != 2 or len(sums) != self.shape[0]:
            raise self._invalid(f"sums of shape {np.shape(sums)}", f"give {self.shape[0]} rows")
        before = self._groups(old, sums.shape[1], weights, columns)
        after = self._groups(new, sums.shape[1], None, columns)
        return Moves(before.columns, before.labels, after.labels, before.weights)

    def _groups(self, labels: Any, groups: int | None, weights: Any, columns: Any) -> Groups:
        """The groups, checked."""
        J = np.arange(self.shape[1]) if columns is None else self._index(columns, 1)
        g, m = np.asarray(labels), len(J)
        if g.shape != (m,) or g.dtype.kind not in "iu" or np.min(g, initial=0) < 0:
            raise self._invalid(f"labels of shape {g.shape}, {g.dtype}", f"give {m} integers from 0")
        most = int(np.max(g, initial=-1)) + 1
        size = most if groups is None else int(groups)
        if size < most:
            raise self._invalid(f"label {most - 1} with groups={groups}", "give more groups")
        w = None if weights is None else np.asarray(weights)
        if w is not None and (w.shape != (m,) or w.dtype.kind not in "biuf"):
            raise self._invalid(f"weights of shape {w.shape}, {w.dtype}", f"give {m} numbers")
        return Groups(J, g, size, None if w is None else w.astype(np.float64, copy=False))
