"""Logistic regression in coefficients of a kernel matrix, by Newton's method with an exact duality gap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp, softmax

from mercer.errors import InvalidInput, message
from mercer.operators import Operator
from mercer.solvers.base import Solver, State, Status, require_symmetric
from mercer.solvers.descent.curvature import (
    Curvature,
    FeatureInverse,
    Preconditioner,
    Reduced,
    pseudo_inverse,
    summed_curvature,
)
from mercer.solvers.linear.system import Floats

__all__ = ["Logistic", "LogisticFit", "LogisticState", "NewtonLogistic"]

SUFFICIENT = 1e-4
"""A step must decrease the objective by this share of the decrease that the slope predicts (Armijo)."""
ROUNDING = 1e-10
"""If the predicted decrease is below this share of the objective, rounding hides it, and the full step is taken."""
MOST_HALVINGS = 40
SLOW, DENSE, REFINEMENTS = 50, 1500, 20
"""After SLOW products in one step a system of at most DENSE rows is factored, and at most REFINEMENTS products follow.
Without this, for 129 rows, entries near 1e4 and a penalty of 1, each of a hundred steps took a thousand products.
"""
PATIENCE = 3
"""The run has stalled after this many consecutive steps that rounding decides and that do not halve the gap."""


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """The answer: α of shape (n, t) and b of shape (t,), with t = 1 for two classes and t = c for c > 2 classes.

    Attributes
    ----------
    coef : array of shape (n, t)
    intercept : array of shape (t,)
    """

    coef: Floats
    intercept: Floats


@dataclass(frozen=True, eq=False)
class Logistic:
    r"""min over α, b of Σᵢ wᵢ ℓ(yᵢ, fᵢ + b) + λ/2 tr αᵀKα with f = Kα and ℓ(y, z) = log Σ_c exp z_c − z_y.

    For two classes z is one number, the score of the second class; the first has score 0. b is not penalised, and is
    always the best one for f. The other condition of the optimum is then α = α̂ with α̂ = W(Y − P)/λ and
    P = softmax(f + b). For any α, the dual objective at α̂ proves that the objective exceeds its minimum by at most

        λ/2 tr (α − α̂)ᵀK(α − α̂) = λ/2 ‖f − f̂‖²,

    the duality gap, which one product computes without cancellation. The residual is this gap relative to the
    objective.

    Parameters
    ----------
    K : Operator of shape (n, n), symmetric positive semi-definite
    labels : integers of shape (n,)
        The classes 0 to c − 1; each must occur.
    penalty : float > 0
        λ.
    weights : array-like of shape (n,), optional
        wᵢ > 0.
    intercept : bool
        Whether b is fitted; otherwise it is 0.
    factor : array of shape (n, r), optional
        F with K ≈ FFᵀ, the preconditioner of the steps.

    Raises
    ------
    InvalidInput
        If the labels are not integers from 0 to c − 1, or the penalty or a weight is not positive.
    """

    K: Operator
    labels: ArrayLike
    penalty: float
    weights: ArrayLike | None = None
    intercept: bool = True
    factor: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        n, y = self.K.shape[0], np.asarray(self.labels)
        require_symmetric("Logistic", self.K)
        if y.shape != (n,) or y.dtype.kind not in "iu" or len(np.unique(y)) != y.max() + 1 or y.min() or y.max() < 1:
            given = f"labels of shape {y.shape}, {y.dtype}"
            do = f"give {n} integers from 0 to c − 1 with c ≥ 2, so that each class occurs"
            raise InvalidInput(message("Logistic", given, do))
        if not 0 < self.penalty < np.inf:
            raise InvalidInput(message("Logistic", f"penalty={self.penalty}", "give a number > 0"))
        if self.weights is not None and (np.shape(self.weights) != (n,) or not np.all(np.asarray(self.weights) > 0)):
            raise InvalidInput(message("Logistic", "weights", f"give {n} numbers > 0"))

    @cached_property
    def w(self) -> Floats:
        """The weights in a column, 1 by default."""
        n = self.K.shape[0]
        return np.ones((n, 1)) if self.weights is None else np.asarray(self.weights, np.float64)[:, None]

    @cached_property
    def Y(self) -> Floats:
        """The indicators of the classes; for two classes that of the second class only."""
        y = np.asarray(self.labels)
        Y = np.asarray(y[:, None] == np.arange(y.max() + 1), np.float64)
        return np.ascontiguousarray(Y[:, 1:]) if Y.shape[1] == 2 else Y

    # ---- the likelihood at scores Z of shape (n, t) -----------------------------------------------------------------

    def loss(self, Z: Floats) -> float:
        """Σᵢ wᵢ ℓ(yᵢ, zᵢ)."""
        if Z.shape[1] == 1:
            return float(np.sum(self.w * np.logaddexp(0.0, (1 - 2 * self.Y) * Z)))
        # Differences from the score of the true class keep the digits of a small loss next to large scores.
        own = np.sum(Z * self.Y, axis=1, keepdims=True)
        return float(np.sum(self.w[:, 0] * logsumexp(Z - own, axis=1)))

    def chances(self, Z: Floats) -> Floats:
        """The probabilities P, in the shape of Z."""
        return np.asarray(expit(Z) if Z.shape[1] == 1 else softmax(Z, axis=1))

    def best_intercept(self, F: Floats, b: Floats) -> Floats:
        """The b with Σᵢ wᵢ(pᵢ − yᵢ) = 0 at the scores F + b, by Newton's method from b."""
        if not self.intercept or not np.all(np.isfinite(F)):
            return b
        loss, total = self.loss(F + b), float(self.w.sum())
        for _ in range(100):
            P = self.chances(F + b)
            gradient = np.sum(self.w * (P - self.Y), axis=0)
            if np.max(np.abs(gradient)) <= 1e-14 * total:
                break
            move = -pseudo_inverse(summed_curvature(P, self.w)) @ gradient
            for _ in range(MOST_HALVINGS):
                new = self.loss(F + (b + move))
                if new <= loss + 1e-15 * abs(loss):
                    break
                move = move / 2
            else:
                break
            b, settled, loss = b + move, new >= loss, new
            if settled and np.max(np.abs(move)) <= 1e-12 * (1 + np.max(np.abs(b))):
                break
        return b if len(b) == 1 else b - b.mean()

    # ---- objective and duality gap ----------------------------------------------------------------------------------

    def at(self, steps: int, coef: Floats, F: Floats, b: Floats) -> LogisticState:
        """The state at α with Kα = F and the best b, found from the given one, by one product with K."""
        b = self.best_intercept(F, b)
        Z = F + b
        R = self.penalty * coef + self.w * (self.chances(Z) - self.Y)
        images = np.asarray(self.K.matmat(R))
        objective = self.loss(Z) + self.penalty / 2 * float(np.vdot(coef, F))
        return LogisticState(steps, coef, F, b, R, images, objective, float(np.vdot(R, images)) / (2 * self.penalty))

    def residual(self, x: LogisticFit) -> float:
        """The duality gap, plus the gain of a better b, over the objective at x, from two products in float64."""
        coef, b = np.asarray(x.coef, np.float64), np.asarray(x.intercept, np.float64)
        F = np.asarray(self.K.matmat(coef))
        state = self.at(0, coef, F, b)
        worse = self.loss(F + b) - self.loss(F + state.b)
        return _relative(state.gap + max(worse, 0.0), state.objective)


@dataclass(frozen=True)
class LogisticState(State):
    """α, F = Kα, b, the gradient's coefficients R = λα + W(P − Y) and images K R, the objective and its gap.

    Attributes
    ----------
    steps, stalls : int
    coef, F, R, images : arrays of shape (n, t)
    b : array of shape (t,)
    objective, gap : float
    failure : str, optional
        The reason for the end of the run.
    """

    coef: Floats
    F: Floats
    b: Floats
    R: Floats
    images: Floats
    objective: float
    gap: float
    stalls: int = 0
    failure: str | None = None

    @property
    def residual(self) -> float:
        return _relative(max(self.gap, 0.0), self.objective)


@dataclass(frozen=True)
class NewtonLogistic(Solver[Logistic, LogisticState]):
    r"""α ← α + t δ with μδ + H̃Kδ = −R and the best b for it; t = 1, ½, ¼, … until the objective falls enough.

    Hᵢ = wᵢ(diag pᵢ − pᵢpᵢᵀ) = TᵢTᵢᵀ is the curvature for a fixed b, and H̃ = H − H1(1ᵀH1)⁺1ᵀH = TQTᵀ the curvature if b
    follows f, where Q projects on the complement of the columns of Tᵀ1. So δ = −R/μ + TQu with

        (μI + QTᵀKTQ) u = QTᵀKR/μ,

    a symmetric positive definite system with condition at most 1 + ‖H‖‖K‖/μ for a K of any rank. Newton's step has
    μ = λ; here μ = λ(1 + gap/objective). Far from the minimum, where the quadratic model says little, the system is
    easy, and near the minimum the step is Newton's. Conjugate gradients solve it to a tolerance that falls with the
    gap, so that convergence stays quadratic. The preconditioner is the inverse with FFᵀ for K, so that its only error
    is that of the factor. A step takes one product with K for each step of the conjugate gradients, and two more. If
    they converge slowly, as with a small λ, and the system is small, it is factored.

    Parameters
    ----------
    tol : float
        Tolerance on the duality gap relative to the objective. The relative error of f is about √(2 tol).
    max_steps : int
        Most Newton steps.
    inner_steps : int
        Most products of the conjugate gradients in one step.

    Raises
    ------
    InvalidInput
        If tol or max_steps is negative, or `inner_steps` below 1.

    References
    ----------
    J. Zhu, T. Hastie (2005). Kernel logistic regression and the import vector machine. Journal of Computational and
    Graphical Statistics 14.
    S. S. Keerthi, K. B. Duan, S. K. Shevade, A. N. Poo (2005). A fast dual algorithm for kernel logistic regression.
    Machine Learning 61.
    R. S. Dembo, S. C. Eisenstat, T. Steihaug (1982). Inexact Newton methods. SIAM J. Numerical Analysis 19.

    Examples
    --------
    >>> from mercer.operators import LowRank
    >>> from mercer.solvers import solve
    >>> problem = Logistic(LowRank([[-1.0], [-0.5], [0.5], [1.0]]), [0, 1, 0, 1], penalty=1.0)
    >>> solution = solve(NewtonLogistic(), problem)
    >>> solution.status.name, solution.x.intercept.round(6)
    ('CONVERGED', array([0.]))
    """

    tol: float = 1e-10
    max_steps: int = 100
    inner_steps: int = 1000

    def __post_init__(self) -> None:
        if not (self.tol >= 0 and self.max_steps >= 0 and self.inner_steps >= 1):
            given = f"tol={self.tol}, max_steps={self.max_steps}, inner_steps={self.inner_steps}"
            raise InvalidInput(message("NewtonLogistic", given, "give tol ≥ 0, max_steps ≥ 0 and inner_steps ≥ 1"))

    def start(self, problem: Logistic) -> LogisticState:
        zero = np.zeros_like(problem.Y)
        return problem.at(0, zero, zero, np.zeros(zero.shape[1]))

    def step(self, problem: Logistic, state: LogisticState) -> LogisticState:
        T = Curvature(problem.chances(state.F + state.b), problem.w, problem.intercept)
        move = self._direction(problem, state, T)
        if isinstance(move, str):
            return replace(state, steps=state.steps + 1, failure=move)
        certain = -move.slope > ROUNDING * abs(state.objective)
        t = _step_length(problem, state, move) if certain else 1.0
        if t == 0.0:
            return replace(state, steps=state.steps + 1, failure="STALLED")
        new = problem.at(state.steps + 1, state.coef + t * move.coef, state.F + t * move.image, state.b)
        if new.residual <= self.tol:  # F is a sum of images, and rounding may have moved it away from Kα
            new = problem.at(new.steps, new.coef, np.asarray(problem.K.matmat(new.coef)), new.b)
        stalls = 0 if certain or new.gap <= state.gap / 2 else state.stalls + 1
        return replace(new, stalls=stalls, failure="STALLED" if stalls >= PATIENCE else None)

    def verdict(self, problem: Logistic, state: LogisticState) -> Status | None:
        if not (np.isfinite(state.gap) and np.isfinite(state.objective)):
            return Status.NOT_FINITE
        if state.gap < -1e-8 * abs(state.objective) or state.objective <= 0:
            return Status.BREAKDOWN  # RᵀKR < 0 or αᵀKα < 0
        if state.residual <= self.tol:
            return Status.CONVERGED
        if state.failure is not None:
            return Status[state.failure]
        return Status.MAX_STEPS if state.steps >= self.max_steps else None

    def finish(self, problem: Logistic, state: LogisticState) -> tuple[LogisticFit, float]:
        x = LogisticFit(state.coef, state.b)
        return x, problem.residual(x)

    def _direction(self, problem: Logistic, state: LogisticState, T: Curvature) -> _Move | str:
        """δ by preconditioned conjugate gradients for u, or the name of a failure.

        The quadratic model of the objective has a dual in u. With the residual r of u, their gap is ‖TQr‖²_K/2μ: the
        decrease of the model that δ misses. It must be small relative to that decrease, about half the slope.
        """
        penalty = problem.penalty * (1 + state.residual)
        A = Reduced(problem.K, penalty, T)
        M: Preconditioner = FeatureInverse(problem.factor, penalty, T)
        r = T.projected(T.adjoint(state.images)) / penalty
        u, p, rho = np.zeros_like(r), np.zeros_like(r), 1.0
        share, due, left = float(np.clip(state.residual, 1e-12, 0.1)), 0.1 * float(np.linalg.norm(r)), self.inner_steps
        while True:
            size = float(np.linalg.norm(r))
            if size <= due or left == 0:
                found, off = _move(problem.K, penalty, state, T, u, r)
                wanted = share * max(-found.slope, 0.0) / 2
                if off <= wanted or left == 0 or size == 0.0:
                    return found
                due = size * float(np.clip(np.sqrt(wanted / off) / 2, 1e-3, 0.3))
            if self.inner_steps - left == SLOW and state.R.size <= DENSE and (exact := A.inverse()):
                M, p, rho, left = exact, np.zeros_like(r), 1.0, min(left, REFINEMENTS)
            z = M(r)
            new = float(np.vdot(r, z))
            p, rho, left = z + (new / rho) * p, new, left - 1
            image = A(p)
            curvature = float(np.vdot(p, image))
            if not (curvature > 0 and rho > 0):
                return "BREAKDOWN"  # the state is finite, but with a small λ rounding spoilt the recurrence
            u, r = u + (rho / curvature) * p, r - (rho / curvature) * image


@dataclass(frozen=True, eq=False)
class _Move:
    """A direction δ, K δ, and the slope ⟨δ, K R⟩ of the objective along it."""

    coef: Floats
    image: Floats
    slope: float


def _move(K: Operator, penalty: float, state: LogisticState, T: Curvature, u: Floats, r: Floats) -> tuple[_Move, float]:
    """δ = −R/μ + TQu and ‖TQr‖²_K/2μ, by one product for both."""
    t = u.shape[1]
    part, rest = T.forward(T.projected(u)), T.forward(T.projected(r))
    images = np.asarray(K.matmat(np.hstack([part, rest])))
    coef = part - state.R / penalty
    found = _Move(coef, images[:, :t] - state.images / penalty, float(np.vdot(coef, state.images)))
    return found, max(float(np.vdot(rest, images[:, t:])), 0.0) / (2 * penalty)


def _step_length(problem: Logistic, state: LogisticState, move: _Move) -> float:
    """The first of 1, ½, ¼, … with Armijo's decrease; 0 if none has it."""
    t = 1.0
    start, square = float(np.vdot(state.coef, state.F)), float(np.vdot(move.coef, move.image))
    linear = float(np.vdot(state.coef, move.image))
    for _ in range(MOST_HALVINGS):
        F = state.F + t * move.image
        norm = start + 2 * t * linear + t * t * square
        value = problem.loss(F + problem.best_intercept(F, state.b)) + problem.penalty / 2 * norm
        if value <= state.objective + SUFFICIENT * t * move.slope:
            return t
        t /= 2
    return 0.0


def _relative(gap: float, objective: float) -> float:
    """gap/objective; infinite if that is not a finite number."""
    found = gap / max(objective, np.finfo(float).tiny)
    return found if np.isfinite(found) else float("inf")
