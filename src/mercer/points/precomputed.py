"""Points for precomputed kernels: rows of kernel values, and indices of training points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.points.base import Index, Points, VectorPoints

__all__ = ["Numbers", "Precomputed", "asymmetry"]


@dataclass(frozen=True, eq=False, slots=True)
class Numbers(Points):
    """Training points, given by their columns in a matrix of kernel values.

    Parameters
    ----------
    rows : array of integers, shape (m,)
        The columns, counted from 0.
    of : int
        The number of columns of the matrix.

    Examples
    --------
    >>> Numbers(np.array([2, 0]), 3).take(np.array([1])).rows
    array([0])
    """

    rows: NDArray[np.intp]
    of: int

    def validate(self, who: str) -> Numbers:
        index = np.asarray(self.rows)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            given = f"Z of shape {index.shape} and dtype {index.dtype} with a precomputed kernel"
            raise InvalidInput(message(who, given, "give the column indices of training points, or None for all"))
        if len(index) and not (index.min() >= 0 and index.max() < self.of):
            given = f"column {index.max() if index.min() >= 0 else index.min()} of {self.of} precomputed columns"
            raise InvalidInput(message(who, given, f"give indices of training points, from 0 to {self.of - 1}"))
        return Numbers(index.astype(np.intp), self.of)

    def take(self, index: Index, *, copy: bool = True) -> Numbers:
        return Numbers(self.rows[index], self.of)

    def run(self, first: int, last: int) -> Numbers:
        return Numbers(self.rows[first:last], self.of)

    def join(self, other: Points) -> Numbers:
        return Numbers(np.concatenate([self.rows, other.rows]), self.of)

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)


@dataclass(frozen=True, eq=False, slots=True)
class Precomputed(Points):
    """Points, given by their kernel values with the training points.

    Parameters
    ----------
    values : VectorPoints of shape (n, m)
        Row i has the values of point i with each of the m training points. For the training points themselves m = n,
        and rows and columns have the same order.

    Examples
    --------
    >>> from mercer.points import points_of
    >>> K = Precomputed(points_of(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])))
    >>> K.among(np.array([0, 1])).rows
    array([[2., 1.],
           [1., 2.]])
    """

    values: VectorPoints

    @property
    def rows(self) -> Any:
        return self.values.rows

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def columns(self) -> int:
        return self.values.columns

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    def readable(self, who: str) -> Self:
        self.values.readable(who)
        return self

    def largest(self) -> float:
        """The largest |value|."""
        return self.values.largest()

    @property
    def symmetric(self) -> bool:
        """Whether the matrix is symmetric up to rounding errors."""
        rounding = 64 * float(np.finfo(self.rows.dtype).eps) * self.values.largest()
        return self.columns == len(self) and asymmetry(self.rows) <= rounding

    def validate(self, who: str) -> Precomputed:
        return Precomputed(self.values.validate(who))  # type: ignore[arg-type]

    def take(self, index: Index, *, copy: bool = True) -> Precomputed:
        return Precomputed(self.values.take(index, copy=copy))  # type: ignore[arg-type]

    def run(self, first: int, last: int) -> Precomputed:
        return Precomputed(self.values.run(first, last))  # type: ignore[arg-type]

    def join(self, other: Points) -> Precomputed:
        assert isinstance(other, Precomputed)
        return Precomputed(self.values.join(other.values))

    def fingerprint(self) -> str:
        return self.values.fingerprint()

    def anchors(self) -> Numbers:
        return Numbers(np.arange(self.columns), self.columns)

    def among(self, index: Index, others: Index | None = None) -> Precomputed:
        others = index if others is None else others
        if not self.values.sparse:  # one copy, of the values that are wanted
            return Precomputed(type(self.values)(self.values.rows[np.ix_(index, others)]))  # type: ignore[call-arg]
        return Precomputed(type(self.values)(self.values.rows[index][:, others]))  # type: ignore[call-arg]


def asymmetry(K: Any, step: int = 512) -> float:
    """The largest |K − Kᵀ| of a square matrix: by tiles of an array, at once if it is sparse.

    >>> asymmetry(np.array([[1.0, 2.0], [2.5, 1.0]]))
    0.5
    """
    step = max(step, K.shape[0]) if sp.issparse(K) else step
    starts = range(0, K.shape[0], step)
    tiles = ((slice(i, i + step), slice(j, j + step)) for i in starts for j in starts if i <= j)
    return max((float(abs(K[rows, columns] - K[columns, rows].T).max()) for rows, columns in tiles), default=0.0)
