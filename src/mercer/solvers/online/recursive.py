"""Online regression: recursive least squares with a sparse dictionary, and quantised least mean squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.solvers.base import State
from mercer.solvers.online.learner import FARTHEST, Basis, ChunkKernel, Floats, Learner, extended

__all__ = ["QuantisedLMS", "QuantisedState", "RecursiveLeastSquares", "RecursiveState"]


@dataclass(frozen=True)
class RecursiveState(State):
    """W, and Σ v vᵀ, Σ v y and Σ y² over the rows seen, with their coordinates v = W k(dictionary, ·).

    Attributes
    ----------
    steps : int
    W, R : arrays of shape (m, m)
        R is the triangular factor of Σ v vᵀ + λI.
    moments : array of shape (m, t)
    squares : array of shape (t,)
    full : int
        Rows that a full dictionary could not take.
    """

    W: Floats
    R: Floats
    moments: Floats
    squares: Floats
    full: int

    @property
    def residual(self) -> float:
        return 0.0


@dataclass(frozen=True)
class RecursiveLeastSquares(Learner[RecursiveState]):
    r"""min Σ (y − f(x))² + λ‖f‖² over f in the dictionary's span, with each row projected on the span at its visit.

    A row joins if it is not nearly in the span, ‖k(x, ·) − Pk(x, ·)‖² > ν k(x, x), and the dictionary has room. In the
    orthonormal coordinates v of the dictionary, to which later members only add, the normal equations are
    (Σ v vᵀ + λI) θ = Σ v y. A chunk adds to these sums at once, with the same answer as one row after the other.

    Parameters
    ----------
    budget : int
        Most rows of the dictionary.
    nu : float
        ν ≥ 0. A larger ν keeps fewer rows.
    alpha : float
        λ ≥ 0; 0 in the paper.

    References
    ----------
    Y. Engel, S. Mannor, R. Meir (2004). The kernel recursive least-squares algorithm. IEEE Transactions on Signal
    Processing 52.

    Examples
    --------
    The third row equals the first one.

    >>> from mercer.solvers import ChunkKernel
    >>> K = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> rule, y = RecursiveLeastSquares(budget=10), np.array([[1.0], [5.0], [2.0]])
    >>> state, members = rule.visit(rule.start(1), ChunkKernel(0, 3, lambda p: K), y)
    >>> members, rule.coefficients(state)
    (array([0, 1]), array([[1.5],
           [5. ]]))
    """

    budget: int
    nu: float = 1e-3
    alpha: float = 0.0

    def __post_init__(self) -> None:
        self._require(self.budget >= 1 and 0 <= self.nu < np.inf and 0 <= self.alpha < np.inf)

    def start(self, outputs: int) -> RecursiveState:
        nothing = np.zeros((0, 0))
        return RecursiveState(0, nothing, nothing, np.zeros((0, outputs)), np.zeros(outputs), 0)

    def visit(
        self, state: RecursiveState, chunk: ChunkKernel, targets: Floats
    ) -> tuple[RecursiveState, NDArray[np.intp]]:
        basis, full = Basis(state.W, chunk), 0
        # A row in the span, up to rounding, adds no direction.
        least = self.nu * np.diagonal(basis.own)
        at = 0
        while len(new := np.flatnonzero(basis.outside[at:] > least[at:])):
            if basis.size >= self.budget:
                full = len(new)
                break
            at += int(new[0])
            basis.admit(at)
            at += 1
        m = basis.size
        R = np.zeros((m, m))
        R[: len(state.R), : len(state.R)] = state.R
        R += basis.V @ basis.V.T
        moments = extended(state.moments, m) + basis.V @ targets
        squares = state.squares + (targets**2).sum(axis=0)
        steps = state.steps + len(targets)
        after = RecursiveState(steps, basis.W, R, moments, squares, state.full + full)
        return after, basis.members()

    def coefficients(self, state: RecursiveState, averaged: bool = False) -> Floats:
        """Wᵀθ, which needs no averaging."""
        return self.answer(state)[0]

    def answer(self, state: RecursiveState) -> tuple[Floats, float]:
        """Wᵀθ, and the largest √(Σ (y − f)²/Σ y²) of the targets, over the projections of the rows seen."""
        theta = self._theta(state)
        rest = state.squares - 2 * (theta * state.moments).sum(axis=0) + (theta * (state.R @ theta)).sum(axis=0)
        share = np.maximum(rest, 0.0) / np.where(state.squares > 0, state.squares, 1.0)
        return np.asarray(state.W.T @ theta), float(np.sqrt(np.max(share)))

    def _theta(self, state: RecursiveState) -> Floats:
        if not len(state.R):
            return state.moments
        A = state.R + self.alpha * np.eye(len(state.R))
        try:
            factor = scipy.linalg.cho_factor(A, lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # singular up to rounding, which can happen only if λ = 0
            return np.asarray(scipy.linalg.lstsq(A, state.moments, check_finite=False)[0])
        return np.asarray(scipy.linalg.cho_solve(factor, state.moments, check_finite=False))


@dataclass(frozen=True)
class QuantisedState(State):
    """b, u with steps·b − u the sum of b over all rows, k(x, x) of the dictionary, Σ y², and Σ e² of the errors.

    Attributes
    ----------
    steps : int
    b, u : arrays of shape (m, t)
    diagonal : array of shape (m,)
    squares, errors : arrays of shape (t,)
    """

    b: Floats
    u: Floats
    diagonal: Floats
    squares: Floats
    errors: Floats

    @property
    def residual(self) -> float:
        scale = np.where(self.squares > 0, self.squares, 1.0)
        return float(np.sqrt(np.max(self.errors / scale, initial=0.0)))


@dataclass(frozen=True)
class QuantisedLMS(Learner[QuantisedState]):
    r"""b_q := b_q + η (y − f(x)) for the nearest q of the dictionary if ‖φ(x) − φ(q)‖ ≤ ε; else x joins and is q.

    If the dictionary is full, every row is assigned to its nearest q. The assignment does not depend on the targets. So
    the errors of a chunk are the solution of one triangular system.

    Parameters
    ----------
    budget : int
        Most rows of the dictionary.
    epsilon : float
        ε ≥ 0, a distance in feature space; for a Gaussian kernel ‖φ(x) − φ(z)‖² = 2 − 2k(x, z).
    step_size : float
        η, below 2/max k(x, x).

    References
    ----------
    B. Chen, S. Zhao, P. Zhu, J. C. Príncipe (2012). Quantized kernel least mean square algorithm. IEEE Transactions on
    Neural Networks and Learning Systems 23.

    Examples
    --------
    >>> from mercer.solvers import ChunkKernel
    >>> K = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> rule, y = QuantisedLMS(budget=10, step_size=1.0), np.array([[1.0], [5.0], [2.0]])
    >>> state, members = rule.visit(rule.start(1), ChunkKernel(0, 3, lambda p: K), y)
    >>> members, rule.coefficients(state)
    (array([0, 1]), array([[2.],
           [5.]]))
    """

    budget: int
    epsilon: float = 0.1
    step_size: float = 0.5

    def __post_init__(self) -> None:
        self._require(self.budget >= 1 and 0 <= self.epsilon < np.inf and 0 < self.step_size < np.inf)

    def start(self, outputs: int) -> QuantisedState:
        nothing = np.zeros((0, outputs))
        return QuantisedState(0, nothing, nothing, np.empty(0), np.zeros(outputs), np.zeros(outputs))

    def visit(
        self, state: QuantisedState, chunk: ChunkKernel, targets: Floats
    ) -> tuple[QuantisedState, NDArray[np.intp]]:
        m, n, K = chunk.m, chunk.n, chunk.values(0)
        stands, joined = self._quantise(state, K[:m], K[m:])
        sources = np.concatenate([np.arange(m), m + joined])
        values = K[sources[stands]]  # row l: k(the q of row l, the chunk's rows)
        first = targets - K[:m].T @ state.b
        lower = np.tril(self.step_size * values.T, -1)
        if not (np.all(np.isfinite(lower)) and np.all(np.isfinite(first))):
            errors = np.full_like(first, np.inf)
        else:
            errors = scipy.linalg.solve_triangular(lower, first, lower=True, unit_diagonal=True, check_finite=False)
        b, u = extended(state.b, len(sources)), extended(state.u, len(sources))
        np.add.at(b, stands, self.step_size * errors)
        np.add.at(u, stands, self.step_size * (state.steps + np.arange(n))[:, None] * errors)
        diagonal = np.concatenate([state.diagonal, np.diagonal(K[m:])[joined]])
        squares, misses = state.squares + (targets**2).sum(axis=0), state.errors + (errors**2).sum(axis=0)
        return QuantisedState(state.steps + n, b, u, diagonal, squares, misses), sources

    def _quantise(self, state: QuantisedState, near: Floats, own: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The q of each row of the chunk, by its place in the dictionary, and the rows that join."""
        m, n = near.shape
        square, joined, rows = np.diagonal(own), list[int](), np.arange(n)
        apart = state.diagonal[:, None] + square - 2 * near
        stands = apart.argmin(axis=0) if m else np.zeros(n, np.intp)
        best = apart[stands, rows] if m else np.full(n, np.inf)
        at, limit = 0, min(self.epsilon, FARTHEST) ** 2
        while m + len(joined) < self.budget and len(new := np.flatnonzero(best[at:] > limit)):
            j = at + int(new[0])
            nearer = np.flatnonzero(square[j] + square[j:] - 2 * own[j, j:] < best[j:]) + j
            best[nearer] = (square[j] + square - 2 * own[j])[nearer]
            stands[nearer] = m + len(joined)
            stands[j] = m + len(joined)
            joined.append(j)
            at = j + 1
        return stands, np.array(joined, np.intp)

    def coefficients(self, state: QuantisedState, averaged: bool = False) -> Floats:
        return state.b - state.u / max(state.steps, 1) if averaged else state.b
