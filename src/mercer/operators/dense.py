"""Operators that are an array, a diagonal, or thin factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.linalg import blas

from mercer import backend
from mercer.errors import InvalidInput, message
from mercer.operators.base import Array, Operator, row_blocks
from mercer.operators.groups import Groups, Moves

__all__ = ["Bordered", "Dense", "Diagonal", "Identity", "LowRank", "as_floats", "product"]


_BLOCK_ELEMENTS, _TALL_ELEMENTS = 1 << 18, 1 << 22  # 2 and 32 MB of float64
_PIECE_ELEMENTS = 1 << 28  # added in one call: some tenths of a second


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

    def entries(self) -> Any:
        return np.ascontiguousarray(self.array)

    def block(self, I: ArrayLike | slice, J: ArrayLike | slice) -> Array:
        return self.array[np.ix_(self._index(I, 0), self._index(J, 1))]

    def group_sums(
        self, labels: ArrayLike, groups: int | None = None, weights: ArrayLike | None = None, columns: Any = None
    ) -> NDArray[np.float64]:
        """Of a symmetric array its rows are added up, which costs the same for any number of groups."""
        if not self.symmetric:
            return super().group_sums(labels, groups, weights, columns)
        return _sums_of_rows(self.array, self._groups(labels, groups, weights, columns)).T

    def several_group_sums(
        self, labellings: Sequence[ArrayLike], groups: int, weights: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Of a symmetric array in one pass for as many labellings as have sums of an eighth of the array's size."""
        if not self.symmetric:
            yield from super().several_group_sums(labellings, groups, weights)
            return
        n = self.shape[1]
        side = max(1, self.array.nbytes // (64 * max(1, n * groups)))
        for first in range(0, len(labellings), side):
            all_of = [self._groups(one, groups, weights, None) for one in labellings[first : first + side]]
            some = len(all_of)
            place = np.stack([of.labels + s * groups for s, of in enumerate(all_of)], axis=1).ravel()
            w = None if all_of[0].weights is None else np.repeat(all_of[0].weights, some)
            out = np.zeros((some * groups, n))
            _add_rows(self.array, np.repeat(np.arange(n), some), place, w, out)
            yield from (one.T for one in out.reshape(some, groups, n))

    def moved_sums(
        self, sums: NDArray[np.float64], columns: ArrayLike, old: ArrayLike, new: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        if not self.symmetric:
            return super().moved_sums(sums, columns, old, new, weights)
        out = np.array(sums.T, np.float64, order="C")
        _add_moved(self.array, self._moves(sums, columns, old, new, weights), out)
        return out.T

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
        return self._spread(_sums_of_rows(self.V, self._groups(labels, groups, weights, columns)))

    def moved_sums(
        self, sums: NDArray[np.float64], columns: ArrayLike, old: ArrayLike, new: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """U times the change of the sums of the rows of V, added."""
        change = np.zeros((sums.shape[1], self.V.shape[1]))
        _add_moved(self.V, self._moves(sums, columns, old, new, weights), change)
        return np.asarray(sums + self._spread(change))

    def _spread(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """U times sums of rows of V."""
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
    """Σ wⱼ array[j] over the rows j of each group, in float64 whatever the dtype of the array."""
    out = np.zeros((of.size, array.shape[1]))
    _add_rows(array, of.columns, of.labels, of.weights, out)
    return out


def _add_moved(array: Array, moves: Moves, out: NDArray[np.float64]) -> None:
    """Take the rows that moved from the sums of their old groups, and add them to those of the new ones."""
    row, place = np.repeat(moves.columns, 2), np.stack([moves.old, moves.new], axis=1).ravel()
    w = np.ones(len(moves.columns)) if moves.weights is None else moves.weights
    _add_rows(array, row, place, np.stack([-w, w], axis=1).ravel(), out)


def _add_rows(array: Array, row: Array, place: Array, weight: Array | None, out: NDArray[np.float64]) -> None:
    """out[place[t]] += weight[t] array[row[t]] for one t after the other, in bounded pieces of work."""
    isa = backend.instruction_set() if backend.is_native() else ""
    row, place = np.asarray(row, np.int64), np.asarray(place, np.int64)
    whole = array.flags.c_contiguous
    for some in row_blocks(len(row), array.shape[1], _PIECE_ELEMENTS if whole else _TALL_ELEMENTS):
        rows, index = (array, row[some]) if whole else (array[row[some]], np.arange(len(row[some])))
        w = None if weight is None else weight[some]
        backend.engine().add_rows(np.ascontiguousarray(rows), index, place[some], w, out, isa)


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
