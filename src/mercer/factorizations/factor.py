"""Tall factors F of low-rank approximations FFᵀ that are not arrays in this process."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.operators import Operator

__all__ = ["Factor", "inverse_root", "noise", "squared_correlations", "squares"]

SLACK = 8.0
"""The roundings of the largest k(x, x), times √m, that are added to the diagonal before m landmarks are factored.
Pivots of that size are dropped."""


class Factor(Operator):
    """V ↦ F V for an F of shape (n, r) that is not an array in this process."""

    beside_workers: ClassVar[bool] = False
    """Whether F is on workers, which may be on this machine: threads that spin here would take their processors."""

    @abstractmethod
    def squares(self) -> NDArray[np.float64]:
        """‖fᵢ‖² of each row."""

    @abstractmethod
    def scaled(self, scale: NDArray[np.float64]) -> Self:
        """Diag(scale) F."""

    @abstractmethod
    def turned(self, R: NDArray[Any]) -> Self:
        """F R."""

    @abstractmethod
    def gram(self, dtype: np.dtype[Any]) -> NDArray[np.float64]:
        """FᵀF, with products in this dtype and sums in float64."""

    def squared_correlations(
        self, A: Operator, some: NDArray[np.intp], left: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The function of this name for A − FFᵀ, whose diagonal is `left`."""
        return squared_correlations(A.rows(some), np.asarray(self @ self.rows(some).T).T, left) / left[some]


def squares(F: Any) -> NDArray[np.float64]:
    """‖fᵢ‖² of each row of an array or a `Factor`.

    >>> squares(np.array([[3.0, 4.0]]))
    array([25.])
    """
    return F.squares() if isinstance(F, Factor) else np.asarray(np.einsum("ij,ij->i", F, F, dtype=np.float64))


def squared_correlations(rows: Any, known: Any, left: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σⱼ (aⱼ − bⱼ)²/lⱼ over lⱼ > 0, for each pair of rows a and b of two arrays.

    >>> squared_correlations(np.array([[3.0, 5.0]]), np.array([[1.0, 1.0]]), np.array([2.0, 0.0]))
    array([2.])
    """
    rest = np.subtract(rows, known, dtype=np.float64)
    rest[:, left == 0] = 0.0
    rest *= rest
    rest /= np.where(left == 0, 1.0, left)
    return np.asarray(np.sum(rest, axis=1))


def noise(size: float, rows: int, dtype: np.dtype[Any]) -> float:
    """What is added to the diagonal before a kernel matrix is factored in this dtype; `size` is its largest entry.

    >>> noise(1.0, 4, np.dtype(np.float64)) / float(np.finfo(np.float64).eps)
    16.0
    """
    return SLACK * float(np.finfo(dtype).eps) * float(np.sqrt(rows)) * size


def inverse_root(K: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """L⁻ᵀ in this dtype with LLᵀ = K + `noise`·I.

    >>> inverse_root(np.array([[4.0]]), np.dtype(np.float64)).round(6)
    array([[0.5]])
    """
    L = np.linalg.cholesky(K + noise(float(np.max(np.diagonal(K))), len(K), dtype) * np.eye(len(K)))
    inverse, _ = scipy.linalg.lapack.dtrtri(L, lower=1)  # a sixth of the operations of `np.linalg.inv`
    return np.ascontiguousarray(inverse.T, dtype)
