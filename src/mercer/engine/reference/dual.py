"""Sequential minimal optimisation in NumPy: the reference of ``_core.smo``, but without its shrinking."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.engine.opcodes import LEAST_CURVATURE, SmoStatus

__all__ = ["smo"]


def smo(
    *,
    matrix: Any,
    offset: Any,
    split: Any,
    row: Any,
    lower: Any,
    upper: Any,
    epsilon: float,
    beta: Any,
    gradient: Any,
    anchor: Any,
    anchor_gradient: Any,
    active: Any,
    tol: float,
    limit: int,
    work: int,
    cache: int,
    gap: Any,
    steps: Any,
    ended: Any,
    isa: str = "",
) -> None:
    """min ½βᵀKβ − cᵀβ + epsilon‖β‖₁ over lower ≤ β ≤ upper with the sum of each group fixed, for problems of one K.

    Parameters
    ----------
    matrix : array of shape (n, n), float32 or float64, or tiles
        K.
    offset : integers of shape (p + 1,)
        The variables of problem q are offset[q] to offset[q + 1]; those from split[q] on are its second group.
    split : integers of shape (p,)
    row : integers
        The row of K for which each variable stands.
    lower, upper : arrays
    epsilon : float
    beta, gradient : arrays
        The point, and c − Kβ; both are updated in place. Entries of the gradient where `active` is 0 are out of date:
        they are recomputed from `anchor_gradient`, the gradient at the point `anchor`.
    tol : float
        A problem ends if m − M ≤ tol, with the largest slope upwards m and the smallest slope downwards M.
    limit, work, cache : int
        The most steps of a problem in all its calls; the entries that it may visit in this call; bytes for cached rows.
    gap, steps, ended : arrays of shape (p,)
        m − M, the number of steps, and the `SmoStatus`; a problem that has ended is not changed.
    """
    matrix = matrix if isinstance(matrix, np.ndarray) else _made(matrix)
    for q in np.flatnonzero(np.asarray(ended) == SmoStatus.RUNNING).tolist():
        some = slice(offset[q], offset[q + 1])
        one = _Problem(matrix, row[some], lower[some], upper[some], epsilon, beta[some], gradient[some])
        stale = active[some] == 0
        if stale.any():
            change = one.times(one.beta - anchor[some])
            one.gradient[stale] = (anchor_gradient[some] - change)[stale]
            active[some] = 1
        one.run(int(split[q] - offset[q]), tol, limit, work, q, gap, steps, ended)


def _made(tiles: Any) -> Any:
    """The entries of tiles."""
    out = np.empty((tiles.rows, tiles.columns))
    tiles.block(0, tiles.rows, 0, tiles.columns, out=out)
    return out


class _Problem:
    """One of the problems; its arrays are views of the batch's arrays."""

    def __init__(self, K: Any, row: Any, lower: Any, upper: Any, epsilon: float, beta: Any, gradient: Any) -> None:
        self.K, self.row, self.lower, self.upper, self.epsilon = K, row, lower, upper, epsilon
        self.beta, self.gradient = beta, gradient
        self.diagonal = K[row, row].astype(np.float64)

    def times(self, v: Any) -> Any:
        out, some = np.zeros(len(v)), np.flatnonzero(v).tolist()
        for t in some:
            out += v[t] * self.column(t)
        return out

    def column(self, t: int) -> Any:
        return self.K[self.row[t], self.row].astype(np.float64)

    def slopes(self) -> tuple[Any, Any]:
        """The slopes upwards, −∞ at the upper bound, and downwards, ∞ at the lower bound; both include that of ε|β|."""
        g, b = self.gradient, self.beta
        up = np.where(b < self.upper, g + np.where(b < 0, self.epsilon, -self.epsilon), -np.inf)
        low = np.where(b > self.lower, g + np.where(b > 0, -self.epsilon, self.epsilon), np.inf)
        return up, low

    def run(self, split: int, tol: float, limit: int, work: int, q: int, gap: Any, steps: Any, ended: Any) -> None:
        groups = [slice(0, split), slice(split, len(self.beta))]
        groups = [g for g in groups if g.stop > g.start]
        visited = 0
        while True:
            up, low = self.slopes()
            gap[q] = max((up[g].max() - low[g].min() for g in groups), default=-np.inf)
            if not gap[q] > tol:
                ended[q] = SmoStatus.SETTLED
            elif steps[q] >= limit:
                ended[q] = SmoStatus.CAPPED
            elif visited < work:
                if self.step(groups, up, low):
                    steps[q] += 1
                    visited += 2 * len(self.beta)
                    continue
                ended[q] = SmoStatus.STUCK
            return

    def step(self, groups: list[slice], up: Any, low: Any) -> bool:
        """Move the pair that gains most with the largest slope of a group; False if that changes nothing."""
        best, pair = -1.0, (-1, -1)
        for g in groups:
            i = g.start + int(up[g].argmax())
            d = np.maximum(up[i] - low[g], 0.0)
            eta = self.diagonal[i] + self.diagonal[g] - 2 * self.column(i)[g]
            score = d * d / np.where(eta > LEAST_CURVATURE, eta, LEAST_CURVATURE)
            j = g.start + int(score.argmax() if score.max() > 0 else low[g].argmin())
            if up[i] > low[g].min() and score.max() > best:
                best, pair = score.max(), (i, j)
        i, j = pair
        return i >= 0 and i != j and self.move(i, j, up[i] - low[j])

    def move(self, i: int, j: int, slope: float) -> bool:
        a, b = self.column(i), self.column(j)
        eta = self.diagonal[i] + self.diagonal[j] - 2 * a[j]
        bi, bj = self.beta[i], self.beta[j]
        end_i = 0.0 if self.epsilon > 0 and bi < 0 else self.upper[i]
        end_j = 0.0 if self.epsilon > 0 and bj > 0 else self.lower[j]
        delta = min(slope / (eta if eta > 0 else LEAST_CURVATURE), end_i - bi, bj - end_j)
        self.beta[i] = end_i if delta == end_i - bi else min(bi + delta, end_i)
        self.beta[j] = end_j if delta == bj - end_j else max(bj - delta, end_j)
        self.gradient -= delta * (a - b)
        return not (self.beta[i] == bi and self.beta[j] == bj)
