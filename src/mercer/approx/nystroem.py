"""Nyström's approximation: the feature space that a few landmarks span."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.approx.pivoted_cholesky import pivoted_cholesky
from mercer.gram import KernelOperator
from mercer.operators import Operator

__all__ = ["inverse_root", "kmeans_landmarks", "landmark_indices", "nystroem_features"]

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
