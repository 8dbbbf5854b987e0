"""An eigendecomposition that gives the solutions and the leave-one-out errors of ridge regression for every λ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, qr, svd

from mercer.engine.backend import one_blas_thread
from mercer.factorizations.inverse import RidgeInverse, noise, partner, reflection, subtract_outer
from mercer.operators.arrays import require_finite
from mercer.planning import costs

__all__ = ["RidgeSpectrum"]

Floats = NDArray[np.float64]
BLOCK, ENTRIES = 512, 1 << 21
"""Rows of Q that are processed at a time, or more rows with up to this many entries (16 MB)."""


@dataclass(frozen=True, eq=False)
class RidgeSpectrum(RidgeInverse):
    r"""P(λ) = Q diag(1/(Λ + λ)) Qᵀ, with QΛQᵀ the matrix S K S, S = diag(√w), on the complement of the intercept.

    `RidgeInverse` explains the use of P.

    Attributes
    ----------
    values : array of shape (r,)
        Λ, ascending; eigenvalues below the rounding error are set to 0.
    vectors : array of shape (m, r)
        The eigenvectors of SKS after the reflection, m = n or n − 1.
    roots : array of shape (n,)
        √w.
    axis : array of shape (n,) or None
        v of the reflection I − 2vvᵀ; None without intercept.
    n_zeros : int
        The number m − r of further eigenvalues, which are 0 and have no stored vectors. Then P = Q diag(1/(Λ + λ) −
        1/λ) Qᵀ + Π/λ with the projection Π on the complement of s.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 6)
    >>> spectrum = RidgeSpectrum.of(np.minimum.outer(x, x) + 1.0)
    >>> predicted = spectrum.leave_one_out(x**2, [0.1])[:, 0, 0]
    >>> K = np.minimum.outer(x[1:], x[1:]) + 1.0  # a fit without the first row
    >>> bool(np.isclose(predicted[0], np.ones(5) @ np.linalg.solve(K + 0.1 * np.eye(5), x[1:] ** 2)))
    True
    """

    values: Floats
    vectors: Floats
    roots: Floats
    axis: Floats | None = None
    n_zeros: int = 0

    @classmethod
    def of(cls, matrix: Floats, weights: ArrayLike | None = None, *, intercept: bool = False) -> RidgeSpectrum:
        """Decompose a kernel matrix (C-contiguous, float64), which is overwritten, with positive weights (or 1)."""
        matrix, roots = _weighted(matrix, weights)
        axis = None
        if intercept:
            matrix, axis = _mirrored(matrix, roots)
            matrix = _without_last(matrix)
        if not len(matrix):
            return cls(np.empty(0), np.empty((0, 0)), roots, axis)
        # The transpose of a symmetric row-major matrix is the matrix in LAPACK's order, which LAPACK can overwrite.
        with one_blas_thread(costs.eigen_operations(len(matrix))):
            values, vectors = eigh(matrix.T, overwrite_a=True, check_finite=False, driver="evd")
        return cls(np.where(np.abs(values) <= _rounding(values), 0.0, values), vectors, roots, axis)

    @classmethod
    def of_factor(cls, F: Floats, weights: ArrayLike | None = None, *, intercept: bool = False) -> RidgeSpectrum:
        """Decompose K = FFᵀ for an F of shape (n, r), r < n, which is overwritten and may be in a file, in O(n r²).

        F = U Σ Vᵀ is from the triangular factor of F, which grows block by block, so that F is read twice.

        Examples
        --------
        >>> F = np.random.default_rng(0).standard_normal((9, 2))
        >>> low, full = RidgeSpectrum.of_factor(F.copy()), RidgeSpectrum.of(F @ F.T)
        >>> bool(np.allclose(low.leave_one_out(F[:, 0] ** 2, 0.1), full.leave_one_out(F[:, 0] ** 2, 0.1)))
        True
        """
        roots = np.ones(len(F)) if weights is None else np.sqrt(np.asarray(weights, np.float64))
        axis = reflection(roots) if intercept else None
        along = None if axis is None else (axis * roots) @ F
        R, last = np.empty((0, F.shape[1])), len(F) - (axis is not None)
        for block in _row_blocks(len(F), F.shape[1]):
            F[block] *= roots[block, None]
            if axis is not None and along is not None:
                F[block] -= 2 * np.outer(axis[block], along)
            R = qr(np.concatenate([R, F[block][: last - block.start]]), mode="r", check_finite=False)[0]
            R = R[: F.shape[1]]
        with one_blas_thread(costs.eigen_operations(len(R))):
            _, singular, Vt = svd(R, full_matrices=False, check_finite=False)
        singular = singular[singular > len(Vt) * np.finfo(np.float64).eps * np.max(singular, initial=0.0)]
        back = np.ascontiguousarray((Vt[: len(singular)].T / singular)[:, ::-1])
        F = F[:last]
        for block in _row_blocks(last, F.shape[1]):
            F[block, : len(singular)] = F[block] @ back
        return cls(singular[::-1] ** 2, F[:, : len(singular)], roots, axis, last - len(singular))

    @staticmethod
    def bytes(n: int) -> int:
        """The peak memory of `of`: the matrix, and two more for LAPACK."""
        return 3 * 8 * n * n

    def solvable(self, alphas: ArrayLike) -> NDArray[np.bool_]:
        return np.asarray(self._least + np.asarray(alphas, np.float64) > _rounding(self.values))

    def solve(self, Y: ArrayLike, alphas: ArrayLike) -> Floats:
        scales, floor = self._parts(alphas)
        Z = self._projected(Y)
        coordinates = scales.T[:, :, None] * self._coordinates(Z)[:, None, :]  # (r, λ, targets)
        out = np.empty((len(self.roots), len(floor), Z.shape[1]))
        for block, Q in self._blocks():
            out[block] = np.tensordot(Q, coordinates, axes=1)
            if self.n_zeros:
                out[block] += floor[:, None] * Z[block, None, :]
        return out

    def diagonal(self, alphas: ArrayLike) -> Floats:
        """Pᵢᵢ = Σₖ qᵢₖ²/(Λₖ + λ), of shape (n, λ)."""
        scales, floor = self._parts(alphas)
        out = np.empty((len(self.roots), len(floor)))
        for block, Q in self._blocks():
            out[block] = np.square(Q) @ scales.T
        return out + np.outer(1 - self._unit**2, floor) if self.n_zeros else out

    def blocks(self, rows: NDArray[np.intp], alphas: ArrayLike) -> Iterator[Floats]:
        Q, s = self.rows(rows), self._unit[rows]
        projection = np.eye(len(rows)) - np.outer(s, s)
        for scale, floor in zip(*self._parts(alphas), strict=True):
            yield (Q * scale) @ Q.T + floor * projection

    def rows(self, index: Any) -> Floats:
        """Q[index]."""
        if self.axis is None:
            return np.asarray(self.vectors[index])
        own = np.arange(len(self.roots))[index]
        full, inner = np.zeros((len(own), len(self.values))), own < len(self.vectors)
        full[inner] = self.vectors[own[inner]]
        return full - 2 * np.outer(self.axis[own], self._along)

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        for block in _row_blocks(len(self.roots), len(self.values)):
            yield block, self.rows(block)

    def _reflected(self, Z: Floats) -> Floats:
        """Z after the reflection, in the coordinates of `vectors`."""
        return Z if self.axis is None else (Z - 2 * np.outer(self.axis, self.axis @ Z))[:-1]

    def _coordinates(self, Z: Floats) -> Floats:
        """QᵀZ."""
        return np.asarray(self.vectors.T @ self._reflected(Z))

    @cached_property
    def _along(self) -> Floats:
        """vᵀ times `vectors`."""
        assert self.axis is not None
        return np.asarray(self.axis[:-1] @ self.vectors)

    @property
    def _least(self) -> float:
        """The least eigenvalue."""
        return 0.0 if self.n_zeros or not len(self.values) else float(self.values[0])

    def _parts(self, alphas: ArrayLike) -> tuple[Floats, Floats]:
        """D of shape (λ, r) and c of shape (λ,) with P = Q diag(D) Qᵀ + cΠ."""
        least = self._least
        grid = self._positive(alphas, lambda alpha: not self.vectors.size or least + alpha > 0, least)[:, None]
        if self.n_zeros:
            return -self.values / (grid * (self.values + grid)), 1 / grid[:, 0]
        return 1 / (self.values + grid), np.zeros(len(grid))


def _row_blocks(n: int, width: int) -> Iterator[slice]:
    """Some rows after the others, of so many columns."""
    height = max(BLOCK, ENTRIES // max(width, 1))
    return (slice(start, start + height) for start in range(0, n, height))


def _rounding(values: Floats) -> float:
    return noise(len(values), float(np.max(np.abs(values), initial=0.0)))


def _weighted(matrix: Floats, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    """SKS in K's memory, and √w."""
    require_finite(np.sum(matrix), "RidgeSpectrum")  # a sum needs no memory
    if weights is None:
        return matrix, np.ones(len(matrix))
    roots = np.sqrt(np.asarray(weights, np.float64))
    matrix *= roots
    matrix *= roots[:, None]
    return matrix, roots


def _mirrored(matrix: Floats, s: Floats) -> tuple[Floats, Floats]:
    """(I − 2vvᵀ) A (I − 2vvᵀ) in A's memory, with the v that maps s to the last axis, and v."""
    v = reflection(s)
    w = partner(matrix @ v, v)
    subtract_outer(matrix, v, w)
    subtract_outer(matrix, w, v)
    return matrix, v


def _without_last(matrix: Floats) -> Floats:
    """The matrix without its last row and column, in its memory."""
    n = len(matrix)
    packed = matrix.reshape(-1)[: (n - 1) ** 2].reshape(n - 1, n - 1)
    for i in range(1, n - 1):  # each row moves towards the start, where rows are moved already
        packed[i] = matrix[i, :-1]
    return packed
