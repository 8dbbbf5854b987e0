"""The methods that need no target: components, clusters, and the region where most rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.estimators import KernelKMeans, KernelPCA, KernelSpectralClustering, OneClassSVM
from mercer.kernels import Kernel
from mercer.points import count
from mercer.select import choose_n_clusters

__all__ = ["UNSUPERVISED", "Unsupervised", "chosen_number"]

MOST_CLUSTERS, SAMPLE = 10, 2000
EXACT = 1e-9
"""At the optimum a share of ν or less of the rows is outside; far from it, rows on its margin are, too."""


@dataclass(frozen=True)
class Unsupervised:
    """A method: its estimator, the option with its number, the number by default, and the column that it predicts."""

    name: str
    make: Callable[[Kernel, Any, int], Any]
    option: str
    number: float | None
    """None: chosen by silhouettes of kernel k-means."""
    target: str


UNSUPERVISED = {
    one.name: one
    for one in (
        Unsupervised(
            "pca", lambda kernel, k, seed: KernelPCA(k, kernel, random_state=seed), "--components", 10, "component"
        ),
        Unsupervised(
            "kmeans", lambda kernel, k, seed: KernelKMeans(k, kernel, random_state=seed), "--clusters", None, "cluster"
        ),
        Unsupervised(
            "spectral",
            lambda kernel, k, seed: KernelSpectralClustering(k, kernel, random_state=seed),
            "--clusters",
            None,
            "cluster",
        ),
        Unsupervised(
            "oneclass", lambda kernel, nu, seed: OneClassSVM(kernel, nu, tol=EXACT), "--outliers", 0.05, "outlier"
        ),
    )
}
"""Methods by name."""


def chosen_number(method: Unsupervised, kernel: Kernel, X: Any, given: Any, memory: Any, seed: int) -> tuple[Any, str]:
    """The number of components or clusters, or the share of outliers, and a sentence that says where it comes from.

    >>> from mercer.kernels import Gaussian
    >>> chosen_number(UNSUPERVISED["pca"], Gaussian(), np.eye(3), None, None, 0)
    (3, '--components 3, the number of rows')
    """
    if given is not None:
        return given, f"{method.option} {given}, as given"
    if method.number is None:
        n = count(X)
        rows = X if n <= SAMPLE else X[np.sort(np.random.default_rng(seed).permutation(n)[:SAMPLE])]
        most = min(MOST_CLUSTERS, count(rows) - 1)
        found = choose_n_clusters(rows, kernel, range(2, most + 1), memory=memory, random_state=seed)
        how = f"the best of 2 to {most} by the mean silhouette of kernel k-means, {found.scores.max():.2g}"
        return found.best, f"{method.option} {found.best}, {how}"
    if method.option == "--components" and count(X) < method.number:
        return count(X), f"--components {count(X)}, the number of rows"
    return method.number, f"{method.option} {method.number}, by default"
