"""Inverses for systems on many subsets of the rows of a matrix: of a low-rank approximation, and of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.factorizations.cholesky import CholeskyFactor
from mercer.operators import product

__all__ = ["InverseWithout", "SubsetInverse"]

Floats = NDArray[np.float64]
BLOCK = 512
"""Rows whose upper triangle is copied at a time."""


@dataclass(frozen=True, eq=False)
class SubsetInverse:
    r"""R ↦ (F_s F_sᵀ + μ)⁻¹ r = (r − F_s (F_sᵀF_s + μ)⁻¹ F_sᵀ r)/μ on the rows of subset s; s and μ belong to a column.

    A ≈ FFᵀ + δI serves all subsets: F_s has the rows of F in the subset, and F_sᵀF_s is FᵀF less the other rows' part.

    Parameters
    ----------
    F : array of shape (n, r)
        In the precision of the products; its first columns should explain most of A.
    absent : list of integer arrays
        For each subset the rows outside it.
    subset : integer array of shape (c,)
        The subset of each column.
    shifts : array of shape (c,)
        μ = λ + δ > 0.
    ranks : integer array of shape (c,), optional
        The number of columns of F to use for each system, equal for equal μ; by default all.

    Examples
    --------
    >>> M = SubsetInverse.of(np.array([[1.0], [2.0]]), [np.array([1])], np.array([0]), np.array([1.0]))
    >>> M.apply(np.array([[1.0], [0.0]]), np.array([0]))  # (1 + 1)⁻¹ on the first row
    array([[0.5],
           [0. ]])
    """

    Ft: NDArray[Any]
    present: NDArray[np.bool_]
    subset: NDArray[np.intp]
    shifts: Floats
    factors: dict[tuple[int, float], CholeskyFactor]

    @classmethod
    def of(
        cls,
        F: NDArray[Any],
        absent: list[NDArray[np.intp]],
        subset: NDArray[np.intp],
        shifts: Floats,
        ranks: NDArray[np.intp] | None = None,
    ) -> SubsetInverse | None:
        """Factor all F_sᵀF_s + μ; None if μ is so small that one is not definite in the precision of F."""
        Ft, factors = np.ascontiguousarray(F.T), {}
        lacking = [_gram(Ft[:, rows]) for rows in absent]
        # In cross-validation each row is absent once, so that these matrices add up to FᵀF.
        folds = np.array_equal(np.sort(np.concatenate(absent)), np.arange(len(F))) if absent else False
        whole = np.sum(lacking, axis=0) if folds else _gram(Ft)
        for s, missing in enumerate(lacking):
            left = whole - missing
            for mu in np.unique(shifts[subset == s]):
                r = len(Ft) if ranks is None else int(ranks[shifts == mu][0])
                factor = CholeskyFactor.of(left[:r, :r].copy(), mu)
                if factor is None:
                    return None
                factors[s, float(mu)] = factor
        return cls(Ft, _present(len(F), absent), subset, shifts, factors)

    def apply(self, R: Floats, columns: NDArray[np.intp]) -> Floats:
        """The preconditioner applied to R, whose columns belong to the systems with these numbers."""
        size = _sizes(R)
        scaled = (R / size).astype(self.Ft.dtype)
        W = product(self.Ft, scaled)
        for (s, mu), factor in self.factors.items():
            own = np.flatnonzero((self.subset[columns] == s) & (self.shifts[columns] == mu))
            if len(own):
                r = len(factor.buffer)
                W[:r, own] = factor.solve(W[:r, own])
                W[r:, own] = 0.0
        scaled -= product(self.Ft.T, W)
        return np.where(self.present[:, self.subset[columns]], scaled, 0.0) * (size / self.shifts[columns])


@dataclass(frozen=True, eq=False)
class InverseWithout:
    r"""R ↦ (A_TT + λ)⁻¹ r = z_T − P_TF (P_FF)⁻¹ z_F, z = P r, P = (A + λI)⁻¹, for a subset T without the rows F.

    One inverse serves all subsets. It takes n³ operations, and each application takes two products with it. A
    factorisation for each subset of t rows would take t³/3 operations, 0.85n³ for five subsets of four fifths of the
    rows, but would need a matrix for each subset.

    Parameters
    ----------
    factor : CholeskyFactor
        The factor of A + λI; its buffer is overwritten by the inverse.
    absent : list of integer arrays
        For each subset the rows outside it.
    subset : integer array of shape (c,)
        The subset of each column.

    Examples
    --------
    >>> M = InverseWithout.of(CholeskyFactor.of(np.array([[4.0, 1.0], [1.0, 2.0]])), [np.array([1])], np.array([0]))
    >>> M.apply(np.array([[1.0], [0.0]]), np.array([0])).round(12)
    array([[0.25],
           [0.  ]])
    """

    inverse: NDArray[Any]
    absent: list[NDArray[np.intp]]
    present: NDArray[np.bool_]
    subset: NDArray[np.intp]
    blocks: dict[int, CholeskyFactor]

    @classmethod
    def of(
        cls, factor: CholeskyFactor, absent: list[NDArray[np.intp]], subset: NDArray[np.intp]
    ) -> InverseWithout | None:
        """Invert, and factor all P_FF; None if one is not definite in the precision of the factor."""
        P, blocks = _inverted(factor), {}
        for s in np.unique(subset).tolist():
            block = CholeskyFactor.of(P[np.ix_(absent[s], absent[s])])
            if block is None:
                return None
            blocks[s] = block
        return cls(P, absent, _present(len(P), absent), subset, blocks)

    def apply(self, R: Floats, columns: NDArray[np.intp]) -> Floats:
        """The preconditioner applied to R, whose columns belong to the systems with these numbers."""
        size = _sizes(R)
        Z = product(self.inverse, (R / size).astype(self.inverse.dtype))
        W = np.zeros_like(Z)
        for s, block in self.blocks.items():
            own = np.flatnonzero(self.subset[columns] == s)
            if len(own):
                place = np.ix_(self.absent[s], own)
                W[place] = block.solve(Z[place])
        Z -= product(self.inverse, W)
        return np.where(self.present[:, self.subset[columns]], Z, 0.0) * size


def _present(n: int, absent: list[NDArray[np.intp]]) -> NDArray[np.bool_]:
    """Whether a row is in a subset, of shape (n, subsets)."""
    present = np.ones((n, len(absent)), bool)
    for s, rows in enumerate(absent):
        present[rows, s] = False
    return present


def _sizes(R: Floats) -> Floats:
    """The largest entry of each column, 1 for 0; columns are scaled by it because tiny numbers are 0 in float32."""
    size = np.max(np.abs(R), axis=0, initial=0.0)
    return np.where((size > 0) & np.isfinite(size), size, 1.0)


def _gram(Ft: NDArray[Any]) -> NDArray[Any]:
    """FᵀF in the upper triangle of a row-major array."""
    rows = np.ascontiguousarray(Ft)
    if not rows.size:  # for BLAS an empty array is an error, which may end the process
        return np.zeros((len(rows), len(rows)), rows.dtype)
    syrk = blas.ssyrk if rows.dtype == np.float32 else blas.dsyrk
    return np.asarray(syrk(1.0, rows.T, trans=1, lower=1).T)


def _inverted(factor: CholeskyFactor) -> NDArray[Any]:
    """The inverse, with both triangles, in the memory of the factor."""
    buffer = factor.inverted()
    for start in range(0, len(buffer), BLOCK):
        rows = slice(start, start + BLOCK)
        own = buffer[rows, rows]
        own[...] = np.triu(own) + np.triu(own, 1).T
        buffer[start + BLOCK :, rows] = buffer[rows, start + BLOCK :].T
    return buffer
