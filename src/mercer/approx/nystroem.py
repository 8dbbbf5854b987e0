"""Nyström's approximation: the feature space that a few landmarks span."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.approx.pivoted_cholesky import pivoted_cholesky
from mercer.gram import KernelOperator
from mercer.gram.inputs import take
from mercer.operators import Operator

__all__ = [
    "LandmarkFeatures",
    "inverse_root",
    "kmeans_landmarks",
    "landmark_features",
    "landmark_indices",
    "nystroem_features",
]

SAMPLE = 256
"""Rows for each centre that k-means looks at."""
ROUNDS = 10
"""Rounds of k-means: landmarks need no more."""


def inverse_root(K: NDArray[Any], eps: float) -> tuple[NDArray[np.float64], int]:
    """K^(−½) = V λ^(−½) Vᵀ in float64 over the eigenvalues λ ≥ eps·m·λ₁, and how many these are.

    >>> inverse_root(np.array([[4.0, 0.0], [0.0, 0.0]]), 1e-16)
    (array([[0.5, 0. ],
           [0. , 0. ]]), 1)
    """
    K = np.asarray(K, np.float64)
    values, V = np.linalg.eigh((K + K.T) / 2)
    top = float(np.max(values, initial=0.0))
    kept = (values >= eps * len(K) * top) & (values > 0)
    return np.asarray((V[:, kept] / np.sqrt(values[kept])) @ V[:, kept].T), int(kept.sum())


def landmark_indices(K: Operator, count: int, how: str, seed: int) -> NDArray[np.intp]:
    """Up to `count` rows of K, by randomly pivoted Cholesky ("pivoted"), or any ones alike ("uniform")."""
    if how == "pivoted":
        return pivoted_cholesky(K, count, seed=seed).pivots
    return np.sort(np.random.default_rng(seed).choice(K.shape[0], min(count, K.shape[0]), replace=False))


def kmeans_landmarks(X: Any, count: int, seed: int) -> NDArray[Any]:
    """The distinct centres of k-means on a sample of the rows: a quantiser of the data (Zhang, Tsang & Kwok 2008)."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    n = X.shape[0]
    rng = np.random.default_rng(seed)
    if n > SAMPLE * count:
        X = X[np.sort(rng.choice(n, SAMPLE * count, replace=False))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than centres: the same ones again
        model = KMeans(min(count, n), n_init=1, max_iter=ROUNDS, random_state=seed).fit(X)
    return np.unique(np.asarray(model.cluster_centers_, X.dtype), axis=0)


def nystroem_features(K: KernelOperator, root: NDArray[np.float64], chunk: int = 1 << 22) -> NDArray[Any]:
    """Φ = K root for K = k(rows, landmarks), in the dtype of K, a few rows at a time."""
    n, m = K.shape
    out, right = np.empty((n, root.shape[1]), K.dtype), root.astype(K.dtype)
    step = max(1, chunk // max(m, 1))
    for i in range(0, n, step):
        np.matmul(K.rows(slice(i, i + step)), right, out=out[i : i + step])
    return out


class LandmarkFeatures(NamedTuple):
    """Φ = K_nm root of all rows, so that ΦΦᵀ ≈ K: exact in the rows and columns of the landmarks.

    Attributes
    ----------
    Phi : array of shape (n, m)
    root : array of shape (m, m)
        K_mm^(−½): w in these features is Σⱼ aⱼ φ(landmark j) with a = root w.
    places : array of shape (m,)
        The landmarks' places among the rows.
    landmarks : rows, or their indices for a precomputed kernel
    lost : float
        tr(K − ΦΦᵀ)/tr K, all of whose eigenvalues are ≥ 0.
    """

    Phi: NDArray[np.float64]
    root: NDArray[np.float64]
    places: NDArray[np.intp]
    landmarks: Any
    lost: float


def landmark_features(K: KernelOperator, count: int, seed: int) -> LandmarkFeatures:
    """The features of all rows of K from up to `count` landmarks that randomly pivoted Cholesky chooses.

    Two arrays of n × count numbers are in memory, one after the other.

    >>> from mercer.kernels import Gaussian
    >>> found = landmark_features(KernelOperator(Gaussian(1.0), np.linspace(0, 1, 50)[:, None]), 8, 0)
    >>> found.Phi.shape, bool(found.lost < 1e-9)
    ((50, 8), True)
    """
    index = landmark_indices(K, count, "pivoted", seed)
    given = K.kernel.domain == "precomputed"
    # Entries computed in float64 from float32 rows are right to float64; given ones only to what they are given in.
    root, _ = inverse_root(K.block(index, index), float(np.finfo(K.X.dtype if given else K.dtype).eps))
    landmarks = index if given else take(K.X, index)
    Phi = nystroem_features(KernelOperator(K.kernel, K.X, landmarks, dtype=K.dtype), root)
    trace = float(np.sum(K.diagonal(), dtype=np.float64))
    lost = 1.0 - float(np.einsum("ij,ij->", Phi, Phi)) / trace if trace > 0 else 0.0
    return LandmarkFeatures(Phi, root, index, landmarks, max(lost, 0.0))
