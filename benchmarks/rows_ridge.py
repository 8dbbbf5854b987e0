"""Choosing λ."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, benchmark
from mercer.kernels import Gaussian

GROUP = "Choice of the kernel and the penalty"

GAMMA = 0.05
SAME_ERRORS = 1e-8


def refits(X: Any, y: Any, alphas: Any) -> Any:
    """Minus the mean squared leave-one-out error of each α: a fit by scikit-learn, and LAPACK's inverse for the hᵢᵢ."""
    fit, rbf = peers.need("sklearn.kernel_ridge").KernelRidge, peers.need("sklearn.metrics.pairwise").rbf_kernel
    K, scores = rbf(X, gamma=GAMMA), []
    for alpha in alphas:
        model = fit(alpha=alpha, kernel="precomputed").fit(K, y)
        errors = model.dual_coef_ / inverse_diagonal(K, alpha)
        scores.append(-np.mean(errors**2))
    return np.array(scores)


def inverse_diagonal(K: Any, alpha: float) -> Any:
    """diag((K + αI)⁻¹) by Cholesky."""
    lapack = peers.need("scipy.linalg").lapack
    shifted = K.copy()
    shifted.flat[:: len(K) + 1] += alpha
    factor, _ = lapack.dpotrf(shifted.T, lower=True, overwrite_a=True)
    inverse, _ = lapack.dpotri(factor, lower=True, overwrite_c=True)
    return np.diagonal(inverse)


@benchmark(GROUP, d=(3, 20))
def leave_one_out(setting: Setting, d: int) -> Row:
    X = data.normal(setting.size(5000, 200), d, np.float64)
    y = np.sin(X[:, 0]) + 0.1 * data.vector(len(X), np.float64)
    alphas = np.logspace(-3, 2, 30)
    K, sample = data.gaussian(X, X, GAMMA), [0, 15, 29]
    K.flat[:: len(X) + 1] = 1.0
    reference = []
    for alpha in alphas[sample]:
        G = np.linalg.inv(K + alpha * np.eye(len(X)))
        reference.append(-np.mean((G @ y / np.diagonal(G)) ** 2))
    del K, G
    model = peers.ours("KernelRidgeCV")(Gaussian(GAMMA), alphas, memory="4GB")

    def error(result: Any) -> float:
        scores = result if isinstance(result, np.ndarray) else result.cv_results_["score"]
        return float(np.abs(scores[sample] / reference - 1).max())

    return Row(
        f"leave-one-out error of 30 α, Gaussian, float64, n = {len(X)}, d = {d}",
        ours=lambda: model.fit(X, y),
        peer=lambda: refits(X, y, alphas),
        peer_name="scikit-learn KernelRidge refitted 30 times, hᵢᵢ by LAPACK's `potri`",
        target=at_least(20),
        error=error,
        tolerance=SAME_ERRORS,
        rounds=3,
        note="Leave-one-out: the error is that of the mean squared errors of three α, relative to explicit inverses. "
        "At d = 3 K has a factor of small rank; at d = 20 it has none and is reduced to a band.",
    )
