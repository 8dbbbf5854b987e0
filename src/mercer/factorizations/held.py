"""Low-rank factors of kernel matrices in the memory of the engine that computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.contract import Tall
from mercer.factorizations.factor import Factor

__all__ = ["HeldFactor"]


class HeldFactor(Factor):
    """V ↦ diag(s) F V, with F in an engine's own memory: a product moves V and its image, but not F.

    Parameters
    ----------
    F : Tall
        See `mercer.engine.contract`.
    scale : array of shape (n,), optional
        s, by default 1.
    """

    def __init__(self, F: Tall, scale: NDArray[np.float64] | None = None) -> None:
        self._held = F
        self._scale = np.ones(F.shape[0]) if scale is None else scale
        super().__init__(F.shape, F.dtype)

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return (self._scale[:, None] * self._held.times(V)).astype(V.dtype, copy=False)

    def _rmatmat(self, U: NDArray[Any]) -> NDArray[Any]:
        return self._held.transposed_times(self._scale[:, None] * U).astype(U.dtype, copy=False)

    def rows(self, I: Any) -> NDArray[Any]:
        index = self._index(I, 0)
        return (self._scale[index, None] * self._held.rows(index)).astype(self.dtype, copy=False)

    def squares(self) -> NDArray[np.float64]:
        return np.asarray(self._scale**2 * self._held.squares())

    def scaled(self, scale: NDArray[np.float64]) -> HeldFactor:
        return HeldFactor(self._held, self._scale * scale)

    def turned(self, R: NDArray[Any]) -> HeldFactor:
        return HeldFactor(self._held.turned(R), self._scale)

    def gram(self, dtype: np.dtype[Any]) -> NDArray[np.float64]:
        return self._held.gram(self._scale, dtype)
