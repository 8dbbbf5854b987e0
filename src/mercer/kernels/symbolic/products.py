"""Inner products of sparse rows: for each number of a row, the rows that have its feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend

__all__ = ["add_products", "sparse_products"]

PIECE = 1e8
"""How many products of numbers a thread computes between two interrupt checks."""


def add_products(
    rows: Any, columns: Any, out: NDArray[np.float64], weight: float = 1.0, *, triangle: bool = False
) -> None:
    """`out` += weight · XZᵀ for X by rows, a CSR array, and Z by features, a CSC array; with `triangle` for j ≥ i only.

    The values of both are whole numbers in int32, or in float64.
    """
    core = backend.engine()
    (start, features), (feature_start, places) = _indices(rows), _indices(columns)
    work = np.cumsum(np.add.reduceat(np.append(np.diff(feature_start)[features], 0), start[:-1]) * (np.diff(start) > 0))
    ends = np.searchsorted(work, np.arange(PIECE, work[-1] + PIECE, PIECE * core.threads())) + 1
    i0 = 0
    for i1 in (*ends[ends < len(out)], len(out)):
        core.add_products(
            row_start=start, features=features, row_values=rows.data,
            feature_start=feature_start, rows=places, feature_values=columns.data,
            weight=float(weight), triangle=triangle, i0=i0, i1=int(i1), out=out,
        )  # fmt: skip
        i0 = int(i1)


def _indices(matrix: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)


def sparse_products(X: Any, Z: Any) -> NDArray[np.float64]:
    """⟨x, z⟩ for all rows of two CSR arrays in float64.

    SciPy's product is a sparse matrix, which holds most pairs for words that most texts have, and takes several times
    as long. Where there are more features than numbers, those that no row has are left out of the index.

    >>> import scipy.sparse as sp
    >>> sparse_products(sp.csr_array([[1.0, 0.0, 2.0]]), sp.csr_array([[0.0, 3.0, 0.5], [4.0, 0.0, 0.0]]))
    array([[1., 4.]])
    """
    if X.shape[1] > X.nnz + Z.nnz:
        X, Z = _renumbered(X, Z)
    out = np.zeros((X.shape[0], Z.shape[0]))
    if X.nnz and Z.nnz:
        add_products(X, Z.tocsc(), out)
    return out


def _renumbered(X: Any, Z: Any) -> tuple[Any, Any]:
    """The same rows with the features that one of them has, in order.

    SciPy's product has an array of all features: 8 GB for 2³¹ of them, and a segmentation fault before SciPy 1.17.
    """
    given = [one.indices[: one.nnz] for one in (X, Z)]
    found, numbers = np.unique(np.concatenate(given), return_inverse=True)
    parts = np.split(numbers.astype(np.int32), [X.nnz])
    made = [
        type(one)((one.data[: one.nnz], part, one.indptr), shape=(one.shape[0], len(found)))
        for one, part in zip((X, Z), parts, strict=True)
    ]
    return made[0], made[1]
