"""P(λ) = (K + λI)⁻¹ for ridge regression with many λ, from one decomposition of K.

The first row whose condition holds decides.

==================================================================  ================================================
condition                                                           decomposition
==================================================================  ================================================
the kernel is a Mercer kernel, every λ > 0, the search for a        singular values of F: O(n r²), 8nr bytes a copy
factor takes a seventh of the time of the other rows, and K = FFᵀ
with r < n/5 columns, up to its rounding or 10⁻⁹ λ
n > 500, the engine is compiled, and a band is predicted to be      a band, K = QBQᵀ: 8/3 n³ operations in products of
faster than eigenvectors                                            tiles, 100n² for each λ, 12n² bytes
otherwise                                                           eigenvectors by LAPACK: O(n³), 24n² bytes
==================================================================  ================================================

Pivoted Cholesky searches for F. The search is skipped if the smallest eigenvalue of n/5 rows and columns proves that F
does not exist.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky

from mercer.approx import pivoted_cholesky
from mercer.engine.backend import engine, one_blas_thread
from mercer.gram import KernelOperator, rates
from mercer.operators import Dense
from mercer.planning import costs
from mercer.planning.machine import Machine
from mercer.points import human
from mercer.select import RidgeBand, RidgeInverse, RidgeSpectrum
from mercer.ways.report import Report

__all__ = ["eigen_seconds", "one_decomposition_pays", "ridge_inverse"]

SMALL = 500
"""Up to this many rows, eigenvectors are always computed: a band would save little."""
TRIAL_SHARE = 0.15
"""Share of the time of the other decompositions that the search for a factor may take."""
FACTOR_SHARE = 5
"""A factor may have n/5 columns; more would save little."""
SHARE_OF_LAMBDA = 1e-9
"""Largest ‖K − FFᵀ‖/λ, which bounds the relative change of P."""
PROBES, STEPS = 8, 3
CALLS_A_FACTOR = 1200
"""Python's time for a factor and its refinement, in calls of NumPy."""


def ridge_inverse(
    K: KernelOperator,
    weights: np.ndarray | None,
    alphas: np.ndarray,
    *,
    intercept: bool,
    mercer: bool,
    fold: int,
    report: Report,
    require: Callable[[int], None],
) -> RidgeInverse:
    """P for all λ by the method of the table; `require` raises if the budget does not allow this many bytes.

    `fold` is the most rows that are left out together, 0 or 1 for leave-one-out.
    """
    n, least, d, shifts = K.shape[0], float(alphas.min()), max(K.pair_columns, 1), len(np.unique(alphas))
    machine = rates.machine(lambda machine: costs.eigenvectors(machine, n))
    band = engine().capabilities.compiled
    ways = predicted_ways(machine, n, d, shifts, factor=mercer and least > 0, band=band)
    if "factor" in ways:
        with report.stage("factor"):
            F = _factor(K, 1.0 if weights is None else float(weights.max()), least, report.room)
        if F is not None:
            planned = 8 * n * (_most(n, report.room) + 5 * F.shape[1])
            report.memory_planned = max(report.memory_planned, report.memory_rows + planned)
            report.method = f"singular values of a factor of K of rank {F.shape[1]} ({human(F.nbytes)})"
            with report.stage("eigenvalues"):
                return RidgeSpectrum.of_factor(F, weights, intercept=intercept)
    if ways.get("band", np.inf) < ways.get("eigenvectors", np.inf):
        whole = 8 * n * n if K.kernel.prefers_large_blocks else 0  # such a matrix is cheaper as a whole than in parts
        report.method = f"reduction to a band ({human(12 * n * n)})"
        require(RidgeBand.bytes(n, fold) + whole)
        _predict(K, report, n * n / 2 * machine.pair(d, 8) + costs.band(machine, n, 0), "band")
        with report.stage("band"):
            return RidgeBand.of(Dense(K.toarray()) if whole else K, weights, intercept=intercept)
    report.method = f"eigendecomposition of the stored matrix ({human(8 * n * n)})"
    require(RidgeSpectrum.bytes(n))
    _predict(K, report, ways.get("eigenvectors", np.inf), "kernel matrix", "eigenvalues")
    with report.stage("kernel matrix"):
        matrix = K.fill(np.empty(K.shape, np.float64))
    with report.stage("eigenvalues"):
        return RidgeSpectrum.of(matrix, weights, intercept=intercept)


def predicted_ways(machine: Machine, n: int, d: int, shifts: int, *, factor: bool, band: bool) -> dict[str, float]:
    """Predicted seconds for eigenvectors, for a band, and for the search for a factor if that is worthwhile.

    A band includes its inverses for all shifts. It is not considered for a small matrix.

    >>> list(predicted_ways(Machine.documented(), 3000, 10, 30, factor=True, band=True))
    ['eigenvectors', 'band', 'factor']
    """
    found = {"eigenvectors": costs.matrix(machine, n, d) + costs.eigenvectors(machine, n)}
    if band and n > SMALL:
        found["band"] = n * n / 2 * machine.pair(d, 8) + costs.band(machine, n, shifts)
    trial = costs.pivots(machine, n, d, max(n // FACTOR_SHARE, 1), 8)
    if factor and trial <= TRIAL_SHARE * min(found.values()):
        found["factor"] = trial
    return found


def eigen_seconds(K: KernelOperator, k: int) -> dict[str, float]:
    """Predicted seconds of each exact method for k eigenpairs; a K without fast products is stored if it fits.

    >>> sorted(eigen_seconds(KernelOperator("gaussian(gamma=1.0)", np.eye(2)), 1))
    ['dense', 'matrix-free', 'stored']
    """
    n, d = K.shape[0], max(K.pair_columns, 1)
    machine = rates.machine(lambda machine: min(costs.eigen_ways(machine, n, d, k).values()))
    found = costs.eigen_ways(machine, n, d, k)
    if not (K.native or K.has_factors):
        return found | {"matrix-free": np.inf}
    if K.product_columns < d:
        found["matrix-free"] = costs.eigen_ways(machine, n, 1, k)["matrix-free"]
    return found


def one_decomposition_pays(n: int, d: int, shifts: int) -> bool:
    """Whether one decomposition for all λ is predicted to be faster than a factor in float32 for each.

    >>> one_decomposition_pays(4000, 20, 2), one_decomposition_pays(4000, 20, 50)
    (False, True)
    """

    def seconds(machine: Machine) -> tuple[float, float]:
        band = engine().capabilities.compiled
        one = min(predicted_ways(machine, n, d, shifts, factor=False, band=band).values())
        each = costs.refined_cholesky(machine, n, d) + CALLS_A_FACTOR / machine.calls
        return one, shifts * each

    one, each = seconds(rates.machine(lambda machine: min(seconds(machine))))
    return one < each


def _predict(K: KernelOperator, report: Report, seconds: float, *stages: str) -> None:
    """Put the predicted seconds of the decomposition into the report, if the costs of entries are known."""
    if K.native and np.isfinite(seconds):
        report.predict(seconds, *stages)


def _most(n: int, budget: int) -> int:
    """The most columns of F that n and the memory allow, with the copies of F."""
    return min(n // FACTOR_SHARE, budget // (8 * 8 * n))


def _factor(K: KernelOperator, largest_weight: float, least: float, budget: int) -> np.ndarray | None:
    """F with ‖K − FFᵀ‖ as small as the table requires, checked by power iteration on a random block; None without one.

    Rounding grows from pivot to pivot. So pivoted Cholesky only gives the space, and the Rayleigh-Ritz method gives the
    eigenpairs in it. At n = 5000 and λ = 10⁻⁸‖K‖ that lowers the error of Pᵢᵢ from 2·10⁻⁷ to 3·10⁻⁹ (LAPACK: 8·10⁻⁸).
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
    """F for which FFᵀ is the best approximation of K in the span of the given F, and its largest eigenvalue."""
    Q = np.linalg.qr(F)[0]
    B = Q.T @ (K @ Q)
    with one_blas_thread(costs.eigen_operations(len(B))):
        values, W = np.linalg.eigh((B + B.T) / 2)
    return Q @ (W * np.sqrt(np.maximum(values, 0.0))), float(values[-1])


def _checked(K: KernelOperator, F: np.ndarray, largest: float, enough: float) -> np.ndarray | None:
    """F if ‖K − FFᵀ‖ is at most `enough` or rounding, by power iteration on a random block; otherwise None."""
    V = np.random.default_rng(0).standard_normal((len(F), PROBES))
    for _ in range(STEPS):
        V = np.linalg.qr(V)[0]
        V = K @ V - F @ (F.T @ V)
    rounding = np.sqrt(len(F)) * np.finfo(np.float64).eps * largest
    return F if np.linalg.norm(V, 2) <= max(enough, rounding) else None


def _may_have_rank(K: KernelOperator, rank: int, error: float) -> bool:
    """False if the eigenvalues of `rank` rows and columns prove that no matrix of smaller rank is within `error` of K.

    They interlace with the eigenvalues of K (Cauchy). So if all of them are above the error, as many of K's are.
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
