"""Input of the tile engine: symmetry of kernels, and arrays in the dtype and in the parts that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from mercer.kernels import Function, Kernel

__all__ = ["commutes", "narrowed", "parts_of", "wider"]

Array: TypeAlias = Any


def commutes(kernel: Kernel) -> bool:
    """Whether k(x, z) = k(z, x); only a `Function` may be declared not to be symmetric."""
    return all(part.symmetric for part in (kernel, *kernel.get_params().values()) if isinstance(part, Function))


def narrowed(V: Array, dtype: np.dtype[Any]) -> tuple[Array, Any]:
    """V in this dtype, and the exponents p of the factors 2⁻ᵖ of its columns, which prevent overflow in float32."""
    if V.dtype.itemsize <= dtype.itemsize:
        return np.ascontiguousarray(V, dtype), 0
    largest = np.abs(V).max(axis=0, initial=0.0)
    power = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(np.ldexp(V, -power), dtype), power


def wider(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype with the most bytes."""
    return max(dtypes, key=lambda dtype: dtype.itemsize)


RUN = 1 << 17
"""Entries of a run of rows. Temporary arrays of a run are small, while those of all rows would be copies."""


def parts_of(rows: Array) -> Iterator[Array]:
    """Consecutive runs of rows of a few megabytes; at least one run."""
    height = max(1, RUN // max(1, rows.shape[1]))
    for i in range(0, max(rows.shape[0], 1), height):
        yield rows[i : i + height]
