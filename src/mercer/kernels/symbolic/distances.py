"""The six pairings on arrays, accurate, and without arrays of n × m × d numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from mercer.errors import InvalidInput, message
from mercer.kernels.symbolic.products import sparse_products
from mercer.numerals import counted
from mercer.points import DevicePoints, is_torch, points_of, vectors_of

__all__ = [
    "chi2", "dot", "l1", "matched", "min_sum", "mismatches", "row_sums", "sqdist", "squared_norms", "zeros",
]  # fmt: skip

_BLOCK = 1 << 16
"""Entries of a block of pairs that stays in the cache during the loop over the columns."""
_DIRECT = 32
"""Up to this many columns, direct differences cost no more than a matrix product and the repair of close pairs."""
_CLOSE = {4: 1e-6, 8: 0.02}
"""By bytes of a number: if ‖x − z‖² is below this share of ‖x‖² + ‖z‖², the expansion in float64 has an error above
10⁻⁷ or 10⁻¹³, and the pair is computed by differences."""
_CLOSE_TENSORS = {2: 0.5, 4: 0.3, 8: 0.02}
"""The same for an expansion in the rows' own precision."""
_RUN = 64
"""The most terms that are added one after the other in single precision; longer sums are sums of such sums."""


def matched(X: Any, Z: Any) -> tuple[Any, Any]:
    """X and Z in one format and dtype; if they are the same object, the results are the same object."""
    if X.shape[1] != Z.shape[1]:
        given = f"rows of {X.shape[1]} and of {counted(Z.shape[1], 'column')}"
        raise InvalidInput(message("pairing", given, "give X and Z the same columns"))
    if Z is X:
        X = vectors_of(X).csr() if points_of(X).sparse else X
        return X, X
    if is_torch(X) or is_torch(Z):
        return _matched_tensors(X, Z)
    X, Z = (one.dense() if isinstance(one, DevicePoints) else one for one in (X, Z))
    if points_of(X).sparse or points_of(Z).sparse:
        X, Z = vectors_of(X).csr(), vectors_of(Z).csr()
    dtype = np.result_type(X.dtype, Z.dtype)
    return X.astype(dtype, copy=False), Z.astype(dtype, copy=False)


def _matched_tensors(X: Any, Z: Any) -> tuple[Any, Any]:
    torch = sys.modules["torch"]
    like = X if is_torch(X) else Z
    X, Z = torch.as_tensor(X, device=like.device), torch.as_tensor(Z, device=like.device)
    dtype = torch.promote_types(X.dtype, Z.dtype)
    return X.to(dtype), Z.to(dtype)


# ---- one row with itself --------------------------------------------------------------------------------------------


def squared_norms(X: Any) -> Any:
    """⟨x, x⟩ for each row."""
    if is_torch(X):
        return (X * X).sum(dim=1)
    return _squared_norms64(X).astype(X.dtype)


def _squared_norms64(X: Any) -> Any:
    points = points_of(X)
    if points.sparse or isinstance(points, DevicePoints):
        return vectors_of(X).astype(np.float64).squared_norms()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def row_sums(X: Any) -> Any:
    """Σ xᵢ for each row."""
    if is_torch(X):
        return X.sum(dim=1)
    if isinstance(X, DevicePoints):
        return X.sums().astype(X.dtype)
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel().astype(X.dtype)


def zeros(X: Any) -> Any:
    """0 for each row."""
    return X.new_zeros(X.shape[0]) if is_torch(X) else np.zeros(X.shape[0], dtype=X.dtype)


# ---- the inner product and the Euclidean distance -------------------------------------------------------------------


def dot(X: Any, Z: Any) -> Any:
    """⟨x, z⟩ for all pairs."""
    if is_torch(X):
        return X @ Z.T
    A, B = X.astype(np.float64, copy=False), Z.astype(np.float64, copy=False)
    product = sparse_products(A, B) if points_of(A).sparse else A @ B.T
    return product.astype(X.dtype, copy=False)


def sqdist(X: Any, Z: Any) -> Any:
    """‖x − z‖² for all pairs."""
    if is_torch(X):
        return _sqdist_tensor(X, Z)
    if X.shape[1] <= _DIRECT and not points_of(X).sparse:
        return cdist(X, Z, "sqeuclidean").astype(X.dtype, copy=False)
    return _sqdist_expanded(X, Z).astype(X.dtype, copy=False)


def _sqdist_expanded(X: Any, Z: Any) -> Any:
    """xx + zz − 2·dot of centred rows in float64, at least 0, and 0 on the diagonal; close pairs by differences."""
    same, close = Z is X, _CLOSE[X.dtype.itemsize]
    X = X.astype(np.float64, copy=False)
    Z = X if same else Z.astype(np.float64, copy=False)
    A, B = _centred(X, Z)
    xx, zz = _squared_norms64(A), _squared_norms64(B)
    D = dot(A, B)
    D *= -2.0
    D += xx[:, None] + zz[None, :]  # the sum of the norms first, because it is exactly symmetric
    np.maximum(D, 0.0, out=D)
    if same:
        np.fill_diagonal(D, 0.0)
    # Differences of the given rows, since subtracting a rounded mean changes the rows.
    _repair(D, X, Z, close * xx, close * zz, same)
    return D


def _centred(X: Any, Z: Any) -> tuple[Any, Any]:
    if points_of(X).sparse or not X.shape[0]:
        return X, Z
    mean = X.mean(axis=0)
    A = X - mean
    return A, A if Z is X else Z - mean


def _repair(D: Any, X: Any, Z: Any, xx: Any, zz: Any, same: bool) -> None:
    """Direct differences for pairs with D < xx + zz; kernels of the distance need √D to be accurate, too."""
    near = xx[:, None] + zz > D
    if same:
        np.fill_diagonal(near, False)
    for i in np.flatnonzero(near.any(axis=1)).tolist():
        close = np.flatnonzero(near[i])
        for start in range(0, len(close), _rows_at_once(Z)):
            part = close[start : start + _rows_at_once(Z)]
            D[i, part] = _differences(X, i, Z, part)


def _differences(X: Any, i: int, Z: Any, rows: Any) -> Any:
    if points_of(X).sparse:
        return _squared_norms64(Z[rows] - X[np.full(len(rows), i)])
    return _squared_norms64(Z[rows] - X[i])


def _rows_at_once(Z: Any) -> int:
    return int(max(1, (1 << 22) // max(1, Z.shape[1])))


def _sqdist_tensor(X: Any, Z: Any) -> Any:
    if X.shape[1] <= _DIRECT:
        return _over_columns(X, Z, lambda x, z: (x - z) ** 2)
    mean = X.mean(dim=0) if len(X) else 0.0
    A, B = X - mean, Z - mean
    size = (A * A).sum(dim=1)[:, None] + (B * B).sum(dim=1)[None, :]
    D = (size - 2.0 * (A @ B.T)).clamp(min=0.0)
    D = D.fill_diagonal_(0.0) if Z is X else D
    share = _CLOSE_TENSORS[X.element_size()]
    i, j = (share * size > D).nonzero(as_tuple=True)
    if 4 * len(i) > D.numel():
        return _over_columns(X, Z, lambda x, z: (x - z) ** 2)
    for start in range(0, len(i), _rows_at_once(X)):
        some = slice(start, start + _rows_at_once(X))
        D[i[some], j[some]] = ((X[i[some]] - Z[j[some]]) ** 2).sum(dim=1)
    return D


# ---- sums over columns ----------------------------------------------------------------------------------------------


def l1(X: Any, Z: Any) -> Any:
    """Σ |xᵢ − zᵢ| for all pairs."""
    _needs_dense(X, "l1")
    if is_torch(X):
        return _over_columns(X, Z, lambda x, z: (x - z).abs())
    return cdist(X, Z, "cityblock").astype(X.dtype, copy=False)


def min_sum(X: Any, Z: Any) -> Any:
    """Σ min(xᵢ, zᵢ) for all pairs."""
    _needs_dense(X, "min_sum")
    return _over_columns(X, Z, sys.modules["torch"].minimum if is_torch(X) else np.minimum)


def chi2(X: Any, Z: Any) -> Any:
    """Σ (xᵢ − zᵢ)²/(xᵢ + zᵢ) for all pairs, where 0/0 = 0."""
    _needs_dense(X, "chi2")
    if any(bool((rows < 0).any()) for rows in (X, Z)):
        raise InvalidInput(message("pairing", "'chi2' of negative entries", "give counts or frequencies"))

    def term(x: Any, z: Any) -> Any:
        total = x + z
        # Divided before squared: the square of a small difference would underflow.
        return (x - z) * ((x - z) / (total + (total == 0)))

    return _over_columns(X, Z, term)


def mismatches(X: Any, Z: Any) -> Any:
    """#{xᵢ ≠ zᵢ} for all pairs."""
    _needs_dense(X, "mismatches")
    return _over_columns(X, Z, lambda x, z: x != z)


def _over_columns(X: Any, Z: Any, term: Callable[[Any, Any], Any]) -> Any:
    """Σᵢ term(xᵢ, zᵢ) for all pairs, column by column for a block of pairs; sums of arrays are in float64."""
    if is_torch(X):
        total = X.new_zeros((X.shape[0], Z.shape[0]))
        for start in range(0, X.shape[1], _RUN):
            part = X.new_zeros(total.shape)
            for x, z in zip(X.T[start : start + _RUN], Z.T[start : start + _RUN], strict=True):
                part = part + term(x[:, None], z[None, :])
            total = total + part
        return total
    result = np.empty((X.shape[0], Z.shape[0]), dtype=X.dtype)
    XT, ZT = (np.ascontiguousarray(rows.T, dtype=np.float64) for rows in (X, Z))
    height = max(1, _BLOCK // max(1, len(Z)))
    for start in range(0, len(X), height):
        rows = slice(start, start + height)
        total = np.zeros(result[rows].shape)
        for x, z in zip(XT, ZT, strict=True):
            total += term(x[rows, None], z[None, :])
        result[rows] = total
    return result


def _needs_dense(X: Any, kind: str) -> None:
    if points_of(X).sparse:
        given = f"pairing {kind!r} of sparse data"
        raise InvalidInput(message("pairing", given, "convert it with X.toarray(), or use a kernel of dot or sqdist"))
