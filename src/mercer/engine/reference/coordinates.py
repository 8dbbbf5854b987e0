"""Dual coordinate descent in NumPy: the reference of ``_core.coordinates``."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["coordinates"]

MASK = (1 << 64) - 1


def coordinates(
    *,
    features: Any,
    square: Any,
    offset: Any,
    row: Any,
    linear: Any,
    lower: Any,
    upper: Any,
    epsilon: float,
    beta: Any,
    w: Any,
    order: Any,
    place: Any,
    level: Any,
    random: Any,
    tol: Any,
    work: int,
    ended: Any,
    isa: str = "",
) -> None:
    """min ½‖w‖² − cᵀβ + epsilon‖β‖₁ over lower ≤ β ≤ upper, w = Σ βₜxₜ, for problems on rows of one matrix.

    Parameters
    ----------
    features : array of shape (n, m), float32 or float64
    square : array of shape (n,)
        ‖x‖² of each row.
    offset : integers of shape (p + 1,)
        The variables of problem q are offset[q] to offset[q + 1].
    row : integers
        The row of the features that belongs to each variable.
    linear, lower, upper : arrays
        c and the bounds.
    epsilon : float
    beta, w : arrays; w of shape (p, m)
        The point, which is updated in place.
    order : integers
        A permutation of each problem's variables, the active ones first; updated in place.
    place : integers of shape (p, 3)
        The number of active variables, how many of these were visited in this pass, and the number of passes.
    level : array of shape (p, 2)
        The largest violation in this pass and in the last one.
    random : integers of shape (p,)
        The states of the random generators.
    tol : array of shape (p,)
        A problem ends if the largest violation in a pass over all its variables is at most this. The violation of a
        variable is how far its slope is on the wrong side of 0.
    work : int
        How many variables of each problem one call may visit.
    ended : integers of shape (p,)
        1 for a problem that has ended; the call does not change it.
    """
    for p in range(len(tol)):
        if not ended[p]:
            _descend(
                features, square, row[offset[p] : offset[p + 1]], linear[offset[p] : offset[p + 1]],
                lower[offset[p] : offset[p + 1]], upper[offset[p] : offset[p + 1]], epsilon,
                beta[offset[p] : offset[p + 1]], w[p], order[offset[p] : offset[p + 1]], place[p], level[p],
                random[p : p + 1], float(tol[p]), work, ended[p : p + 1],
            )  # fmt: skip


def _descend(
    features: Any, square: Any, row: Any, linear: Any, lower: Any, upper: Any, epsilon: float, beta: Any, w: Any,
    order: Any, place: Any, level: Any, random: Any, tol: float, work: int, ended: Any,
) -> None:  # fmt: skip
    state = int(random[0]) & MASK
    for _ in range(work):
        if ended[0]:
            break
        active, at = int(place[0]), int(place[1])
        if at >= active:  # the pass has ended
            done = level[0] <= tol
            ended[0] = done and active == len(row)
            place[:] = len(row) if done else active, 0, place[2] + 1
            level[:] = 0.0, np.inf if done else level[0]
            continue
        state, bits = _next_random(state)
        other = at + (bits >> 11) % (active - at)
        order[at], order[other] = order[other], order[at]
        t = order[at]
        x, b = features[row[t]].astype(np.float64), float(beta[t])
        slope = float(w @ x) - float(linear[t])
        rise, fall = slope + (-epsilon if b < 0 else epsilon), slope + (epsilon if b > 0 else -epsilon)
        if (b >= upper[t] or rise > level[1]) and (b <= lower[t] or fall < -level[1]):  # deactivate the variable
            place[0] = active - 1
            order[at], order[active - 1] = order[active - 1], order[at]
            continue
        violation = max(-rise if b < upper[t] else 0.0, fall if b > lower[t] else 0.0)
        level[0], place[1] = max(level[0], violation), at + 1
        if violation > 0:
            to = _minimum(float(square[row[t]]), b, slope, epsilon, float(lower[t]), float(upper[t]))
            w += (to - b) * x
            beta[t] = to
    random[0] = state - (1 << 64) if state >> 63 else state


def _minimum(square: float, b: float, slope: float, epsilon: float, lower: float, upper: float) -> float:
    """The minimum along one variable, between its bounds."""
    pull = square * b - slope
    to = pull - epsilon if pull > epsilon else pull + epsilon if pull < -epsilon else 0.0
    if square > 0:
        to /= square
    else:
        to = upper if to > 0 else lower if to < 0 else b
    return min(max(to, lower), upper)


def _next_random(state: int) -> tuple[int, int]:
    """The next state and 64 random bits of the generator splitmix64."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)
