"""The inverse of a low-rank approximation plus a diagonal: the preconditioner of regularised kernel systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.factorizations.factor import Factor, squares
from mercer.factorizations.pivoted_cholesky import PivotedCholesky
from mercer.operators import Operator, Weighted, estimate_norm
from mercer.planning import costs

__all__ = ["LowRankInverse", "SpectralInverse", "preconditioner", "rest"]

CHUNK = 1 << 23
"""Entries of F that are processed at once."""

SAFE = 0.05
"""The largest ε‖FFᵀ‖ for ``LowRankInverse``. Measured (float32, ‖FFᵀ‖ = 170 000, ε‖FFᵀ‖ = 0.02): as many steps of
conjugate gradients as with ``SpectralInverse``."""

EXACT = 0.25
"""The largest ε tr FFᵀ for which FᵀF is summed in the dtype of F; it bounds the rounding error of FᵀF + I."""

REST = 0.1
"""The share of diag(A − FFᵀ) that is added to the preconditioner. Steps to six digits for a share of 0, 0.03, 0.1,
0.2, 0.5 and 1 (Gaussian, d = 20, λ = 1e-6 n): 66, 58, 53, 51, 52, 56 at n = 20 000 with 2000 pivots; 93, 65, 59, 61, 70
with 0 to 0.5 at n = 10 000 with 1000."""

CORRELATED = 8.0
"""The largest ``PivotedCholesky.correlation`` for which the share is added. It was tried on twenty systems of 7000 or
8000 rows (housing, digits, letters, adult, random; 240 to 800 pivots). The share of 0.1 saved up to a quarter of the
steps in seven of nine systems with a correlation below 5.2, and cost a sixth in one. Between 6.7 and 9.8 it saved
steps in four of seven and cost some in two; above 15 it saved none in four, and cost up to a quarter."""

POWERS = 8
"""Steps of power iteration for ‖FFᵀ‖, which is needed to its order of magnitude."""


class LowRankInverse(Operator):
    r"""V ↦ (FFᵀ + I)⁻¹ V = V − F (FᵀF + I)⁻¹ FᵀV, with a Cholesky factor of FᵀF + I in float64.

    Its least eigenvalues, 1/(s² + 1) for the singular values s of F, are differences of numbers near 1, so that ε s²
    must be small, with the rounding ε of F's dtype. ``SpectralInverse`` has no such limit.

    Parameters
    ----------
    F : array or Factor of shape (n, r)
    gram : float64 array of shape (r, r), optional
        FᵀF, if it is known; its memory is used for the factor.

    References
    ----------
    M. Díaz, E. N. Epperly, Z. Frangella, J. A. Tropp, R. J. Webber (2023). Robust, randomized preconditioning for
    kernel ridge regression. arXiv:2304.12465.

    Examples
    --------
    >>> import numpy as np
    >>> LowRankInverse(np.array([[1.0], [1.0]])).toarray().round(4)
    array([[ 0.6667, -0.3333],
           [-0.3333,  0.6667]])
    """

    def __init__(self, F: Any, gram: NDArray[np.float64] | None = None) -> None:
        n = F.shape[0]
        self.F = F
        C = _gram(F) if gram is None else gram
        C[np.diag_indices_from(C)] += 1.0
        # The transpose of the symmetric C is C in LAPACK's order, so that it can be overwritten.
        self._factor = scipy.linalg.cholesky(C.T, lower=True, overwrite_a=True, check_finite=False) if C.size else C
        super().__init__((n, n), F.dtype, symmetric=True)

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        wide = np.asarray(V, np.float64)
        if not self.F.shape[1]:
            return V.copy()
        inner = _times(self.F.T, wide)
        inner = scipy.linalg.cho_solve((self._factor, True), inner, check_finite=False)
        return (wide - _times(self.F, inner)).astype(V.dtype, copy=False)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return LowRankInverse(self.F.astype(dtype))

    @property
    def log_determinant(self) -> float:
        """log det(FFᵀ + I)."""
        return float(2 * np.sum(np.log(np.diagonal(self._factor))))

    @property
    def half(self) -> NDArray[Any]:
        """H of shape (n, r) with (FFᵀ + I)⁻¹ = I − HHᵀ."""
        if not self.F.shape[1]:
            return self.F
        inverse = scipy.linalg.solve_triangular(self._factor, np.eye(len(self._factor)), lower=True)
        return np.asarray(self.F @ inverse.T.astype(self.F.dtype))

    def draws(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Columns drawn from N(0, FFᵀ + I)."""
        n, r = self.F.shape
        return rng.standard_normal((n, count)) + _times(self.F, rng.standard_normal((r, count)))


class SpectralInverse(Operator):
    r"""V ↦ (FFᵀ + I)⁻¹ V = (I − U c Uᵀ)² V, 1 − c = (s² + 1)^(−½), with singular values s and left vectors U of F.

    It stays positive definite with U in float32 and s² up to about 10⁹. It reads U four times, while ``LowRankInverse``
    reads F twice, and needs eigenvectors of FᵀF instead of a Cholesky factor.

    Parameters
    ----------
    U : array or Factor of shape (n, r)
        Orthonormal columns.
    squares : array of shape (r,)
        s², the non-zero eigenvalues of FFᵀ.

    Raises
    ------
    InvalidInput
        If there is not one square for each column of U.

    References
    ----------
    Z. Frangella, J. A. Tropp, M. Udell (2023). Randomized Nyström preconditioning. SIAM J. Matrix Anal. Appl. 44.

    Examples
    --------
    >>> import numpy as np
    >>> SpectralInverse(np.array([[1.0], [0.0]]), [3.0]).toarray()
    array([[0.25, 0.  ],
           [0.  , 1.  ]])
    """

    def __init__(self, U: Any, squares: ArrayLike) -> None:
        self.U, self.squares = U, np.asarray(squares, np.float64)
        n, r = U.shape
        if self.squares.shape != (r,):
            given = f"U of shape {U.shape}, {self.squares.shape} squares"
            raise InvalidInput(message("SpectralInverse", given, "give one square for each column"))
        self._shrink = 1.0 - 1.0 / np.sqrt(self.squares + 1.0)
        super().__init__((n, n), U.dtype, symmetric=True)

    @classmethod
    def of(cls, F: Any, gram: NDArray[np.float64] | None = None, *, overwrite: bool = False) -> SpectralInverse:
        """(FFᵀ + I)⁻¹ by the eigenvalues of FᵀF in float64; with `overwrite`, U takes the memory of F.

        Examples
        --------
        >>> import numpy as np
        >>> SpectralInverse.of(np.array([[1.0], [1.0]])).toarray().round(4)
        array([[ 0.6667, -0.3333],
               [-0.3333,  0.6667]])
        """
        n, r = F.shape
        gram = _gram(F) if gram is None else gram
        with one_blas_thread(costs.eigen_operations(r)):
            squares, V = np.linalg.eigh(gram)
        # Smaller s² are rounding errors, for which F V/s is not orthonormal.
        kept = squares > max(r, 1) * np.finfo(np.float64).eps * float(np.max(squares, initial=0.0))
        rotation = np.asarray(V[:, kept] / np.sqrt(squares[kept]), F.dtype)
        if isinstance(F, Factor):
            return cls(F.turned(rotation), squares[kept])
        U = F[:, : rotation.shape[1]] if overwrite else np.empty((n, rotation.shape[1]), F.dtype, order="F")
        for some in _chunks(F):
            U[some] = F[some] @ rotation
        return cls(U, squares[kept])

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        out = np.asarray(V, np.float64)
        for _ in range(2):
            out = out - _times(self.U, self._shrink[:, None] * _times(self.U.T, out))
        return out.astype(V.dtype, copy=False)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return SpectralInverse(self.U.astype(dtype), self.squares)

    @property
    def log_determinant(self) -> float:
        """log det(FFᵀ + I)."""
        return float(np.sum(np.log1p(self.squares)))

    @property
    def half(self) -> NDArray[Any]:
        """H of shape (n, r) with (FFᵀ + I)⁻¹ = I − HHᵀ."""
        return np.asarray(self.U * np.sqrt(self.squares / (self.squares + 1)).astype(self.U.dtype))

    def draws(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Columns drawn from N(0, FFᵀ + I)."""
        n, r = self.U.shape
        scaled = np.sqrt(self.squares)[:, None] * rng.standard_normal((r, count))
        return rng.standard_normal((n, count)) + _times(self.U, scaled)


def preconditioner(F: Any, shift: ArrayLike, *, overwrite: bool = False) -> Operator:
    r"""(FFᵀ + D)⁻¹ = D^(−½)(D^(−½)FFᵀD^(−½) + I)⁻¹D^(−½) with D = diag(shift).

    Parameters
    ----------
    F : array or Factor of shape (n, r)
    shift : float or array of shape (n,)
        Positive.
    overwrite : bool
        Whether the memory of F may be used.

    Raises
    ------
    InvalidInput
        If the shift is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> M = preconditioner(np.array([[1.0], [2.0]]), np.array([1.0, 4.0]))
    >>> np.abs(M @ np.array([[2.0, 2.0], [2.0, 8.0]])).round(12)
    array([[1., 0.],
           [0., 1.]])
    """
    diagonal = np.broadcast_to(np.asarray(shift, np.float64), F.shape[:1])
    if not (np.all(np.isfinite(diagonal)) and np.min(diagonal, initial=1.0) > 0):
        raise InvalidInput(message("preconditioner", "a shift that is not positive", "give shift > 0"))
    # A shift below the rounding of FFᵀ has no effect; the bound keeps D^(−½)F in the range of float32.
    largest = float(np.max(squares(F), initial=0.0))
    root = 1 / np.sqrt(np.maximum(diagonal, np.finfo(np.float64).eps * largest))
    if isinstance(F, Factor):
        scaled: Any = F.scaled(root)
    else:
        scaled = np.multiply(F, root[:, None], out=F if overwrite else None, dtype=F.dtype, casting="same_kind")
    gram = _gram(scaled)
    norm = estimate_norm(gram.__matmul__, np.sqrt(np.diagonal(gram)), POWERS)
    if float(np.finfo(F.dtype).eps) * norm <= SAFE:
        return Weighted(LowRankInverse(scaled, gram), root)
    return Weighted(SpectralInverse.of(scaled, gram, overwrite=True), root)


def rest(A: Operator, found: PivotedCholesky) -> NDArray[np.float64] | float:
    """The part of diag(A − FFᵀ) to add to the preconditioner's shift.

    Without it, a row far from all pivots, and so nearly orthogonal to all others, would be an isolated eigenvalue at
    the upper end of the preconditioned spectrum. If the remaining rows are correlated, 0 is better: the addition would
    move their common eigenvalues to the lower end.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.operators import Dense
    >>> from mercer.approx import pivoted_cholesky
    >>> A = Dense(np.diag([4.0, 1.0, 1.0]), symmetric=True)
    >>> np.sort(rest(A, pivoted_cholesky(A, 1)))[1:] > 0
    array([ True,  True])
    """
    return REST * found.left if found.correlation(A) <= CORRELATED else 0.0


def _chunks(F: NDArray[Any]) -> Iterator[slice]:
    """Runs of rows of F."""
    height = max(1, CHUNK // max(F.shape[1], 1))
    return (slice(i, i + height) for i in range(0, len(F), height))


def _gram(F: Any) -> NDArray[np.float64]:
    """FᵀF, summed in float64 if the rounding of F's dtype is not negligible against I."""
    trace = float(np.sum(squares(F)))
    kind = F.dtype if float(np.finfo(F.dtype).eps) * trace <= EXACT else np.dtype(np.float64)
    if isinstance(F, Factor):
        return F.gram(kind)
    G = np.zeros((F.shape[1], F.shape[1]))
    for some in _chunks(F):
        part = F[some].astype(kind, copy=False)
        G += part.T @ part
    return G


def _times(A: Any, V: NDArray[np.float64]) -> NDArray[np.float64]:
    """A V, computed in the dtype of A with columns of V that are scaled to its range."""
    largest = np.max(np.abs(V), axis=0, initial=0.0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return np.asarray(A @ np.asarray(V / scale, A.dtype), np.float64) * scale
