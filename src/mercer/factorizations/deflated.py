"""A stored matrix in float32 whose rounding is that of its smaller part."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm

from mercer.operators import Operator, product

__all__ = ["Deflated"]

HEIGHT = 200
"""Rows at a time: a tile that is used again, because fresh memory costs as much as what is done with it."""


class Deflated(Operator):
    """V ↦ F FᵀV + (A − FFᵀ) V, with A − FFᵀ in float32, and products of it too.

    The rounding of float32 is relative to ‖A − FFᵀ‖ instead of ‖A‖. For conjugate gradients with a shift λ that decides
    whether they need more steps than in float64: 38 instead of 20 at λ/‖A‖ = 6e-6 without F, 20 with 64 pivots.

    Parameters
    ----------
    A : array of shape (n, n), float64, symmetric
    F : array of shape (n, k), float64
        Of a pivoted Cholesky factorisation, say; k may be 0.
    buffer : float32 array of shape (n, n)
        Is filled with A − FFᵀ, and kept.

    Examples
    --------
    >>> A = np.array([[4.0, 2.0], [2.0, 2.0]])
    >>> Deflated(A, np.array([[2.0], [1.0]]), np.empty((2, 2), np.float32)) @ np.array([1.0, 1.0])
    array([6., 4.])
    """

    def __init__(self, A: NDArray[np.float64], F: NDArray[np.float64], buffer: NDArray[np.float32]) -> None:
        super().__init__((len(A), len(A)), np.dtype(np.float64), symmetric=True)
        self.Ft, self.remainder, tile = np.ascontiguousarray(F.T), buffer, np.empty((HEIGHT, len(A)))
        for start in range(0, len(A), HEIGHT):
            rows = slice(start, min(start + HEIGHT, len(A)))
            left = tile[: rows.stop - start]
            np.copyto(left, A[rows])
            if F.size:  # left −= F Fᵀ, transposed, because BLAS reads by columns
                dgemm(-1.0, self.Ft.T, np.asfortranarray(self.Ft[:, rows]), 1.0, left.T, overwrite_c=1)
            np.copyto(buffer[rows], left, casting="same_kind")

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        wide = np.ascontiguousarray(V, np.float64)
        out = product(self.remainder, wide.astype(np.float32)).astype(np.float64)
        out += product(self.Ft.T, product(self.Ft, wide))
        return np.asarray(out, V.dtype)
