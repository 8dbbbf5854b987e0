"""The self-tuned Forgetron: the perceptron that shrinks its coefficients, and forgets the oldest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.solvers.base import State
from mercer.solvers.online import Floats, Integers, Learner, Meeting, ahead

__all__ = ["Forgetron", "ForgetronState", "shrinkage"]

ALLOWED = 15 / 32
"""Damage by shrinking and forgetting that the self-tuned rule allows for each mistake."""


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


def shrinkage(size: float, margin: float, damage: float, mistakes: int) -> tuple[float, float]:
    """The largest φ ≤ 1 with Q + Ψ(φσ, φμ) ≤ 15 M/32, Ψ(σ, μ) = σ² + 2σ − 2σμ, and Q after it.

    Q < 15 M/32 before, so that either φ = 1 will do or the quadratic has one root between 0 and 1.

    >>> shrinkage(1.0, 1.0, 0.0, 100)
    (1.0, 1.0)
    """
    a, b, c = size**2 - 2 * size * margin, 2 * size, damage - ALLOWED * mistakes
    phi = 1.0 if a + b + c <= 0 else min(1.0, -2 * c / (b + float(np.sqrt(max(b * b - 4 * a * c, 0.0)))))
    return phi, damage + phi * (a * phi + b)


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
        run = _Visit(state, meeting, targets)
        at, n = 0, len(targets)
        while at < n:
            margins, rivals = ahead(run.F[run.p + at :], targets[at:])
            wrong = np.flatnonzero(margins <= 0)
            if not len(wrong):
                break
            j = at + int(wrong[0])
            run.learn(j, int(rivals[wrong[0]]))
            if len(run.members) - run.gone > self.budget:
                run.forget(state.steps + j)
            at = j + 1
        after = ForgetronState(
            state.steps + n,
            run.sizes[run.gone :].copy(),
            run.u[run.gone :].copy(),
            run.labels[run.gone :].copy(),
            run.rivals[run.gone :].copy(),
            run.damage,
            run.mistakes,
            state.classes,
        )
        return after, np.array(run.members[run.gone :], np.intp)

    def coefficients(self, state: ForgetronState, averaged: bool = False) -> Floats:
        """Averaged: of what is still in the dictionary."""
        sizes = state.sizes - state.u / max(state.steps, 1) if averaged else state.sizes
        return _signed(sizes, state.labels, state.rivals, state.classes)


def _signed(sizes: Floats, labels: Integers, rivals: Integers, classes: int) -> Floats:
    b, rows = np.zeros((len(sizes), classes)), np.arange(len(sizes))
    b[rows, labels], b[rows, rivals] = sizes, -sizes
    return b


class _Visit:
    """f of the rows that may be asked for: those of the dictionary that may be forgotten in this chunk, and its own."""

    def __init__(self, state: ForgetronState, meeting: Meeting, targets: Integers) -> None:
        m, n = meeting.m, meeting.n
        self.p, self.m, self.targets, self.steps = min(m, n), m, targets, state.steps
        self.pool = meeting.values(self.p)
        self.members, self.gone = list(range(m)), 0
        self.sizes, self.u = state.sizes.copy(), state.u.copy()
        self.labels, self.rivals = state.labels.copy(), state.rivals.copy()
        self.F = self.pool[:m].T @ _signed(self.sizes, self.labels, self.rivals, state.classes)
        self.damage, self.mistakes = state.damage, state.mistakes

    def learn(self, j: int, rival: int) -> None:
        y = int(self.targets[j])
        self.members.append(self.m + j)
        self.sizes, self.u = np.append(self.sizes, 1.0), np.append(self.u, float(self.steps + j))
        self.labels, self.rivals = np.append(self.labels, y), np.append(self.rivals, rival)
        self.mistakes += 1
        self._add(self.m + j, y, rival, 1.0)

    def forget(self, when: int) -> None:
        g, source = self.gone, self.members[self.gone]
        y, r, size = int(self.labels[g]), int(self.rivals[g]), float(self.sizes[g])
        f = self.F[source if source < self.m else self.p + source - self.m]
        phi, self.damage = shrinkage(size, 0.5 * float(f[y] - f[r]), self.damage, self.mistakes)
        self.F *= phi
        self.u[g:] -= when * (1 - phi) * self.sizes[g:]  # what was summed so far is not shrunk
        self.sizes[g:] *= phi
        self._add(source, y, r, -phi * size)
        self.gone += 1

    def _add(self, source: int, y: int, r: int, amount: float) -> None:
        change = amount * self.pool[source]
        self.F[:, y] += change
        self.F[:, r] -= change
