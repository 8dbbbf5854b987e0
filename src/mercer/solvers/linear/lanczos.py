"""The log-determinant of a large positive definite operator from a few random vectors, with its standard error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal

from mercer.errors import InvalidInput, message
from mercer.operators import Operator
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.linear.system import Floats, LinearSystem, column_dots, column_norms

__all__ = ["LanczosState", "LogDeterminant", "LogDeterminantEstimate", "StochasticLanczos"]

ENDED = 1e-14
"""A column with a smaller relative residual is left alone, because its next direction would be rounding."""


@dataclass(frozen=True, eq=False)
class LogDeterminantEstimate:
    """An estimate of log det(A + D), and solutions that come with it.

    Attributes
    ----------
    value, standard_error : float
        The mean over the random vectors, and its standard error: infinite for one vector.
    solution : array of shape (n, targets)
        (A + D)⁻¹B.
    probes : array of shape (n, t)
        (A + D)⁻¹Z of the random vectors.
    """

    value: float
    standard_error: float
    solution: Floats
    probes: Floats


@dataclass(frozen=True, eq=False)
class LogDeterminant:
    r"""log det(A + D) = log det M⁻¹ + tr log(M^½ (A + D) M^½), D = diag(shift), from random vectors z ~ N(0, M⁻¹).

    Parameters
    ----------
    A : Operator of shape (n, n), symmetric
    Z : array of shape (n, t)
        The random vectors.
    shift : float or array of shape (n,)
    B : array of shape (n, targets), optional
        Right-hand sides of systems to solve by the same products.
    preconditioner : Operator, optional
        M ≈ (A + D)⁻¹; by default I.
    offset : float
        log det M⁻¹.

    Raises
    ------
    InvalidInput
        If A is not symmetric, or a shape does not match.
    """

    A: Operator
    Z: Floats
    shift: ArrayLike = 0.0
    B: Floats | None = None
    preconditioner: Operator | None = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        if np.ndim(self.Z) != 2 or not self.Z.shape[1]:
            given = f"random vectors of shape {np.shape(self.Z)}"
            raise InvalidInput(message("LogDeterminant", given, "give at least one column"))
        _ = self.system  # raises if the other shapes do not match

    @property
    def targets(self) -> int:
        """The number of right-hand sides."""
        return 0 if self.B is None else int(self.B.shape[1])

    @cached_property
    def system(self) -> LinearSystem:
        """The system with B, then Z, on the right."""
        columns = self.Z if self.B is None else np.hstack([self.B, self.Z])
        return LinearSystem(self.A, columns, self.shift, preconditioner=self.preconditioner)

    def residual(self, x: LogDeterminantEstimate) -> float:
        """The largest relative residual of the solutions."""
        return self.system.residual(np.hstack([x.solution, x.probes]))


@dataclass(frozen=True)
class LanczosState(State):
    """Iterates of conjugate gradients for all columns, and their coefficients, which are Lanczos's.

    Attributes
    ----------
    steps : int
    X, R, P : arrays of shape (n, c)
    rho, residuals : arrays of shape (c,)
    alphas, betas : arrays of shape (steps, c)
        0 after the column has ended.
    failure : str, optional
    """

    X: Floats
    R: Floats
    P: Floats
    rho: Floats
    residuals: Floats
    alphas: Floats
    betas: Floats
    failure: str | None = None

    @property
    def residual(self) -> float:
        return float(np.max(self.residuals, initial=0.0))


@dataclass(frozen=True)
class StochasticLanczos(Solver[LogDeterminant, LanczosState]):
    r"""log det M⁻¹ + mean over z of n e₁ᵀ log(T) e₁, T the tridiagonal matrix of Lanczos's process from M^½z.

    Conjugate gradients on (A + D)x = z have T in their coefficients: Tₖₖ = 1/αₖ + βₖ₋₁/αₖ₋₁, Tₖ,ₖ₊₁ = √βₖ/αₖ. They
    solve for B and for all z by one product a step. e₁ᵀ log(T) e₁ is a Gauss quadrature, which is exact for polynomials
    of degree 2k − 1 after k steps, so that its error is near the square of the residual. The estimates of different z
    vary less the better the preconditioner is, and not at all if it is exact.

    Parameters
    ----------
    tol : float
        Tolerance on the relative residual of each column.
    max_steps : int, optional
        Most steps; min(10 n, 1000) by default.

    Raises
    ------
    InvalidInput
        If tol or max_steps is negative.

    References
    ----------
    S. Ubaru, J. Chen, Y. Saad (2017). Fast estimation of tr(f(A)) via stochastic Lanczos quadrature. SIAM J. Matrix
    Anal. Appl. 38.
    J. R. Gardner, G. Pleiss, D. Bindel, K. Q. Weinberger, A. G. Wilson (2018). GPyTorch: blackbox matrix-matrix
    Gaussian process inference with GPU acceleration. NeurIPS.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import solve
    >>> Z = np.random.default_rng(0).standard_normal((2, 50))
    >>> found = solve(StochasticLanczos(), LogDeterminant(Dense([[2.0, 1.0], [1.0, 3.0]]), Z))
    >>> bool(abs(found.x.value - np.log(5.0)) < 3 * found.x.standard_error), found.status.name
    (True, 'CONVERGED')
    """

    tol: float = 1e-3
    max_steps: int | None = None

    def __post_init__(self) -> None:
        if not self.tol >= 0 or (self.max_steps is not None and self.max_steps < 0):
            raise InvalidInput(message("StochasticLanczos", repr(self), "give tol ≥ 0 and max_steps ≥ 0"))

    def start(self, problem: LogDeterminant) -> LanczosState:
        R = problem.system.columns
        P = _preconditioned(problem, R)
        empty = np.empty((0, R.shape[1]))
        residuals = column_norms(R) / problem.system.scales
        failure = None if np.all(np.isfinite(residuals)) else "NOT_FINITE"
        return LanczosState(0, np.zeros_like(R), R, P, column_dots(R, P), residuals, empty, empty, failure)

    def step(self, problem: LogDeterminant, state: LanczosState) -> LanczosState:
        AP = problem.system.apply(state.P)
        curvature, live = column_dots(state.P, AP), state.residuals > ENDED
        if not np.all(np.isfinite(curvature)):
            return replace(state, steps=state.steps + 1, failure="NOT_FINITE")
        if np.any(curvature[live] <= 0) or np.any(state.rho[live] <= 0):
            return replace(state, steps=state.steps + 1, failure="BREAKDOWN")
        alpha = np.divide(state.rho, curvature, out=np.zeros_like(curvature), where=live)
        R = state.R - alpha * AP
        W = _preconditioned(problem, R)
        rho = column_dots(R, W)
        beta = np.divide(rho, state.rho, out=np.zeros_like(rho), where=live)
        return LanczosState(
            state.steps + 1,
            state.X + alpha * state.P,
            R,
            W + beta * state.P,
            rho,
            column_norms(R) / problem.system.scales,
            np.vstack([state.alphas, alpha]),
            np.vstack([state.betas, beta]),
        )

    def verdict(self, problem: LogDeterminant, state: LanczosState) -> Status | None:
        if state.failure is not None:
            return Status[state.failure]
        if state.residual <= self.tol:
            return Status.CONVERGED
        limit = min(10 * problem.system.n, 1000) if self.max_steps is None else self.max_steps
        return Status.MAX_STEPS if state.steps >= limit else None

    def finish(self, problem: LogDeterminant, state: LanczosState) -> tuple[LogDeterminantEstimate, float]:
        t, n = problem.targets, problem.system.n
        values = np.array(
            [n * _log_quadrature(a, b) for a, b in zip(state.alphas.T[t:], state.betas.T[t:], strict=True)]
        )
        error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")
        x = LogDeterminantEstimate(problem.offset + float(values.mean()), error, state.X[:, :t], state.X[:, t:])
        return x, problem.residual(x)


def _preconditioned(problem: LogDeterminant, R: Floats) -> Floats:
    return R.copy() if problem.preconditioner is None else np.asarray(problem.preconditioner.matmat(R), np.float64)


def _log_quadrature(alphas: Floats, betas: Floats) -> float:
    """e₁ᵀ log(T) e₁ from the coefficients of conjugate gradients; 0 before the first step."""
    k = int(np.count_nonzero(alphas))
    if not k:
        return 0.0
    a, b = alphas[:k], betas[: k - 1]
    diagonal = 1 / a
    diagonal[1:] += b / a[:-1]
    # SciPy's default, MRRR, does not converge in some builds of LAPACK if an entry beside the diagonal is tiny.
    values, vectors = eigh_tridiagonal(diagonal, np.sqrt(b) / a[:-1], lapack_driver="stev")
    return float(vectors[0] ** 2 @ np.log(np.maximum(values, np.finfo(float).tiny)))
