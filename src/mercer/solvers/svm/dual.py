"""The duals of support vector machines: quadratic problems with bounds and one sum, several on one matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.former_names import present_fields
from mercer.operators import CachedRows, Operator

__all__ = ["DualBatch", "DualPoint"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROUNDING = 1e-11
"""Of the largest |β| of a problem: what steps to and fro may leave of a variable that goes back to its bound."""


@dataclass(frozen=True, eq=False)
class DualPoint:
    """β of all variables, their gradient c − Kβ, and m − M of each problem, in float64."""

    beta: Floats
    gradient: Floats
    gaps: Floats


@dataclass(frozen=True, eq=False)
class DualBatch:
    r"""min ½βᵀKβ − cᵀβ + ε‖β‖₁ over a ≤ β ≤ b with Σβ fixed: problems that share the matrix A, K = A[rows][:, rows].

    With β = y∘α this is LIBSVM's min ½αᵀQα + pᵀα, yᵀα = const, 0 ≤ α ≤ C. The variables of all problems stand in one
    array one after the other. Σβ is what it is at the start. A problem may have a second group of variables, with a sum
    of its own, as the ν-variants need it.

    Parameters
    ----------
    A : Operator of shape (n, n), symmetric
        May have entries in float32.
    linear, lower, upper, start : arrays of shape (v,)
        c, a, b, and a β to start from, which meets the constraints.
    rows : integers of shape (v,)
        The row of A that a variable stands for.
    offset : integers of shape (p + 1,)
        Variables offset[q] to offset[q + 1] are those of the problem q.
    split : integers of shape (p,), optional
        From here on they are its second group.
    epsilon : float
        ε.
    blocks : integers of shape (n,), optional
        Rows with one number are in the same problems: what products with the exact matrix are grouped by.
    exact : Operator, optional
        A in float64, for gradients that are made anew; A itself by default.
    """

    A: Operator
    linear: Floats
    lower: Floats
    upper: Floats
    start: Floats
    rows: Integers
    offset: Integers
    split: Integers | None = None
    epsilon: float = 0.0
    blocks: Integers | None = None
    exact: Operator | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(present_fields(state, kink="epsilon"))

    def __post_init__(self) -> None:
        v, n = len(self.linear), self.A.shape[0]
        sizes = {len(one) for one in (self.lower, self.upper, self.start, self.rows)} | {int(self.offset[-1])}
        if self.A.shape != (n, n) or not self.A.symmetric:
            given = f"an operator of shape {self.A.shape}, symmetric={self.A.symmetric}"
            raise InvalidInput(message("DualBatch", given, "give a symmetric one"))
        if sizes != {v}:
            raise InvalidInput(message("DualBatch", f"arrays of {sorted(sizes | {v})} variables", "give one number"))
        inside = (self.lower <= self.start) & (self.start <= self.upper) & (self.lower < self.upper)
        if not np.all(inside):
            given = f"a start outside its bounds for {np.count_nonzero(~inside)} variables"
            raise InvalidInput(message("DualBatch", given, "give lower < upper and a start between them"))

    @property
    def problems(self) -> int:
        """How many there are."""
        return len(self.offset) - 1

    @property
    def reference(self) -> Operator:
        """The operator by which answers are judged."""
        return self.A if self.exact is None else self.exact

    @cached_property
    def splits(self) -> Integers:
        """The first variable of each problem's second group; the end where there is none."""
        return np.asarray(self.offset[1:] if self.split is None else self.split, np.int64)

    @cached_property
    def owner(self) -> Integers:
        """The problem of each variable."""
        return np.repeat(np.arange(self.problems), np.diff(self.offset))

    @cached_property
    def group(self) -> Integers:
        """The group of each variable: 2q, or 2q + 1 for the second one of the problem q."""
        return 2 * self.owner + (np.arange(len(self.rows)) >= self.splits[self.owner])

    def part(self, q: int) -> tuple[DualBatch, Integers]:
        """The problem q alone, on the rows that it needs, which come with it; on all of them, if it is the only one."""
        some = slice(self.offset[q], self.offset[q + 1])
        rows, place = np.unique(self.rows[some], return_inverse=True)
        if len(rows) == self.A.shape[0]:
            rows, place, A, exact = np.arange(self.A.shape[0]), self.rows[some], self.A, self.exact
        else:
            whole = self.A.A if isinstance(self.A, CachedRows) else self.A
            A, exact = whole.principal(rows), self.reference.principal(rows)
        one = DualBatch(
            A,
            self.linear[some],
            self.lower[some],
            self.upper[some],
            self.start[some],
            place.astype(np.int64),
            np.array([0, len(place)]),
            np.array([self.splits[q] - self.offset[q]]),
            self.epsilon,
            exact=exact,
        )
        return one, rows

    # ---- optimality -------------------------------------------------------------------------------------------------

    def times(self, operator: Operator, beta: Floats) -> Floats:
        """(Kβ) of each problem, in float64: by blocks of rows, all problems that a block is in at once."""
        out, n = np.zeros(len(beta)), self.A.shape[0]
        if not np.any(beta):
            return out
        used = np.flatnonzero(beta)
        block = np.zeros(n, np.int64) if self.blocks is None else self.blocks
        of_variable = block[self.rows]
        order = np.argsort(of_variable, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(of_variable[order])) + 1):
            problems, column = _distinct(self.owner[some], self.problems)
            rows, place = _distinct(self.rows[some], n)
            own = np.full(self.problems, -1)
            own[problems] = np.arange(len(problems))
            these = used[own[self.owner[used]] >= 0]
            support, at = _distinct(self.rows[these], n)
            if len(support):
                shape = len(support), len(problems)
                V = np.bincount(at * shape[1] + own[self.owner[these]], beta[these], shape[0] * shape[1])
                out[some] = operator.block_times(rows, support, V.reshape(shape))[place, column]
        return out

    def gradient(self, beta: Floats) -> Floats:
        """c − Kβ, by the exact operator, which keeps nothing for the next time: A is what is worked with."""
        found = np.asarray(self.linear - self.times(self.reference, beta))
        if self.reference is not self.A:
            self.reference.release()
        return found

    def slopes(self, beta: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        """g with the slope of ε|β| upwards, −∞ at b; and downwards, ∞ at a."""
        up = gradient + np.where(beta < 0, self.epsilon, -self.epsilon)
        low = gradient + np.where(beta > 0, -self.epsilon, self.epsilon)
        return np.where(beta < self.upper, up, -np.inf), np.where(beta > self.lower, low, np.inf)

    def extremes(self, beta: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        """m and M, the largest slope upwards and the smallest downwards, of each group (2p of them)."""
        up, low = self.slopes(beta, gradient)
        top, bottom = np.full(2 * self.problems, -np.inf), np.full(2 * self.problems, np.inf)
        np.maximum.at(top, self.group, up)
        np.minimum.at(bottom, self.group, low)
        return top, bottom

    def gaps(self, beta: Floats, gradient: Floats) -> Floats:
        """m − M of each problem; not above 0 at the optimum."""
        if not len(beta):
            return np.zeros(self.problems)
        top, bottom = self.extremes(beta, gradient)
        return np.asarray((top - bottom).reshape(-1, 2).max(axis=1))

    def residual(self, x: DualPoint) -> float:
        """The largest m − M, from the operator in float64; 0 where there is nothing to gain."""
        gaps = self.gaps(x.beta, self.gradient(x.beta))
        return float(np.max(np.maximum(gaps, 0.0) if not np.any(np.isnan(gaps)) else np.nan, initial=0.0))

    # ---- what the answer tells --------------------------------------------------------------------------------------

    def multipliers(self, x: DualPoint) -> Floats:
        """The multiplier of each group's sum: the mean slope of the variables inside their bounds.

        Where there are none it is the middle of m and M, as in LIBSVM. Of an empty group it is 0. What is as near to a
        bound as rounding may leave it counts as there.
        """
        beta = self.settled(x.beta)
        up, low = self.slopes(beta, x.gradient)
        free = up == low
        count = np.bincount(self.group[free], minlength=2 * self.problems)
        total = np.bincount(self.group[free], up[free], 2 * self.problems)
        top, bottom = self.extremes(beta, x.gradient)
        rises, falls = np.isfinite(top), np.isfinite(bottom)
        ends = np.where(rises, top, 0.0) + np.where(falls, bottom, 0.0)
        middle = ends / np.maximum(rises.astype(int) + falls, 1)
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1), middle))

    def settled(self, beta: Floats) -> Floats:
        """β, with what is within rounding of a bound, or of 0, put there."""
        largest = np.zeros(self.problems)
        np.maximum.at(largest, self.owner, np.abs(beta))
        near = ROUNDING * largest[self.owner]
        for end in (self.lower, self.upper, 0.0 if self.epsilon > 0 else self.lower):
            beta = np.where(np.abs(beta - end) <= near, end, beta)
        return beta

    def objectives(self, x: DualPoint) -> Floats:
        """½βᵀKβ − cᵀβ + ε‖β‖₁ of each problem."""
        terms = -0.5 * x.beta * (self.linear + x.gradient) + self.epsilon * np.abs(x.beta)
        return np.asarray(np.bincount(self.owner, terms, self.problems))

    def duality_gaps(self, x: DualPoint) -> Floats:
        """Primal less dual objective of each problem, with the intercept of `multipliers`: a bound on the error."""
        slope = x.gradient - self.multipliers(x)[self.group]

        def gain(z: Floats) -> Floats:
            return np.asarray(slope * z - self.epsilon * np.abs(z))

        best = np.maximum(gain(self.lower), gain(self.upper))
        best = np.where((self.lower <= 0) & (self.upper >= 0), np.maximum(best, 0.0), best)
        return np.asarray(np.bincount(self.owner, np.maximum(best - gain(x.beta), 0.0), self.problems))


def _distinct(values: NDArray[Any], size: int) -> tuple[Integers, Integers]:
    """The different ones of some integers below `size`, in order, and the place of each among them."""
    seen = np.zeros(size, bool)
    seen[values] = True
    place = np.cumsum(seen) - 1
    return np.flatnonzero(seen), place[values]
