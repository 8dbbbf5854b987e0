"""Diagonal operators, the identity, operators of low rank, and bordered operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators.arrays import Array, add_moved, as_floats, sums_of_rows
from mercer.operators.base import Dense, Operator

__all__ = ["Bordered", "Diagonal", "Identity", "LowRank"]


class Diagonal(Operator):
    """V ↦ diag(d) V.

    Parameters
    ----------
    d : array-like of shape (n,)

    Examples
    --------
    >>> (Diagonal([1.0, 2.0]) @ Dense([[1.0, 1.0], [1.0, 1.0]])).toarray()
    array([[1., 1.],
           [2., 2.]])
    """

    def __init__(self, d: ArrayLike) -> None:
        self.d = as_floats(d, "Diagonal", 1)
        super().__init__((len(self.d), len(self.d)), self.d.dtype, symmetric=True)

    def _matmat(self, V: Array) -> Array:
        return np.asarray(self.d[:, None] * V, V.dtype)

    def diagonal(self) -> Array:
        return self.d.copy()

    def rows(self, I: ArrayLike | slice) -> Array:
        index = self._index(I, 0)
        out = np.zeros((len(index), self.shape[1]), self.dtype)
        out[np.arange(len(index)), index] = self.d[index]
        return out

    def fill(self, out: Array) -> Array:
        self._check_out(out)
        out[...] = 0
        return self.add_to(out)

    def add_to(self, out: Array) -> Array:
        self._check_out(out)
        np.einsum("ii->i", out)[...] += self.d  # einsum returns a writable view of the diagonal for every memory layout
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Diagonal(self.d.astype(dtype))


class Identity(Diagonal):
    """V ↦ V.

    Parameters
    ----------
    n : int ≥ 0
    dtype : NumPy dtype, default float64

    Raises
    ------
    InvalidInput
        If n is negative.

    Examples
    --------
    >>> (2 * Identity(2)).toarray()
    array([[2., 0.],
           [0., 2.]])
    """

    def __init__(self, n: int, dtype: DTypeLike = np.float64) -> None:
        if n < 0:
            raise InvalidInput(message("Identity", f"n={n}", "give a size of at least 0"))
        super().__init__(np.ones(n, dtype))

    def _matmat(self, V: Array) -> Array:
        return V.copy()

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Identity(self.shape[0], dtype)


class LowRank(Operator):
    """X ↦ U (Vᵀ X), with V = U unless it is given.

    Parameters
    ----------
    U : array-like of shape (n, r)
    V : array-like of shape (m, r), optional

    Raises
    ------
    InvalidInput
        If the factors have different numbers of columns.

    Examples
    --------
    >>> LowRank([[1.0], [2.0]]).toarray()
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(self, U: ArrayLike, V: ArrayLike | None = None) -> None:
        self.U = as_floats(U, "LowRank", 2)
        self.V = self.U if V is None else as_floats(V, "LowRank", 2)
        if self.U.shape[1] != self.V.shape[1]:
            raise InvalidInput(
                message(
                    "LowRank",
                    f"factors of shapes {self.U.shape} and {self.V.shape}",
                    "give as many columns in both",
                )
            )
        dtype = np.result_type(self.U.dtype, self.V.dtype)
        super().__init__((self.U.shape[0], self.V.shape[0]), dtype, symmetric=self.V is self.U)

    def _matmat(self, V: Array) -> Array:
        return np.asarray(self.U @ (self.V.T @ V), V.dtype)

    def _transpose(self) -> Operator:
        return self if self.symmetric else LowRank(self.V, self.U)

    def diagonal(self) -> Array:
        size = min(self.shape)
        return np.asarray(np.einsum("ij,ij->i", self.U[:size], self.V[:size]), self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.asarray(self.U[self._index(I, 0)] @ self.V.T, self.dtype)

    def group_sums(
        self, labels: ArrayLike, groups: int | None = None, weights: ArrayLike | None = None, columns: Any = None
    ) -> NDArray[np.float64]:
        """U times the sums of the rows of V."""
        return self._spread(sums_of_rows(self.V, self._groups(labels, groups, weights, columns)))

    def moved_sums(
        self, sums: NDArray[np.float64], columns: ArrayLike, old: ArrayLike, new: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """U times the change of the sums of the rows of V, added."""
        change = np.zeros((sums.shape[1], self.V.shape[1]))
        add_moved(self.V, self._moves(sums, columns, old, new, weights), change)
        return np.asarray(sums + self._spread(change))

    def _spread(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """U times sums of rows of V."""
        return np.asarray(Dense(self.U)._matmat(np.ascontiguousarray(sums.T)))

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        U = self.U.astype(dtype, copy=False)
        return LowRank(U, None if self.V is self.U else self.V.astype(dtype, copy=False))


class Bordered(Operator):
    """[[A, B], [Bᵀ, C]] for a square A, a thin B, and a small C (0 unless it is given).

    Parameters
    ----------
    A : Operator of shape (n, n)
    B : array-like of shape (n, b)
    C : array-like of shape (b, b), optional

    Raises
    ------
    InvalidInput
        If the shapes differ from these.

    Examples
    --------
    >>> Bordered(Dense([[2.0]]), [[1.0]]) @ [1.0, 3.0]
    array([5., 1.])
    """

    def __init__(self, A: Operator, B: ArrayLike, C: ArrayLike | None = None) -> None:
        self.A, self.B = A, as_floats(B, "Bordered", 2)
        width = self.B.shape[1]
        self.C = np.zeros((width, width)) if C is None else as_floats(C, "Bordered", 2)
        if A.shape[0] != A.shape[1] or self.B.shape[0] != A.shape[0] or self.C.shape != (width, width):
            shapes = f"A, B, C of shapes {A.shape}, {self.B.shape}, {self.C.shape}"
            raise InvalidInput(message("Bordered", shapes, "give n × n, n × b and b × b"))
        size = A.shape[0] + width
        super().__init__(
            (size, size),
            A.dtype,
            symmetric=A.symmetric and np.array_equal(self.C, self.C.T),
        )

    def _matmat(self, V: Array) -> Array:
        n = self.A.shape[0]
        out = np.empty((self.shape[0], V.shape[1]), V.dtype)
        out[:n] = self.A._matmat(V[:n]) + self.B @ V[n:]
        out[n:] = self.B.T @ V[:n] + self.C @ V[n:]
        return out

    def _transpose(self) -> Operator:
        return self if self.symmetric else Bordered(self.A.T, self.B, self.C.T)

    def diagonal(self) -> Array:
        return np.concatenate([self.A.diagonal(), np.asarray(np.diagonal(self.C), self.dtype)])

    def fill(self, out: Array) -> Array:
        self._check_out(out)
        n = self.A.shape[0]
        self.A.fill(out[:n, :n])
        out[:n, n:], out[n:, :n], out[n:, n:] = self.B, self.B.T, self.C
        return out
