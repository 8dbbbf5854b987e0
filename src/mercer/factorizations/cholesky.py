"""The Cholesky factor of a stored matrix, in the memory of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import blas, lapack

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.operators import Operator

__all__ = ["CholeskyFactor", "upper_block"]

Floats = NDArray[np.float64]

LARGEST_LAPACK = 96 * 1024
"""The most bytes of a row for which LAPACK factors the whole matrix. Some builds of OpenBLAS (0.3.30) have a
segmentation fault in `potrf` with two threads for 16 000 rows of float64 and more; 12 000 rows worked."""

BLOCK = 4096
"""The number of rows that are factored at once in a larger matrix, between two interrupt checks."""


@dataclass(frozen=True)
class CholeskyFactor:
    """A = LLᵀ, with Lᵀ in the upper triangle of an n × n buffer; the lower triangle is not used.

    Parameters
    ----------
    buffer : array of shape (n, n)
        Lᵀ in the upper triangle.

    Examples
    --------
    >>> import numpy as np
    >>> factor = CholeskyFactor.of(np.array([[4.0, 2.0], [2.0, 2.0]]))
    >>> factor.solve([8.0, 6.0]), round(factor.log_determinant, 6)
    (array([1., 2.]), 1.386294)
    """

    buffer: NDArray[Any]

    @classmethod
    def of(cls, matrix: NDArray[Any], shift: ArrayLike = 0.0, following: float = 0.0) -> CholeskyFactor | None:
        """Factor a float32 or float64 matrix plus diag(shift) in its memory; None if it is not positive definite.

        `following` operations of BLAS come next, which count for its threads.
        """
        buffer = matrix.T if matrix.flags.f_contiguous and not matrix.flags.c_contiguous else matrix
        if not buffer.flags.c_contiguous:
            raise InvalidInput(message("CholeskyFactor", "a matrix that is not contiguous", "give a contiguous buffer"))
        np.einsum("ii->i", buffer)[...] += np.asarray(shift)
        with one_blas_thread(len(buffer) ** 3 / 3 + following):
            definite = _factor_blocks(buffer) if len(buffer) > LARGEST_LAPACK // buffer.itemsize else _factor(buffer)
        return cls(buffer) if definite and np.all(np.isfinite(np.diagonal(buffer))) else None

    def solve(self, B: ArrayLike) -> Floats:
        """(A + diag(shift))⁻¹ B, in the precision of the factor, as float64."""
        b = np.asarray(B, np.float64)
        if b.size == 0:
            return b.copy()
        X = b[:, None] if b.ndim == 1 else b
        scale: Any = 1.0
        if self.buffer.dtype == np.float32:  # in which a residual of 1e-50 is 0, but its direction is not
            scale = np.max(np.abs(X), axis=0, initial=0.0)
            scale = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
        return np.ascontiguousarray(self._substituted((X / scale).astype(self.buffer.dtype)) * scale).reshape(b.shape)

    def _substituted(self, X: NDArray[Any]) -> NDArray[Any]:
        single = self.buffer.dtype == np.float32
        if X.shape[1] == 1:
            trsv = blas.strsv if single else blas.dtrsv
            return np.asarray(trsv(self.buffer.T, trsv(self.buffer.T, X[:, 0], lower=1), lower=1, trans=1)[:, None])
        potrs = lapack.spotrs if single else lapack.dpotrs
        return np.asarray(potrs(self.buffer.T, np.asfortranarray(X), lower=True, overwrite_b=True)[0])

    @cached_property
    def log_determinant(self) -> float:
        """log det(A + diag(shift)) = 2 Σ log Lᵢᵢ."""
        return float(2.0 * np.sum(np.log(np.diagonal(self.buffer).astype(np.float64))))

    @property
    def inverse(self) -> Operator:
        """The operator V ↦ (A + diag(shift))⁻¹ V, for preconditioning."""
        return _Inverse(self)

    def inverted(self) -> NDArray[Any]:
        """(A + diag(shift))⁻¹ in the upper triangle of the factor's memory; the factor is lost.

        >>> inverse = CholeskyFactor.of(np.array([[4.0, 2.0], [2.0, 2.0]])).inverted()
        >>> upper_block(inverse, slice(0, 2), slice(0, 2))
        array([[ 0.5, -0.5],
               [-0.5,  1. ]])
        """
        potri = lapack.spotri if self.buffer.dtype == np.float32 else lapack.dpotri
        potri(self.buffer.T, lower=True, overwrite_c=True)
        return self.buffer


def upper_block(A: NDArray[Any], rows: slice, columns: slice) -> NDArray[Any]:
    """A block on or above the diagonal of a symmetric matrix whose upper triangle is given."""
    block = A[rows, columns]
    if rows != columns:
        return block
    both = np.triu(block)
    both += both.T
    np.einsum("ii->i", both)[...] *= 0.5
    return both


def _factor(buffer: NDArray[Any]) -> bool:
    """Write U with UᵀU = A into the upper triangle of a row-major buffer; return whether A is positive definite."""
    potrf = lapack.spotrf if buffer.dtype == np.float32 else lapack.dpotrf
    # The transpose of a row-major buffer has LAPACK's order, so nothing is copied.
    _, info = potrf(buffer.T, lower=True, clean=False, overwrite_a=True)
    return bool(info == 0)


def _factor_blocks(buffer: NDArray[Any]) -> bool:
    """As `_factor`, by block rows: U_kk from A_kk − Σ UᵢₖᵀUᵢₖ, then U_kj = U_kk⁻ᵀ(A_kj − Σ UᵢₖᵀUᵢⱼ) for j > k."""
    n = len(buffer)
    trsm = blas.strsm if buffer.dtype == np.float32 else blas.dtrsm
    for k in range(0, n, BLOCK):
        own = slice(k, min(k + BLOCK, n))
        above, block = buffer[:k, own].T, buffer[own, own].copy()
        block -= above @ buffer[:k, own]
        if not _factor(block):
            return False
        upper = np.triu(np.ones(block.shape, bool))
        buffer[own, own][upper] = block[upper]
        for j in range(own.stop, n, BLOCK):
            right = slice(j, min(j + BLOCK, n))
            rest = buffer[own, right] - above @ buffer[:k, right]
            # It solves Xᵀ U_kk = Rᵀ, because the transpose of a row-major R has LAPACK's order.
            buffer[own, right] = trsm(1.0, block.T, rest.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
    return True


class _Inverse(Operator):
    def __init__(self, factor: CholeskyFactor) -> None:
        self.factor = factor
        n = factor.buffer.shape[0]
        super().__init__((n, n), factor.buffer.dtype, symmetric=True)

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return self.factor.solve(V).astype(V.dtype, copy=False)
