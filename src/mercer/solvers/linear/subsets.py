"""Conjugate gradients for many systems at once: one matrix, many subsets of its rows, many shifts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.former_names import present_fields
from mercer.operators import Operator
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.linear.system import Floats, column_dots, column_norms

__all__ = ["SubsetGradients", "SubsetPreconditioner", "SubsetState", "SubsetSystems"]

RUNNING, CONVERGED, STALLED, BREAKDOWN, NOT_FINITE, SLOW = range(6)
_STATUS = {
    CONVERGED: Status.CONVERGED,
    STALLED: Status.STALLED,
    BREAKDOWN: Status.BREAKDOWN,
    NOT_FINITE: Status.NOT_FINITE,
    SLOW: Status.MAX_STEPS,
}
REPLACE = 1e-4
"""The true residual is computed when that of the recurrence has fallen by this factor, the accuracy of float32."""
WITH_OTHERS = 1e-2
"""The same factor if another column's residual is replaced in the same step, because one product serves both."""
AGAIN = 24
"""The true residual replaces the recurrence's of each float32 column after this many steps."""
GROWN = 4.0
"""And when a residual grew by this factor. Rounding in float32 products of entries near 1 can cause that."""
LOOK = 8
"""Number of steps after which the remaining steps of a column are predicted from its mean rate of convergence."""
SUPERLINEAR = 0.9
"""Factor on that prediction: conjugate gradients converge faster later on."""


class SubsetPreconditioner(Protocol):
    """R ↦ Z with zⱼ ≈ (Pⱼ A Pⱼ + λⱼ)⁻¹ rⱼ on the rows of subset j."""

    def apply(self, R: Floats, columns: NDArray[np.intp]) -> Floats:
        """Z for the systems `columns`; R has one column for each of them."""


@dataclass(frozen=True, eq=False)
class SubsetSystems:
    """(Pⱼ A Pⱼ + λⱼ) xⱼ = Pⱼ bⱼ for each column j, where Pⱼ keeps the rows of subset j and sets the others to 0.

    Parameters
    ----------
    A : Operator of shape (n, n), symmetric
    B : array of shape (n, c)
        The right-hand sides, 0 in the rows outside the subset.
    present : bool array of shape (n, c)
        Whether row i belongs to subset j.
    shifts : array of shape (c,)
        λ ≥ 0.
    preconditioner : SubsetPreconditioner, optional
    low_precision : Operator, optional
        A in float32, at least in part, for the products of the recurrences.

    Raises
    ------
    InvalidInput
        If A, B, `present` and the shifts do not have these shapes.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> present = np.array([[True], [False]])
    >>> systems = SubsetSystems(Dense([[2.0, 1.0], [1.0, 2.0]]), np.array([[3.0], [0.0]]), present, np.array([1.0]))
    >>> systems.residual(np.array([[1.0], [0.0]]))
    0.0
    """

    A: Operator
    B: Floats
    present: NDArray[np.bool_]
    shifts: Floats
    preconditioner: SubsetPreconditioner | None = None
    low_precision: Operator | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(present_fields(state, narrow="low_precision"))

    def __post_init__(self) -> None:
        n, c = self.B.shape
        if self.A.shape != (n, n) or self.present.shape != (n, c) or self.shifts.shape != (c,):
            given = f"A {self.A.shape}, B {self.B.shape}, present {self.present.shape}, {self.shifts.shape} shifts"
            raise InvalidInput(message("SubsetSystems", given, "give one subset and one shift for each column of B"))

    @cached_property
    def scales(self) -> Floats:
        """‖bⱼ‖, and 1 if it is 0."""
        norms = column_norms(self.B)
        return np.where(norms == 0, 1.0, norms)

    def apply(self, X: Floats, columns: Any = slice(None), *, low_precision: bool = False) -> Floats:
        """(Pⱼ A Pⱼ + λⱼ) xⱼ of some columns, with float32 entries if `low_precision`."""
        if not low_precision or self.low_precision is None:
            return self.shifted(np.asarray(self.A @ X, np.float64), X, columns)
        size = np.max(np.abs(X), axis=0, initial=0.0)
        size = np.where((size > 0) & np.isfinite(size), size, 1.0)
        return self.shifted(
            np.asarray(self.low_precision @ (X / size).astype(self.low_precision.dtype), np.float64) * size, X, columns
        )

    def shifted(self, AX: Floats, X: Floats, columns: Any = slice(None)) -> Floats:
        """Pⱼ A xⱼ + λⱼ xⱼ from A xⱼ."""
        out = np.where(self.present[:, columns], AX, 0.0)
        out += self.shifts[columns] * X
        return out

    def residuals(self, X: Floats, columns: Any = slice(None)) -> Floats:
        """‖bⱼ − (Pⱼ A Pⱼ + λⱼ) xⱼ‖/‖bⱼ‖ in float64."""
        return column_norms(self.B[:, columns] - self.apply(X, columns)) / self.scales[columns]

    def residual(self, X: Any) -> float:
        """The largest relative residual of the columns."""
        return float(np.max(self.residuals(np.asarray(X, np.float64)), initial=0.0))


@dataclass(frozen=True)
class SubsetState(State):
    """Iterates X, residuals R, directions P, ρ = ⟨r, Mr⟩, relative residuals, and how each column ended.

    `images` are A X when the true residuals, `true`, were last computed. For a converged column they hold A xⱼ of its
    iterate in all rows: the predictions for the rows outside its subset. `wide` columns are multiplied in float64.

    Attributes
    ----------
    steps : int
    X, images, R, P : arrays of shape (n, c)
    rho, residuals, true : arrays of shape (c,)
    wide : bool array of shape (c,)
    codes : integers of shape (c,)
        How each column ended; 0 while it is running.
    """

    X: Floats
    images: Floats
    R: Floats
    P: Floats
    rho: Floats
    residuals: Floats
    true: Floats
    wide: NDArray[np.bool_]
    codes: NDArray[np.int64]

    @property
    def converged(self) -> NDArray[np.bool_]:
        """The columns with a true residual within the tolerance, as a mask."""
        return self.codes == CONVERGED

    @property
    def residual(self) -> float:
        running = self.residuals[self.codes != SLOW]
        return float(np.max(running, initial=0.0))


@dataclass(frozen=True)
class SubsetGradients(Solver[SubsetSystems, SubsetState]):
    r"""x ← x + αp, r ← r − αAp, p ← Mr + βp for each column and its own system, with one product A P a step for all.

    Products are in float32 if the problem has a low-precision operator. Each time a residual fell by 10⁻⁴, the true one
    is computed in float64 and replaces it; only a true residual ends a column as converged. If the true one did not
    fall likewise, the column restarts from it with products in float64. A column that is predicted to need more than
    `max_steps` further steps is given up, because a factorisation is faster: its code in the state is `SLOW`.

    Parameters
    ----------
    tol : float
        Tolerance on the true relative residual of each column.
    max_steps : int
        The cost of a factorisation, in steps. Each column takes at most twice as many.

    Raises
    ------
    InvalidInput
        If tol or max_steps is negative.

    References
    ----------
    H. A. van der Vorst, Q. Ye (2000). Residual replacement strategies for Krylov subspace iterative methods.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import solve
    >>> A, present = Dense([[2.0, 1.0], [1.0, 2.0]]), np.array([[True, True], [False, True]])
    >>> systems = SubsetSystems(A, np.array([[3.0, 4.0], [0.0, 4.0]]), present, np.array([1.0, 1.0]))
    >>> solve(SubsetGradients(), systems).x.round(9)
    array([[1., 1.],
           [0., 1.]])
    """

    tol: float = 1e-9
    max_steps: int = 1000

    def __post_init__(self) -> None:
        if not self.tol >= 0 or self.max_steps < 0:
            raise InvalidInput(message("SubsetGradients", repr(self), "give tol ≥ 0 and max_steps ≥ 0"))

    def start(self, problem: SubsetSystems) -> SubsetState:
        B = np.ascontiguousarray(problem.B, np.float64)
        Z = _preconditioned(problem, B, np.arange(B.shape[1]))
        residuals, rho = column_norms(B) / problem.scales, column_dots(B, Z)
        codes = np.where(residuals == 0, CONVERGED, _sound(rho))
        wide = np.full(B.shape[1], problem.low_precision is None)
        X = np.zeros_like(B)
        return SubsetState(0, X, X, B, Z, rho, residuals, residuals, wide, codes.astype(np.int64))

    def step(self, problem: SubsetSystems, state: SubsetState) -> SubsetState:
        live = np.flatnonzero(state.codes == RUNNING)
        X, R, P = (np.ascontiguousarray(array[:, live]) for array in (state.X, state.R, state.P))
        AP = _product(problem, P, live, state.wide[live])
        curvature = column_dots(P, AP)
        codes = _sound(curvature)
        alpha = np.divide(state.rho[live], curvature, out=np.zeros(len(live)), where=codes == RUNNING)
        X += alpha * P
        AP *= alpha
        R -= AP
        codes, residuals, true, wide, images = self._certify(problem, live, X, R, codes, state)
        anew = wide & ~state.wide[live]
        codes = np.where((codes == RUNNING) & self._slow(residuals, state.steps + 1), SLOW, codes)
        # Columns that ended need no direction. If all did, the preconditioner is not applied.
        Z = _preconditioned(problem, R, live) if np.any(codes == RUNNING) else R
        rho = column_dots(R, Z)
        P *= np.divide(rho, state.rho[live], out=np.zeros(len(live)), where=(state.rho[live] > 0) & ~anew)
        P += Z
        codes = np.where(codes == RUNNING, _sound(rho), codes)
        parts = {"residuals": residuals, "true": true, "wide": wide, "codes": codes}
        return replace(_put(state, live, X=X, R=R, P=P, rho=rho, **parts), images=images)

    def _certify(
        self, problem: SubsetSystems, live: NDArray[np.intp], X: Floats, R: Floats, codes: Any, state: SubsetState
    ) -> tuple[Any, Floats, Floats, NDArray[np.bool_], Floats]:
        """Put the true residuals that are due into R; return codes, residuals, true ones, `wide`, and the images."""
        residuals, true, wide = column_norms(R) / problem.scales[live], state.true[live], state.wide[live]
        due = (codes == RUNNING) & (residuals <= np.maximum(self.tol, REPLACE * true))
        if (state.steps + 1) % AGAIN == 0:
            due = (codes == RUNNING) & ~wide | due
        grown = (codes == RUNNING) & ~wide & (residuals > GROWN * true)
        due |= grown
        if not np.any(due):
            return codes, residuals, true, wide, state.images
        due |= (codes == RUNNING) & (residuals <= WITH_OTHERS * true)
        which, claimed = live[due], residuals.copy()
        own, images = np.ascontiguousarray(X[:, due]), state.images.copy()
        images[:, which] = AX = np.asarray(problem.A @ own, np.float64)
        R[:, due] = problem.B[:, which] - problem.shifted(AX, own, which)
        residuals[due] = column_norms(R[:, due]) / problem.scales[which]
        drifted = grown | due & (residuals > np.maximum(self.tol, 10 * claimed))
        codes = np.where(drifted & wide & (residuals > 0.5 * true), STALLED, codes)
        codes = np.where(due & (residuals <= self.tol), CONVERGED, codes)
        return codes, residuals, np.where(due, residuals, true), wide | drifted, images

    def _slow(self, residuals: Floats, steps: int) -> NDArray[np.bool_]:
        """Whether each column is predicted, from its mean rate so far, to need more than `max_steps` further steps."""
        if steps < LOOK:
            return np.zeros(len(residuals), bool)
        pace = np.log(np.clip(residuals, 1e-300, 0.9)) / steps
        needed = SUPERLINEAR * (np.log(max(self.tol, 1e-300)) / pace - steps)
        return np.asarray(needed > self.max_steps)

    def verdict(self, problem: SubsetSystems, state: SubsetState) -> Status | None:
        if np.any(state.codes == RUNNING):
            return Status.MAX_STEPS if state.steps >= 2 * self.max_steps else None
        return _STATUS[int(np.max(state.codes, initial=CONVERGED))]

    def finish(self, problem: SubsetSystems, state: SubsetState) -> tuple[Floats, float]:
        # The true residuals of converged columns are known.
        known, rest = state.codes == CONVERGED, np.flatnonzero(state.codes != CONVERGED)
        residuals = [state.true[known], problem.residuals(np.ascontiguousarray(state.X[:, rest]), rest)]
        return state.X, float(np.max(np.concatenate(residuals), initial=0.0))


def _sound(values: Floats) -> NDArray[np.int64]:
    """The code of a column whose curvature or ρ has this value: RUNNING if it is positive."""
    return np.where(values > 0, RUNNING, np.where(np.isfinite(values), BREAKDOWN, NOT_FINITE)).astype(np.int64)


def _product(problem: SubsetSystems, P: Floats, live: NDArray[np.intp], wide: NDArray[np.bool_]) -> Floats:
    """(Pⱼ A Pⱼ + λⱼ) pⱼ, in the precision of each column."""
    if np.all(wide) or not np.any(wide):
        return problem.apply(P, live, low_precision=not np.any(wide))
    out = np.empty_like(P)
    for own, low_precision in ((wide, False), (~wide, True)):
        out[:, own] = problem.apply(np.ascontiguousarray(P[:, own]), live[own], low_precision=low_precision)
    return out


def _preconditioned(problem: SubsetSystems, R: Floats, columns: NDArray[np.intp]) -> Floats:
    return R.copy() if problem.preconditioner is None else problem.preconditioner.apply(R, columns)


def _put(state: SubsetState, live: NDArray[np.intp], **parts: Any) -> SubsetState:
    """The state after a step of the columns `live`, whose new values are the `parts`."""
    if len(live) == len(state.codes):
        return replace(state, steps=state.steps + 1, **parts)
    whole = {name: getattr(state, name).copy() for name in parts}
    for name, array in whole.items():
        array[..., live] = parts[name]
    return replace(state, steps=state.steps + 1, **whole)
