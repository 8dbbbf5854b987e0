"""Kernel matrices as products of factors, for kernels that count features, and the linear one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Factors", "in_float64", "narrow", "some_vectors"]

TABLE = 1 << 21
"""Weights of features that a product with many vectors holds in memory at a time: 16 MB."""
TOGETHER = 1 << 20
"""Numbers of rows that are in float64 at a time."""
NARROW = 4
"""Rows are multiplied instead of entries if these are at least so many times as many numbers."""


@dataclass(frozen=True, eq=False)
class Factors:
    """K = A Bᵀ with A of shape (n, features) and B of shape (m, features), both sparse by rows, or both dense.

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
        parts = [part for one in (self.A, self.B) for part in _parts(one)]
        return sum({part.ctypes.data: part.nbytes for part in parts}.values())

    def times(self, V: NDArray[Any], rows: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """K V, or some rows of it."""
        A = self.A if rows is None else self.A[rows]
        out = [A @ (self.B.T @ np.asarray(V[:, some], np.float64)) for some in some_vectors(V, self.B.shape[1])]
        return np.hstack(out) if out else np.zeros((A.shape[0], 0))

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None) -> NDArray[np.float64]:
        """The entries of these rows and columns, or of all columns."""
        B = self.B if columns is None else self.B[columns]
        found = self.A[rows] @ B.T
        return np.asarray(found if isinstance(found, np.ndarray) else found.toarray())

    def diagonal(self) -> NDArray[np.float64]:
        """The diagonal of a matrix whose factors are one array."""
        if isinstance(self.A, np.ndarray):
            return np.asarray(np.einsum("ij,ij->i", self.A, self.A))
        return np.asarray(self.A.multiply(self.A).sum(axis=1)).ravel()

    def scaled(self, scale: float) -> Self:
        """The factors of scale · K for a positive scale, shared by both so that equal ones stay equal."""
        return self.weighted(*[np.full(one.shape[0], np.sqrt(scale)) for one in (self.A, self.B)])

    def weighted(self, rows: NDArray[np.float64], columns: NDArray[np.float64]) -> Self:
        """The factors of diag(rows) K diag(columns)."""
        A = _weighted(self.A, rows)
        if self.A is self.B and np.array_equal(rows, columns):
            return type(self)(A, A)
        return type(self)(A, _weighted(self.B, columns))

    def __add__(self, other: Factors) -> Factors:
        """The factors of the sum of both matrices."""
        A = _joined(self.A, other.A)
        same = self.A is self.B and other.A is other.B
        return Factors(A, A if same else _joined(self.B, other.B))

    @classmethod
    def of_rows(cls, X: Any, Z: Any, room: float) -> Self | None:
        """The factors X and Z, or X for both, if these are arrays with few columns that take at most `room` bytes."""
        given = [X] if Z is None else [X, Z]
        if not narrow(X, given[-1]):
            return None
        if sum(_bytes(one) * 8 // one.dtype.itemsize for one in given) > room:  # at most: in float64
            return None
        made = [one.astype(np.float64, copy=False) for one in given]
        return cls(made[0], made[-1])

    @classmethod
    def constant(cls, value: float, n: int, m: int | None) -> Self:
        """The factors of an n × m matrix of equal numbers; if m is None, they are one array."""
        import scipy.sparse as sp

        A = sp.csr_array(np.full((n, 1), np.sqrt(value)))
        return cls(A, A if m is None else sp.csr_array(np.full((m, 1), np.sqrt(value))))


def in_float64(X: Any) -> Iterator[tuple[slice, Any]]:
    """Some rows at a time in float64, so that those in float32 have the same sums, and are not all copied."""
    X = X.tocsr() if hasattr(X, "tocsr") else X
    step = max(1, TOGETHER * X.shape[0] // max(X.size, 1))
    for part in (slice(first, first + step) for first in range(0, X.shape[0], step)):
        yield part, X[part].astype(np.float64, copy=False)


def some_vectors(V: Any, features: int) -> Iterator[slice]:
    """Some columns of V at a time, for BᵀV with this many rows."""
    step = max(1, TABLE // max(features, 1))
    return (slice(first, first + step) for first in range(0, V.shape[1], step))


def narrow(X: Any, Z: Any) -> bool:
    """Whether X(ZᵀV) takes far fewer operations than (XZᵀ)V, for arrays, dense or sparse by rows."""
    if any(not (isinstance(one, np.ndarray) or hasattr(one, "indptr")) for one in (X, Z)):
        return False
    numbers = X.size + Z.size + X.shape[1]  # those that are stored, and those of ZᵀV
    return bool(NARROW * numbers <= X.shape[0] * Z.shape[0])


def _parts(A: Any) -> list[NDArray[Any]]:
    return [A] if isinstance(A, np.ndarray) else [A.data, A.indices, A.indptr]


def _bytes(A: Any) -> int:
    return sum(part.nbytes for part in _parts(A))


def _weighted(A: Any, rows: NDArray[np.float64]) -> Any:
    """diag(rows) A."""
    if isinstance(A, np.ndarray):
        return rows[:, None] * A
    return type(A)((A.data * np.repeat(rows, np.diff(A.indptr)), A.indices, A.indptr), shape=A.shape)


def _joined(A: Any, B: Any) -> Any:
    """The columns of both, dense if those of one are."""
    if isinstance(A, np.ndarray) or isinstance(B, np.ndarray):
        return np.hstack([one if isinstance(one, np.ndarray) else one.toarray() for one in (A, B)])
    import scipy.sparse as sp

    return sp.hstack([A, B], format="csr")
