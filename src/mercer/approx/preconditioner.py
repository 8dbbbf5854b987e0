"""The inverse of a low-rank approximation plus a shift: the preconditioner of regularised kernel systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators import Operator, Weighted

__all__ = ["LowRankInverse", "preconditioner"]

CHUNK = 1 << 22
"""Entries of F that are worked on at once in float64."""

SAFE = 0.05
"""ε s²/μ up to which the plain formula is used. Measured (float32, s²/μ = 170 000, ε s²/μ = 0.02): as many steps of
conjugate gradients as the other one takes."""


class LowRankInverse(Operator):
    r"""V ↦ (FFᵀ + μI)⁻¹ V = U (1/(s² + μ) − 1/μ) UᵀV + V/μ with the singular values s and left vectors U of F.

    Where ε s²/μ > 1/20 it is applied as ((I − U c Uᵀ)/√μ)² V with 1 − c = √(μ/(s² + μ)), which reads U four times
    instead of twice: in this form it stays positive definite where U is in float32 and s²/μ up to some 10⁹.

    Parameters
    ----------
    U : array of shape (n, r)
        Orthonormal columns.
    squares : array of shape (r,)
        s², the eigenvalues of FFᵀ that are not 0.
    mu : float > 0

    References
    ----------
    M. Díaz, E. N. Epperly, Z. Frangella, J. A. Tropp, R. J. Webber (2023). Robust, randomized preconditioning for
    kernel ridge regression. arXiv:2304.12465.
    Z. Frangella, J. A. Tropp, M. Udell (2023). Randomized Nyström preconditioning. SIAM J. Matrix Anal. Appl. 44.

    Examples
    --------
    >>> import numpy as np
    >>> LowRankInverse(np.array([[1.0], [0.0]]), [3.0], mu=1.0).toarray()
    array([[0.25, 0.  ],
           [0.  , 1.  ]])
    """

    def __init__(self, U: NDArray[Any], squares: ArrayLike, mu: float) -> None:
        self.U, self.squares, self.mu = U, np.asarray(squares, np.float64), float(mu)
        n, r = U.shape
        if self.squares.shape != (r,) or not (np.isfinite(self.mu) and self.mu > 0):
            given = f"U of shape {U.shape}, {self.squares.shape} squares, mu={mu}"
            raise InvalidInput(message("LowRankInverse", given, "give one square for each column, and mu > 0"))
        kept = self.mu / (self.squares + self.mu)
        self._times = 1 if np.finfo(U.dtype).eps * np.max(self.squares, initial=0.0) <= SAFE * self.mu else 2
        self._shrink = 1.0 - (kept if self._times == 1 else np.sqrt(kept))
        super().__init__((n, n), U.dtype, symmetric=True)

    @classmethod
    def of(cls, F: NDArray[Any], mu: float, *, overwrite: bool = False) -> LowRankInverse:
        """(FFᵀ + μI)⁻¹ by the eigenvalues of FᵀF in float64; F's memory is reused for U if `overwrite`.

        >>> import numpy as np
        >>> LowRankInverse.of(np.array([[1.0], [1.0]]), mu=2.0).toarray()
        array([[ 0.375, -0.125],
               [-0.125,  0.375]])
        """
        n, r = F.shape
        chunks = [slice(i, i + max(1, CHUNK // max(r, 1))) for i in range(0, n, max(1, CHUNK // max(r, 1)))]
        G = np.zeros((r, r))
        for some in chunks:
            part = F[some].astype(np.float64)
            G += part.T @ part
        squares, V = np.linalg.eigh(G)
        # Below this s² is rounding, and F V/s no orthonormal column.
        kept = squares > max(r, 1) * np.finfo(np.float64).eps * float(np.max(squares, initial=0.0))
        rotation = np.asarray(V[:, kept] / np.sqrt(squares[kept]), F.dtype)
        U = F[:, : rotation.shape[1]] if overwrite else np.empty((n, rotation.shape[1]), F.dtype, order="F")
        for some in chunks:
            U[some] = F[some] @ rotation
        return cls(U, squares[kept], mu)

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        out = np.asarray(V, np.float64) / self.mu
        for _ in range(self._times):
            out -= self._project(out)
        return out.astype(V.dtype, copy=False)

    def _project(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """U c Uᵀ V, the products in the dtype of U, on columns scaled to fit it."""
        largest = np.max(np.abs(V), axis=0, initial=0.0)
        scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        inner = np.asarray(self.U.T @ np.asarray(V / scale, self.U.dtype), np.float64)
        return np.asarray(self.U @ np.asarray(self._shrink[:, None] * inner, self.U.dtype), np.float64) * scale

    def diagonal(self) -> NDArray[Any]:
        weight = 1 / (self.squares + self.mu) - 1 / self.mu
        d = 1 / self.mu + np.einsum("ij,ij,j->i", self.U, self.U, weight)
        return np.asarray(d, self.dtype)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return LowRankInverse(self.U.astype(dtype), self.squares, self.mu)


def preconditioner(F: NDArray[Any], shift: Any, *, overwrite: bool = False) -> Operator:
    """(FFᵀ + diag(shift))⁻¹ for a positive number or one for each row, by D^(−½)(D^(−½)FFᵀD^(−½) + I)⁻¹D^(−½).

    Examples
    --------
    >>> import numpy as np
    >>> M = preconditioner(np.array([[1.0], [2.0]]), np.array([1.0, 4.0]))
    >>> np.round(M @ np.array([[2.0, 2.0], [2.0, 8.0]]), 12)
    array([[1., 0.],
           [0., 1.]])
    """
    shift = np.asarray(shift, np.float64)
    if not shift.ndim:
        return LowRankInverse.of(F, float(shift), overwrite=overwrite)
    root = 1 / np.sqrt(shift)
    scaled = np.multiply(F, root[:, None], out=F if overwrite else None, dtype=F.dtype, casting="same_kind")
    return Weighted(LowRankInverse.of(scaled, 1.0, overwrite=True), root)
