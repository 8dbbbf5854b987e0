"""A solver of one dual by working sets of variables, for a matrix that is not stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.errors import InvalidInput, message
from mercer.operators import Operator
from mercer.solvers.svm.checked import CAPPED, MARGIN, RUNNING, SETTLED, STUCK, CheckedDual, DualState
from mercer.solvers.svm.dual import DualBatch, Floats, Integers
from mercer.solvers.svm.smo import CACHE, WORK

__all__ = ["WorkingSet", "WorkingSetState"]

INNER = 0.1
"""The gap to which a working set is solved, relative to the gap of all variables."""
FIRST = 4096
"""Variables of the first working set; each set may have twice as many as the last. With 1024, a machine of 171 support
vectors took half of the time, but machines of 6500 to 7800 took a fifth longer, for nine sets instead of five.
"""


@dataclass(frozen=True)
class WorkingSetState(DualState):
    """The state of `SMO` with the variables of the last working set. The check computes inactive gradients.

    Attributes
    ----------
    steps, beta, gradient, anchor, anchor_gradient, active, gaps, last, stalls, iterations, faces, ended, checks
        As for `DualState`.
    checked : bool
        As for `DualState`.
    working : integers of shape (w,)
        The variables of the last working set.
    memory : Reused
        Arrays that the next step overwrites.
    """

    working: Integers = None  # type: ignore[assignment]
    memory: Reused = field(default_factory=lambda: Reused(), repr=False, compare=False, metadata={"scratch": True})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state; one that an earlier version pickled has no memory."""
        self.__dict__.update({"memory": Reused()} | state)


@dataclass(frozen=True)
class WorkingSet(CheckedDual[WorkingSetState]):
    r"""Solve for the working set W of the worst variables with the others fixed, g −= K Δβ, until m − M ≤ tol.

    W has the variables inside their bounds, and of the others those with the largest slopes. The sets grow, because the
    first ones are far from the support vectors. Once W has every variable that may move, it is solved to the tolerance.
    Only the entries W × W are computed, and those of the variables that moved with all active variables. A variable is
    inactive while no pair could move it; the check computes its gradient. `CachedRows` keeps entries that are expensive
    to recompute. The steps within W are those of `SMO`, with the same criterion and the same check in float64.

    Parameters
    ----------
    tol, max_iter, patience
        As for `SMO`; the steps within working sets count.
    size : int
        Most variables in W. Small sets need many rounds; the matrix of 6144 variables in float32 takes 151 MB.

    References
    ----------
    T. Joachims (1999). Making large-scale SVM learning practical. Advances in kernel methods.
    Z. Wen, J. Shi, Q. Li, B. He, J. Chen (2018). ThunderSVM. JMLR 19.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import DualBatch, WorkingSet, solve
    >>> y = np.array([-1.0, 1.0])
    >>> family = DualBatch(
    ...     Dense([[1.0, -1.0], [-1.0, 1.0]]), linear=y, lower=np.minimum(10 * y, 0), upper=np.maximum(10 * y, 0),
    ...     start=np.zeros(2), rows=np.arange(2), offset=np.array([0, 2]))
    >>> solve(WorkingSet(), family).x.beta
    array([-0.5,  0.5])
    """

    size: int = 6144

    def start(self, problem: DualBatch) -> WorkingSetState:
        if problem.problems != 1 or self.size < 4:
            given = f"{problem.problems} problems and size={self.size}"
            raise InvalidInput(message("WorkingSet", given, "give one problem, and a size of at least 4"))
        beta = np.array(problem.start, np.float64)
        gradient = problem.linear - problem.times(problem.A, beta)
        gaps, zeros = np.maximum(problem.gaps(beta, gradient), 0.0), np.zeros(1, np.int64)
        last = np.full(1, np.inf)
        active, none = np.ones(len(beta), np.uint8), np.zeros(0, np.int64)
        return WorkingSetState(
            0, beta, gradient, beta, gradient, active, gaps, last, zeros, zeros, zeros, zeros, working=none
        )

    def _advance(self, problem: DualBatch, state: WorkingSetState) -> WorkingSetState:
        up, low = problem.slopes(state.beta, state.gradient)
        margin, gap = self._margin(problem, state, up, low), float(state.gaps[0])
        W, whole = self._choose(problem, state, margin)
        inner = self._within(problem, state, W, 0.5 * self.tol if whole else max(INNER * gap, 0.5 * self.tol))
        beta, gradient = state.beta.copy(), state.gradient.copy()
        beta[W], gradient[W] = inner.beta, inner.gradient
        active = margin >= -gap
        moved = W[beta[W] != state.beta[W]]
        active_elsewhere = active.copy()
        active_elsewhere[W] = False
        _subtract(problem, gradient, np.flatnonzero(active_elsewhere), moved, (beta - state.beta)[moved])
        top, bottom = _extremes(problem, *problem.slopes(beta, gradient), active)
        gaps = np.array([np.max(top - bottom)])
        if gaps[0] <= MARGIN * self.tol:
            how = SETTLED
        elif inner.iterations[0] >= self._limit(problem):
            how = CAPPED
        else:
            how = STUCK if inner.ended == STUCK and not len(moved) else RUNNING
        return replace(
            state,
            steps=state.steps + 1,
            beta=beta,
            gradient=gradient,
            active=active.astype(np.uint8),
            gaps=gaps,
            iterations=inner.iterations,
            ended=np.array([how]),
            checked=False,
            working=W,
        )

    def _check(self, problem: DualBatch, state: WorkingSetState) -> WorkingSetState:
        """The checked state, without the memory, which the solution would keep."""
        return replace(super()._check(problem, state), memory=Reused())

    def _margin(self, problem: DualBatch, state: WorkingSetState, up: Floats, low: Floats) -> Floats:
        """The violation of the best pair with each variable in its group; if negative, the variable cannot move."""
        top, bottom = _extremes(problem, up, low, state.active == 1)
        margin = np.maximum(up - bottom[problem.group], top[problem.group] - low)
        return np.where(state.active == 1, margin, -np.inf)

    def _choose(self, problem: DualBatch, state: WorkingSetState, margin: Floats) -> tuple[Integers, bool]:
        """The working set in ascending order, and whether it has all variables that may move."""
        busy = np.flatnonzero(margin >= 0)
        size = int(min(self.size, max(FIRST, 2 * len(state.working))))
        if len(busy) <= size:
            return busy, True
        up, low = problem.slopes(state.beta, state.gradient)
        chosen = np.zeros(len(margin), bool)
        free = busy[up[busy] == low[busy]]
        chosen[_best(free, margin, size // 2)] = True  # at most half, to leave room for variables at their bounds
        groups = np.unique(problem.group)
        count = max(1, (size - int(chosen.sum())) // (2 * len(groups)))
        for own in (busy[problem.group[busy] == g] for g in groups):
            chosen[_best(own, up, count)] = True
            chosen[_best(own, -low, count)] = True
        return np.flatnonzero(chosen), False

    def _within(self, problem: DualBatch, state: WorkingSetState, W: Integers, tol: float) -> _Inner:
        """Solve the problem of the working set to the gap `tol`."""
        rows, place = np.unique(problem.rows[W], return_inverse=True)
        K = state.memory.fill(problem.A.principal(rows))
        beta, gradient, active = state.beta[W], state.gradient[W], np.ones(len(W), np.uint8)
        anchor, anchored = beta.copy(), gradient.copy()
        gap, steps, ended = np.zeros(1), state.iterations.copy(), np.zeros(1, np.int64)
        while ended[0] == RUNNING:  # each call is bounded
            backend.engine().smo(
                matrix=K,
                offset=np.array([0, len(W)]),
                split=np.array([np.searchsorted(W, problem.splits[0])]),
                row=place.astype(np.int64),
                lower=problem.lower[W],
                upper=problem.upper[W],
                epsilon=float(problem.epsilon),
                beta=beta,
                gradient=gradient,
                anchor=anchor,
                anchor_gradient=anchored,
                active=active,
                tol=tol,
                limit=self._limit(problem),
                work=WORK,
                cache=CACHE,
                gap=gap,
                steps=steps,
                ended=ended,
            )
        aside = active == 0
        if np.any(aside):  # if the limit of steps was met, these gradients still belong to the anchor
            gradient[aside] = anchored[aside] - (K[place][:, place] @ (beta - anchor))[aside]
        return _Inner(beta, gradient, steps, int(ended[0]))


class Reused:
    """Memory that successive matrices reuse, because the first touch of new memory may cost more than the entries."""

    def __init__(self) -> None:
        self._flat = np.empty(0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the memory, whose contents are not needed."""
        return Reused, ()

    def fill(self, A: Operator) -> NDArray[Any]:
        """The entries of A, valid until the next call."""
        size = A.shape[0] * A.shape[1]
        if self._flat.dtype != A.dtype or len(self._flat) < size:
            self._flat = np.empty(size, A.dtype)
        return np.asarray(A.fill(self._flat[:size].reshape(A.shape)))


class _Inner(NamedTuple):
    """The result for a working set: its β and gradient, the total steps so far, and how it ended."""

    beta: Floats
    gradient: Floats
    iterations: Integers
    ended: int


def _best(some: Integers, worth: Floats, count: int) -> Integers:
    """The `count` variables of `some` with the largest values of `worth`, without those of −∞."""
    order = some[np.argsort(-worth[some], kind="stable")[:count]]
    return order[worth[order] > -np.inf]


def _extremes(problem: DualBatch, up: Floats, low: Floats, active: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """m and M of each group over its active variables, from the slopes of all variables."""
    top, bottom = np.full(2, -np.inf), np.full(2, np.inf)
    np.maximum.at(top, problem.group, np.where(active, up, -np.inf))
    np.minimum.at(bottom, problem.group, np.where(active, low, np.inf))
    return top, bottom


def _subtract(problem: DualBatch, gradient: Floats, where: Integers, moved: Integers, change: Floats) -> None:
    """g −= K Δβ, in place, for the variables `where` and the changes of the variables that moved."""
    if not (len(where) and len(moved)):
        return
    total = np.zeros(problem.A.shape[0])
    np.add.at(total, problem.rows[moved], change)
    columns = np.flatnonzero(total)
    gradient[where] -= problem.A.block_times(problem.rows[where], columns, total[columns][:, None])[:, 0]
