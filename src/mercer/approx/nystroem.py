"""Nyström's approximation: the feature space that a few landmarks span."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread, one_thread_after_fork
from mercer.factorizations.pivoted_cholesky import pivoted_cholesky
from mercer.gram import KernelOperator
from mercer.kernels import Kernel
from mercer.operators import Operator
from mercer.planning import costs
from mercer.points import points_of, sample_rows

__all__ = [
    "FeatureMoments",
    "feature_moments",
    "inverse_root",
    "kmeans_landmarks",
    "landmark_indices",
    "row_chunks",
]

SAMPLE = 256
"""Rows per centre in the sample that k-means uses."""
ROUNDS = 10
"""Iterations of k-means, enough for landmarks."""


def inverse_root(K: NDArray[Any], eps: float) -> tuple[NDArray[np.float64], int]:
    """K^(−½) = V λ^(−½) Vᵀ in float64 over the eigenvalues λ ≥ eps·m·λ₁, and the number of these.

    >>> inverse_root(np.array([[4.0, 0.0], [0.0, 0.0]]), 1e-16)
    (array([[0.5, 0. ],
           [0. , 0. ]]), 1)
    """
    K = np.asarray(K, np.float64)
    with one_blas_thread(costs.eigen_operations(len(K))):
        values, V = np.linalg.eigh((K + K.T) / 2)
        top = float(np.max(values, initial=0.0))
        kept = (values >= eps * len(K) * top) & (values > 0)
        return np.asarray((V[:, kept] / np.sqrt(values[kept])) @ V[:, kept].T), int(kept.sum())


def landmark_indices(K: Operator, count: int, how: str, seed: int) -> NDArray[np.intp]:
    """Up to `count` row indices of K: by randomly pivoted Cholesky ("pivoted"), or uniformly at random ("uniform")."""
    if how == "pivoted":
        return pivoted_cholesky(K, count, seed=seed).pivots
    return sample_rows(K.shape[0], count, seed)


@one_thread_after_fork()
def kmeans_landmarks(X: Any, count: int, seed: int) -> NDArray[Any]:
    """The distinct centres of k-means on a sample of the rows (Zhang, Tsang & Kwok 2008)."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    n = X.shape[0]
    rng = np.random.default_rng(seed)
    if n > SAMPLE * count:
        X = points_of(X).take(sample_rows(n, SAMPLE * count, rng)).rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct rows than centres; centres then repeat
        model = KMeans(min(count, n), n_init=1, max_iter=ROUNDS, random_state=seed).fit(X)
    return np.unique(np.asarray(model.cluster_centers_, X.dtype), axis=0)


class FeatureMoments(NamedTuple):
    """N, μ and Σ (φ − μ)(φ − μ)ᵀ of the features of the rows seen so far, and Σ k(x, x), as PCA needs them.

    It is a tuple of plain numbers and arrays, which model files can store.
    """

    rows: int
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    trace: float

    @classmethod
    def none(cls, size: int) -> FeatureMoments:
        """The moments of no rows."""
        return cls(0, np.zeros(size), np.zeros((size, size)), 0.0)

    def with_rows(self, Phi: NDArray[np.float64], diagonal: NDArray[Any]) -> FeatureMoments:
        """The moments with the rows of Φ and their k(x, x) added, without cancellation (Chan, Golub & LeVeque 1979).

        >>> some = FeatureMoments.none(1).with_rows(np.array([[1.0], [2.0]]), np.array([1.0, 4.0]))
        >>> some.with_rows(np.array([[6.0]]), np.array([36.0]))
        FeatureMoments(rows=3, mean=array([3.]), scatter=array([[14.]]), trace=41.0)
        """
        own = Phi.mean(axis=0)
        new, apart = len(Phi), own - self.mean
        Phi = Phi - own
        total = self.rows + new
        scatter = self.scatter + Phi.T @ Phi
        scatter += np.outer(apart, apart * (self.rows * new / total))
        return FeatureMoments(
            total, self.mean + apart * (new / total), scatter, self.trace + float(np.sum(diagonal, dtype=np.float64))
        )

    @property
    def explained(self) -> float:
        """Σ ‖φ(x)‖², the part of Σ k(x, x) that the landmarks span."""
        return float(np.trace(self.scatter)) + self.rows * float(self.mean @ self.mean)


def row_chunks(X: Any, width: int, entries: int = 1 << 22) -> Iterator[tuple[slice, Any]]:
    """(slice, rows) of successive rows, so few at a time that `width` columns for them have about `entries` entries."""
    points = points_of(X)
    step = max(1, entries // max(width, 1))
    for i in range(0, len(points), step):
        place = slice(i, min(i + step, len(points)))
        yield place, points.run(place.start, place.stop).rows


def feature_moments(
    start: FeatureMoments, kernel: Kernel, X: Any, landmarks: Any, root: NDArray[np.float64], diagonal: NDArray[Any]
) -> FeatureMoments:
    """The moments `start` with the features k(x, landmarks) root of the rows X added, a few rows at a time."""
    for place, rows in row_chunks(X, len(root)):
        K = KernelOperator(kernel, rows, landmarks, dtype=np.float64)
        start = start.with_rows(np.asarray(K.toarray(), np.float64) @ root, diagonal[place])
    return start
