"""Operators that are an array, a diagonal, or thin factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.linalg import blas
from scipy.sparse import csr_array

from mercer.errors import InvalidInput, message
from mercer.operators.base import Array, Groups, Operator, row_blocks

__all__ = ["Bordered", "Dense", "Diagonal", "Identity", "LowRank", "as_floats", "product"]


_BLOCK_ELEMENTS, _TALL_ELEMENTS = 1 << 18, 1 << 22  # 2 and 32 MB of float64
_LONG_ROW = 1000  # entries whose addition costs no less than Python's share of it


class Dense(Operator):
    """V ↦ A V for an array A, which is not copied when it is float32 or float64.

    A float32 array times a float64 V is accumulated in float64 over blocks of rows: no float64 copy of A is made.

    Parameters
    ----------
    array : array-like of shape (m, n)
    symmetric : bool, optional
        Whether the array equals its transpose; looked up in the array when it is first asked for.
    beside_lapack : bool
        Products by `product`: for those between factorisations and triangular solves.

    Examples
    --------
    >>> A = Dense([[2.0, 1.0], [1.0, 3.0]])
    >>> A @ [1.0, 1.0], A.symmetric
    (array([3., 4.]), True)
    """

    def __init__(self, array: ArrayLike, *, symmetric: bool | None = None, beside_lapack: bool = False) -> None:
        self.array, self.beside_lapack = as_floats(array, "Dense", 2), beside_lapack
        shape = (self.array.shape[0], self.array.shape[1])
        super().__init__(shape, self.array.dtype, symmetric=bool(symmetric))
        self._symmetric = False if shape[0] != shape[1] else symmetric

    @property
    def symmetric(self) -> bool:
        if self._symmetric is None:
            blocks = row_blocks(*self.shape)
            self._symmetric = all(np.array_equal(self.array[r, : r.stop], self.array[: r.stop, r].T) for r in blocks)
        return self._symmetric

    def _matmat(self, V: Array) -> Array:
        if self.dtype == V.dtype:
            return product(self.array, V) if self.beside_lapack else _times(self.array, V)
        if V.dtype == np.float32:
            return np.asarray(_times(self.array, V.astype(np.float64)), np.float32)
        out = np.empty((V.shape[1], self.shape[0])).T
        # Taller blocks for a large matrix: a product of few rows with V would be bound by reading V.
        elements = min(max(_BLOCK_ELEMENTS, self.array.size // 12), _TALL_ELEMENTS)
        wide = np.empty((0, self.shape[1]))
        for rows in row_blocks(self.shape[0], self.shape[1], elements):
            if len(wide) == 0:  # once, because fresh memory costs as much as the conversion
                wide = np.empty((rows.stop, self.shape[1]))
            block = wide[: rows.stop - rows.start]
            block[...] = self.array[rows]
            out[rows] = _times(block, V)
        return out

    def _transpose(self) -> Operator:
        return self if self.symmetric else Dense(self.array.T, symmetric=False, beside_lapack=self.beside_lapack)

    def diagonal(self) -> Array:
        return np.diagonal(self.array).copy()

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.ascontiguousarray(self.array[I if isinstance(I, slice) else self._index(I, 0)])

    def block(self, I: ArrayLike | slice, J: ArrayLike | slice) -> Array:
        return self.array[np.ix_(self._index(I, 0), self._index(J, 1))]

    def group_sums(
        self, labels: ArrayLike, groups: int | None = None, weights: ArrayLike | None = None, columns: Any = None
    ) -> NDArray[np.float64]:
        """Of a symmetric array its rows are added up, which costs the same for any number of groups."""
        if not self.symmetric:
            return super().group_sums(labels, groups, weights, columns)
        return np.ascontiguousarray(_sums_of_rows(self.array, self._groups(labels, groups, weights, columns)).T)

    def fill(self, out: Array) -> Array:
        self._check_out(out)
        out[...] = self.array
        return out

    def add_to(self, out: Array) -> Array:
        self._check_out(out)
        out += self.array
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        if np.dtype(dtype) == self.dtype:
            return self
        return Dense(self.array.astype(dtype), symmetric=self._symmetric, beside_lapack=self.beside_lapack)


class Diagonal(Operator):
    """V ↦ diag(d) V.

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
        np.einsum("ii->i", out)[...] += self.d  # einsum gives a writable view of the diagonal, whatever the layout
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Diagonal(self.d.astype(dtype))


class Identity(Diagonal):
    """V ↦ V.

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
        sums = _sums_of_rows(self.V, self._groups(labels, groups, weights, columns))
        return np.asarray(Dense(self.U)._matmat(np.ascontiguousarray(sums.T)))

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        U = self.U.astype(dtype, copy=False)
        return LowRank(U, None if self.V is self.U else self.V.astype(dtype, copy=False))


class Bordered(Operator):
    """[[A, B], [Bᵀ, C]] for a square A, a thin B, and a small C (0 unless it is given).

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


def _times(A: Array, V: Array) -> Array:
    """A V by columns, the order in which BLAS is quickest with a tall A: 66 ms against 97 for 7291² entries in float64
    times 65 columns.
    """
    return np.asarray((V.T @ A.T).T)


def product(A: Array, V: Array) -> Array:
    """A V, row-major, for contiguous A and V of one dtype, by the BLAS that SciPy's factorisations stand on.

    NumPy's and SciPy's wheels bring an OpenBLAS each, whose idle threads spin for a while after their work and take the
    cores from the other's: a product with 25 columns of 4000² float32 entries, between solves with a factor of 300
    rows, took 16 ms by SciPy's and 30 by NumPy's, on two cores.

    >>> product(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [1.0]]))
    array([[3.],
           [7.]])
    """
    single, by_rows = A.dtype == np.float32, A.flags.c_contiguous
    if not A.size or not V.size:
        return np.zeros((len(A), V.shape[1]), A.dtype)
    # What is row-major here is its transpose there, and nothing is copied: Vᵀ Aᵀ for A V.
    stored = A.T if by_rows else A
    if V.shape[1] == 1:
        gemv = blas.sgemv if single else blas.dgemv
        return np.asarray(gemv(1.0, stored, V[:, 0], trans=by_rows)[:, None])
    gemm = blas.sgemm if single else blas.dgemm
    return np.asarray(gemm(1.0, V.T, stored, trans_b=not by_rows).T)


def _sums_of_rows(array: Array, of: Groups) -> NDArray[np.float64]:
    """Σ wⱼ array[j] over the rows j of each group, in float64 whatever the dtype of the array.

    Long rows one by one: on 5000 × 5000 float32 entries this took 0.8 to 1.1 ns an entry for 10 and for 100 groups, a
    sparse product with the indicators 1.4 and 2.9, a dense one in float32 0.8 and 2.0.
    """
    out = np.zeros((of.size, array.shape[1]))
    order = np.argsort(of.labels, kind="stable")
    if array.shape[1] < _LONG_ROW:
        for some in row_blocks(len(order), array.shape[1]):
            place = order[some]
            w = np.ones(len(place)) if of.weights is None else of.weights[place]
            inside = (of.labels[place], np.arange(len(place)))
            out += csr_array((w, inside), (of.size, len(place))) @ array[of.columns[place]].astype(np.float64)
        return out
    for j in order.tolist():
        row = array[of.columns[j]]
        out[of.labels[j]] += row if of.weights is None else of.weights[j] * row.astype(np.float64)
    return out


def as_floats(array: ArrayLike, who: str, ndim: int) -> Array:
    """The array as it is when it is float32 or float64, otherwise as float64; of so many dimensions, or an error."""
    A: Array = np.asarray(array)
    if A.ndim != ndim or A.dtype.kind not in "biuf":
        raise InvalidInput(
            message(
                who,
                f"an array of shape {A.shape} and dtype {A.dtype}",
                f"give {ndim} dimensions of real numbers",
            )
        )
    kept: tuple[Any, ...] = (np.float32, np.float64)
    return A if A.dtype in kept else A.astype(np.float64)
