"""Tall factors F of low-rank approximations FFᵀ whose rows are not in this process."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.operators import Operator

__all__ = ["Factor", "squares"]


class Factor(Operator):
    """V ↦ F V for an F of shape (n, r) that is not an array in this process."""

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


def squares(F: Any) -> NDArray[np.float64]:
    """‖fᵢ‖² of each row of an array or a `Factor`.

    >>> squares(np.array([[3.0, 4.0]]))
    array([25.])
    """
    return F.squares() if isinstance(F, Factor) else np.asarray(np.einsum("ij,ij->i", F, F, dtype=np.float64))
