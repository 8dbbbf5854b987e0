"""The duals of support vector machines: quadratic problems with bounds and a fixed sum, several on one matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.former_names import present_fields
from mercer.operators import CachedRows, Operator
from mercer.solvers.base import require_symmetric

__all__ = ["DualBatch", "DualPoint"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROUNDING = 1e-11
"""A variable within this share of a problem's largest |β| from its bound counts as at the bound."""
AT_ONCE = 1 << 20
"""Entries in float64 that are computed once for all blocks: of a block's product so few cost less than its start."""


@dataclass(frozen=True, eq=False)
class DualPoint:
    """β of all variables, their gradient c − Kβ, and m − M of each problem, in float64.

    Attributes
    ----------
    beta, gradient : arrays of shape (v,)
    gaps : array of shape (p,)
    """

    beta: Floats
    gradient: Floats
    gaps: Floats


@dataclass(frozen=True, eq=False)
class DualBatch:
    r"""min ½βᵀKβ − cᵀβ + ε‖β‖₁ over a ≤ β ≤ b with Σβ fixed: problems that share the matrix A, K = A[rows][:, rows].

    With β = y∘α this is LIBSVM's min ½αᵀQα + pᵀα, yᵀα = const, 0 ≤ α ≤ C. The arrays hold the variables of all problems
    one after the other. `start` fixes Σβ. A problem may have a second group of variables with a sum of its own, as the
    ν-variants do.

    Parameters
    ----------
    A : Operator of shape (n, n), symmetric
        Its entries may be in float32.
    linear, lower, upper, start : arrays of shape (v,)
        c, a, b, and the first β, which meets the constraints.
    rows : integers of shape (v,)
        The row of A that each variable belongs to.
    offset : integers of shape (p + 1,)
        Problem q has the variables offset[q] to offset[q + 1].
    split : integers of shape (p,), optional
        The first variable of each problem's second group.
    epsilon : float
        ε.
    blocks : integers of shape (n,), optional
        Rows with the same number occur in the same problems. Products with the exact matrix are grouped by them.
    exact : Operator, optional
        A in float64, for recomputed gradients; A itself by default.

    Raises
    ------
    InvalidInput
        If the arrays differ in length, or the start is not between the bounds.
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
        v = len(self.linear)
        sizes = {len(one) for one in (self.lower, self.upper, self.start, self.rows)} | {int(self.offset[-1])}
        require_symmetric("DualBatch", self.A)
        if sizes != {v}:
            given = f"arrays of {sorted(sizes | {v})} variables"
            raise InvalidInput(message("DualBatch", given, "give arrays of one length, the last offset"))
        inside = (self.lower <= self.start) & (self.start <= self.upper) & (self.lower < self.upper)
        if not np.all(inside):
            given = f"a start outside its bounds for {np.count_nonzero(~inside)} variables"
            raise InvalidInput(message("DualBatch", given, "give lower < upper and a start between them"))

    @property
    def problems(self) -> int:
        """The number of problems."""
        return len(self.offset) - 1

    @property
    def reference(self) -> Operator:
        """The operator that defines the residual."""
        return self.A if self.exact is None else self.exact

    @cached_property
    def splits(self) -> Integers:
        """The first variable of each problem's second group; the problem's end if it has none."""
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
        """Problem q alone on the rows that it needs, and the indices of these rows."""
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
        """Kβ of each problem in float64, block by block of rows, for all problems of a block at once.

        A small matrix is computed as a whole: to begin a block takes longer than its entries.
        """
        out, n = np.zeros(len(beta)), self.A.shape[0]
        if not np.any(beta):
            return out
        used = np.flatnonzero(beta)
        kept, place = _distinct(self.rows[used], n)
        if self.problems == 1:
            rows, row = _distinct(self.rows, n)
            return operator.block_times(rows, kept, np.bincount(place, beta[used], len(kept))[:, None])[row, 0]
        block = np.zeros(n, np.int64) if self.blocks is None else self.blocks
        of_variable = block[self.rows]
        order = np.argsort(of_variable, kind="stable")
        whole = self.blocks is not None and n * len(kept) <= AT_ONCE
        K = operator.block(np.arange(n), kept) if whole else None
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
                V = V.reshape(shape)
                if K is None:
                    found = operator.block_times(rows, support, V)
                else:
                    found = K[np.ix_(rows, np.searchsorted(kept, support))] @ V
                out[some] = found[place, column]
        return out

    def gradient(self, beta: Floats) -> Floats:
        """c − Kβ by the exact operator, which then releases its memory, because the steps use A."""
        found = np.asarray(self.linear - self.times(self.reference, beta))
        if self.reference is not self.A:
            self.reference.release()
        return found

    def slopes(self, beta: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        """The slopes of the objective upwards (−∞ at b) and downwards (∞ at a), both with the slope of ε|β|."""
        up = low = gradient
        if self.epsilon:
            up = gradient + np.where(beta < 0, self.epsilon, -self.epsilon)
            low = gradient + np.where(beta > 0, -self.epsilon, self.epsilon)
        return np.where(beta < self.upper, up, -np.inf), np.where(beta > self.lower, low, np.inf)

    def extremes(self, beta: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        """m and M of each of the 2p groups: the largest slope upwards and the smallest one downwards."""
        up, low = self.slopes(beta, gradient)
        top, bottom = np.full(2 * self.problems, -np.inf), np.full(2 * self.problems, np.inf)
        np.maximum.at(top, self.group, up)
        np.minimum.at(bottom, self.group, low)
        return top, bottom

    def gaps(self, beta: Floats, gradient: Floats) -> Floats:
        """m − M of each problem; at most 0 at the optimum."""
        if not len(beta):
            return np.zeros(self.problems)
        top, bottom = self.extremes(beta, gradient)
        return np.asarray((top - bottom).reshape(-1, 2).max(axis=1))

    def residual(self, x: DualPoint) -> float:
        """The largest m − M, by the operator in float64; 0 if it is negative."""
        gaps = self.gaps(x.beta, self.gradient(x.beta))
        return float(np.max(np.maximum(gaps, 0.0) if not np.any(np.isnan(gaps)) else np.nan, initial=0.0))

    # ---- multipliers and objectives of an answer --------------------------------------------------------------------

    def multipliers(self, x: DualPoint) -> Floats:
        """The multiplier of each group's sum: the mean slope of the variables inside their bounds.

        If a group has no such variable, its multiplier is the mean of m and M, as in LIBSVM, and 0 if the group is
        empty. A variable within rounding of a bound counts as at the bound.
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
        """β, in which each variable within rounding of a bound, or of 0, has that value."""
        largest = np.zeros(self.problems)
        np.maximum.at(largest, self.owner, np.abs(beta))
        near = ROUNDING * largest[self.owner]
        for end in (self.lower, self.upper, 0.0)[: 3 if self.epsilon else 2]:
            beta = np.where(np.abs(beta - end) <= near, end, beta)
        return beta

    def objectives(self, x: DualPoint) -> Floats:
        """½βᵀKβ − cᵀβ + ε‖β‖₁ of each problem."""
        terms = -0.5 * x.beta * (self.linear + x.gradient) + self.epsilon * np.abs(x.beta)
        return np.asarray(np.bincount(self.owner, terms, self.problems))

    def duality_gaps(self, x: DualPoint) -> Floats:
        """Primal minus dual objective of each problem, with the intercept of `multipliers`: a bound on the error."""
        slope = x.gradient - self.multipliers(x)[self.group]

        def gain(z: Floats) -> Floats:
            return np.asarray(slope * z - self.epsilon * np.abs(z))

        best = np.maximum(gain(self.lower), gain(self.upper))
        best = np.where((self.lower <= 0) & (self.upper >= 0), np.maximum(best, 0.0), best)
        return np.asarray(np.bincount(self.owner, np.maximum(best - gain(x.beta), 0.0), self.problems))


def _distinct(values: NDArray[Any], size: int) -> tuple[Integers, Integers]:
    """The distinct values of some integers below `size`, in order, and the index of each value among them."""
    seen = np.zeros(size, bool)
    seen[values] = True
    place = np.cumsum(seen) - 1
    return np.flatnonzero(seen), place[values]
