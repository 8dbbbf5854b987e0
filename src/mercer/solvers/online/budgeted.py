"""Budgeted stochastic gradient descent: the support vector machine that merges its support vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.errors import InvalidInput, message
from mercer.solvers.base import State
from mercer.solvers.online.learner import Floats, Integers

__all__ = ["BudgetedDescent", "BudgetedState"]


@dataclass(frozen=True)
class BudgetedState(State):
    """b with f = Σ b k/(α steps), u with steps·b − u the sum of b over all rows; what was done, and Σ of the losses."""

    b: Floats
    u: Floats
    mistakes: int
    updates: int
    merges: int
    removals: int
    loss: float

    @property
    def residual(self) -> float:
        return self.mistakes / max(self.steps, 1)


@dataclass(frozen=True)
class BudgetedDescent:
    r"""min α/2 ‖f‖² + mean of max(0, 1 − margin), by steps of 1/(α t); beyond the budget the smallest b is merged.

    Row t joins where its margin y f(x), f_y(x) − f_r(x) with many classes and r the best rival, is below 1. Two support
    vectors p, q of one class become z = hp + (1 − h)q with b_z = b_p k(p, z) + b_q k(q, z), h the one with the least
    loss ‖b_p φ(p) + b_q φ(q) − b_z φ(z)‖; the partner of the smallest b is the one of least loss among those with
    γ‖p − q‖² ≤ 2, of none the nearest. With many classes h and the partner are those of coefficients of the same
    direction. Of the Gaussian kernel only, whose merger is a vector again.

    Parameters
    ----------
    budget : int
    alpha : float
        α > 0.

    References
    ----------
    Z. Wang, K. Crammer, S. Vucetic (2012). Breaking the curse of kernelization: budgeted stochastic gradient descent
    for large-scale SVM training. JMLR 13.

    Examples
    --------
    Two rows of one class; the budget has room for one.

    >>> rule = BudgetedDescent(budget=1, alpha=1.0)
    >>> dictionary = rule.open(rule.start(1), np.zeros((0, 1)), rows=2)
    >>> x, _ = dictionary.after(np.array([[0.0], [1.0]]))
    >>> distances = np.zeros((4, 2))
    >>> distances[:2] = 0.1 * (x - x.T) ** 2
    >>> dictionary.visit(x, distances, np.array([1, 1]), 0.1)
    >>> state, rows = dictionary.close()
    >>> rows, rule.coefficients(state).round(3)
    (array([[0.5]]), array([[0.975]]))
    """

    budget: int
    alpha: float = 1e-4

    def __post_init__(self) -> None:
        if not (self.budget >= 1 and 0 < self.alpha < np.inf):
            raise InvalidInput(message("BudgetedDescent", repr(self), "give budget ≥ 1 and alpha > 0"))

    def start(self, outputs: int) -> BudgetedState:
        """The state before the first row; two classes have one output."""
        nothing = np.zeros((0, outputs))
        return BudgetedState(0, nothing, nothing, 0, 0, 0, 0, 0.0)

    def open(self, state: BudgetedState, Z: NDArray[np.floating], rows: int) -> OpenDictionary:
        """The dictionary's rows Z and the state, with room for the budget and one more, and for chunks of so many."""
        slots = self.budget + 1
        pool = np.zeros((rows + slots, Z.shape[1]), Z.dtype)
        b, u = (np.zeros((slots, part.shape[1])) for part in (state.b, state.u))
        for whole, part in ((pool[rows:], Z), (b, state.b), (u, state.u)):
            whole[: len(part)] = part
        return OpenDictionary(self, pool=pool, Z=pool[rows:], b=b, u=u, used=len(Z), state=state)

    def coefficients(self, state: BudgetedState, averaged: bool = False) -> Floats:
        """b/(α steps); averaged over t with weights t, so that it is the mean of the b."""
        b = state.b - state.u / max(state.steps, 1) if averaged else state.b
        return np.asarray(b / (self.alpha * max(state.steps, 1)))


@dataclass
class OpenDictionary:
    """What chunks update in place: rows, b and u, of which the first `used` count.

    The pool has room for a chunk's rows in front of the dictionary's, so that their distances from both are one matrix.
    """

    rule: BudgetedDescent
    pool: NDArray[np.floating]
    Z: NDArray[np.floating]
    b: Floats
    u: Floats
    used: int
    state: BudgetedState

    def after(self, x: NDArray[np.floating]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """The rows x, and these with the dictionary after them: views of the pool."""
        end = len(self.pool) - len(self.Z)
        first = end - len(x)
        self.pool[first:end] = x
        return self.pool[first:end], self.pool[first : end + self.used]

    def visit(self, x: NDArray[np.floating], distances: NDArray[np.floating], labels: Integers, gamma: float) -> None:
        """The updates of the rows x, one after the other: see `merge_pass` of the reference.

        `distances` are γ‖·‖² of x among themselves and then from the dictionary, with room for the rest of it.
        """
        s, n = self.state, len(x)
        self.used, steps, *counts = backend.engine().merge_pass(
            x=x,
            own=distances[:n],
            near=distances[n:],
            z=self.Z,
            b=self.b,
            u=self.u,
            labels=labels,
            used=self.used,
            t=s.steps,
            alpha=self.rule.alpha,
            gamma=gamma,
        )
        before = (s.mistakes, s.updates, s.merges, s.removals, s.loss)
        b, u = self.b[: self.used], self.u[: self.used]
        self.state = BudgetedState(steps, b, u, *(one + more for one, more in zip(before, counts, strict=True)))

    def close(self) -> tuple[BudgetedState, NDArray[np.floating]]:
        """The state and the dictionary's rows, of their own."""
        s, n = self.state, self.used
        b, u = self.b[:n].copy(), self.u[:n].copy()
        return BudgetedState(s.steps, b, u, s.mistakes, s.updates, s.merges, s.removals, s.loss), self.Z[:n].copy()
