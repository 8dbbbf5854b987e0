"""Dense kernel matrices by the tile engine, for calls of kernels."""

from __future__ import annotations

from typing import Any

from mercer.gram.operator import KernelOperator
from mercer.kernels import Kernel
from mercer.points import TensorPoints, points_of

__all__ = ["dense"]


def dense(kernel: Kernel, X: Any, Z: Any = None) -> Any:
    """All k(x, z) as an array; NotImplemented for tensors and kernels without a traced formula."""
    tensors = any(isinstance(points_of(rows), TensorPoints) for rows in (X, Z))
    if not kernel.space.vectors or not kernel.traceable or tensors:
        return NotImplemented
    return KernelOperator(kernel, X, Z).toarray()
