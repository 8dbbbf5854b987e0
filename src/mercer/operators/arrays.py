"""Products of arrays, and sums of their rows, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import blas

from mercer.engine import backend
from mercer.errors import InvalidInput, message
from mercer.operators.groups import Groups, Moves

__all__ = [
    "Array",
    "add_moved",
    "add_rows",
    "as_floats",
    "product",
    "require_finite",
    "row_blocks",
    "sums_of_rows",
    "times",
]

Array = NDArray[Any]

BLOCK_ELEMENTS, TALL_ELEMENTS = 1 << 18, 1 << 22
"""Entries of a block of rows: 2 MB of float64, which fit the second-level cache, and 32 MB."""
ROWS, LEAST_DEPTH, MOST_COLUMNS = 1024, 256, 64
"""Where A V is computed by blocks: rows of a block for each two threads of BLAS, least columns of A, most columns of V.
Of 10 000 rows and columns, 2 to 26 columns of V take 0.7 to 0.8 of the time of one call, 52 and 65 0.8 to 0.9, and in
float32 few take 0.6 (AMD EPYC). 30 columns of A and 200 000 rows took up to twice as long."""
PIECE_ELEMENTS = 1 << 28
"""Entries that are added in one call, between two interrupt checks."""


def row_blocks(rows: int, columns: int, elements: int = BLOCK_ELEMENTS) -> Iterator[slice]:
    """Slices that cover ``range(rows)``, each with about ``elements`` entries in rows of ``columns`` entries.

    Parameters
    ----------
    rows, columns : int
        The shape of the matrix.
    elements : int
        Entries of a block; a block has at least one row.

    Examples
    --------
    >>> list(row_blocks(5, 10, elements=20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    height = max(1, elements // max(1, columns))
    return (slice(i, min(i + height, rows)) for i in range(0, rows, height))


def times(A: Array, V: Array) -> Array:
    """A V, row-major by blocks of many rows for few columns, else column-major.

    For a tall A and 65 columns BLAS takes two thirds of the time of the row-major product.
    """
    many = A.flags.c_contiguous and len(A) > 2 * ROWS and A.shape[1] >= LEAST_DEPTH
    if not (many and 1 < V.shape[1] <= MOST_COLUMNS):
        return np.asarray((V.T @ A.T).T)
    height = ROWS * max(1, backend.blas_threads() // 2)
    out = np.empty((len(A), V.shape[1]), np.result_type(A, V))
    for first in range(0, len(A), height):
        np.matmul(A[first : first + height], V, out=out[first : first + height])
    return out


def product(A: Array, V: Array) -> Array:
    """A V, row-major, for contiguous A and V of one dtype, by the BLAS that SciPy's factorisations use.

    NumPy's and SciPy's wheels each have an OpenBLAS of their own. Idle threads of one spin for a while after a call,
    and take cores from the other. On two cores, products of 4000² float32 entries with 25 columns, between solves with
    a factor of 300 rows, took half of the time with SciPy's BLAS.

    Parameters
    ----------
    A : array of shape (n, m), float32 or float64
    V : array of shape (m, k)
        Of the dtype of A.

    Examples
    --------
    >>> product(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [1.0]]))
    array([[3.],
           [7.]])
    """
    single, by_rows = A.dtype == np.float32, A.flags.c_contiguous
    if not A.size or not V.size:
        return np.zeros((len(A), V.shape[1]), A.dtype)
    # A row-major array is the transpose of a column-major one, so Vᵀ Aᵀ gives A V without copies.
    stored = A.T if by_rows else A
    if V.shape[1] == 1:
        gemv = blas.sgemv if single else blas.dgemv
        return np.asarray(gemv(1.0, stored, V[:, 0], trans=by_rows)[:, None])
    gemm = blas.sgemm if single else blas.dgemm
    return np.asarray(gemm(1.0, V.T, stored, trans_b=not by_rows).T)


def sums_of_rows(array: Array, of: Groups) -> NDArray[np.float64]:
    """Σ wⱼ array[j] over the rows j of each group, in float64."""
    out = np.zeros((of.size, array.shape[1]))
    add_rows(array, of.columns, of.labels, of.weights, out)
    return out


def add_moved(array: Array, moves: Moves, out: NDArray[np.float64]) -> None:
    """Subtract the rows that moved from the sums of their old groups, and add them to those of the new ones."""
    row, place = np.repeat(moves.columns, 2), np.stack([moves.old, moves.new], axis=1).ravel()
    w = np.ones(len(moves.columns)) if moves.weights is None else moves.weights
    add_rows(array, row, place, np.stack([-w, w], axis=1).ravel(), out)


def add_rows(array: Array, row: Array, place: Array, weight: Array | None, out: NDArray[np.float64]) -> None:
    """out[place[t]] += weight[t] array[row[t]] for t = 0, 1, …, in bounded pieces of work."""
    row, place = np.asarray(row, np.int64), np.asarray(place, np.int64)
    whole = array.flags.c_contiguous
    for some in row_blocks(len(row), array.shape[1], PIECE_ELEMENTS if whole else TALL_ELEMENTS):
        rows, index = (array, row[some]) if whole else (array[row[some]], np.arange(len(row[some])))
        w = None if weight is None else weight[some]
        backend.engine().add_rows(matrix=np.ascontiguousarray(rows), row=index, place=place[some], weight=w, out=out)


def as_floats(array: ArrayLike, who: str, ndim: int) -> Array:
    """The array in float64, or unchanged if it is float32 or float64; raise InvalidInput unless it has `ndim` axes."""
    A: Array = np.asarray(array)
    if A.ndim != ndim or A.dtype.kind not in "biuf":
        raise InvalidInput(
            message(who, f"an array of shape {A.shape} and dtype {A.dtype}", f"give {ndim} dimensions of real numbers")
        )
    kept: tuple[Any, ...] = (np.float32, np.float64)
    return A if A.dtype in kept else A.astype(np.float64)


def require_finite(values: ArrayLike, who: str) -> None:
    """Refuse a matrix if it, or a result that depends on all of its entries, is not finite.

    NaN ends no loop that waits for a number to become small, and LAPACK may never return.
    """
    if not np.isfinite(values).all():
        raise InvalidInput(message(who, "a kernel matrix that is not finite", "check the kernel and the rows"))
