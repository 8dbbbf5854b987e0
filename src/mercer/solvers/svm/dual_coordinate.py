"""Linear support vector machines on explicit features, by dual coordinate descent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.errors import InvalidInput, message
from mercer.former_names import present_fields
from mercer.solvers.base import Solver, State, Status

__all__ = ["CoordinateState", "DualCoordinateDescent", "LinearDualBatch", "LinearPoint"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CALL = 2e8
"""Multiplications per thread and call of the compiled engine: bounds the work between two interrupt checks."""
VISITS = 20_000
"""Visits of variables per call of the reference engine."""
CHUNK = 1 << 21
"""Entries of the features that are in float64 at a time."""
FIRST = 0.1
"""The first tolerance on slopes, relative to the largest |c|, as in LIBLINEAR."""
TIGHTER = 0.1
LEAST = 1e-13


@dataclass(frozen=True, eq=False)
class LinearPoint:
    """β of all variables and w of each problem.

    Attributes
    ----------
    beta : array of shape (v,)
    w : array of shape (p, m)
    """

    beta: Floats
    w: Floats


@dataclass(frozen=True, eq=False)
class LinearDualBatch:
    r"""min ½‖w‖² + Σₜ max over β in [aₜ, bₜ] of β(cₜ − wᵀxₜ) − ε|β|, for problems on rows of one matrix of features.

    With c = y and [a, b] = [0, C] for y = 1, [−C, 0] for y = −1, the sum is that of the hinge losses
    C max(0, 1 − y wᵀx); with [−C, C] that of the ε-insensitive losses of the targets c. The dual is
    min ½‖w‖² − cᵀβ + ε‖β‖₁ with w = Σ βₜxₜ and a ≤ β ≤ b. The residual is the largest of the problems' duality gaps,
    relative to their primal objectives.

    Parameters
    ----------
    features : array of shape (n, m), float32 or float64
        An intercept needs a constant column.
    linear, lower, upper : arrays of shape (v,)
        c, a ≤ 0, b ≥ 0.
    rows : integers of shape (v,)
        The row of the features that each variable belongs to.
    offset : integers of shape (p + 1,)
        Problem q has the variables offset[q] to offset[q + 1].
    epsilon : float
        ε.

    Raises
    ------
    InvalidInput
        If the features are not rows of float32 or float64 in C order, the arrays differ in length, or bounds exclude 0.
    """

    features: NDArray[Any]
    linear: Floats
    lower: Floats
    upper: Floats
    rows: Integers
    offset: Integers
    epsilon: float = 0.0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(present_fields(state, kink="epsilon"))

    def __post_init__(self) -> None:
        v, X = int(self.offset[-1]), self.features
        if X.ndim != 2 or X.dtype not in (np.float32, np.float64) or not X.flags.c_contiguous:
            given = f"features of shape {X.shape}, {X.dtype}"
            raise InvalidInput(message("LinearDualBatch", given, "give rows of float32 or float64 in C order"))
        if {len(one) for one in (self.linear, self.lower, self.upper, self.rows)} != {v}:
            raise InvalidInput(message("LinearDualBatch", "arrays of several lengths", f"give {v} variables in each"))
        if v and not 0 <= self.rows.min() <= self.rows.max() < len(X):
            raise InvalidInput(message("LinearDualBatch", "rows that do not exist", f"give integers below {len(X)}"))
        if not (np.all((self.lower <= 0) & (self.upper >= 0)) and self.epsilon >= 0):
            raise InvalidInput(message("LinearDualBatch", "bounds", "give lower ≤ 0 ≤ upper and epsilon ≥ 0"))

    @property
    def problems(self) -> int:
        """The number of problems."""
        return len(self.offset) - 1

    @cached_property
    def scales(self) -> Floats:
        """The largest |c| of each problem."""
        runs = (self.linear[first:last] for first, last in pairwise(self.offset))
        return np.array([max(float(np.max(c, initial=0.0)), -float(np.min(c, initial=0.0))) for c in runs])

    def of(self, values: NDArray[Any], which: Integers) -> NDArray[Any]:
        """The values of the variables of the problems `which`, from those of all variables."""
        if len(which) == self.problems:
            return values
        return np.concatenate([values[self.offset[q] : self.offset[q + 1]] for q in which])

    def part(self, which: Integers) -> LinearDualBatch:
        """The problems `which` alone; `which` is in ascending order."""
        if len(which) == self.problems:
            return self
        offset = np.concatenate([[0], np.cumsum(np.diff(self.offset)[which])])
        linear, lower, upper, rows = (self.of(one, which) for one in (self.linear, self.lower, self.upper, self.rows))
        return LinearDualBatch(self.features, linear, lower, upper, rows, offset, self.epsilon)

    @cached_property
    def squares(self) -> Floats:
        """‖x‖² of each row."""
        return np.asarray(np.einsum("ij,ij->i", self.features, self.features, dtype=np.float64))

    def _runs(self) -> Iterator[tuple[int, slice, Floats]]:
        """Each problem, some of its variables, and the features of these in float64; few variables at a time."""
        step = max(1, CHUNK // max(self.features.shape[1], 1))
        for q, (start, end) in enumerate(pairwise(self.offset)):
            for first in range(start, end, step):
                some = slice(first, min(first + step, end))
                rows = self.rows[some]
                in_order = bool(np.all(np.diff(rows) == 1))
                X = self.features[rows[0] : rows[-1] + 1] if in_order else self.features[rows]
                yield q, some, X.astype(np.float64, copy=False)

    def weights(self, beta: Floats) -> Floats:
        """w = Σ βₜxₜ of each problem in float64, of shape (p, m)."""
        out = np.zeros((self.problems, self.features.shape[1]))
        for q, some, X in self._runs():
            out[q] += beta[some] @ X
        return out

    def objectives(self, x: LinearPoint) -> tuple[Floats, Floats]:
        """The primal objective of each problem at w = Σ βₜxₜ, and the dual one at β, which is at most that."""
        losses, gains = np.zeros(self.problems), np.zeros(self.problems)
        for q, some, X in self._runs():
            error = self.linear[some] - X @ x.w[q]
            best = np.maximum(self.upper[some] * (error - self.epsilon), self.lower[some] * (error + self.epsilon))
            losses[q] += np.maximum(best, 0.0).sum()
            gains[q] += self.linear[some] @ x.beta[some] - self.epsilon * np.abs(x.beta[some]).sum()
        norms = np.einsum("pm,pm->p", x.w, x.w) / 2
        return norms + losses, gains - norms

    def gaps(self, x: LinearPoint) -> Floats:
        """Primal minus dual objective of each problem, relative to the primal one."""
        primal, dual = self.objectives(x)
        size = np.maximum(np.abs(primal), np.finfo(float).tiny)
        return np.asarray(np.where(primal == dual, 0.0, (primal - dual) / size))

    def residual(self, x: LinearPoint) -> float:
        """The largest relative gap, with w recomputed from β."""
        return _largest(self.gaps(LinearPoint(x.beta, self.weights(x.beta))))


@dataclass(frozen=True)
class CoordinateState(State):
    """β and w, the progress of the passes (see the engine's ``coordinates``), and the relative gap of each problem.

    Attributes
    ----------
    steps : int
    beta : array of shape (v,)
    w : array of shape (p, m)
    order, place, level, random, tol : arrays
        The progress of each of the p problems.
    gaps : array of shape (p,)
    """

    beta: Floats
    w: Floats
    order: Integers
    place: Integers
    level: Floats
    random: Integers
    tol: Floats
    gaps: Floats

    @property
    def residual(self) -> float:
        return _largest(self.gaps)


@dataclass(frozen=True)
class DualCoordinateDescent(Solver[LinearDualBatch, CoordinateState]):
    r"""βₜ ← the minimum along βₜ within its bounds, w ← w + δₜxₜ, in passes over all variables in random order.

    A variable at a bound is left out of further passes if its slope exceeds the largest violation of the last pass. All
    variables are visited again before a problem ends. A problem has converged when its duality gap, computed in float64
    with w recomputed from β, is at most ``tol`` of its objective. If the gap is larger, the tolerance on slopes is made
    ten times tighter. Problems run in parallel, each on one thread. A step is a bounded number of visits.

    Parameters
    ----------
    tol : float
        Tolerance on the relative duality gap.
    max_passes : int
        Most passes over each problem.
    seed : int
        Seed for the order of the variables.

    Raises
    ------
    InvalidInput
        If tol, max_passes or seed is negative.

    References
    ----------
    C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan (2008). A dual coordinate descent method for
    large-scale linear SVM. ICML.
    C.-H. Ho, C.-J. Lin (2012). Large-scale linear support vector regression. JMLR 13.

    Examples
    --------
    >>> from mercer.solvers import solve
    >>> y = np.array([-1.0, 1.0])
    >>> family = LinearDualBatch(
    ...     np.array([[-2.0], [2.0]]), y, np.minimum(y, 0), np.maximum(y, 0), np.arange(2), np.array([0, 2])
    ... )
    >>> solution = solve(DualCoordinateDescent(), family)
    >>> solution.status.name, solution.x.w.round(6)
    ('CONVERGED', array([[0.5]]))
    """

    tol: float = 1e-4
    max_passes: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.tol >= 0 and self.max_passes >= 0 and self.seed >= 0):
            given = message("DualCoordinateDescent", repr(self), "give tol, max_passes and seed ≥ 0")
            raise InvalidInput(given)

    def start(self, problem: LinearDualBatch) -> CoordinateState:
        p, sizes = problem.problems, np.diff(problem.offset)
        beta, w = np.zeros(len(problem.rows)), np.zeros((p, problem.features.shape[1]))
        order = np.arange(len(beta)) - np.repeat(problem.offset[:-1], sizes)
        place = np.column_stack([sizes, np.zeros((p, 2), np.int64)]).astype(np.int64)
        level = np.column_stack([np.zeros(p), np.full(p, np.inf)])
        random = np.arange(p, dtype=np.int64) + 1_000_003 * self.seed
        gaps = problem.gaps(LinearPoint(beta, w))
        return CoordinateState(0, beta, w, order.astype(np.int64), place, level, random, FIRST * problem.scales, gaps)

    def step(self, problem: LinearDualBatch, state: CoordinateState) -> CoordinateState:
        now = replace(state, steps=state.steps + 1, **{name: getattr(state, name).copy() for name in _CHANGED})
        ended = ((state.gaps <= self.tol) | (state.place[:, 2] >= self.max_passes)).astype(np.int64)
        running = int(np.sum(ended == 0))
        share = max(1.0, running / max(backend.engine().threads(), 1))
        work = int(CALL / share / max(problem.features.shape[1], 1)) + 1
        work = work if backend.engine().capabilities.compiled else min(work, VISITS // max(running, 1) + 1)
        backend.engine().coordinates(
            features=problem.features,
            square=problem.squares,
            offset=problem.offset,
            row=problem.rows,
            linear=problem.linear,
            lower=problem.lower,
            upper=problem.upper,
            epsilon=float(problem.epsilon),
            beta=now.beta,
            w=now.w,
            order=now.order,
            place=now.place,
            level=now.level,
            random=now.random,
            tol=state.tol,
            work=work,
            ended=ended,
        )
        settled = np.flatnonzero((ended == 1) & (state.gaps > self.tol))
        if not len(settled):
            return now
        # The gap is computed when the slopes meet their tolerance, from a w without the rounding of the updates.
        part, tol, gaps = problem.part(settled), state.tol.copy(), state.gaps.copy()
        beta = problem.of(now.beta, settled)
        now.w[settled] = w = part.weights(beta)
        gaps[settled] = part.gaps(LinearPoint(beta, w))
        tol[gaps > self.tol] = np.where(ended == 1, TIGHTER * tol, tol)[gaps > self.tol]
        return replace(now, gaps=gaps, tol=tol)

    def verdict(self, problem: LinearDualBatch, state: CoordinateState) -> Status | None:
        if not np.all(np.isfinite(state.w)) or np.any(np.isnan(state.gaps)):
            return Status.NOT_FINITE
        left = state.gaps > self.tol
        if not np.any(left):
            return Status.CONVERGED
        if np.all(state.tol[left] <= LEAST * problem.scales[left]):
            return Status.STALLED
        return Status.MAX_STEPS if np.all(state.place[left, 2] >= self.max_passes) else None

    def finish(self, problem: LinearDualBatch, state: CoordinateState) -> tuple[LinearPoint, float]:
        x = LinearPoint(state.beta, problem.weights(state.beta))
        return x, problem.residual(x)


_CHANGED = ("beta", "w", "order", "place", "level", "random")


def _largest(gaps: Floats) -> float:
    return float(np.max(gaps, initial=0.0)) if not np.any(np.isnan(gaps)) else float("inf")
