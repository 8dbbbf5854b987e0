"""Points as the rows of an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.points.base import Index, VectorPoints
from mercer.points.fingerprint import fingerprint
from mercer.points.runs import run_ends
from mercer.points.validate import as_rows

__all__ = ["DensePoints"]


@dataclass(frozen=True, eq=False, slots=True)
class DensePoints(VectorPoints):
    """The rows of an array of numbers.

    Parameters
    ----------
    rows : array of shape (n, d)
        Kernel values are computed in float32 for rows in float32, and in float64 for all others.

    Examples
    --------
    >>> points = DensePoints(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    >>> points.take(np.array([2, 0])).rows
    array([[5., 6.],
           [1., 2.]])
    """

    rows: NDArray[Any]

    def validate(self, who: str) -> DensePoints:
        return DensePoints(as_rows(self.rows, who=who))

    def take(self, index: Index, *, copy: bool = True) -> DensePoints:
        if not copy and len(index) and run_ends(index) == [len(index) - 1]:
            return self.run(int(index[0]), int(index[-1]) + 1)
        return DensePoints(np.asarray(self.rows[index]))  # an array in memory, also of a mapped file

    def run(self, first: int, last: int) -> DensePoints:
        return DensePoints(self.rows[first:last])

    def dense(self) -> NDArray[Any]:
        return self.rows

    def astype(self, dtype: DTypeLike) -> DensePoints:
        return self if self.rows.dtype == dtype else DensePoints(self.rows.astype(dtype))

    def stack(self, first: VectorPoints, second: VectorPoints) -> DensePoints:
        return DensePoints(np.concatenate([first.dense(), second.dense()]))

    def fingerprint(self) -> str:
        return fingerprint(np.asarray(self.rows))  # the same for a mapped file
