"""The marginal likelihood of many rows, from random vectors and conjugate gradients, with its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput
from mercer.factorizations.pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.factorizations.preconditioner import preconditioner, rest
from mercer.gram import KernelOperator
from mercer.operators import Operator, Weighted
from mercer.select.marginal import LOG_TWO_PI, ExactLikelihood
from mercer.solvers import LogDeterminant, LogDeterminantEstimate, Solution, StochasticLanczos, solve

__all__ = ["Estimated", "StochasticLikelihood"]

Floats = NDArray[np.float64]
FLOAT32 = 0.03
"""The largest ε‖K‖/σ² for which products have entries in float32."""
RANK = 1000
"""Most pivots. At n = 20 000 (20 columns, Gaussian, σ² = 0.1, 30 random vectors) the standard error is 5.8e-4 of log p
with 1000 pivots, and 3.9e-4 with 2000, which take 1.6 times as long."""
TOLERANCE, SLOPES = 1e-2, 1e-3
"""On the relative residuals, for a value alone, and with its gradient, whose error is near the residual itself. At
n = 20 000 the value moved by 6e-5 of itself from the one to the other, a tenth of its standard error."""
COARSE_ROWS = 3000
"""Rows of the exact likelihood that improves a start first."""


@dataclass(frozen=True, eq=False)
class Estimated:
    """log p and its standard error, how it was computed, and what the gradient needs.

    Attributes
    ----------
    value, standard_error : float
    solved : Solution
        Of `StochasticLanczos`.
    inverse : Operator
        M ≈ C⁻¹, the preconditioner: diag(s)(I − HHᵀ)diag(s).
    Z : array of shape (n, t)
        The random vectors.
    precision : str
        Of the entries in products.
    """

    value: float
    standard_error: float
    solved: Solution[Any]
    inverse: Weighted
    Z: Floats
    precision: str


@dataclass(frozen=True, eq=False)
class StochasticLikelihood(ExactLikelihood):
    r"""θ ↦ log p(Y) and its gradient, C = K(θ) + diag(variances) + σ²I, in O(n²) operations and O(n) vectors.

    yᵀC⁻¹y is by conjugate gradients, and log det C by stochastic Lanczos quadrature on the same products, both
    preconditioned by M⁻¹ = FFᵀ + D, a randomly pivoted Cholesky factor of K and a diagonal, whose log-determinant is
    known. With z ~ N(0, M⁻¹), u = C⁻¹z and w = Mz,

        tr C⁻¹∂C ≈ tr M∂C + mean over z of (u − w)ᵀ ∂C w,

    so that values and gradients vary the less the closer M is to C⁻¹. The seed is the same for all θ.

    Parameters
    ----------
    covariance, Y, variances, noise
        As for `ExactLikelihood`.
    probes : int
        The number of random vectors.
    rank : int
        Most pivots.
    tol : float
        On the relative residuals; the error of log p is near its square.
    seed : int
    """

    probes: int = 30
    rank: int = RANK
    tol: float = TOLERANCE
    seed: int = 0

    @staticmethod
    def bytes(n: int, columns: int, rank: int = RANK) -> int:
        """The peak memory for this many right-hand sides and random vectors: F, H, and iterates.

        >>> StochasticLikelihood.bytes(100_000, 31)
        1122400000
        """
        return 8 * n * (min(rank, n) + 13 * columns)

    how: ClassVar[str] = "by conjugate gradients and Lanczos quadrature"

    def error(self, theta: Floats) -> float:
        """The standard error of log p; infinite if there is no likelihood."""
        found = self.estimate(theta)
        return np.inf if found is None else found.standard_error

    def coarse(self, seed: int) -> list[ExactLikelihood]:
        """The exact likelihood of some rows, drawn at random."""
        rows = min(COARSE_ROWS, len(self.Y) // 2)
        part = self.part(rows, seed) if rows else None
        return [] if part is None else [part]

    def __call__(self, theta: Floats, gradient: bool = True) -> tuple[float, Floats] | None:
        """log p and its gradient, empty unless asked for; None if C is not positive definite, or not defined."""
        found = self.estimate(theta, SLOPES if gradient else self.tol)
        if found is None:
            return None
        return found.value, self._gradient(theta, found) if gradient else np.empty(0)

    def estimate(self, theta: Floats, tol: float | None = None) -> Estimated | None:
        """log p with its standard error; None if C is not positive definite, or not defined."""
        defined = self._defined(theta)
        if defined is None:
            return None
        K, variance = defined
        # Where all rows are pivots, M is C⁻¹ but for rounding, and that of float32 is beyond the standard error.
        low: Operator = K if len(self.Y) <= self.rank else K.in_float32()
        with one_blas_thread(2.0 * len(self.Y) * self.rank**2):
            found = pivoted_cholesky(low, min(self.rank, len(self.Y)), tol=float(np.min(variance)), seed=self.seed)
            single = np.finfo(np.float32).eps * found.norm() <= FLOAT32 * float(np.min(variance))
            inverse, offset = self._preconditioner(low, found, variance)
        A: Operator = low if single else K
        Z = inverse.A.draws(np.random.default_rng(self.seed), self.probes) / inverse.s[:, None]
        problem = LogDeterminant(A, Z, variance, self.Y, inverse, offset)
        with one_blas_thread():
            solved = solve(StochasticLanczos(self.tol if tol is None else min(tol, self.tol)), problem)
        if not solved.converged and solved.status.name != "MAX_STEPS":
            return None
        x: LogDeterminantEstimate = solved.x
        n, targets = self.Y.shape
        # 2yᵀx − xᵀCx = yᵀC⁻¹y − ‖x − C⁻¹y‖²_C: the error is the square of that of x.
        square = float(np.sum(x.solution * (self.Y + solved.state.R[:, :targets])))
        value = -0.5 * (square + targets * (x.value + n * LOG_TWO_PI))
        precision = "float32" if single and A.dtype == np.float32 else "float64"
        return Estimated(value, 0.5 * targets * x.standard_error, solved, inverse, Z, precision)

    def _defined(self, theta: Floats) -> tuple[KernelOperator, Any] | None:
        """K and the variances of the noise; None where they are not defined, or C cannot be positive definite."""
        own, noise = self.parted(theta)
        try:
            K = self.covariance.operator(own)
        except InvalidInput:
            return None
        variance = self.variances + noise
        return (K, variance) if np.all(np.asarray(variance) > 0) and np.all(K.diagonal() >= 0) else None

    def _preconditioner(self, K: KernelOperator | Operator, found: PivotedCholesky, variance: Any) -> tuple[Any, float]:
        """M, and log det M⁻¹."""
        inverse: Any = preconditioner(found.F, variance + rest(K, found), overwrite=True)
        return inverse, inverse.A.log_determinant - 2 * float(np.sum(np.log(inverse.s)))

    def _gradient(self, theta: Floats, found: Estimated) -> Floats:
        own, noise = self.parted(theta)
        x, s = found.solved.x, found.inverse.s
        targets, half = self.Y.shape[1], found.inverse.A.half
        half *= s[:, None].astype(half.dtype)
        W = np.asarray(found.inverse.matmat(found.Z), np.float64)
        # With ‖M^½z‖² = n for all z, as in the quadrature.
        scale = len(self.Y) / np.einsum("ij,ij->j", found.Z, W) / self.probes
        U = (x.probes - W) * scale
        left, right = np.hstack([x.solution, -0.5 * targets * U, -0.5 * targets * W]), np.hstack([x.solution, W, U])

        def weights(rows: slice, columns: slice) -> Floats:
            block = 0.5 * (left[rows] @ right[columns].T)
            block += 0.5 * targets * (half[rows] @ half[columns].T)
            if rows == columns:
                block[np.diag_indices_from(block)] -= 0.5 * targets * s[rows] ** 2
            return np.asarray(block)

        slopes = self.covariance.contracted(own, weights)
        if not self.noise:
            return slopes
        traces = float(np.sum(s**2) - np.einsum("ij,ij->", half, half, dtype=np.float64) + np.sum(U * W))
        return np.append(slopes, 0.5 * noise * (float(np.sum(x.solution**2)) - targets * traces))
