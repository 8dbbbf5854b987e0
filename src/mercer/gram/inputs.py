"""What the tile engine is given: whether a kernel is symmetric, and arrays in the dtype and the parts that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from mercer.kernels import Function, Kernel

__all__ = ["commutes", "narrowed", "parts_of", "wider"]

Array: TypeAlias = Any


def commutes(kernel: Kernel) -> bool:
    """Whether k(x, z) = k(z, x), as every kernel should; a `Function` may say that it doesn't."""
    return all(part.symmetric for part in (kernel, *kernel.get_params().values()) if isinstance(part, Function))


def narrowed(V: Array, dtype: np.dtype[Any]) -> tuple[Array, Any]:
    """V in this dtype, and the powers of 2 that its columns were divided by, so that all sizes fit float32."""
    if V.dtype.itemsize <= dtype.itemsize:
        return np.ascontiguousarray(V, dtype), 0
    largest = np.abs(V).max(axis=0, initial=0.0)
    power = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(np.ldexp(V, -power), dtype), power


def wider(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The one of the most bytes."""
    return max(dtypes, key=lambda dtype: dtype.itemsize)


RUN = 1 << 17
"""Numbers of a run of rows: what is made of these alone makes no copy of all rows."""


def parts_of(rows: Array) -> Iterator[Array]:
    """Runs of a few megabytes each, in their order; one at least."""
    height = max(1, RUN // max(1, rows.shape[1]))
    for i in range(0, max(rows.shape[0], 1), height):
        yield rows[i : i + height]
