"""Logistic regression on explicit features, by Newton's method on one pass over the features for each step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.operators import LowRank
from mercer.solvers.base import Solver, Status
from mercer.solvers.descent.curvature import feature_curvature
from mercer.solvers.descent.logistic import MOST_HALVINGS, ROUNDING, SUFFICIENT, Logistic, LogisticFit, LogisticState
from mercer.solvers.linear.system import Floats

__all__ = ["FeatureLogistic", "NewtonFeatureLogistic"]


class FeatureLogistic(Logistic):
    r"""min over V, b of Σᵢ wᵢ ℓ(yᵢ, Vᵀφᵢ + b) + λ/2 ‖V‖², ℓ(y, z) = log Σ_c exp z_c − z_y: `Logistic` with K = ΦΦᵀ.

    With the best b for each V the objective is λ-strongly convex in V, so that it exceeds its minimum by at most
    ‖G‖²/2λ with G = λV + ΦᵀW(P − Y): the residual is this bound relative to the objective.

    Parameters
    ----------
    K : LowRank of shape (n, n), symmetric
        ΦΦᵀ; Φ, of shape (n, m) in float64, may be in a file.
    labels, penalty, weights, intercept, factor
        As for `Logistic`; `factor` is not used.

    Raises
    ------
    InvalidInput
        As for `Logistic`.
    """

    @property
    def features(self) -> NDArray[Any]:
        """Φ."""
        assert isinstance(self.K, LowRank)
        return self.K.U

    def at(self, steps: int, coef: Floats, F: Floats, b: Floats) -> LogisticState:
        """The state at V with ΦV = F and the best b, found from the given one, by one product with Φᵀ."""
        b = self.best_intercept(F, b)
        Z = F + b
        R = self.w * (self.chances(Z) - self.Y)
        gradient = self.penalty * coef + self.features.T @ R
        objective = self.loss(Z) + self.penalty / 2 * float(np.vdot(coef, coef))
        gap = float(np.vdot(gradient, gradient)) / (2 * self.penalty)
        return LogisticState(steps, coef, F, b, R, gradient, objective, gap)

    def residual(self, x: LogisticFit) -> float:
        """The bound on the gap, plus the gain of a better b, over the objective at x, from two passes over Φ."""
        F = self.features @ x.coef
        state = self.at(0, x.coef, F, x.intercept)
        worse = self.loss(F + x.intercept) - self.loss(F + state.b)
        return replace(state, gap=state.gap + max(worse, 0.0)).residual


@dataclass(frozen=True)
class NewtonFeatureLogistic(Solver[FeatureLogistic, LogisticState]):
    r"""V ← V − t H⁻¹G and the best b for it; t = 1, ½, ¼, … until the objective falls enough.

    H, the curvature if b follows V, takes O(n m² t²) operations for t scores, and its factor O(m³ t³).

    Parameters
    ----------
    tol : float
        Tolerance on ‖G‖²/2λ relative to the objective.
    max_steps : int
        Most steps.

    Raises
    ------
    InvalidInput
        If tol or max_steps is negative.

    Examples
    --------
    >>> from mercer.solvers import solve
    >>> problem = FeatureLogistic(LowRank([[-1.0], [-0.5], [0.5], [1.0]]), [0, 1, 0, 1], penalty=1.0)
    >>> solution = solve(NewtonFeatureLogistic(), problem)
    >>> solution.status.name, solution.x.intercept.round(6)
    ('CONVERGED', array([0.]))
    """

    tol: float = 1e-10
    max_steps: int = 100

    def __post_init__(self) -> None:
        if not (self.tol >= 0 and self.max_steps >= 0):
            given = f"tol={self.tol}, max_steps={self.max_steps}"
            raise InvalidInput(message("NewtonFeatureLogistic", given, "give tol ≥ 0 and max_steps ≥ 0"))

    def start(self, problem: FeatureLogistic) -> LogisticState:
        F = np.zeros_like(problem.Y)
        return problem.at(0, np.zeros((problem.features.shape[1], F.shape[1])), F, np.zeros(F.shape[1]))

    def step(self, problem: FeatureLogistic, state: LogisticState) -> LogisticState:
        shape = state.coef.shape
        with one_blas_thread(float(problem.features.size) * shape[0] * shape[1] ** 2):
            P = problem.chances(state.F + state.b)
            H = feature_curvature(problem.features, P, problem.w, problem.intercept)
            factor = CholeskyFactor.of(H, problem.penalty)
            if factor is None:
                return replace(state, steps=state.steps + 1, failure="BREAKDOWN")
            move = -factor.solve(state.images.T.ravel())
            move = np.ascontiguousarray(move.reshape(shape[::-1]).T)
            image, slope = problem.features @ move, float(np.vdot(move, state.images))
            certain = -slope > ROUNDING * abs(state.objective)
            new, t = problem.at(state.steps + 1, state.coef + move, state.F + image, state.b), 1.0
            while certain and not new.objective <= state.objective + SUFFICIENT * t * slope:
                t /= 2
                if t < 0.5**MOST_HALVINGS:
                    return replace(state, steps=state.steps + 1, failure="STALLED")
                new = problem.at(new.steps, state.coef + t * move, state.F + t * image, state.b)
        return new if certain or new.gap <= state.gap / 2 else replace(new, failure="STALLED")

    def verdict(self, problem: FeatureLogistic, state: LogisticState) -> Status | None:
        if not (np.isfinite(state.gap) and np.isfinite(state.objective)):
            return Status.NOT_FINITE
        if state.residual <= self.tol:
            return Status.CONVERGED
        if state.failure is not None:
            return Status[state.failure]
        return Status.MAX_STEPS if state.steps >= self.max_steps else None

    def finish(self, problem: FeatureLogistic, state: LogisticState) -> tuple[LogisticFit, float]:
        x = LogisticFit(state.coef, state.b)
        return x, problem.residual(x)
