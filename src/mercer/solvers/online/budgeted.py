"""Budgeted stochastic gradient descent: a support vector machine that merges support vectors beyond its budget."""

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
    """b with f = Σ b k/(α steps), u with steps·b − u the sum of b over all rows, the counts, and the sum of losses.

    Attributes
    ----------
    steps, mistakes, updates, merges, removals : int
    b, u : arrays of shape (m, classes)
    loss : float
    """

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
    r"""min α/2 ‖f‖² + mean of max(0, 1 − margin) by steps of 1/(α t). Beyond the budget the smallest b is merged.

    Row t becomes a support vector if its margin is below 1. The margin is y f(x), or f_y(x) − f_r(x) with many classes
    and the best rival r. Merging replaces two support vectors p, q of one class by z = hp + (1 − h)q with
    b_z = b_p k(p, z) + b_q k(q, z), where h minimises the loss ‖b_p φ(p) + b_q φ(q) − b_z φ(z)‖. The smallest b is
    merged with the partner of least loss among those with γ‖p − q‖² ≤ 2, or with the nearest one if there are none.
    With many classes, h and the partner are those for coefficients of the same direction. The kernel must be Gaussian,
    for which z is again a vector.

    Parameters
    ----------
    budget : int
        Most support vectors.
    alpha : float
        α > 0.

    Raises
    ------
    InvalidInput
        If the budget is below 1, or alpha is not positive.

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
        """The state before the first row. Two classes have one output."""
        nothing = np.zeros((0, outputs))
        return BudgetedState(0, nothing, nothing, 0, 0, 0, 0, 0.0)

    def open(self, state: BudgetedState, Z: NDArray[np.floating], rows: int) -> OpenDictionary:
        """The dictionary with rows Z, with room for one row more than the budget and for chunks of `rows` rows."""
        slots = self.budget + 1
        pool = np.zeros((rows + slots, Z.shape[1]), Z.dtype)
        b, u = (np.zeros((slots, part.shape[1])) for part in (state.b, state.u))
        for whole, part in ((pool[rows:], Z), (b, state.b), (u, state.u)):
            whole[: len(part)] = part
        return OpenDictionary(self, pool=pool, Z=pool[rows:], b=b, u=u, used=len(Z), state=state)

    def coefficients(self, state: BudgetedState, averaged: bool = False) -> Floats:
        """b/(α steps). The average over t has weights t, so that it is the mean of the b."""
        b = state.b - state.u / max(state.steps, 1) if averaged else state.b
        return np.asarray(b / (self.alpha * max(state.steps, 1)))


@dataclass
class OpenDictionary:
    """The dictionary's rows, b and u, which chunks update in place; the first `used` entries are in use.

    The pool has room for the rows of a chunk before those of the dictionary, so that one matrix holds the distances
    from both.
    """

    rule: BudgetedDescent
    pool: NDArray[np.floating]
    Z: NDArray[np.floating]
    b: Floats
    u: Floats
    used: int
    state: BudgetedState

    def after(self, x: NDArray[np.floating]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Views of the pool: the rows x, and x followed by the dictionary."""
        end = len(self.pool) - len(self.Z)
        first = end - len(x)
        self.pool[first:end] = x
        return self.pool[first:end], self.pool[first : end + self.used]

    def visit(self, x: NDArray[np.floating], distances: NDArray[np.floating], labels: Integers, gamma: float) -> None:
        """Update by the rows x, one after the other (see `merge_pass` of the reference engine).

        `distances` are γ‖·‖² of x from x and then from the dictionary, with room for the rows that it may add.
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
        """Copies of the state and of the dictionary's rows."""
        s, n = self.state, self.used
        b, u = self.b[:n].copy(), self.u[:n].copy()
        return BudgetedState(s.steps, b, u, s.mistakes, s.updates, s.merges, s.removals, s.loss), self.Z[:n].copy()
