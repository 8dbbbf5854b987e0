"""What comes into a kernel matrix: rows, columns and vectors, checked and in the form that the tile engine reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.kernels import Function, Kernel
from mercer.points import as_rows, is_torch, same_columns

__all__ = [
    "chosen",
    "commutes",
    "count",
    "densified",
    "dtype_of",
    "index_runs",
    "is_symmetric",
    "joined",
    "may_be_dense",
    "narrowed",
    "parts_of",
    "run_ends",
    "size_of",
    "take",
    "validated",
    "wider",
]

Array: TypeAlias = Any

DENSE_COLUMNS = 4096
"""Sparse rows of up to this many columns are made dense: the tile engine on zeros is faster than a sparse product."""
DENSE_BYTES = 1 << 31
"""But not where that takes more than this, nor where it takes more than eight times the sparse rows themselves."""


def validated(kernel: Kernel, X: Array, Z: Array | None) -> tuple[Array, Array]:
    """Rows and columns of one dtype for vectors, column indices for a precomputed kernel, objects as they are."""
    if kernel.domain == "any":
        return kernel.as_objects(X), None if Z is None else kernel.as_objects(Z)
    X = _plain_rows(X)
    if kernel.domain == "precomputed":
        return X, None if Z is None else _column_indices(Z, X.shape[1])
    if Z is not None:
        Z = _plain_rows(Z)
        same_columns(X, Z, "KernelOperator")
        dtype = np.result_type(X.dtype, Z.dtype)
        X, Z = X.astype(dtype, copy=False), Z.astype(dtype, copy=False)
        kernel.check_data(Z)
    kernel.check_data(X)
    return X, Z


def _plain_rows(X: Array) -> Array:
    rows = as_rows(X)
    if is_torch(rows):
        advice = "give NumPy arrays or CSR matrices (X.numpy()), or call the kernel itself, kernel(X), for a tensor"
        raise InvalidInput(message("KernelOperator", "a PyTorch tensor", advice))
    return rows


def _column_indices(Z: Array, columns: int) -> NDArray[np.intp]:
    index = np.asarray(Z)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        given = f"Z of shape {index.shape} and dtype {index.dtype} with a precomputed kernel"
        raise InvalidInput(message("KernelOperator", given, "give the indices of its columns, or None for all"))
    if len(index) and not (index.min() >= 0 and index.max() < columns):
        given = f"column {index.max() if index.min() >= 0 else index.min()} of {columns} precomputed ones"
        raise InvalidInput(message("KernelOperator", given, "count training points from 0"))
    return index.astype(np.intp)


def dtype_of(rows: Array) -> np.dtype[Any]:
    """float32 for rows of that, float64 for everything else, objects included."""
    return np.dtype(np.float32 if getattr(rows, "dtype", None) == np.dtype(np.float32) else np.float64)


def is_symmetric(kernel: Kernel, X: Array) -> bool:
    """Whether K = Kᵀ: not so for some functions, nor for precomputed test rows that are as many as the columns."""
    return _is_symmetric_matrix(X) if kernel.domain == "precomputed" else commutes(kernel)


def commutes(kernel: Kernel) -> bool:
    """Whether k(x, z) = k(z, x), as every kernel should; a `Function` may say that it doesn't."""
    return all(part.symmetric for part in (kernel, *kernel.get_params().values()) if isinstance(part, Function))


def _is_symmetric_matrix(X: Array, step: int = 512) -> bool:
    """Up to the rounding errors of whoever computed it."""
    bound = 64 * float(np.finfo(X.dtype).eps) * abs(X).max()
    starts = range(0, X.shape[0], step)
    tiles = ((slice(i, i + step), slice(j, j + step)) for i in starts for j in starts if i <= j)
    return all(abs(X[rows, columns] - X[columns, rows].T).max() <= bound for rows, columns in tiles)


def narrowed(V: Array, dtype: np.dtype[Any]) -> tuple[Array, Any]:
    """V in this dtype, and the powers of 2 that its columns were divided by, so that all sizes fit float32."""
    if V.dtype.itemsize <= dtype.itemsize:
        return np.ascontiguousarray(V, dtype), 0
    largest = np.abs(V).max(axis=0, initial=0.0)
    power = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(np.ldexp(V, -power), dtype), power


def may_be_dense(rows: Array) -> bool:
    """Whether the tile engine may have the rows as an array, all zeros written out."""
    if not sp.issparse(rows):
        return True
    size = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize
    return bool(rows.shape[1] <= DENSE_COLUMNS and size <= max(DENSE_BYTES, 8 * rows.data.nbytes))


def size_of(rows: Array) -> int:
    """Bytes of an array or a sparse matrix; 0 for objects, which are not copied."""
    if sp.issparse(rows):
        return sum(int(part.nbytes) for part in (rows.data, rows.indices, rows.indptr))
    return int(getattr(rows, "nbytes", 0))


def count(rows: Array) -> int:
    """How many rows an array, or objects a sequence, has."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def take(rows: Array, index: NDArray[np.intp] | None) -> Array:
    """The rows of these numbers; None is all of them."""
    if index is None:
        return rows
    if hasattr(rows, "shape"):
        return rows[index]
    return [rows[i] for i in index]


def chosen(rows: Array, index: NDArray[np.intp] | None) -> Array:
    """The rows of these numbers, to be read: no copy where they are a run."""
    if index is not None and len(index) and isinstance(rows, np.ndarray) and run_ends(index) == [len(index) - 1]:
        return rows[index[0] : index[-1] + 1]
    return take(rows, index)


def wider(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The one of the most bytes."""
    return max(dtypes, key=lambda dtype: dtype.itemsize)


RUN = 1 << 17
"""Numbers of a run of rows: what is made of these alone makes no copy of all rows."""


def parts_of(rows: Array) -> Iterator[Array]:
    """Runs of a few megabytes each, in their order; one at least."""
    height = max(1, RUN // max(1, rows.shape[1]))
    for i in range(0, max(rows.shape[0], 1), height):
        yield rows[i : i + height]


def densified(rows: Array) -> Array:
    """CSR as an array, zeros included."""
    return rows.toarray() if sp.issparse(rows) else rows


def joined(first: Array, second: Array) -> Array:
    """The rows of both, as rows of that kind."""
    if sp.issparse(first) or sp.issparse(second):
        return sp.csr_array(sp.vstack([sp.csr_array(first), sp.csr_array(second)]))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    return [*first, *second]


def index_runs(index: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """(first, last) places of each run of consecutive numbers."""
    first = 0
    for last in run_ends(index):
        yield first, int(last)
        first = int(last) + 1


def run_ends(index: NDArray[np.intp]) -> list[int]:
    """The last place of each run of consecutive numbers."""
    return [*np.flatnonzero(np.diff(index) != 1), len(index) - 1] if len(index) else []
