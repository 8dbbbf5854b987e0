"""K = QBQᵀ with a band matrix B: predictions for rows that are left out, for many λ, without eigenvectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.engine.backend import engine, one_blas_thread
from mercer.engine.opcodes import BAND
from mercer.factorizations.inverse import RidgeInverse, noise, partner, reflection, subtract_outer
from mercer.operators import Operator, estimate_norm
from mercer.operators.arrays import require_finite

__all__ = ["RidgeBand"]

Floats = NDArray[np.float64]
TILES, LEAST, SHIFTS = 1 << 21, 32, 8
"""A call computes about as many columns of Q as need TILES tiles of reflectors, but at least LEAST blocks of them,
because threads wait for each other at its end. A call factors SHIFTS values of λ."""
ENTRIES = 1 << 21
"""A forward substitution is of as many λ as give so many entries (16 MB), because Python's calls cost as much."""
WORTHWHILE = 1200
"""Rows from which on a band with its folds takes less than eigenvectors: of 1000 as long, of 3000 less than half."""
ROWS = 192
"""Rows of the matrix that are computed at a time."""
POWERS = 12
"""Steps of power iteration for ‖B‖, which determines a rounding error."""


@dataclass(frozen=True, eq=False)
class RidgeBand(RidgeInverse):
    r"""P(λ) = Q (B + λI)⁻¹ Qᵀ, with QBQᵀ the matrix S K S, S = diag(√w), on the complement of the intercept.

    B has 48 diagonals on each side. A factorisation LLᵀ = B + λI is cheap, and Pᵢᵢ = ‖L⁻¹Qᵀeᵢ‖² takes 48 · 2n
    operations for each i and λ. B and Q take 8/3 n³ operations, all in products of tiles. LAPACK's reduction to three
    diagonals is slower, because half of it reads the remaining matrix once for each column, and eigenvectors follow.
    For more than about n/25 values of λ the eigenvectors (`RidgeSpectrum`) cost less.

    Attributes
    ----------
    diagonal_tiles, lower_tiles : arrays of shape (⌈n/48⌉, 48, 48) and (⌈n/48⌉ − 1, 48, 48)
        The tiles of B, which is block tridiagonal; those below the diagonal are upper triangular. Padding rows and
        columns are multiples of those of the identity.
    vectors : array of shape (m, m), m = 48 ⌈n/48⌉
        Qᵀ in the first n columns, of the reflected rows if there is an intercept; padding rows are 0.
    size : int
        The size of the reduced matrix: n, or n − 1 with an intercept.
    roots, axis
        As in `RidgeInverse`, which has the formulas.

    References
    ----------
    C. Bischof, B. Lang, X. Sun (2000). A framework for symmetric band reduction. ACM Trans. Math. Softw. 26(4).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.operators import Dense
    >>> from mercer.select import RidgeSpectrum
    >>> x = np.linspace(0.0, 1.0, 100)
    >>> K, y = np.exp(-np.abs(np.subtract.outer(x, x))), np.sin(6 * x)
    >>> band, spectrum = RidgeBand.of(Dense(K), intercept=True), RidgeSpectrum.of(K, intercept=True)
    >>> bool(np.allclose(band.leave_one_out(y, [0.01, 1.0]), spectrum.leave_one_out(y, [0.01, 1.0])))
    True
    """

    diagonal_tiles: Floats
    lower_tiles: Floats
    vectors: Floats
    size: int
    roots: Floats
    axis: Floats | None = None

    @classmethod
    def of(cls, K: Operator, weights: ArrayLike | None = None, *, intercept: bool = False) -> RidgeBand:
        """Decompose a symmetric operator, by its blocks, with positive weights (1 by default)."""
        n, size = K.shape[0], K.shape[0] - intercept
        roots = np.ones(n) if weights is None else np.sqrt(np.asarray(weights, np.float64))
        axis = reflection(roots) if intercept else None
        diagonal, lower, vectors = _reduced(_Weighted(K.astype(np.float64), roots, axis), size)
        vectors[size:] = 0.0  # with an intercept, row n - 1 is padding, too
        if axis is not None:
            subtract_outer(vectors[:, :n], 2 * vectors[:, :size] @ axis[:size], axis)
        return cls(diagonal, lower, vectors, size, roots, axis)

    @staticmethod
    def bytes(n: int, fold: int = 0) -> int:
        """The peak memory: half of the matrix in tiles, Q, and strips of it; later the factors for some λ.

        To leave out a `fold` of so many rows takes its columns of Qᵀ and of L⁻¹Qᵀ, and three copies of P_II.
        """
        made, factors = 3 * (n + BAND) ** 2 // 2 + 4 * engine().threads() * BAND * n, 2 * SHIFTS * BAND * n
        left_out = (n + BAND) * (n + BAND + fold) + max((n + BAND) * fold, ENTRIES) + 3 * fold**2 if fold else 0
        return 8 * (max(made, left_out) + factors)

    @staticmethod
    def pays(n: int) -> bool:
        """Whether a band and folds of n rows, for some dozen λ, take less time than eigenvectors."""
        return n >= WORTHWHILE and engine().capabilities.compiled

    def solvable(self, alphas: ArrayLike) -> NDArray[np.bool_]:
        shifts = np.asarray(alphas, np.float64) - self._rounding
        if shifts.size and self._definite(np.array([shifts.min()]))[0]:
            return np.ones(shifts.shape, bool)
        return self._definite(shifts)

    def solve(self, Y: ArrayLike, alphas: ArrayLike) -> Floats:
        grid, Z = self._checked(alphas), self._coordinates(Y)
        solved = np.empty((len(grid), *Z.shape))
        for own, below, inverse, _ in self._factors(grid):
            solved[own] = _solved(below, inverse, Z)
        return self._back(solved)

    def diagonal(self, alphas: ArrayLike) -> Floats:
        """Pᵢᵢ = ‖L⁻¹Qᵀeᵢ‖², of shape (n, λ)."""
        return self.solve_and_diagonal(np.empty((len(self.roots), 0)), alphas)[1]

    def solve_and_diagonal(self, Y: ArrayLike, alphas: ArrayLike) -> tuple[Floats, Floats]:
        grid, Z = self._checked(alphas), self._coordinates(Y)
        solved, norms = np.empty((len(grid), *Z.shape)), np.zeros((len(grid), len(self.vectors)))
        for own, below, inverse, _ in self._factors(grid):
            solved[own] = _solved(below, inverse, Z)
            engine().band_norms(vectors=self.vectors, below=below, inverse=inverse, out=norms[own])
        return self._back(solved), np.ascontiguousarray(norms[:, : len(self.roots)].T)

    def blocks(self, rows: NDArray[np.intp], alphas: ArrayLike) -> Iterator[Floats]:
        """P_II = (L⁻¹Qᵀ)_Iᵀ (L⁻¹Qᵀ)_I."""
        Z = np.ascontiguousarray(self.vectors[:, rows])
        together = max(ENTRIES // max(Z.size, 1), 1)
        for _, below, inverse, _ in self._factors(self._checked(alphas)):
            for start in range(0, len(below), together):
                with one_blas_thread():
                    halves = _forward(below[start : start + together], inverse[start : start + together], Z)
                for half in halves.reshape(-1, *Z.shape):
                    yield half.T @ half
                del halves, half  # or they would stand beside the next ones

    # ---- L -----------------------------------------------------------------------------------------------------------

    def _factors(self, grid: Floats) -> Iterator[tuple[slice, Floats, Floats, NDArray[np.bool_]]]:
        """−L[k, k−1] and L[k, k]⁻¹ of LLᵀ = B + λI, (λ, blocks, 48, 48), for some λ at a time, and which L exist."""
        for start in range(0, len(grid), SHIFTS):
            own = slice(start, min(start + SHIFTS, len(grid)))
            below, inverse = (_aligned((own.stop - start, *self.diagonal_tiles.shape)) for _ in range(2))
            definite = np.zeros(own.stop - start, bool)
            engine().band_factors(
                diagonal=self.diagonal_tiles,
                upper=self.lower_tiles,
                shifts=grid[own],
                below=below,
                inverse=inverse,
                definite=definite,
            )
            yield own, below, inverse, definite

    def _definite(self, shifts: Floats) -> NDArray[np.bool_]:
        flat = np.ascontiguousarray(shifts).reshape(-1)
        found = [definite for *_, definite in self._factors(flat)]
        return np.concatenate([*found, np.zeros(0, bool)]).reshape(shifts.shape)

    def _checked(self, alphas: ArrayLike) -> Floats:
        return self._positive(alphas, lambda least: self._definite(np.array([least]))[0])

    def _coordinates(self, Y: ArrayLike) -> Floats:
        """QᵀΠSY."""
        return np.asarray(self.vectors[:, : len(self.roots)] @ self._projected(Y))

    def _back(self, inner: Floats) -> Floats:
        """Q times an array of shape (λ, rows, targets), as one of shape (n, λ, targets)."""
        count, rows, targets = inner.shape
        flat = self.vectors[:, : len(self.roots)].T @ inner.transpose(1, 0, 2).reshape(rows, count * targets)
        return np.asarray(flat.reshape(len(flat), count, targets))

    @property
    def _rounding(self) -> float:
        """√n ε ‖B‖, with the norm by power iteration."""
        x = np.random.default_rng(0).standard_normal((*self.diagonal_tiles.shape[:2], 1))
        x.reshape(-1)[self.size :] = 0.0
        return noise(len(self.roots), estimate_norm(self._times_band, x, POWERS))

    def _times_band(self, x: Floats) -> Floats:
        """B x, of shape (blocks, rows of a block, 1)."""
        image = self.diagonal_tiles @ x
        image[1:] += self.lower_tiles @ x[:-1]
        image[:-1] += self.lower_tiles.swapaxes(1, 2) @ x[1:]
        return image


def _forward(below: Floats, inverse: Floats, Z: Floats) -> Floats:
    """L⁻¹ Z, of shape (λ, blocks, rows of a block, targets)."""
    count, blocks, side = below.shape[:3]
    x = np.empty((count, blocks, side, Z.shape[1]))
    rows = Z.reshape(blocks, side, Z.shape[1])
    for k in range(blocks):
        x[:, k] = inverse[:, k] @ (rows[k] + below[:, k] @ x[:, k - 1] if k else rows[k])
    return x


def _solved(below: Floats, inverse: Floats, Z: Floats) -> Floats:
    """(LLᵀ)⁻¹ Z, of shape (λ, rows, targets)."""
    x = _forward(below, inverse, Z)
    count, blocks = x.shape[:2]
    for k in range(blocks - 1, -1, -1):
        if k + 1 < blocks:
            x[:, k] += below[:, k + 1].swapaxes(1, 2) @ x[:, k + 1]
        x[:, k] = inverse[:, k].swapaxes(1, 2) @ x[:, k]
    return x.reshape(count, *Z.shape)


@dataclass(frozen=True)
class _Weighted:
    """HSKSH with the reflection H = I − 2vvᵀ, or SKS without an axis v."""

    K: Operator
    roots: Floats
    axis: Floats | None

    def lower(self) -> Iterator[tuple[int, Floats]]:
        """Blocks of rows of the lower triangle, each with its first row's number."""
        n, v, w = len(self.roots), self.axis, np.empty(0)
        if v is not None:
            w = partner(self.roots * (self.K @ (self.roots * v)), v)
        for start in range(0, n, ROWS):
            stop = min(start + ROWS, n)
            block = np.array(self.K.block(slice(start, stop), slice(0, stop)), np.float64)
            block *= self.roots[:stop]
            block *= self.roots[start:stop, None]
            if v is not None:
                block -= np.outer(v[start:stop], w[:stop])
                block -= np.outer(w[start:stop], v[:stop])
            yield start, block


def _reduced(matrix: _Weighted, size: int) -> tuple[Floats, Floats, Floats]:
    """B's tiles on and below the diagonal, and Qᵀ, for the first `size` rows and columns, padded to whole tiles."""
    core, side = engine(), BAND
    blocks = -(-len(matrix.roots) // side)
    slabs = _aligned((blocks * (blocks + 1) // 2 * side**2,))
    own = _views(slabs, blocks, side)
    scale = _fill(own, matrix, size, side)
    lower, factors = (_aligned((blocks - 1, side, side)) for _ in range(2))
    pending = _aligned((4 * blocks * side**2,))
    for step in range(blocks):
        core.band_step(slabs=slabs, upper=lower, factors=factors, pending=pending, step=step)
    vectors = _aligned((blocks * side, blocks * side))
    together = max(LEAST, TILES // blocks**2)
    for last in range(blocks, 0, -together):
        core.band_vectors(slabs=slabs, factors=factors, out=vectors, first=max(last - together, 0), last=last)
    diagonal = _aligned((blocks, side, side))
    np.stack([scale * slab[:side] for slab in own], out=diagonal)
    lower *= scale
    return diagonal, lower, vectors


def _views(slabs: Floats, blocks: int, side: int) -> list[Floats]:
    """Block columns of the lower triangle, each from its diagonal tile downwards."""
    views, start = [], 0
    for j in range(blocks):
        views.append(slabs[start : start + (blocks - j) * side**2].reshape(-1, side))
        start += views[-1].size
    return views


def _fill(own: list[Floats], matrix: _Weighted, size: int, side: int) -> float:
    """Write the matrix into the slabs, divided by a power of two so that no square overflows; return that power."""
    largest = 0.0
    for start, block in matrix.lower():
        largest = max(largest, float(block.max()), -float(block.min()))
        require_finite(np.sum(block), "RidgeBand")  # a sum needs no memory
        stop = min(start + len(block), size)
        for j, slab in enumerate(own[: -(-stop // side)]):
            first = j * side
            top, width = max(start, first), min(side, stop - first)
            slab[top - first : stop - first, :width] = block[top - start : stop - start, first : first + width]
    scale = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    for slab in own:
        slab /= scale
        slab[:side] = np.tril(slab[:side]) + np.tril(slab[:side], -1).T  # diagonal tiles have both triangles
    # At least the least eigenvalue, so that padding rows do not make the matrix indefinite.
    for row in range(size, len(own[0])):
        own[row // side][row % side, row % side] = max(largest / scale, 1.0)
    return float(scale)


def _aligned(shape: tuple[int, ...]) -> Floats:
    """Zeros that begin on a cache line, as the compiled code needs them."""
    size = int(np.prod(shape))
    whole = np.zeros(size + 8)
    first = -whole.ctypes.data // 8 % 8
    return whole[first : first + size].reshape(shape)
