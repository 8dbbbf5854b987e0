"""Conjugate gradients with low-precision products, refined by float64 residuals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.operators import Quantised
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.linear.cg import CGState, ConjugateGradients
from mercer.solvers.linear.system import Floats, LinearSystem, column_norms

__all__ = ["RefinedConjugateGradients", "RefinedState"]

INNER = 1e-4
"""The smallest relative residual of an inner solve: about what float32 entries allow at n = 10⁵ and small shifts."""

PATIENCE = 200
"""Most steps of one low-precision inner solve. If rounding slows it down beyond that, float64 is faster."""

CONTRACTION = 0.1
"""If a round leaves more than this share of the true residual, the low-precision entries are not precise enough."""


@dataclass(frozen=True)
class RefinedState(State):
    """The iterate X, its true residual R, the inner solve for the correction, and the precision of its products.

    Attributes
    ----------
    steps : int
    X, R : arrays of shape (n, c)
    residuals : array of shape (c,)
    precision : str
    inner : CGState, optional
    failure : str, optional
    """

    X: Floats
    R: Floats
    residuals: Floats
    precision: str
    inner: CGState | None = field(default=None, metadata={"state": CGState})
    failure: str | None = None

    @property
    def residual(self) -> float:
        outer = float(np.max(self.residuals, initial=0.0))
        return outer if self.inner is None else outer * min(self.inner.residual, 1.0)


@dataclass(frozen=True)
class RefinedConjugateGradients(Solver[LinearSystem, RefinedState]):
    r"""x ← x + c with (Ã + D) c ≈ b − (A + D) x, the residual in float64 and Ã with entries in float32 or 16 bits.

    Preconditioned conjugate gradients compute c in rounds of equal length, each to a relative residual that the
    precision of Ã allows. So the total number of steps is about that of one solve in float64. Every round ends with a
    true residual. If a round leaves more than a tenth of the previous one, the later rounds use A itself. They use A
    from the start if the system has no `low_precision` operator.

    Parameters
    ----------
    tol : float
        Tolerance on the true relative residual of each right-hand side.
    max_steps : int, optional
        Most products with A or Ã; min(10 n, 10 000) by default.
    inner : float
        The smallest relative residual that a low-precision round must reach. 10⁻⁴ is about what float32 entries allow
        at n = 10⁵ and small shifts. With ‖Ã − A‖ = εμ, the true residual departed from the recurrence's at ε/50 of
        the first one, but rounds that stop earlier take fewer steps in total: at n = 10 000 and ε = 0.07, six digits
        took 150 steps by rounds of 10⁻² and 178 by rounds of 10⁻³.

    Raises
    ------
    InvalidInput
        If tol or max_steps is negative, or `inner` is not between 0 and 1.

    References
    ----------
    C. B. Moler (1967). Iterative refinement in floating point. Journal of the ACM 14.
    H. Anzt, V. Heuveline, B. Rocker (2011). An error correction solver for linear systems: evaluation of mixed
    precision implementations. VECPAR 2010.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import LinearSystem, solve
    >>> A = Dense([[2.0, 1.0], [1.0, 3.0]])
    >>> system = LinearSystem(A, [3.0, 4.0], low_precision=A.astype(np.float32))
    >>> solution = solve(RefinedConjugateGradients(tol=1e-12), system)
    >>> solution.x.round(12), solution.status.name
    (array([1., 1.]), 'CONVERGED')
    """

    tol: float = 1e-8
    max_steps: int | None = None
    inner: float = INNER

    def __post_init__(self) -> None:
        if not self.tol >= 0 or not 0 < self.inner < 1 or (self.max_steps is not None and self.max_steps < 0):
            do = "give tol ≥ 0, 0 < inner < 1 and max_steps ≥ 0"
            raise InvalidInput(message("RefinedConjugateGradients", repr(self), do))

    def start(self, problem: LinearSystem) -> RefinedState:
        B = problem.columns
        low_precision = "16-bit entries" if isinstance(problem.low_precision, Quantised) else "float32"
        precision = "float64" if problem.low_precision is None else low_precision
        residuals = np.where(np.any(B != 0, axis=0), 1.0, 0.0)
        failure = None if np.all(np.isfinite(B)) else "NOT_FINITE"
        return RefinedState(0, np.zeros_like(B), B, residuals, precision, failure=failure)

    def step(self, problem: LinearSystem, state: RefinedState) -> RefinedState:
        cg, system = self._round(state), _correction(problem, state, self.tol)
        inner = cg.step(system, cg.start(system) if state.inner is None else state.inner)
        now = replace(state, steps=state.steps + 1, inner=inner)
        ended = cg.verdict(system, inner)
        return now if ended is None else _corrected(problem, now, ended, self.tol)

    def verdict(self, problem: LinearSystem, state: RefinedState) -> Status | None:
        if state.failure is not None:
            return Status[state.failure]
        if state.inner is None and float(np.max(state.residuals, initial=0.0)) <= self.tol:
            return Status.CONVERGED
        limit = min(10 * problem.n, 10_000) if self.max_steps is None else self.max_steps
        return Status.MAX_STEPS if state.steps >= limit else None

    def finish(self, problem: LinearSystem, state: RefinedState) -> tuple[Floats, float]:
        if state.inner is None:
            return problem.shaped(state.X), state.residual
        X = _added(state, self.tol)
        return problem.shaped(X), problem.residual(X)

    def _round(self, state: RefinedState) -> ConjugateGradients:
        """The inner solver, with the tolerance that the outer one needs or that low-precision entries allow."""
        left = self.tol / float(np.max(state.residuals))
        if state.precision == "float64":
            return ConjugateGradients(tol=min(0.8 * left, 0.5))
        wanted = 0.5 * min(left, 1.0)  # the true residual is larger than the recurrence's, and another round is dearer
        rounds = np.ceil(np.log(wanted) / np.log(self.inner)) if wanted > 0 else np.inf
        tol = min(max(wanted ** (1 / rounds), self.inner), 0.5)
        return ConjugateGradients(tol=tol, max_steps=PATIENCE, certify=False)


def _correction(problem: LinearSystem, state: RefinedState, tol: float) -> LinearSystem:
    """The system whose solution is the correction, for the columns that are not solved yet."""
    A = problem.A if state.precision == "float64" or problem.low_precision is None else problem.low_precision
    R = np.ascontiguousarray(state.R[:, state.residuals > tol])
    return LinearSystem(A, R, problem.shift, preconditioner=problem.preconditioner)


def _added(state: RefinedState, tol: float) -> Floats:
    assert state.inner is not None
    X = state.X.copy()
    X[:, state.residuals > tol] += state.inner.X
    return X


def _corrected(problem: LinearSystem, state: RefinedState, ended: Status, tol: float) -> RefinedState:
    """The state after an inner solve: with the new iterate if it is better, with a reason to stop if it is not."""
    X = _added(state, tol)
    R = problem.columns - problem.apply(X)
    residuals = column_norms(R) / problem.scales
    left = float(np.max(residuals, initial=0.0)) / float(np.max(state.residuals))
    low_precision = state.precision != "float64"
    if not np.isfinite(left):
        return replace(state, inner=None, failure=None if low_precision else "NOT_FINITE", precision="float64")
    if not left < 1.0:
        X, R, residuals = state.X, state.R, state.residuals
    now = replace(state, X=X, R=R, residuals=residuals, inner=None)
    if float(np.max(residuals, initial=0.0)) <= tol:
        return now
    if low_precision:
        return replace(now, precision=state.precision if left <= CONTRACTION else "float64")
    if ended.converged and left <= 0.5:
        return now
    return replace(now, failure=(Status.STALLED if ended.converged else ended).name)
