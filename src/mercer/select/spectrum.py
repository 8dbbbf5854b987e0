"""One eigendecomposition from which ridge regression is solved, and judged without the row it predicts, for every λ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from mercer.errors import InvalidInput, message

__all__ = ["RidgeSpectrum"]

Floats = NDArray[np.float64]
BLOCK = 512
"""Rows of Q that are squared or mirrored at a time: 20 MB at n = 5000."""


@dataclass(frozen=True, eq=False)
class RidgeSpectrum:
    r"""P(λ) = Q diag(1/(Λ + λ)) Qᵀ, with QΛQᵀ the matrix S K S, S = diag(√w), on the complement of the intercept.

    Ridge regression min Σ wᵢ (yᵢ − f(xᵢ) − b)² + λ‖f‖² has f = Σ αᵢ k(·, xᵢ) with S⁻¹α = β = P S y. Without an
    intercept P = (SKS + λI)⁻¹. With one, sᵀβ = 0 for s = √w, and P is the inverse on the complement of s: a Householder
    reflection takes s to the last axis, which is then left out, so that nothing large is ever subtracted.

    The model that never saw the rows I has there the residuals S⁻¹ (P_II)⁻¹ β_I. For one row that is βᵢ/(√wᵢ Pᵢᵢ), the
    textbook's (yᵢ − f(xᵢ))/(1 − hᵢᵢ) without its 0/0 where the model interpolates: 1 − hᵢᵢ = λPᵢᵢ, and Pᵢᵢ ≥ 1/(Λ₁ + λ)
    stays away from 0. A row of weight 2 is two rows, left out together.

    Attributes
    ----------
    values : array of shape (m,)
        Λ, ascending, m = n or n − 1; eigenvalues that are 0 but for rounding are 0.
    vectors : array of shape (m, m)
        Of SKS after the reflection.
    roots : array of shape (n,)
        √w.
    axis : array of shape (n,) or None
        v of the reflection I − 2vvᵀ; None without intercept.

    References
    ----------
    G. Wahba (1990). Spline models for observational data. SIAM. Chapter 4.
    R. M. Rifkin, R. A. Lippert (2007). Notes on regularized least squares. MIT-CSAIL-TR-2007-025.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 6)
    >>> spectrum = RidgeSpectrum.of(np.minimum.outer(x, x) + 1.0)
    >>> predicted = spectrum.leave_one_out(x**2, [0.1])[:, 0, 0]
    >>> K = np.minimum.outer(x[1:], x[1:]) + 1.0  # without the first row, honestly
    >>> bool(np.isclose(predicted[0], np.ones(5) @ np.linalg.solve(K + 0.1 * np.eye(5), x[1:] ** 2)))
    True
    """

    values: Floats
    vectors: Floats
    roots: Floats
    axis: Floats | None = None

    @classmethod
    def of(cls, matrix: Floats, weights: ArrayLike | None = None, *, intercept: bool = False) -> RidgeSpectrum:
        """Of the kernel matrix, which is overwritten (C-contiguous, float64), and positive weights (1 by default)."""
        n = len(matrix)
        roots = np.ones(n) if weights is None else np.sqrt(np.asarray(weights, np.float64))
        if weights is not None:
            matrix *= roots
            matrix *= roots[:, None]
        axis = None
        if intercept:
            matrix, axis = _deflated(matrix, roots)
        if not len(matrix):
            return cls(np.empty(0), np.empty((0, 0)), roots, axis)
        # The transpose of a symmetric row-major matrix is itself, in the order that LAPACK overwrites.
        values, vectors = eigh(matrix.T, overwrite_a=True, check_finite=False, driver="evd")
        noise = _noise(values)
        return cls(np.where(np.abs(values) <= noise, 0.0, values), vectors, roots, axis)

    @staticmethod
    def bytes(n: int, columns: int = 1) -> int:
        """What `of` takes at its peak (the matrix and LAPACK's two more), or the answers for so many λ × targets."""
        return 8 * n * max(3 * n, n + 3 * columns + 2 * BLOCK)

    def solvable(self, alphas: ArrayLike) -> NDArray[np.bool_]:
        """Where SKS + λI is positive definite by more than the rounding of its eigenvalues."""
        least = self.values[0] if len(self.values) else 0.0
        return np.asarray(least + np.asarray(alphas, np.float64) > _noise(self.values))

    def solve(self, Y: ArrayLike, alphas: ArrayLike) -> Floats:
        """β = P S y, of shape (n, λ, targets)."""
        inverses = self._inverses(alphas)
        coordinates = inverses.T[:, :, None] * self._coordinates(Y)[:, None, :]  # (m, λ, targets)
        flat = coordinates.reshape(len(self.values), -1)
        out = np.empty((len(self.roots), flat.shape[1]))
        for block, Q in self._blocks():
            out[block] = Q @ flat
        return out.reshape(len(self.roots), *coordinates.shape[1:])

    def diagonal(self, alphas: ArrayLike) -> Floats:
        """Pᵢᵢ = Σₖ qᵢₖ²/(Λₖ + λ), of shape (n, λ)."""
        inverses = self._inverses(alphas).T
        out = np.empty((len(self.roots), inverses.shape[1]))
        for block, Q in self._blocks():
            out[block] = np.square(Q) @ inverses
        return out

    def leave_one_out(self, Y: ArrayLike, alphas: ArrayLike) -> Floats:
        """What the model fitted without a row predicts for it, of shape (n, λ, targets)."""
        errors = self.solve(Y, alphas)
        errors /= (self.roots[:, None] * self.diagonal(alphas))[:, :, None]
        return _columns(Y)[:, None, :] - errors

    def leave_out(self, rows: NDArray[np.intp], Y: ArrayLike, alphas: ArrayLike, solved: Floats) -> Floats:
        """What the model fitted without `rows` predicts for them, (rows, λ, targets); `solved` is what `solve` gave."""
        Q, inverses, predicted = self.rows(rows), self._inverses(alphas), solved[rows]
        for i, inverse in enumerate(inverses):
            half = Q * np.sqrt(inverse)
            predicted[:, i] = np.linalg.solve(half @ half.T, predicted[:, i])
        return _columns(Y)[rows][:, None, :] - predicted / self.roots[rows, None, None]

    def generalised(self, Y: ArrayLike, alphas: ArrayLike) -> Floats:
        """n² ‖β‖²/(tr P)²/Σw, of shape (λ, targets): generalised cross-validation, all Pᵢᵢ taken as their mean."""
        inverses = self._inverses(alphas)
        squares = np.square(inverses) @ np.square(self._coordinates(Y))  # ‖β‖², for Q has orthonormal columns
        n, traces = len(self.roots), inverses.sum(axis=1)
        return np.asarray(n**2 * squares / traces[:, None] ** 2 / np.sum(self.roots**2))

    def rows(self, index: Any) -> Floats:
        """Q[index]."""
        if self.axis is None:
            return np.asarray(self.vectors[index])
        full = np.zeros((len(self.roots[index]), len(self.values)))
        own = np.arange(len(self.roots))[index]
        inner = own < len(self.values)
        full[inner] = self.vectors[own[inner]]
        along = self.axis[:-1] @ self.vectors
        full -= 2 * np.outer(self.axis[own], along)
        return full

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        for start in range(0, len(self.roots), BLOCK):
            block = slice(start, start + BLOCK)
            yield block, self.rows(block)

    def _coordinates(self, Y: ArrayLike) -> Floats:
        """QᵀSY."""
        Z = self.roots[:, None] * _columns(Y)
        if self.axis is not None:
            Z = (Z - 2 * np.outer(self.axis, self.axis @ Z))[:-1]
        return np.asarray(self.vectors.T @ Z)

    def _inverses(self, alphas: ArrayLike) -> Floats:
        """1/(Λ + λ), of shape (λ, m)."""
        grid = np.atleast_1d(np.asarray(alphas, np.float64))
        if len(self.values) and not self.values[0] + grid.min(initial=np.inf) > 0:
            given = f"λ = {grid.min():.3g} and {self.values[0]:.3g} as the least eigenvalue of K"
            raise InvalidInput(message("RidgeSpectrum", given, "give a larger λ: K + λI must be positive definite"))
        return np.asarray(1 / (self.values + grid[:, None]))


def _noise(values: Floats) -> float:
    """√n ε max|Λ|: what the eigenvalues' rounding amounts to (at worst it is n ε max|Λ|)."""
    return float(np.sqrt(len(values)) * np.finfo(np.float64).eps * np.max(np.abs(values), initial=0.0))


def _columns(Y: ArrayLike) -> Floats:
    Y = np.asarray(Y, np.float64)
    return Y[:, None] if Y.ndim == 1 else Y


def _deflated(matrix: Floats, s: Floats) -> tuple[Floats, Floats]:
    """(I − 2vvᵀ) A (I − 2vvᵀ) without its last row and column, in A's memory, and the v that takes s to that axis."""
    n = len(s)
    v = s / np.linalg.norm(s)
    v[-1] += 1.0  # s is positive: no cancellation
    v /= np.linalg.norm(v)
    Av = matrix @ v
    w = 2 * (Av - (v @ Av) * v)
    for start in range(0, n, BLOCK):
        block = slice(start, start + BLOCK)
        matrix[block] -= np.outer(v[block], w)
        matrix[block] -= np.outer(w[block], v)
    packed = matrix.reshape(-1)[: (n - 1) ** 2].reshape(n - 1, n - 1)
    for i in range(1, n - 1):  # each row moves towards the start, over what has been moved already
        packed[i] = matrix[i, :-1]
    return packed, v
