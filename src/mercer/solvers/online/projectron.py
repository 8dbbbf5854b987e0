"""Projectron++: a perceptron that projects a mistake on the dictionary's span if the row nearly lies in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.solvers.base import State
from mercer.solvers.online.learner import FARTHEST, Basis, ChunkKernel, Floats, Integers, Learner, ahead, extended

__all__ = ["Projectron", "ProjectronState"]


@dataclass(frozen=True)
class ProjectronState(State):
    """W, the coordinates θ of f in the orthonormal basis W k(dictionary, ·), and U with steps·θ − U the sum of θ.

    Attributes
    ----------
    steps, mistakes, projected : int
    W : array of shape (m, m)
    theta, U : arrays of shape (m, classes)
    """

    W: Floats
    theta: Floats
    U: Floats
    mistakes: int
    projected: int

    @property
    def residual(self) -> float:
        return self.mistakes / max(self.steps, 1)


@dataclass(frozen=True)
class Projectron(Learner[ProjectronState]):
    r"""On a mistake f := f + y Pk(x, ·) if δ = ‖k(x, ·) − Pk(x, ·)‖ ≤ η; else f := f + y k(x, ·) and x joins.

    P projects on the span of the dictionary. A row classified rightly with a margin below 1 updates f too, if its loss
    ℓ = 1 − y f(x) is at least δ/η: f := f + y τ Pk(x, ·) with τ = min(1, ℓ/‖Pk‖², 2(ℓ − δ/η)/‖Pk‖²). If the dictionary
    is full, every mistake is projected. With many classes y f means (f_y − f_r)/2 with the best rival r; the update is
    added to f_y and subtracted from f_r.

    In coordinates v = W k(dictionary, ·) the projection of a row is its v. So a chunk costs two matrix products (m²n),
    and each update O(n).

    Parameters
    ----------
    budget : int
        Most rows of the dictionary.
    eta : float
        η > 0. A larger η projects more mistakes.

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo (2009). Bounded kernel-based online learning. JMLR 10.

    Examples
    --------
    The second row equals the first one and has the other label. It is projected.

    >>> from mercer.solvers import ChunkKernel
    >>> rule = Projectron(budget=10)
    >>> state, members = rule.visit(rule.start(2), ChunkKernel(0, 2, lambda p: np.ones((2, 2))), np.array([1, 0]))
    >>> members, rule.coefficients(state)
    (array([0]), array([[0., 0.]]))
    """

    budget: int
    eta: float = 0.1

    def __post_init__(self) -> None:
        self._require(self.budget >= 1 and 0 < self.eta < np.inf)

    def start(self, outputs: int) -> ProjectronState:
        nothing = np.zeros((0, outputs))
        return ProjectronState(0, np.zeros((0, 0)), nothing, nothing, 0, 0)

    def visit(
        self, state: ProjectronState, chunk: ChunkKernel, targets: Integers
    ) -> tuple[ProjectronState, NDArray[np.intp]]:
        basis = Basis(state.W, chunk)
        run = _Visit(basis, basis.V.T @ state.theta, basis.V.T @ basis.V, state.steps)
        limit = min(self.eta, FARTHEST) ** 2
        at, n, mistakes, projected = 0, len(targets), 0, 0
        while (event := self._next(run, at, targets)) is not None:
            j, r, margin = event
            joins = False
            if margin <= 0:
                mistakes += 1
                joins = basis.outside[j] > limit and basis.size < self.budget
            run.update(j, int(targets[j]), r, 1.0 if margin <= 0 else self._rate(run, j, margin), joins)
            projected += not joins
            at = j + 1
        steps = state.steps + n
        theta, U = extended(state.theta, basis.size), extended(state.U, basis.size)
        for j, y, r, amount, when, size in run.log:
            v = amount * basis.V[:size, j]
            for A, w in ((theta, v), (U, when * v)):
                A[:size, y] += w
                A[:size, r] -= w
        after = ProjectronState(steps, basis.W, theta, U, state.mistakes + mistakes, state.projected + projected)
        return after, basis.members()

    def _next(self, run: _Visit, at: int, labels: Integers) -> tuple[int, int, float] | None:
        """The next row that updates f, with its rival and its margin; None if there is no such row."""
        margins, rivals = ahead(run.F[at:], labels[at:])
        far = np.sqrt(run.basis.outside[at:]) / self.eta
        found = np.flatnonzero((margins <= 0) | ((margins < 1) & (1 - margins >= far) & (run.squares[at:] > 0)))
        if not len(found):
            return None
        i = int(found[0])
        return at + i, int(rivals[i]), float(margins[i])

    def _rate(self, run: _Visit, j: int, margin: float) -> float:
        loss, square = 1 - margin, float(run.squares[j])
        return min(1.0, loss / square, 2 * (loss - float(np.sqrt(run.basis.outside[j])) / self.eta) / square)

    def coefficients(self, state: ProjectronState, averaged: bool = False) -> Floats:
        theta = state.theta - state.U / max(state.steps, 1) if averaged else state.theta
        return np.asarray(state.W.T @ theta)


class _Visit:
    """f of the chunk's rows, and P = VᵀV, kept up to date during a visit."""

    def __init__(self, basis: Basis, F: Floats, P: Floats, steps: int) -> None:
        self.basis, self.F, self.P, self.steps = basis, F, P, steps
        self.log = list[tuple[int, int, int, float, int, int]]()

    @property
    def squares(self) -> Floats:
        """‖Pk(x, ·)‖² of each row."""
        return np.diagonal(self.P)

    def update(self, j: int, y: int, r: int, amount: float, joins: bool) -> None:
        if joins:
            row = self.basis.admit(j)
            self.P[j:, j:] += np.outer(row[j:], row[j:])
        change = amount * self.P[j, j + 1 :]
        self.F[j + 1 :, y] += change
        self.F[j + 1 :, r] -= change
        self.log.append((j, y, r, amount, self.steps + j, self.basis.size))
