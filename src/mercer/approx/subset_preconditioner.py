"""A low-rank preconditioner for systems on many subsets of the rows of one matrix, and many shifts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.solvers import CholeskyFactor

__all__ = ["SubsetInverse"]

Floats = NDArray[np.float64]


class SubsetInverse:
    r"""R ↦ (F_s F_sᵀ + μ)⁻¹ r = (r − F_s (F_sᵀF_s + μ)⁻¹ F_sᵀ r)/μ on the rows of subset s, for one s and μ a column.

    A ≈ FFᵀ + δI serves all subsets: F_s is F with the other rows left out, and F_sᵀF_s is what these leave of FᵀF.

    Parameters
    ----------
    F : array of shape (n, r)
    absent : list of integer arrays
        For each subset the rows that it lacks.
    subset : integer array of shape (c,)
        The subset of each column.
    shifts : array of shape (c,)
        μ = λ + δ > 0.

    Examples
    --------
    >>> M = SubsetInverse(np.array([[1.0], [2.0]]), [np.array([1])], np.array([0]), np.array([1.0]))
    >>> M.apply(np.array([[1.0], [0.0]]), np.array([0]))  # (1 + 1)⁻¹ on the first row
    array([[0.5],
           [0. ]])
    """

    def __init__(self, F: Floats, absent: list[NDArray[np.intp]], subset: NDArray[np.intp], shifts: Floats) -> None:
        self.F, self.absent, self.subset, self.shifts = F, absent, subset, shifts
        whole = F.T @ F
        self.largest = float(np.linalg.eigvalsh(whole)[-1]) if len(whole) else 0.0
        """The largest eigenvalue of FFᵀ."""
        self.factors: dict[tuple[int, float], CholeskyFactor] = {}
        for s, rows in enumerate(absent):
            present = whole - F[rows].T @ F[rows]
            for mu in np.unique(shifts[subset == s]):
                factor = CholeskyFactor.of(present.copy(), mu)
                assert factor is not None, "a Gram matrix plus a positive shift is definite"
                self.factors[s, float(mu)] = factor

    def apply(self, R: Floats, columns: NDArray[np.intp]) -> Floats:
        """For the columns with these numbers."""
        W = self.F.T @ R
        for (s, mu), factor in self.factors.items():
            own = np.flatnonzero((self.subset[columns] == s) & (self.shifts[columns] == mu))
            if len(own):
                W[:, own] = factor.solve(W[:, own])
        out = R - self.F @ W
        for s in np.unique(self.subset[columns]):
            out[np.ix_(self.absent[s], np.flatnonzero(self.subset[columns] == s))] = 0.0
        return np.asarray(out / self.shifts[columns])
