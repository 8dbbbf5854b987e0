"""Points as the rows of a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from mercer.points.base import Index, VectorPoints
from mercer.points.validate import as_rows

__all__ = ["SparsePoints"]

DENSE_COLUMNS = 4096
"""Sparse rows of up to this many columns become dense: the tile engine is faster with zeros than a sparse product."""
DENSE_BYTES = 1 << 31
"""Sparse rows stay sparse if the dense array takes more bytes than this, and than eight times the sparse rows."""


@dataclass(frozen=True, eq=False, slots=True)
class SparsePoints(VectorPoints):
    """The rows of a CSR matrix.

    Parameters
    ----------
    rows : CSR array or matrix of shape (n, d)

    Examples
    --------
    >>> points = SparsePoints(sp.csr_array([[1.0, 0.0], [0.0, 4.0]]))
    >>> points.join(points).dense()
    array([[1., 0.],
           [0., 4.],
           [1., 0.],
           [0., 4.]])
    """

    rows: Any

    def validate(self, who: str) -> SparsePoints:
        return SparsePoints(as_rows(self.rows, who=who))

    def take(self, index: Index, *, copy: bool = True) -> SparsePoints:
        return SparsePoints(self.rows[index])

    def run(self, first: int, last: int) -> SparsePoints:
        return SparsePoints(self.rows[first:last])

    def dense(self) -> NDArray[Any]:
        return np.asarray(self.rows.toarray())

    def csr(self) -> Any:
        return sp.csr_array(self.rows)

    def astype(self, dtype: DTypeLike) -> SparsePoints:
        return self if self.rows.dtype == dtype else SparsePoints(self.rows.astype(dtype))

    def stack(self, first: VectorPoints, second: VectorPoints) -> SparsePoints:
        return SparsePoints(sp.csr_array(sp.vstack([first.csr(), second.csr()])))

    @property
    def sparse(self) -> bool:
        return True

    @property
    def values(self) -> NDArray[Any]:
        return np.asarray(self.rows.data)

    @property
    def nbytes(self) -> int:
        return sum(int(part.nbytes) for part in (self.rows.data, self.rows.indices, self.rows.indptr))

    @property
    def may_be_dense(self) -> bool:
        return bool(self.columns <= DENSE_COLUMNS and self.written <= max(DENSE_BYTES, 8 * self.rows.data.nbytes))

    @property
    def written(self) -> int:
        return len(self) * self.columns * int(self.rows.dtype.itemsize)

    def squared_norms(self) -> NDArray[Any]:
        return np.asarray(self.rows.multiply(self.rows).sum(axis=1)).ravel()
