"""Sequential minimal optimisation on a stored matrix, or on one whose entries each problem makes for itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.engine import backend
from mercer.errors import InvalidInput, message
from mercer.solvers.svm.checked import MARGIN, RUNNING, SETTLED, CheckedDual, DualState
from mercer.solvers.svm.dual import DualBatch, Integers
from mercer.solvers.svm.faces import Face, minimise_on_face

__all__ = ["SMO", "SMOState"]

WORK = 200_000_000
"""Entries that all problems together visit in a step, between two interrupt checks."""
LEAST_WORK = 8_000_000
"""Of one problem, which is more than most small ones need: in each step the rows in use are copied anew."""
TURN = 100_000
"""Entries that a problem may visit at least before it is asked whether it is slow."""
MOST_OF_A_FACE = 4000
"""Variables of a problem whose matrix is copied for the minimum over a face."""
CACHE = 256 << 20
"""Bytes of the rows that a thread keeps contiguous."""


@dataclass(frozen=True)
class SMOState(DualState):
    """Of problems whose entries are at hand."""


@dataclass(frozen=True)
class SMO(CheckedDual[SMOState]):
    r"""βᵢ += δ, βⱼ −= δ with δ = (gᵢ − gⱼ)/(Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ), for the pair of the largest gᵢ that gains most.

    The working set is LIBSVM's of second order, and so is the criterion m − M ≤ tol. Variables that will hardly leave
    their bounds are set aside meanwhile. Problems of a family run in parallel, each the same whatever the threads. When
    all are settled on the stored matrix, which may be in float32, the gradient is made anew from the exact one in
    float64; a problem that does not hold there goes on from it. Where A makes its entries, each problem stores its own
    for as long as a step works on it: for problems on few of the rows.

    A step of the loop is a bounded piece of work of every problem that still runs.

    Parameters
    ----------
    tol : float
        On m − M of each problem.
    max_iter : int or None
        Pairs that each problem may take; None is LIBSVM's max(10⁷, 100 v).
    patience : int
        After so many pairs for each variable a problem is slow, as with a large C: then, and again when it has taken
        twice as many, it goes to the minimum over the variables inside their bounds, if these are at most a thousand.

    References
    ----------
    R.-E. Fan, P.-H. Chen, C.-J. Lin (2005). Working set selection using second order information for training support
    vector machines. JMLR 6.

    Examples
    --------
    Two points, −1 and 1, with the linear kernel: α = ½ each.

    >>> from mercer.operators import Dense
    >>> from mercer.solvers import DualBatch, SMO, solve
    >>> y = np.array([-1.0, 1.0])
    >>> family = DualBatch(
    ...     Dense([[1.0, -1.0], [-1.0, 1.0]]), linear=y, lower=np.minimum(10 * y, 0), upper=np.maximum(10 * y, 0),
    ...     start=np.zeros(2), rows=np.arange(2), offset=np.array([0, 2]))
    >>> solution = solve(SMO(), family)
    >>> solution.x.beta, solution.status.name
    (array([-0.5,  0.5]), 'CONVERGED')
    """

    def start(self, problem: DualBatch) -> SMOState:
        if problem.A.entries() is None:
            given = f"a {type(problem.A).__name__}"
            raise InvalidInput(message("SMO", given, "store the matrix, Dense(A.toarray()), or use WorkingSet"))
        beta, c, p = np.array(problem.start, np.float64), np.array(problem.linear, np.float64), problem.problems
        # Away from 0 all variables begin set aside, with the anchor 0: the engine makes their gradients from there.
        away = np.any(beta) and len(beta)
        active = np.full(len(beta), 0 if away else 1, np.uint8)
        gaps = np.full(p, np.inf)
        zeros = np.zeros(p, np.int64)
        return SMOState(0, beta, c, np.zeros_like(beta), c, active, gaps, gaps, zeros, zeros, zeros, zeros)

    def _advance(self, problem: DualBatch, state: SMOState) -> SMOState:
        """A bounded piece of work of each problem that runs."""
        names = ("beta", "gradient", "anchor", "anchor_gradient", "active", "gaps", "iterations", "faces", "ended")
        copies = {name: getattr(state, name).copy() for name in names}
        new = replace(state, steps=state.steps + 1, checked=False, **copies)
        budget = WORK * backend.engine().threads()
        running = np.flatnonzero(state.ended == RUNNING)[: budget // LEAST_WORK]
        ended = np.full(problem.problems, SETTLED)
        ended[running] = RUNNING
        for q in running[state.iterations[running] >= self._due(problem, state)[running]]:
            self._to_the_face(problem, new, int(q))
        sizes = np.diff(problem.offset)[running]
        turn = 2 * np.max((self._due(problem, new) - state.iterations)[running] * sizes)
        backend.engine().smo(
            matrix=problem.A.entries(),
            offset=_integers(problem.offset),
            split=_integers(problem.splits),
            row=_integers(problem.rows),
            lower=problem.lower,
            upper=problem.upper,
            epsilon=float(problem.epsilon),
            beta=new.beta,
            gradient=new.gradient,
            anchor=new.anchor,
            anchor_gradient=new.anchor_gradient,
            active=new.active,
            tol=MARGIN * self.tol,
            limit=self._limit(problem),
            work=int(min(budget // len(running), max(turn, TURN))),
            cache=min(CACHE, problem.A.shape[0] ** 2 * problem.A.dtype.itemsize // 4),
            gap=new.gaps,
            steps=new.iterations,
            ended=ended,
        )
        new.ended[running] = ended[running]
        return new

    def _due(self, problem: DualBatch, state: SMOState) -> Integers:
        """The steps of each problem after which it goes to a face."""
        turns = max(self.patience, 1) * 2**state.faces - (self.patience == 0)
        return np.asarray(turns * np.diff(problem.offset), np.int64)

    def _to_the_face(self, problem: DualBatch, new: SMOState, q: int) -> None:
        """Put a slow problem, in place, to the minimum over its free variables, by the stored matrix."""
        some = slice(problem.offset[q], problem.offset[q + 1])
        new.faces[q] += 1
        beta, rows = new.beta[some], problem.rows[some]
        if len(beta) > MOST_OF_A_FACE:
            return
        K = problem.A.block(rows, rows)
        used = np.flatnonzero(beta)
        gradient = problem.linear[some] - np.asarray(K[:, used], np.float64) @ beta[used]
        face = Face(K, problem.lower[some], problem.upper[some], problem.epsilon, problem.group[some], beta, gradient)
        new.beta[some], new.gradient[some] = minimise_on_face(face)
        new.active[some] = 1


def _integers(values: Integers) -> Integers:
    return np.ascontiguousarray(values, np.int64)
