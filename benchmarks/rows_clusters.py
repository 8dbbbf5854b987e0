"""Kernel k-means."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, benchmark
from mercer.kernels import Gaussian

GROUP = "Clusters and online learning"

GAMMA = 0.02


def clouds(n: int, d: int, k: int) -> Any:
    """k clouds that overlap: some rows change their cluster in every pass."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((k, d))
    return (data.normal(n, d) + 1.2 * centres[rng.integers(0, k, n)]).astype(np.float32)


def dense_lloyd(X: Any, start: Any, gamma: float) -> Any:
    """Lloyd's iteration as NumPy does it best: K once in float64, then K times the indicators in every pass."""
    K, k = data.gaussian(X.astype(np.float64), X.astype(np.float64), gamma), len(start)
    labels = (-2 * K[:, start]).argmin(axis=1)
    while True:
        E = np.zeros((len(X), k))
        E[np.arange(len(X)), labels] = 1
        sizes, sums = E.sum(axis=0), K @ E
        following = (np.einsum("ic,ic->c", E, sums) / sizes**2 - 2 * sums / sizes).argmin(axis=1)
        if np.array_equal(following, labels):
            return labels
        labels = following


@benchmark(GROUP)
def kernel_kmeans(setting: Setting) -> Row:
    """Both start from the same labels; our answer counts only if it has the peer's labels."""
    ours, k = peers.ours("KernelKMeans"), setting.size(10, 4)
    X = clouds(setting.size(20_000, 300), 20, k)
    start = np.random.default_rng(1).permutation(len(X))[:k]
    model, reference = ours(k, kernel=Gaussian(GAMMA), init=start), dense_lloyd(X, start, GAMMA)
    return Row(
        f"KernelKMeans({k}), Gaussian, float32, n = {len(X)}, d = 20, same start",
        ours=lambda: model.fit(X).labels_,
        peer=lambda: dense_lloyd(X, start, GAMMA),
        peer_name="NumPy, K in float64",
        target=at_least(15),
        error=lambda labels: float(np.mean(labels != reference)),
        tolerance=0.0,
        rounds=3,
        note="KernelKMeans against NumPy: the error is the share of rows whose label differs from dense Lloyd's in "
        "float64.",
    )


def inertia(X: Any, labels: Any) -> float:
    """Σ k(xᵢ, xᵢ) − Σ_c Σ k(xᵢ, xⱼ)/n_c over the pairs of each cluster, in float64."""
    K, E = data.gaussian(X.astype(np.float64), X.astype(np.float64), GAMMA), np.eye(labels.max() + 1)[labels]
    return float(np.trace(K) - np.sum(np.einsum("ic,ic->c", E, K @ E) / np.maximum(E.sum(axis=0), 1)))


@benchmark(GROUP)
def kernel_kmeans_tslearn(setting: Setting) -> Row:
    """Both take the best of ten starts of their own; ours counts only if its inertia is not larger."""
    theirs, ours = peers.need("tslearn.clustering").KernelKMeans, peers.ours("KernelKMeans")
    k = setting.size(10, 4)
    X = clouds(setting.size(2000, 200), 20, k)
    model = ours(k, kernel=Gaussian(GAMMA), n_init=10)
    peer = theirs(k, kernel="rbf", kernel_params={"gamma": GAMMA}, n_init=10, max_iter=300, random_state=0)
    with warnings.catch_warnings():  # that rows of two dimensions are taken for time series
        warnings.simplefilter("ignore")
        reference = inertia(X, peer.fit(X).labels_)
    return Row(
        f"KernelKMeans({k}), Gaussian, float32, n = {len(X)}, d = 20, best of 10 starts",
        ours=lambda: model.fit(X).labels_,
        peer=lambda: peer.fit(X).labels_,
        peer_name="tslearn KernelKMeans",
        target=at_least(30),
        error=lambda labels: max(inertia(X, labels) / reference - 1, 0.0),
        tolerance=1e-5,
        rounds=3,
        note="KernelKMeans against tslearn: the error is by how much the inertia is above tslearn's, relative to it.",
    )
