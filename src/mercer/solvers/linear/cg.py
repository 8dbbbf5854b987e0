"""Conjugate gradients for many right-hand sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.linear.system import Floats, LinearSystem, column_dots, column_norms

__all__ = ["CGState", "ConjugateGradients"]

# How a column ended, in order of severity; 0 while it is running.
_RUNNING, _CONVERGED, _STALLED, _BREAKDOWN, _NOT_FINITE = range(5)
_STATUS = {
    _CONVERGED: Status.CONVERGED,
    _STALLED: Status.STALLED,
    _BREAKDOWN: Status.BREAKDOWN,
    _NOT_FINITE: Status.NOT_FINITE,
}
_STALLS_ALLOWED = 3
_LOOK = 2


@dataclass(frozen=True)
class CGState(State):
    """Iterates X, residuals R, directions P, ρ = ⟨r, Mr⟩ of each column, and how each column ended.

    Attributes
    ----------
    steps : int
    X, R, P : arrays of shape (n, c)
    rho, residuals, best : arrays of shape (c,)
        ρ, the relative residuals, and the smallest true ones so far.
    stalls : integers of shape (c,)
        How often a true residual did not fall to half of the best.
    codes : integers of shape (c,)
        0 while a column is running.
    """

    X: Floats
    R: Floats
    P: Floats
    rho: Floats
    residuals: Floats
    best: Floats
    stalls: NDArray[np.int64]
    codes: NDArray[np.int64]

    @property
    def residual(self) -> float:
        return float(np.max(self.residuals, initial=0.0))

    @property
    def status(self) -> Status | None:
        """None while a column is running, then the most severe status of all columns."""
        if np.any(self.codes == _RUNNING):
            return None
        return _STATUS[int(np.max(self.codes, initial=_CONVERGED))]


@dataclass(frozen=True)
class ConjugateGradients(Solver[LinearSystem, CGState]):
    r"""x ← x + αp, r ← r − αAp, p ← Mr + βp with α = ⟨r,Mr⟩/⟨p,Ap⟩ and β = ⟨r,Mr⟩₊/⟨r,Mr⟩, for each column at once.

    The columns are independent recurrences that share one product A P a step. A column that has ended is not multiplied
    again. A column has converged only if ‖b − Ax‖/‖b‖, recomputed from x, is at most ``tol``. If the recurrence's
    residual is below ``tol`` and the true one is not, the recurrence restarts from the true one. After three such
    restarts that did not halve the true residual the column is STALLED.

    Parameters
    ----------
    tol : float
        Tolerance on the true relative residual of each right-hand side.
    max_steps : int, optional
        Most steps; min(10 n, 10 000) by default.
    recompute_every : int
        Number of steps after which the true residual replaces the recurrence's.
    certify : bool
        If False, a column has converged as soon as the recurrence's residual is at most ``tol``. That saves a product
        where the true residual is computed afterwards anyway, as in refinement.
    on_course : bool
        If True, the run ends as soon as the residual is above tol^((s − 1)/max_steps) after s ≥ 2 steps: falling so, it
        would not reach ``tol`` in time. So a method that takes longer than it is worth is found out in a few steps.

    Raises
    ------
    InvalidInput
        If tol or max_steps is negative, or `recompute_every` below 1.

    References
    ----------
    M. R. Hestenes, E. Stiefel (1952). Methods of conjugate gradients for solving linear systems.
    H. A. van der Vorst, Q. Ye (2000). Residual replacement strategies for Krylov subspace iterative methods.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import LinearSystem, solve
    >>> solution = solve(ConjugateGradients(), LinearSystem(Dense([[2.0, 1.0], [1.0, 3.0]]), [3.0, 4.0]))
    >>> solution.x.round(12), solution.status.name
    (array([1., 1.]), 'CONVERGED')
    """

    tol: float = 1e-8
    max_steps: int | None = None
    recompute_every: int = 50
    certify: bool = True
    on_course: bool = False

    def __post_init__(self) -> None:
        if not self.tol >= 0 or self.recompute_every < 1 or (self.max_steps is not None and self.max_steps < 0):
            raise InvalidInput(
                message("ConjugateGradients", repr(self), "give tol ≥ 0, recompute_every ≥ 1, max_steps ≥ 0")
            )

    def start(self, problem: LinearSystem) -> CGState:
        B = problem.columns
        r = B.shape[1]
        Z = _precondition(problem, B)
        residuals = column_norms(B) / problem.scales
        rho = column_dots(B, Z)
        codes = np.where(residuals == 0, _CONVERGED, np.where(np.isfinite(residuals), _RUNNING, _NOT_FINITE))
        codes = np.where((codes == _RUNNING) & ~(rho > 0), np.where(np.isfinite(rho), _BREAKDOWN, _NOT_FINITE), codes)
        return CGState(
            0, np.zeros_like(B), B, Z, rho, residuals, residuals, np.zeros(r, np.int64), codes.astype(np.int64)
        )

    def start_from_inverse(self, problem: LinearSystem) -> CGState:
        """The start, or the end if M b solves the system, as it does where M is A⁻¹ but for rounding."""
        state = self.start(problem)
        residuals = problem.residuals(state.P)
        if not np.all(residuals <= self.tol):
            return state
        return replace(state, X=state.P, residuals=residuals, codes=np.full_like(state.codes, _CONVERGED))

    def step(self, problem: LinearSystem, state: CGState) -> CGState:
        live = np.flatnonzero(state.codes == _RUNNING)
        now = _take(state, live)
        AP = problem.apply(now.P)
        curvature = column_dots(now.P, AP)
        sound = (curvature > 0) & np.isfinite(curvature)
        alpha = np.divide(now.rho, curvature, out=np.zeros_like(curvature), where=sound)
        R = now.R - alpha * AP
        now = replace(
            now,
            steps=state.steps + 1,
            X=now.X + alpha * now.P,
            R=R,
            residuals=column_norms(R) / problem.scales[live],
            codes=np.where(sound, _RUNNING, np.where(np.isfinite(curvature), _BREAKDOWN, _NOT_FINITE)),
        )
        now, restart = self._certify(problem, live, now)
        return _put(state, live, _redirect(problem, now, restart))

    def _certify(
        self, problem: LinearSystem, live: NDArray[np.intp], now: CGState
    ) -> tuple[CGState, NDArray[np.bool_]]:
        """Compute the true residuals that are due, set the codes of columns by them, and mark columns that restart."""
        running = now.codes == _RUNNING
        claimed = running & (now.residuals <= self.tol)
        if not self.certify:
            now = replace(now, codes=np.where(claimed, _CONVERGED, now.codes))
            running, claimed = running & ~claimed, np.zeros(len(live), bool)
        due = claimed | (running & (now.steps % self.recompute_every == 0))
        restart = np.zeros(len(live), bool)
        if not due.any():
            return now, restart
        J = np.flatnonzero(due)
        true = problem.columns[:, live[J]] - problem.apply(now.X[:, J])
        drift = column_norms(true - now.R[:, J]) / problem.scales[live[J]]
        R, residuals, best = now.R.copy(), now.residuals.copy(), now.best.copy()
        R[:, J], residuals[J] = true, column_norms(true) / problem.scales[live[J]]
        # If most of the true residual is drift, the rounding of the operator determines its size, not the iteration.
        used_up = due & (residuals > self.tol) & (_spread(drift, due) > 0.5 * residuals)
        stalls = now.stalls + (used_up & (residuals > 0.5 * best))
        best[J] = np.minimum(best[J], residuals[J])
        codes = np.where(due & (residuals <= self.tol), _CONVERGED, now.codes)
        codes = np.where((codes == _RUNNING) & (stalls >= _STALLS_ALLOWED), _STALLED, codes)
        codes = np.where(due & ~np.isfinite(residuals), _NOT_FINITE, codes)
        return replace(now, R=R, residuals=residuals, best=best, stalls=stalls, codes=codes), used_up

    def verdict(self, problem: LinearSystem, state: CGState) -> Status | None:
        limit = min(10 * problem.n, 10_000) if self.max_steps is None else self.max_steps
        late = self.on_course and state.steps >= _LOOK and state.residual > self.tol ** ((state.steps - 1) / limit)
        return state.status or (Status.MAX_STEPS if late or state.steps >= limit else None)

    def finish(self, problem: LinearSystem, state: CGState) -> tuple[Floats, float]:
        # The residual of a converged column is the true one already: it was recomputed when the column converged.
        known = self.certify and bool(np.all(state.codes == _CONVERGED))
        return problem.shaped(state.X), state.residual if known else problem.residual(state.X)


def _redirect(problem: LinearSystem, now: CGState, restart: NDArray[np.bool_]) -> CGState:
    """The state with the next directions P of the running columns."""
    running = np.flatnonzero(now.codes == _RUNNING)
    if len(running) == 0:
        return now
    Z = _precondition(problem, now.R[:, running])
    rho = column_dots(now.R[:, running], Z)
    beta = np.where(restart[running], 0.0, rho / now.rho[running])
    P, kept, codes = now.P.copy(), now.rho.copy(), now.codes.copy()
    P[:, running], kept[running] = Z + beta * P[:, running], rho
    codes[running] = np.where(rho > 0, _RUNNING, np.where(np.isfinite(rho), _BREAKDOWN, _NOT_FINITE))
    return replace(now, P=P, rho=kept, codes=codes)


def _precondition(problem: LinearSystem, R: Floats) -> Floats:
    return R.copy() if problem.preconditioner is None else np.asarray(problem.preconditioner.matmat(R), np.float64)


_BY_COLUMN = ("X", "R", "P", "rho", "residuals", "best", "stalls", "codes")


def _take(state: CGState, live: NDArray[np.intp]) -> CGState:
    """The state of some columns, C-contiguous, so that the bits do not depend on the layout of the arrays given."""
    parts: dict[str, Any] = {name: np.ascontiguousarray(getattr(state, name)[..., live]) for name in _BY_COLUMN}
    return CGState(state.steps, **parts)


def _put(state: CGState, live: NDArray[np.intp], part: CGState) -> CGState:
    """The state with some columns replaced."""
    whole: dict[str, Any] = {name: getattr(state, name).copy() for name in _BY_COLUMN}
    for name, array in whole.items():
        array[..., live] = getattr(part, name)
    return CGState(part.steps, **whole)


def _spread(values: Floats, where: NDArray[np.bool_]) -> Floats:
    out = np.zeros(len(where))
    out[where] = values
    return out
