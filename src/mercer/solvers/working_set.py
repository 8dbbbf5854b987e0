"""A dual solved on a working set of rows at a time, where the matrix cannot be stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer import backend
from mercer.errors import InvalidInput, message
from mercer.solvers.dual import DualFamily, Floats, Integers
from mercer.solvers.smo import CACHE, MARGIN, SMO, WORK, SMOState

__all__ = ["WorkingSet", "WorkingSetState"]

INNER = 0.1
"""The gap to which a working set is solved, relative to that of all variables."""
_RUNNING, _STUCK = 0, 2
_ROWS = 128


@dataclass(frozen=True)
class WorkingSetState(SMOState):
    """As of `SMO`, with the variables of the last working set."""

    working: Integers = None  # type: ignore[assignment]


@dataclass(frozen=True)
class WorkingSet(SMO):
    r"""Solve for the worst variables W with the others fixed, g −= K Δβ, and so on until m − M ≤ tol.

    W has as many that should rise most as should fall most, and for the other half the latest ones of the former W.
    Their rows of K are all that is computed; `CachedRows` keeps what it can. Within W the steps are those of `SMO`, to
    a tenth of the gap. The criterion and the check in float64 are the same.

    Parameters
    ----------
    tol, max_iter
        As for `SMO`; the steps within working sets count.
    size : int
        Variables in W.

    References
    ----------
    T. Joachims (1999). Making large-scale SVM learning practical. Advances in kernel methods.
    Z. Wen, J. Shi, Q. Li, B. He, J. Chen (2018). ThunderSVM. JMLR 19.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import DualFamily, WorkingSet, solve
    >>> y = np.array([-1.0, 1.0])
    >>> family = DualFamily(
    ...     Dense([[1.0, -1.0], [-1.0, 1.0]]), linear=y, lower=np.minimum(10 * y, 0), upper=np.maximum(10 * y, 0),
    ...     start=np.zeros(2), rows=np.arange(2), offset=np.array([0, 2]))
    >>> solve(WorkingSet(), family).x.beta
    array([-0.5,  0.5])
    """

    size: int = 1024

    def start(self, problem: DualFamily) -> WorkingSetState:
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

    def _advance(self, problem: DualFamily, state: SMOState) -> SMOState:
        assert isinstance(state, WorkingSetState)
        W = self._choose(problem, state)
        beta, iterations, stuck = self._within(problem, state, W)
        change = np.zeros(problem.A.shape[0])
        np.add.at(change, problem.rows[W], beta - state.beta[W])
        moved = np.flatnonzero(change)
        gradient = state.gradient - _rows_times(problem, moved, change[moved])
        new_beta = state.beta.copy()
        new_beta[W] = beta
        gaps = problem.gaps(new_beta, gradient)
        limit = self._limit(problem)
        ended = 1 if gaps[0] <= MARGIN * self.tol else 3 if iterations[0] >= limit else _STUCK if stuck else _RUNNING
        return replace(
            state,
            steps=state.steps + 1,
            beta=new_beta,
            gradient=gradient,
            gaps=gaps,
            iterations=iterations,
            ended=np.array([ended]),
            checked=False,
            working=W,
        )

    def _choose(self, problem: DualFamily, state: WorkingSetState) -> Integers:
        """The variables with the largest slopes upwards, and with the smallest downwards, of each group; some of W."""
        up, low = problem.slopes(state.beta, state.gradient)
        count = max(1, self.size // (4 * len(np.unique(problem.group))))
        chosen = []
        for g in np.unique(problem.group):
            own = np.flatnonzero(problem.group == g)
            for worth in (up[own], -low[own]):
                best = np.argsort(-worth, kind="stable")[:count]
                chosen.append(own[best[np.isfinite(worth[best])]])
        new = np.unique(np.concatenate(chosen))
        kept = state.working[~np.isin(state.working, new)]
        inside = up[kept] == low[kept]
        kept = np.concatenate([kept[inside], kept[~inside]])[: self.size - len(new)]
        return np.sort(np.concatenate([new, kept])).astype(np.int64)

    def _within(self, problem: DualFamily, state: WorkingSetState, W: Integers) -> tuple[Floats, Integers, bool]:
        """β of the working set after its own problem was solved, the steps taken, and whether nothing moved."""
        rows, place = np.unique(problem.rows[W], return_inverse=True)
        K = np.ascontiguousarray(problem.A.rows(rows)[:, rows])
        beta, gradient = state.beta[W], state.gradient[W]
        gap, steps, ended = np.zeros(1), state.iterations.copy(), np.zeros(1, np.int64)
        backend.engine().smo(
            K,
            np.array([0, len(W)]),
            np.array([np.searchsorted(W, problem.splits[0])]),
            place.astype(np.int64),
            problem.lower[W],
            problem.upper[W],
            float(problem.kink),
            beta,
            gradient,
            beta.copy(),
            gradient.copy(),
            np.ones(len(W), np.uint8),
            max(INNER * float(state.gaps[0]), 0.5 * self.tol),
            self._limit(problem),
            WORK,
            CACHE,
            gap,
            steps,
            ended,
            backend.instruction_set() if backend.is_native() else "",
        )
        return beta, steps, bool(np.array_equal(beta, state.beta[W]))


def _rows_times(problem: DualFamily, moved: Integers, change: Floats) -> Floats:
    """Σ Δβⱼ Kⱼᵥ of all variables v, a few rows at a time in the precision of K, added up in float64."""
    out = np.zeros(problem.A.shape[1])
    for i in range(0, len(moved), _ROWS):
        rows = problem.A.rows(moved[i : i + _ROWS])
        out += change[i : i + _ROWS].astype(rows.dtype) @ rows
    return out[problem.rows]
