"""Landmarks: rows, or other points, whose features span an approximation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.approx.nystroem import inverse_root, kmeans_landmarks, landmark_indices
from mercer.errors import InvalidInput, message
from mercer.gram import KernelOperator
from mercer.points import sample_rows

__all__ = ["WAYS", "LandmarkFeatures", "are_numbers", "choose_landmarks", "landmark_features", "refused_landmarks"]

WAYS = ("pivoted", "uniform", "kmeans")
"""The names of ways to choose landmarks."""


def are_numbers(how: Any) -> bool:
    """Whether landmarks are given by the numbers of their rows.

    >>> are_numbers([3, 5]), are_numbers([[3.0], [5.0]]), are_numbers("pivoted")
    (True, False, False)
    """
    index = np.asarray(how)
    return index.ndim == 1 and index.dtype.kind in "iu" and len(index) > 0


def choose_landmarks(
    who: str, how: Any, K: KernelOperator, X: Any, count: int, seed: int, pool: int | None = None
) -> tuple[NDArray[Any] | None, Any]:
    """The indices of the landmarks among the rows X, or None if they are not among them, and the landmarks.

    `how` is "pivoted" (among at most `pool` rows), "uniform", "kmeans", the indices of rows, or rows.
    """
    n, kernel = K.shape[0], K.kernel
    points = kernel.space.of(X)
    if isinstance(how, str):
        if how == "kmeans" and kernel.space.vectors:
            return None, kmeans_landmarks(X, count, seed)
        if how not in ("pivoted", "uniform"):
            raise refused_landmarks(who, how, n)
        index = _pivots(K, X, count, seed, pool) if how == "pivoted" else landmark_indices(K, count, how, seed)
    else:
        index = np.asarray(how)
        rows = kernel.space.vectors and index.dtype.kind in "biuf" and index.shape[1:] == (points.columns,)
        if rows and len(index) and np.isfinite(index).all():
            return None, np.ascontiguousarray(index, points.dtype)
        if not are_numbers(index) or index.min() < 0 or index.max() >= n:
            raise refused_landmarks(who, how, n)
    if not len(index):
        given = "no landmark, because k(x, x) = 0 for all rows"
        raise InvalidInput(message(who, given, "choose another kernel, or give rows that differ from 0"))
    return index, points.anchors().take(index).rows


def _pivots(K: KernelOperator, X: Any, count: int, seed: int, pool: int | None) -> NDArray[Any]:
    n, kernel = K.shape[0], K.kernel
    points = kernel.space.of(X)
    low_precision = points.dtype == np.float32
    if pool is None or pool >= n:
        return landmark_indices(K.in_float32() if low_precision else K.astype(np.float64), count, "pivoted", seed)
    some = sample_rows(n, pool, [seed, 2])
    among = KernelOperator(kernel, points.among(some).rows)
    return np.asarray(some[landmark_indices(among, count, "pivoted", seed)])


def refused_landmarks(who: str, how: Any, n: int) -> InvalidInput:
    """The error for landmarks that are none of these."""
    do = f'give "pivoted", "uniform", "kmeans" (for rows of numbers), rows, or indices from 0 to {n - 1}'
    return InvalidInput(message(who, f"landmarks={how!r}", do))


class LandmarkFeatures(NamedTuple):
    """Φ = K_nm root with ΦΦᵀ ≈ K, exact in the rows and columns of the landmarks.

    Attributes
    ----------
    Phi : array of shape (n, m)
        The features of all rows.
    root : array of shape (m, m)
        K_mm^(−½). A vector w in these features is Σⱼ aⱼ φ(landmark j) with a = root w.
    places : array of shape (m,)
        The indices of the landmarks among the rows.
    landmarks : rows, or their indices for a precomputed kernel
    lost : float
        tr(K − ΦΦᵀ)/tr K; all eigenvalues of K − ΦΦᵀ are ≥ 0.
    """

    Phi: NDArray[np.float64]
    root: NDArray[np.float64]
    places: NDArray[np.intp]
    landmarks: Any
    lost: float


def landmark_features(K: KernelOperator, count: int, seed: int, pool: int | None = None) -> LandmarkFeatures:
    """The features of all rows of K from up to `count` landmarks that randomly pivoted Cholesky chooses.

    It chooses among `pool` random rows, by default among all, which takes n × count numbers of memory. So do the
    features, which are in a file if the rows are.

    >>> from mercer.kernels import Gaussian
    >>> found = landmark_features(KernelOperator(Gaussian(1.0), np.linspace(0, 1, 50)[:, None]), 8, 0)
    >>> found.Phi.shape, bool(found.lost < 1e-9)
    ((50, 8), True)
    """
    few = pool is not None and pool < K.shape[0]
    index = _pivots(K, K.X, count, seed, pool) if few else landmark_indices(K, count, "pivoted", seed)
    given = K.kernel.space.numbered
    # Entries computed in float64 from float32 rows are exact to float64; given entries only to their own dtype.
    root, _ = inverse_root(K.block(index, index), float(np.finfo(K.X.dtype if given else K.dtype).eps))
    landmarks = K.x.anchors().take(index).rows
    Phi = K.x.scratch((K.shape[0], len(root)), K.dtype)
    KernelOperator(K.kernel, K.X, landmarks, dtype=K.dtype).features(root, out=Phi)
    trace = float(np.sum(K.diagonal(), dtype=np.float64))
    lost = 1.0 - float(np.einsum("ij,ij->", Phi, Phi)) / trace if trace > 0 else 0.0
    return LandmarkFeatures(Phi, root, index, landmarks, max(lost, 0.0))
