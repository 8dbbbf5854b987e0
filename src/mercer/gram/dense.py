"""Dense kernel matrices by the tile engine: what a call of a kernel runs on."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.gram.operator import KernelOperator
from mercer.kernels import Kernel

__all__ = ["dense"]


def dense(kernel: Kernel, X: Any, Z: Any = None) -> Any:
    """All k(x, z) as an array: what ``kernel(X, Z)`` runs on. Tensors are left to the kernel's own formula."""
    plain = all(rows is None or isinstance(rows, np.ndarray) or sp.issparse(rows) for rows in (X, Z))
    if kernel.domain != "vectors" or not kernel.traceable or not plain:
        return NotImplemented
    return KernelOperator(kernel, X, Z).toarray()
