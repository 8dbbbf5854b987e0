"""Points as the rows of a PyTorch tensor, on any device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.points.base import FLOAT32, FLOAT64, Index, VectorPoints
from mercer.points.dense import DensePoints
from mercer.points.validate import as_rows, on_host

__all__ = ["TensorPoints"]


@dataclass(frozen=True, eq=False, slots=True)
class TensorPoints(VectorPoints):
    """The rows of a tensor. Kernels compute values and gradients for them; all others read them as arrays.

    Parameters
    ----------
    rows : tensor of shape (n, d)

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> len(TensorPoints(torch.zeros(3, 2)))  # doctest: +SKIP
    3
    """

    rows: Any

    def validate(self, who: str) -> TensorPoints:
        return TensorPoints(as_rows(self.rows, who=who))

    def take(self, index: Index, *, copy: bool = True) -> TensorPoints:
        return TensorPoints(self.rows[np.asarray(index).tolist()])

    def run(self, first: int, last: int) -> TensorPoints:
        return TensorPoints(self.rows[first:last])

    def dense(self) -> NDArray[Any]:
        return np.asarray(self.rows.detach().cpu().numpy())

    def astype(self, dtype: DTypeLike) -> TensorPoints:
        if self.dtype == dtype:
            return self
        return TensorPoints(self.rows.float() if np.dtype(dtype) == FLOAT32 else self.rows.double())

    def stack(self, first: VectorPoints, second: VectorPoints) -> TensorPoints:
        import torch

        return TensorPoints(torch.cat([torch.as_tensor(one.rows) for one in (first, second)]))

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT64 if self.rows.element_size() == 8 else FLOAT32

    @property
    def nbytes(self) -> int:
        return int(self.rows.numel() * self.rows.element_size())

    def widened(self, dtype: DTypeLike) -> TensorPoints:
        return self.astype(dtype) if self.rows.element_size() < np.dtype(dtype).itemsize else self

    def readable(self, who: str) -> DensePoints:  # type: ignore[override]
        return DensePoints(on_host(self.rows, who)).validate(who)
