"""The minimum over the variables inside their bounds, which steps on pairs approach slowly if C is large."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray
from scipy.linalg import lapack

__all__ = ["Face", "largest_face", "minimise_on_face"]

Floats = NDArray[np.float64]

largest_face = 1000
"""The system of the variables inside their bounds is factored for at most this many of them."""
_WORK = 3e9
_INCONSISTENT = 1e-7
_DEFINITE = 1e-8
"""Reciprocal condition from which a Cholesky factor serves, which takes a third of the time of a symmetric one."""


@dataclass(frozen=True, eq=False)
class Face:
    """One problem: its matrix (v, v), bounds, ε, the group of each variable, a point β, and the gradient at β."""

    K: NDArray[Any]
    lower: Floats
    upper: Floats
    epsilon: float
    group: NDArray[np.int64]
    beta: Floats
    gradient: Floats

    def free(self, beta: Floats) -> NDArray[np.intp]:
        """The variables inside their bounds and, if ε > 0, not at 0, where ε|β| has no derivative."""
        inside = (beta > self.lower) & (beta < self.upper)
        return np.flatnonzero(inside & (beta != 0) if self.epsilon > 0 else inside)


def minimise_on_face(face: Face) -> tuple[Floats, Floats]:
    """β and its gradient after Newton steps for the free variables, with their sums fixed, as far as the bounds allow.

    A variable that meets its bound stays there, and a new step is computed for the others. If K is singular, the step
    is the shortest one. If the slopes are not in the range of K, the step goes along its null space up to a bound. If
    the objective curves downwards (an indefinite K), β is returned unchanged.
    """
    beta, gradient, work = face.beta.copy(), face.gradient.copy(), 0.0
    while True:
        F = face.free(beta)
        work += float(len(F)) ** 3
        if not 2 <= len(F) <= largest_face or work > _WORK:
            return beta, gradient
        K = np.asarray(face.K[:, F], np.float64)
        slope = gradient[F] - face.epsilon * np.sign(beta[F])
        direction, whole = _direction(K[F], slope, face.group[F])
        change = K @ direction
        if not np.all(np.isfinite(change)) or direction @ change[F] < -_INCONSISTENT * np.abs(slope @ direction):
            return beta, gradient
        length, hit, end = _reach(face, beta[F], direction, F)
        full = whole and length >= 1.0
        step = 1.0 if full else length
        if not np.isfinite(step) or step < 0:
            return beta, gradient
        beta[F] = np.clip(beta[F] + step * direction, face.lower[F], face.upper[F])
        if not full:
            beta[F[hit]] = end
        gradient -= step * change
        if full:
            return beta, gradient


def _direction(H: Floats, slope: Floats, group: NDArray[np.int64]) -> tuple[Floats, bool]:
    """d with Hd + Eμ = slope and Eᵀd = 0, and True; without a solution, d in the null space of H and False.

    If H is well within the positive definite matrices, d = H⁻¹(slope − Eμ) with EᵀH⁻¹E μ = EᵀH⁻¹ slope.
    """
    E = (group[:, None] == np.unique(group)).astype(np.float64)
    e = E.shape[1]
    scale = max(float(np.max(np.abs(np.diagonal(H)))), np.finfo(float).tiny)
    factor, failed = lapack.dpotrf(H / scale, lower=True, clean=False, overwrite_a=True)
    if not failed and lapack.dpocon(factor, np.abs(H).sum(axis=0).max() / scale, uplo="L")[0] > _DEFINITE:
        solved = lapack.dpotrs(factor, np.column_stack([slope, E]), lower=True)[0]
        mu = np.linalg.solve(E.T @ solved[:, 1:], E.T @ solved[:, 0])
        return (solved[:, 0] - solved[:, 1:] @ mu) / scale, True
    system = np.block([[H / scale, E], [E.T, np.zeros((e, e))]])
    right = np.concatenate([slope, np.zeros(e)])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", sl.LinAlgWarning)
            found = sl.solve(system, right, assume_a="sym", check_finite=False)
    except (sl.LinAlgError, sl.LinAlgWarning):
        found = sl.lstsq(system, right, cond=1e-13, check_finite=False)[0]
    rest = right - system @ found
    along = rest[:-e] - E @ (E.T @ rest[:-e] / E.sum(axis=0))
    if np.linalg.norm(along) > _INCONSISTENT * np.linalg.norm(slope - E @ (E.T @ slope / E.sum(axis=0))):
        return along, False
    return found[:-e] / scale, True


def _reach(face: Face, b: Floats, direction: Floats, F: NDArray[np.intp]) -> tuple[float, int, float]:
    """The longest step up to a bound (or 0, if ε > 0), the variable that meets it first, and the value there."""
    high, low = face.upper[F], face.lower[F]
    if face.epsilon > 0:
        high, low = np.where(b < 0, 0.0, high), np.where(b > 0, 0.0, low)
    end = np.where(direction > 0, high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.where(direction != 0, (end - b) / direction, np.inf)
    hit = int(np.argmin(lengths))
    return float(lengths[hit]), hit, float(end[hit])
