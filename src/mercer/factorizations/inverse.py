"""P = (SKS + λI)⁻¹ on the complement of the intercept, for ridge regression, without a particular representation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message

__all__ = ["RidgeInverse", "columns", "noise", "partner", "reflection", "subtract_outer"]

Floats = NDArray[np.float64]
BLOCK = 512
"""Rows of a matrix that are updated at a time."""


class RidgeInverse(ABC):
    r"""P(λ) for every λ, from one decomposition of the matrix S K S, S = diag(√w).

    Ridge regression min Σ wᵢ (yᵢ − f(xᵢ) − b)² + λ‖f‖² has f = Σ αᵢ k(·, xᵢ) with S⁻¹α = β = P S y. Without an
    intercept P = (SKS + λI)⁻¹. With an intercept sᵀβ = 0 for s = √w, and P is the inverse on the complement of s: a
    Householder reflection maps s to the last axis, which is then dropped, so that no large numbers are subtracted.

    The model that is fitted without the rows I has the residuals S⁻¹ (P_II)⁻¹ β_I on them. For one row this is
    βᵢ/(√wᵢ Pᵢᵢ). The textbook's (yᵢ − f(xᵢ))/(1 − hᵢᵢ) is the same, as 1 − hᵢᵢ = λPᵢᵢ, but becomes 0/0 if the model
    interpolates, while Pᵢᵢ ≥ 1/(Λ₁ + λ) stays away from 0. A row of weight 2 counts as two rows, left out together.

    Attributes
    ----------
    roots : array of shape (n,)
        √w.
    axis : array of shape (n,) or None
        v of the reflection I − 2vvᵀ; None without intercept.

    References
    ----------
    G. Wahba (1990). Spline models for observational data. SIAM. Chapter 4 (Estimating the smoothing parameter).
    R. M. Rifkin, R. A. Lippert (2007). Notes on regularized least squares. MIT-CSAIL-TR-2007-025.
    """

    roots: Floats
    axis: Floats | None

    @abstractmethod
    def solvable(self, alphas: ArrayLike) -> NDArray[np.bool_]:
        """Whether SKS + λI is positive definite by more than the rounding of its eigenvalues, for each λ."""

    @abstractmethod
    def solve(self, Y: ArrayLike, alphas: ArrayLike) -> Floats:
        """β = P S y, of shape (n, λ, targets)."""

    @abstractmethod
    def diagonal(self, alphas: ArrayLike) -> Floats:
        """Pᵢᵢ, of shape (n, λ)."""

    @abstractmethod
    def blocks(self, rows: NDArray[np.intp], alphas: ArrayLike) -> Iterator[Floats]:
        """P_II of these rows I, for one λ after the other."""

    def solve_and_diagonal(self, Y: ArrayLike, alphas: ArrayLike) -> tuple[Floats, Floats]:
        """The results of `solve` and of `diagonal`."""
        return self.solve(Y, alphas), self.diagonal(alphas)

    @staticmethod
    def answer_bytes(n: int, columns: int) -> int:
        """Bytes of the results for this number of columns, λ × targets."""
        return 8 * n * 3 * columns

    def leave_out(self, rows: NDArray[np.intp], Y: ArrayLike, alphas: ArrayLike, solved: Floats) -> Floats:
        """The predictions for `rows` by the model fitted without them, (rows, λ, targets); `solved` is from `solve`."""
        residuals = solved[rows]
        for i, block in enumerate(self.blocks(rows, alphas)):
            residuals[:, i] = np.linalg.solve(block, residuals[:, i])
        return columns(Y)[rows][:, None, :] - residuals / self.roots[rows, None, None]

    def leave_one_out(self, Y: ArrayLike, alphas: ArrayLike) -> Floats:
        """The predictions for each row by the model that is fitted without it, of shape (n, λ, targets)."""
        errors, diagonal = self.solve_and_diagonal(Y, alphas)
        errors /= (self.roots[:, None] * diagonal)[:, :, None]
        return columns(Y)[:, None, :] - errors

    def generalised(self, Y: ArrayLike, alphas: ArrayLike) -> Floats:
        """n² ‖β‖²/(tr P)²/Σw, of shape (λ, targets): generalised cross-validation, with the mean of all Pᵢᵢ."""
        solved, diagonal = self.solve_and_diagonal(Y, alphas)
        squares, traces = np.sum(solved**2, axis=0), np.sum(diagonal, axis=0)
        return np.asarray(len(self.roots) ** 2 * squares / traces[:, None] ** 2 / np.sum(self.roots**2))

    def _projected(self, Y: ArrayLike) -> Floats:
        """ΠSY with the projection Π on the complement of s."""
        Z = self.roots[:, None] * columns(Y)
        return Z - np.outer(self._unit, self._unit @ Z) if self.axis is not None else Z

    @cached_property
    def _unit(self) -> Floats:
        """s/‖s‖ with an intercept, else 0; Π = I − (s/‖s‖)(s/‖s‖)ᵀ."""
        return np.zeros(len(self.roots)) if self.axis is None else self.roots / np.linalg.norm(self.roots)

    def _positive(self, alphas: ArrayLike, positive: Any, least: float | None = None) -> Floats:
        """The λ as an array; raise InvalidInput unless `positive` holds for the smallest: K + λI is definite then."""
        grid = np.atleast_1d(np.asarray(alphas, np.float64))
        if len(grid) and not positive(grid.min()):
            known = "" if least is None else f" and {least:.3g} as the least eigenvalue of K"
            given = f"α = {grid.min():.3g}{known}"
            do = "give a larger α: K + αI must be positive definite"
            raise InvalidInput(message(type(self).__name__, given, do))
        return grid


def columns(Y: ArrayLike) -> Floats:
    """Y with a column for each target."""
    Y = np.asarray(Y, np.float64)
    return Y[:, None] if Y.ndim == 1 else Y


def noise(n: int, largest: float) -> float:
    """√n ε max|Λ|, the typical rounding error of eigenvalues (the bound is n ε max|Λ|)."""
    return float(np.sqrt(n) * np.finfo(np.float64).eps * largest)


def reflection(s: Floats) -> Floats:
    """v of the reflection I − 2vvᵀ that maps s to the last axis."""
    v = s / np.linalg.norm(s)
    v[-1] += 1.0  # no cancellation, because s is positive
    return np.asarray(v / np.linalg.norm(v))


def partner(image: Floats, v: Floats) -> Floats:
    """w with (I − 2vvᵀ) A (I − 2vvᵀ) = A − vwᵀ − wvᵀ, from Av."""
    return np.asarray(2 * (image - (v @ image) * v))


def subtract_outer(matrix: Floats, u: Floats, v: Floats) -> None:
    """A −= uvᵀ, without another matrix of this size."""
    for start in range(0, len(matrix), BLOCK):
        block = slice(start, start + BLOCK)
        matrix[block] -= np.outer(u[block], v)
