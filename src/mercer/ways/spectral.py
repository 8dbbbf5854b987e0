"""P(λ) = (K + λI)⁻¹ for ridge regression with many λ, from one decomposition of K: which, and why.

==================================================================  ================================================
first row that holds                                                taken
==================================================================  ================================================
the kernel is a Mercer kernel, every λ > 0, n ≥ 1000, and K = FFᵀ   singular values of F: O(n r²), 8nr bytes a copy
with r < n/5 columns, but for less than its rounding or 10⁻⁹ λ
no folds are left out, n ≥ 1500 and at most n/32 λ, and the native  a band, K = QBQᵀ: 8/3 n³ operations in products of
core is there                                                       tiles, 100n² for each λ, 12n² bytes
otherwise                                                           eigenvectors by LAPACK: O(n³), 24n² bytes
==================================================================  ================================================

Pivoted Cholesky finds F, or that there is none, in a fiftieth of the time of the last road; where the least eigenvalue
of n/5 rows and columns says that there is none, it is not tried. The band takes half of the time of the eigenvectors at
n = 3000 with 30 λ, two thirds at n = 2000, and as long at n = 1000 (two cores).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky

from mercer.approx import pivoted_cholesky
from mercer.engine.backend import is_native, one_blas_thread
from mercer.gram import KernelOperator
from mercer.operators import Dense
from mercer.points import human
from mercer.select import RidgeBand, RidgeInverse, RidgeSpectrum
from mercer.ways.report import Report

__all__ = ["ridge_inverse"]

FACTOR_FROM = 1000
"""Rows below which LAPACK takes a fifth of a second."""
FACTOR_SHARE = 5
"""A factor of more than n/5 columns saves little."""
SHARE_OF_LAMBDA = 1e-9
"""‖K − FFᵀ‖/λ bounds the relative change of P."""
PROBES, STEPS = 8, 3
BAND_FROM, BAND_SHARE = 1500, 32
"""Rows from which a band is quicker than eigenvectors, for at most n/32 λ."""


def ridge_inverse(
    K: KernelOperator,
    weights: np.ndarray | None,
    alphas: np.ndarray,
    *,
    intercept: bool,
    mercer: bool,
    folds: bool,
    report: Report,
    require: Callable[[int], None],
) -> RidgeInverse:
    """P for all of the λ, by the road of the table; `require` refuses what memory does not hold.

    With `folds` it is a `RidgeSpectrum`, which leaves out many rows at once.
    """
    n, least = K.shape[0], float(alphas.min())
    if mercer and least > 0 and n >= FACTOR_FROM:
        with report.stage("factor"):
            F = _factor(K, 1.0 if weights is None else float(weights.max()), least, report.room)
        if F is not None:
            planned = 8 * n * (_most(n, report.room) + 5 * F.shape[1])
            report.memory_planned = max(report.memory_planned, report.memory_rows + planned)
            report.method = f"singular values of a factor of K of rank {F.shape[1]} ({human(F.nbytes)})"
            with report.stage("eigenvalues"):
                return RidgeSpectrum.of_factor(F, weights, intercept=intercept)
    band = not folds and n >= BAND_FROM and len(np.unique(alphas)) * BAND_SHARE <= n and is_native()
    if band:
        whole = 8 * n * n if K.kernel.whole else 0  # parts of such a matrix cost more than all of it
        report.method = f"reduction to a band ({human(12 * n * n)})"
        require(RidgeBand.bytes(n) + whole)
        with report.stage("band"):
            return RidgeBand.of(Dense(K.toarray()) if whole else K, weights, intercept=intercept)
    report.method = f"eigendecomposition of the stored matrix ({human(8 * n * n)})"
    require(RidgeSpectrum.bytes(n))
    with report.stage("kernel matrix"):
        matrix = K.fill(np.empty(K.shape, np.float64))
    with report.stage("eigenvalues"):
        return RidgeSpectrum.of(matrix, weights, intercept=intercept)


def _most(n: int, budget: int) -> int:
    """Columns of F that n and the memory allow, with the copies that are made of it."""
    return min(n // FACTOR_SHARE, budget // (8 * 8 * n))


def _factor(K: KernelOperator, largest_weight: float, least: float, budget: int) -> np.ndarray | None:
    """F with ‖K − FFᵀ‖ as small as the table says, by power iteration on a random block; None if there is none.

    Rounding grows from pivot to pivot, so pivoted Cholesky gives the space only, and Rayleigh and Ritz the eigenpairs
    within it: at n = 5000 and λ = 10⁻⁸‖K‖ that lowers the error of Pᵢᵢ from 2·10⁻⁷ to 3·10⁻⁹; LAPACK's is 8·10⁻⁸.
    """
    n = K.shape[0]
    most, enough = _most(n, budget), SHARE_OF_LAMBDA * least / largest_weight
    if most < 1 or not _may_have_rank(K, most, enough):
        return None
    found = pivoted_cholesky(K, most, tol=enough)
    if not 0 < found.rank < most:
        return None
    with one_blas_thread(2.0 * found.rank * found.F.size):
        return _checked(K, *_ritz(K, found.F), enough)


def _ritz(K: KernelOperator, F: np.ndarray) -> tuple[np.ndarray, float]:
    """Columns whose products are the best approximation of K in the span of F, and the largest eigenvalue there."""
    Q = np.linalg.qr(F)[0]
    B = Q.T @ (K @ Q)
    values, W = np.linalg.eigh((B + B.T) / 2)
    return Q @ (W * np.sqrt(np.maximum(values, 0.0))), float(values[-1])


def _checked(K: KernelOperator, F: np.ndarray, largest: float, enough: float) -> np.ndarray | None:
    """F, if ‖K − FFᵀ‖ is within `enough` or rounding, by power iteration on a random block."""
    V = np.random.default_rng(0).standard_normal((len(F), PROBES))
    for _ in range(STEPS):
        V = np.linalg.qr(V)[0]
        V = K @ V - F @ (F.T @ V)
    rounding = np.sqrt(len(F)) * np.finfo(np.float64).eps * largest
    return F if np.linalg.norm(V, 2) <= max(enough, rounding) else None


def _may_have_rank(K: KernelOperator, rank: int, error: float) -> bool:
    """False where no matrix of a smaller rank is within `error` of K, by the eigenvalues of `rank` rows and columns.

    They interlace with those of K (Cauchy): if all are above the error, K has as many that are.
    """
    rows = np.sort(np.random.default_rng(0).permutation(K.shape[0])[:rank])
    block = np.asarray(K.block(rows, rows), np.float64)
    rounding = np.sqrt(K.shape[0]) * np.finfo(np.float64).eps * K.shape[0] * float(np.max(np.diagonal(block)))
    block[np.diag_indices(rank)] -= max(error, rounding)
    try:
        with one_blas_thread(rank**3 / 3):
            cholesky(block, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return True
    return False
