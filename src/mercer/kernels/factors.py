"""Kernel matrices as products of sparse factors, for kernels that count features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Factors"]

TABLE = 1 << 24
"""Weights of features that a product with many vectors holds in memory at a time: 128 MB."""


@dataclass(frozen=True, eq=False)
class Factors:
    """K = A Bᵀ with A of shape (n, features) and B of shape (m, features), sparse arrays by rows.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> F = Factors(*[sp.csr_array([[1.0, 0.0], [2.0, 1.0]])] * 2)
    >>> (F + F.scaled(2.0)).times(np.eye(2))
    array([[ 3.,  6.],
           [ 6., 15.]])
    """

    A: Any
    B: Any

    @property
    def nbytes(self) -> int:
        """Bytes of both; memory that they share counts once."""
        parts = [part for one in (self.A, self.B) for part in (one.data, one.indices, one.indptr)]
        return sum({part.ctypes.data: part.nbytes for part in parts}.values())

    def times(self, V: NDArray[Any], rows: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """K V, or some rows of it."""
        A, out = self.A if rows is None else self.A[rows], []
        step = max(1, TABLE // max(self.B.shape[1], 1))
        for j in range(0, V.shape[1], step):
            out.append(A @ (self.B.T @ np.asarray(V[:, j : j + step], np.float64)))
        return np.hstack(out) if out else np.zeros((A.shape[0], 0))

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None) -> NDArray[np.float64]:
        """The entries of these rows and columns, or of all columns."""
        B = self.B if columns is None else self.B[columns]
        return np.asarray((self.A[rows] @ B.T).toarray())

    def diagonal(self) -> NDArray[np.float64]:
        """The diagonal of a matrix whose factors are one array."""
        return np.asarray(self.A.multiply(self.A).sum(axis=1)).ravel()

    def scaled(self, scale: float) -> Self:
        """The factors of scale · K for a positive scale, shared by both so that equal ones stay equal."""
        return self.weighted(*[np.full(one.shape[0], np.sqrt(scale)) for one in (self.A, self.B)])

    def weighted(self, rows: NDArray[np.float64], columns: NDArray[np.float64]) -> Self:
        """The factors of diag(rows) K diag(columns)."""
        A = _with_data(self.A, self.A.data * np.repeat(rows, np.diff(self.A.indptr)))
        if self.A is self.B and np.array_equal(rows, columns):
            return type(self)(A, A)
        return type(self)(A, _with_data(self.B, self.B.data * np.repeat(columns, np.diff(self.B.indptr))))

    def __add__(self, other: Factors) -> Factors:
        """The factors of the sum of both matrices."""
        import scipy.sparse as sp

        A = sp.hstack([self.A, other.A], format="csr")
        same = self.A is self.B and other.A is other.B
        return Factors(A, A if same else sp.hstack([self.B, other.B], format="csr"))

    @classmethod
    def constant(cls, value: float, n: int, m: int | None) -> Self:
        """The factors of an n × m matrix of equal numbers; if m is None, they are one array."""
        import scipy.sparse as sp

        A = sp.csr_array(np.full((n, 1), np.sqrt(value)))
        return cls(A, A if m is None else sp.csr_array(np.full((m, 1), np.sqrt(value))))


def _with_data(A: Any, data: NDArray[np.float64]) -> Any:
    """The array with other numbers at the same places."""
    return type(A)((data, A.indices, A.indptr), shape=A.shape)
