"""Kernel discriminant analysis against the chapter's eigenproblem, solved as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, benchmark
from mercer.kernels import Gaussian

GROUP = "Fits"

CLASSES, GAMMA, SHARE = 10, 0.02, 0.01
"""γ of the Gaussian kernel, and δ in units of tr K/n."""

SAME_SPACE = 1e-4
"""The largest angle to the chapter's directions, in radians."""


def ten_classes(n: int) -> tuple[Any, Any]:
    """Rows of 20 columns around ten centres, which overlap."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, CLASSES, n)
    return data.normal(n, 20, np.float64) + 1.2 * rng.standard_normal((CLASSES, 20))[y], y


def chapter(X: Any, y: Any) -> Any:
    """Ma = λ(N + δK + jitter)a by SciPy: M and N as (21.48) to (21.54) define them, K by NumPy; a of c − 1 directions.

    δK is what mercer regularises by, so that both have one answer. It leaves N + δK singular to rounding where K is,
    and LAPACK wants a definite matrix: hence a jitter far below δ.
    """
    eigh = peers.need("scipy.linalg").eigh
    K = data.gaussian(X, X, GAMMA)
    n = len(K)
    N, m = K @ K, K.mean(axis=1)
    M = np.zeros((n, n))
    for c in range(CLASSES):
        E = K[:, y == c]
        mean, size = E.mean(axis=1), E.shape[1]
        M += size * np.outer(mean - m, mean - m)
        N -= size * np.outer(mean, mean)
    N += SHARE * K
    np.einsum("ii->i", N)[...] += 1e-12 * np.trace(N) / n
    return eigh(M, N, subset_by_index=[n - CLASSES + 1, n - 1], overwrite_a=True, overwrite_b=True)[1]


def angle_to_the_chapter(X: Any, y: Any, ours: Callable[[], Any]) -> float:
    """The largest principal angle in feature space between our directions and the chapter's, both on these rows."""
    angles = peers.need("scipy.linalg").subspace_angles
    K = data.gaussian(X, X, GAMMA)
    values, vectors = np.linalg.eigh(K)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return float(angles(root @ ours().fit(X, y).dual_coef_, root @ chapter(X, y)).max())


@benchmark(GROUP)
def discriminant(setting: Setting) -> Row:
    estimator = peers.ours("KernelDiscriminantAnalysis")

    def ours() -> Any:
        return estimator(Gaussian(GAMMA), delta=SHARE, solver="regression")

    X, y = ten_classes(setting.size(8000, 300))
    small = ten_classes(setting.size(2000, 300))
    return Row(
        f"KernelDiscriminantAnalysis, Gaussian, float64, n = {len(X)}, d = 20, {CLASSES} classes",
        ours=lambda: ours().fit(X, y),
        peer=lambda: chapter(X, y),
        peer_name="SciPy eigh(M, N + δK)",
        target=at_least(30),
        error=lambda found: 0.0 if isinstance(found, np.ndarray) else angle_to_the_chapter(*small, ours),
        tolerance=SAME_SPACE,
        rounds=3,
        note="KernelDiscriminantAnalysis's error: the largest angle to SciPy's directions, in radians, at n = 2000.",
    )
