"""The self-tuned Forgetron: the perceptron that shrinks its coefficients, and forgets the oldest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.solvers.base import State
from mercer.solvers.online.learner import Floats, Integers, Learner, Meeting, extended

__all__ = ["Forgetron", "ForgetronState"]


@dataclass(frozen=True)
class ForgetronState(State):
    """The size of each coefficient, oldest first, u with steps·sizes − u their sum, the classes, and the damage Q."""

    sizes: Floats
    u: Floats
    labels: Integers
    rivals: Integers
    damage: float
    mistakes: int
    classes: int

    @property
    def residual(self) -> float:
        return self.mistakes / max(self.steps, 1)


@dataclass(frozen=True)
class Forgetron(Learner[ForgetronState]):
    r"""On a mistake f := f + y k(x, ·); beyond the budget f := φf, and the oldest example is taken out of it.

    φ is the largest with which the damage so far, of shrinking and forgetting, stays within 15/32 of the number of
    mistakes. The bound on the mistakes, and Ψ, suppose k(x, x) ≤ 1. With many classes y f is (f_y − f_r)/2, r the best
    rival, f_y gains what f_r loses, and nothing else changes: it is the rule for pairs of classes.

    Parameters
    ----------
    budget : int

    References
    ----------
    O. Dekel, S. Shalev-Shwartz, Y. Singer (2008). The Forgetron: a kernel-based perceptron on a budget. SIAM Journal on
    Computing 37.

    Examples
    --------
    >>> from mercer.solvers import Meeting
    >>> rule = Forgetron(budget=1)
    >>> state, members = rule.visit(rule.start(2), Meeting(0, 2, lambda p: np.eye(2)), np.array([1, 0]))
    >>> members, rule.coefficients(state).round(2)
    (array([1]), array([[ 0.75, -0.75]]))
    """

    budget: int

    def __post_init__(self) -> None:
        self._require(self.budget >= 1)

    def start(self, outputs: int) -> ForgetronState:
        none = np.empty(0, np.int64)
        return ForgetronState(0, np.empty(0), np.empty(0), none, none, 0.0, 0, outputs)

    def visit(
        self, state: ForgetronState, meeting: Meeting, targets: Integers
    ) -> tuple[ForgetronState, NDArray[np.intp]]:
        m, n = meeting.m, meeting.n
        p = min(m, n)  # of the dictionary may be forgotten
        pool = np.ascontiguousarray(meeting.values(p))
        F = np.ascontiguousarray(_signed(state.sizes, state.labels, state.rivals, state.classes).T @ pool[:m])
        members, sizes, u = np.arange(m + n, dtype=np.int64), extended(state.sizes, m + n), extended(state.u, m + n)
        labels, rivals = np.zeros((2, m + n), np.int64)
        labels[:m], rivals[:m] = state.labels, state.rivals
        count, gone, damage, mistakes = backend.engine().forget_pass(
            pool, F, members, sizes, u, labels, rivals, targets, self.budget, state.steps, state.damage, state.mistakes
        )
        kept = slice(gone, count)
        after = ForgetronState(
            state.steps + n,
            sizes[kept].copy(),
            u[kept].copy(),
            labels[kept].copy(),
            rivals[kept].copy(),
            damage,
            mistakes,
            state.classes,
        )
        return after, members[kept]

    def coefficients(self, state: ForgetronState, averaged: bool = False) -> Floats:
        """Averaged: of what is still in the dictionary."""
        sizes = state.sizes - state.u / max(state.steps, 1) if averaged else state.sizes
        return _signed(sizes, state.labels, state.rivals, state.classes)


def _signed(sizes: Floats, labels: Integers, rivals: Integers, classes: int) -> Floats:
    b, rows = np.zeros((len(sizes), classes)), np.arange(len(sizes))
    b[rows, labels], b[rows, rivals] = sizes, -sizes
    return b
