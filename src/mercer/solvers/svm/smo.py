"""Sequential minimal optimisation on a stored matrix, or on one whose entries each problem computes for itself."""

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
"""Entries per thread that a step visits: bounds the work between two interrupt checks."""
LEAST_WORK = 8_000_000
"""Entries that one problem may visit in a step at least. Small ones mostly end earlier; a step copies rows anew."""
TURN = 100_000
"""Least number of entries that a problem visits before it is checked for slow convergence."""
MOST_OF_A_FACE = 4000
"""Most variables of a problem whose matrix is copied to minimise over a face."""
CACHE = 256 << 20
"""Bytes of matrix rows that a thread keeps contiguous."""


@dataclass(frozen=True)
class SMOState(DualState):
    """The state of `SMO`.

    Attributes
    ----------
    steps, beta, gradient, anchor, anchor_gradient, active, gaps, last, stalls, iterations, faces, ended, checks
        As for `DualState`.
    checked : bool
        As for `DualState`.
    """


@dataclass(frozen=True)
class SMO(CheckedDual[SMOState]):
    r"""βᵢ += δ, βⱼ −= δ with δ = (gᵢ − gⱼ)/(Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ) for i of the largest gᵢ and the j that gains most.

    Pairs are selected by LIBSVM's second-order rule, and the criterion m − M ≤ tol is LIBSVM's too. Variables that are
    unlikely to leave their bounds are set aside (shrinking). The problems of a batch run in parallel, and the number of
    threads does not change the results. When all problems are settled on the stored matrix, which may be in float32,
    the exact matrix in float64 recomputes the gradient; a problem that does not meet the tolerance by it continues. If
    A computes its entries, each problem stores its own during a step. That suits problems on few of the rows.

    A step of the loop is a bounded piece of work on every running problem.

    Parameters
    ----------
    tol : float
        Tolerance on m − M of each problem.
    max_iter : int or None
        Most pairs of each problem; None means LIBSVM's max(10⁷, 100 v).
    patience : int
        Number of pairs per variable after which a problem counts as slow, which happens with a large C. Then, and
        each time that it has taken twice as many, it goes to the minimum over the variables inside their bounds, if
        these are at most a thousand.

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
        # If β ≠ 0, all variables begin inactive with the anchor 0, from which the engine computes their gradients.
        away = np.any(beta) and len(beta)
        active = np.full(len(beta), 0 if away else 1, np.uint8)
        gaps = np.full(p, np.inf)
        zeros = np.zeros(p, np.int64)
        return SMOState(0, beta, c, np.zeros_like(beta), c, active, gaps, gaps, zeros, zeros, zeros, zeros)

    def _advance(self, problem: DualBatch, state: SMOState) -> SMOState:
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
        """The number of steps after which each problem is next minimised over a face."""
        turns = max(self.patience, 1) * 2**state.faces - (self.patience == 0)
        return np.asarray(turns * np.diff(problem.offset), np.int64)

    def _to_the_face(self, problem: DualBatch, new: SMOState, q: int) -> None:
        """Move a slow problem, in place, to the minimum over its free variables, by the stored matrix."""
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
