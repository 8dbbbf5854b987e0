"""The perceptron in coefficients of a kernel matrix: it updates on each mistake until a pass has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators import Operator
from mercer.solvers.base import Solver, State, Status, require_symmetric
from mercer.solvers.descent.gradient import CHUNK

__all__ = ["ClassificationProblem", "PerceptronRule", "PerceptronState", "margins", "rivals"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClassificationProblem:
    """fₖ(x) = α₀ₖ κ₀ + Σᵢ αᵢₖ k(xᵢ, x) that separate rows with labels 0, …, c − 1: the largest fₖ gives the class.

    A solution is α of shape (1 + n, c), with the dummy example first. Its residual is the weighted share of rows that
    it classifies wrongly; ties count as wrong.

    Parameters
    ----------
    K : Operator of shape (n, n), symmetric
    labels : integers of shape (n,)
    classes : int
        c ≥ 2.
    weights : array-like of shape (n,), optional
        A row of weight w is visited w times in succession.
    constant : float
        κ₀, the kernel of the dummy example with all rows; 0 omits it.

    Raises
    ------
    InvalidInput
        If the labels are not n integers from 0 to classes − 1.
    """

    K: Operator
    labels: ArrayLike
    classes: int
    weights: ArrayLike | None = None
    constant: float = 1.0

    def __post_init__(self) -> None:
        n = self.K.shape[0]
        require_symmetric("ClassificationProblem", self.K)
        y = np.asarray(self.labels)
        if y.shape != (n,) or y.dtype.kind not in "iu" or np.any((y < 0) | (y >= self.classes)) or self.classes < 2:
            given = f"labels of shape {y.shape} for {self.classes} classes"
            do = f"give {n} integers from 0 to classes − 1, and classes ≥ 2"
            raise InvalidInput(message("ClassificationProblem", given, do))

    @cached_property
    def y(self) -> Integers:
        """The labels."""
        return np.asarray(self.labels, np.int64)

    @cached_property
    def w(self) -> Floats:
        """The weights, 1 by default."""
        return np.ones(len(self.y)) if self.weights is None else np.asarray(self.weights, np.float64)

    def residual(self, x: ArrayLike) -> float:
        """The weighted share of rows on which α = x makes a mistake."""
        A = np.asarray(x, np.float64)
        F = np.asarray(self.K.matmat(np.ascontiguousarray(A[1:]))) + self.constant * A[0]
        return float(self.w[margins(F, self.y) <= 0].sum() / self.w.sum())


def rivals(F: Floats, labels: Integers) -> Integers:
    """The class with the largest f except the true one, for each row of F; the first of equal ones.

    Parameters
    ----------
    F : array of shape (n, classes)
    labels : integers of shape (n,)

    Examples
    --------
    >>> rivals(np.array([[1.0, 3.0, 2.0]]), np.array([1]))
    array([2])
    """
    others = F.copy()
    others[np.arange(len(F)), labels] = -np.inf
    return np.asarray(others.argmax(axis=1), np.int64)


def margins(F: Floats, labels: Integers) -> Floats:
    """f of the true class minus f of its best rival; with c = 2 and f₀ = −f₁ this is 2 y f₁.

    Parameters
    ----------
    F : array of shape (n, classes)
    labels : integers of shape (n,)

    Examples
    --------
    >>> margins(np.array([[1.0, 3.0, 2.0]]), np.array([1]))
    array([1.])
    """
    rows = np.arange(len(F))
    return np.asarray(F[rows, labels] - F[rows, rivals(F, labels)])


@dataclass(frozen=True)
class PerceptronState(State):
    """α, the sum of α over all visits (U with Σ = visits·α − U), and the list of all updates.

    An update added `amounts` to the coefficient of row `rows` in class `labels[rows]`, and subtracted the same from its
    coefficient in class `others`. The resulting classifier was used from visit `since` until the next update.

    Attributes
    ----------
    steps : int
    A, U : arrays of shape (n, classes)
    visits : float
    missed : float
        The share of mistakes in the last pass.
    rows, others : integers of shape (updates,)
    amounts, since : arrays of shape (updates,)
    """

    A: Floats
    U: Floats
    visits: float
    missed: float
    rows: Integers
    others: Integers
    amounts: Floats
    since: Floats

    @property
    def residual(self) -> float:
        return self.missed

    @property
    def averaged(self) -> Floats:
        """The mean of α over all visits."""
        return np.asarray(self.A - self.U / (self.visits or 1.0))


@dataclass(frozen=True)
class PerceptronRule(Solver[ClassificationProblem, PerceptronState]):
    r"""On a mistake, f_y(xᵢ) ≤ f_r(xᵢ) with r ≠ y: αᵢy := αᵢy + 1, αᵢr := αᵢr − 1. A step is one pass over the rows.

    With two classes f₀ = −f₁, and this is Rosenblatt's αᵢ := αᵢ + yᵢ if yᵢf(xᵢ) ≤ 0. With more classes it is the
    multi-class perceptron. If some f separates the rows by a margin γ within a ball of radius R, at most (R/γ)²
    mistakes occur in all. The updates are the same whether the answer is the last α or the mean over all visits.

    Parameters
    ----------
    averaged : bool
        Whether the answer is the mean of α over all visits instead of the last α.
    tol : float
        The solver stops when the share of mistakes in a pass is at most this.
    max_steps : int
        Most passes.
    shuffle : bool
        Whether each pass has a new random order; otherwise the order is 1, …, n.
    seed : int
        Seed for the orders.

    References
    ----------
    Y. Freund, R. Schapire (1999). Large margin classification using the perceptron algorithm. Machine Learning 37.
    K. Crammer, Y. Singer (2003). Ultraconservative online algorithms for multiclass problems. JMLR 3.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import solve
    >>> problem = ClassificationProblem(Dense([[1.0, -1.0], [-1.0, 1.0]]), [0, 1], 2)
    >>> solution = solve(PerceptronRule(shuffle=False), problem)
    >>> solution.status.name, solution.x[:, 1]
    ('CONVERGED', array([ 0., -1.,  1.]))
    """

    averaged: bool = False
    tol: float = 0.0
    max_steps: int = 1000
    shuffle: bool = True
    seed: int = 0

    def start(self, problem: ClassificationProblem) -> PerceptronState:
        zeros = np.zeros((1 + len(problem.y), problem.classes))
        none = np.empty(0, np.int64)
        return PerceptronState(0, zeros, zeros, 0.0, 1.0, none, none, np.empty(0), np.empty(0))

    def step(self, problem: ClassificationProblem, state: PerceptronState) -> PerceptronState:
        n = len(problem.y)
        order = np.random.default_rng([self.seed, state.steps]).permutation(n) if self.shuffle else np.arange(n)
        run = _Pass(problem, state.A.copy(), state.U.copy(), state.visits)
        for first in range(0, n, CHUNK):
            run.visit(order[first : first + CHUNK])
        log = np.array(run.log, np.float64).reshape(-1, 4)
        return PerceptronState(
            state.steps + 1,
            run.A,
            run.U,
            run.visits,
            run.missed / float(problem.w.sum()),
            np.concatenate([state.rows, log[:, 0].astype(np.int64)]),
            np.concatenate([state.others, log[:, 1].astype(np.int64)]),
            np.concatenate([state.amounts, log[:, 2]]),
            np.concatenate([state.since, log[:, 3]]),
        )

    def verdict(self, problem: ClassificationProblem, state: PerceptronState) -> Status | None:
        if not np.all(np.isfinite(state.A)) or not np.isfinite(state.missed):
            return Status.NOT_FINITE
        if state.steps and state.missed <= self.tol:
            return Status.CONVERGED
        return Status.MAX_STEPS if state.steps >= self.max_steps else None

    def finish(self, problem: ClassificationProblem, state: PerceptronState) -> tuple[Floats, float]:
        x = state.averaged if self.averaged else state.A
        return x, problem.residual(x)


class _Pass:
    """The visits of one pass. A chunk needs its rows of K only once, however many mistakes it has."""

    def __init__(self, problem: ClassificationProblem, A: Floats, U: Floats, visits: float) -> None:
        self.problem, self.A, self.U, self.visits = problem, A, U, visits
        self.missed, self.log = 0.0, list[tuple[float, float, float, float]]()

    def visit(self, chunk: NDArray[np.intp]) -> None:
        p = self.problem
        used = np.any(self.A[1:] != 0, axis=1)
        used[chunk] = True
        # f needs the columns of rows with mistakes only: if these are few, other rows, perhaps on a disk, are not read.
        some = np.flatnonzero(used) if 2 * np.count_nonzero(used) < len(used) else np.arange(len(used))
        K = np.asarray(p.K.block(chunk, some) if len(some) < len(used) else p.K.rows(chunk), np.float64)
        F = K @ self.A[1 + some] + p.constant * self.A[0]
        if not np.all(np.isfinite(F)):
            self.missed = np.nan
            return
        own, y, w = K[:, np.searchsorted(some, chunk)] + p.constant**2, p.y[chunk], p.w[chunk]
        at = 0
        while at < len(chunk):
            wrong = np.flatnonzero(margins(F[at:], y[at:]) <= 0)
            j = at + int(wrong[0]) if len(wrong) else len(chunk)
            self.visits += float(w[at:j].sum())
            if j < len(chunk):
                for r, amount in self._stand(F[j].tolist(), int(y[j]), float(own[j, j]), float(w[j])):
                    self._update(1 + int(chunk[j]), int(y[j]), r, amount)
                    F[j + 1 :, y[j]] += amount * own[j + 1 :, j]
                    F[j + 1 :, r] -= amount * own[j + 1 :, j]
                self.missed += float(w[j])
            at = j + 1

    def _stand(self, f: list[float], y: int, square: float, left: float) -> Iterator[tuple[int, float]]:
        """The updates of one row: it is visited as often as its weight says, or until it is classified rightly."""
        # The same as `margins` and `rivals`, but with lists: for the few numbers of one row they are faster.
        others = [k for k in range(len(f)) if k != y]
        while left > 0 and f[y] <= f[r := max(others, key=f.__getitem__)]:
            # If k(x, x) = 0, updates by the row do not change its own f, so all its visits are one.
            amount = min(left, 1.0) if square > 0 else left
            yield r, amount
            f[y] += amount * square
            f[r] -= amount * square
            self.visits += amount
            left -= amount
        self.visits += left

    def _update(self, place: int, y: int, r: int, amount: float) -> None:
        """Update before the visit is counted, because the new classifier counts for this visit too."""
        self.log.append((place - 1, r, amount, self.visits))
        for i, size in ((place, amount), (0, amount * self.problem.constant)):
            for k, signed in ((y, size), (r, -size)):
                self.A[i, k] += signed
                self.U[i, k] += signed * self.visits
