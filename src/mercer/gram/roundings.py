"""How many roundings the engine's sums of products have, tried on some of the rows that are there."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.engine.opcodes import CHUNK_OF_DOUBLES, CHUNK_OF_FLOATS

__all__ = ["most_roundings", "roundings"]

Array: TypeAlias = Any

SAMPLE, ENTRIES, LARGEST = 64, 1 << 15, 4
"""The most rows of each side that are tried, and the most entries of them, but at least eight rows. One in four is of
those with the largest norms, which have the largest errors."""
USUAL = {4: 8.0, 8: 16.0}
"""By bytes of an entry: the most roundings of millions of pairs of random rows."""
MARGIN = 1.5
"""A bound on the most roundings of all pairs over those of the tried: 8 for millions of random pairs, 7 for 8000."""


def most_roundings(columns: int, dtype: np.dtype[Any]) -> float:
    """A bound on `roundings` of any rows: one for each term of a sum, all to one side, and those of usual rows.

    The engine adds up sums of so many features, so a long dot product has the terms of one such sum, and one for each
    of the others.
    """
    chunk = CHUNK_OF_FLOATS if dtype.itemsize == 4 else CHUNK_OF_DOUBLES
    return min(columns, chunk) + (columns - 1) // chunk + USUAL[dtype.itemsize]


def roundings(x: Array, z: Array, origin: Array | None, dtype: np.dtype[Any], sizes: tuple[Array, Array]) -> float:
    r"""r in ∣s − ‖x − z‖²∣ ≤ r u (‖x‖² + ‖z‖²), for a distance s by norms and the unit roundoff u of the dtype.

    The sums of a dot product are rounded d times, but mostly to both sides. A large entry before many equal ones makes
    all roundings fall to the same side, and r is up to d. So sums are taken as the engine takes them, for some pairs of
    rows and some rows with themselves.

    Parameters
    ----------
    x, z : arrays of shape (n, d) and (m, d)
    origin : array of shape (d,) or None
        What is subtracted from all rows; None stands for 0.
    dtype : float32 or float64
    sizes : arrays of shape (n,) and (m,)
        The squared norms of the rows less the origin.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((100, 60)).astype(np.float32)
    >>> norms = np.square(rows).sum(axis=1)
    >>> roundings(rows, rows, None, rows.dtype, (norms, norms))
    8.0
    >>> rows[:, 0], rows[:, 1:] = 10, 0.3
    >>> roundings(rows, rows, None, rows.dtype, (norms, norms)) > 20
    True
    """
    some = _sample(x, origin, dtype, sizes[0])
    others = some if z is x else _sample(z, origin, dtype, sizes[1])
    m = min(len(some), len(others))
    left, right = [some, some[:m]], [some, others[m - 1 :: -1]]
    if z is not x:
        left, right = [*left, others], [*right, others]
    return max(USUAL[dtype.itemsize], MARGIN * _roundings(np.concatenate(left), np.concatenate(right)))


def _sample(rows: Array, origin: Array | None, dtype: np.dtype[Any], sizes: Array) -> NDArray[Any]:
    """Some rows less the origin, times a power of two that makes them at most 1."""
    most = min(SAMPLE, max(2 * LARGEST, ENTRIES // rows.shape[1]))
    if len(rows) > most:
        large = most // LARGEST
        rows = rows[np.append(np.argpartition(sizes, -large)[-large:], np.arange(0, len(rows), -(-len(rows) // most)))]
    some = np.asarray(rows) - (0.0 if origin is None else origin)
    largest = max(float(some.max(initial=0.0)), -float(some.min(initial=0.0)))
    _, exponent = math.frexp(largest)
    return np.ldexp(some, -exponent).astype(dtype)


def _roundings(left: NDArray[Any], right: NDArray[Any]) -> float:
    """The largest error of 2⟨x, z⟩, in units u (‖x‖² + ‖z‖²)."""
    products, d = left * right, left.shape[1]
    runs = -(-d // (CHUNK_OF_FLOATS if left.itemsize == 4 else CHUNK_OF_DOUBLES))
    if runs == 1:
        _, errors = _summed(products)
    else:
        padded = np.pad(products, ((0, 0), (0, -d % runs)))
        parts, inner = _summed(padded.reshape(len(left), runs, -1))
        errors = inner.sum(axis=1) + _summed(parts)[1]
    units = np.finfo(left.dtype).eps / 4 * (np.einsum("ij,ij->i", left, left) + np.einsum("ij,ij->i", right, right))
    return float(np.max(np.abs(errors) / np.maximum(units, np.finfo(np.float32).tiny)))


def _summed(terms: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The sums over the last axis, a term after the other, and what their roundings left out.

    In float32 that is known from float64 sums, in float64 from each addition (Knuth's two-sum).
    """
    if terms.dtype == np.float32:
        first = np.ascontiguousarray(np.moveaxis(terms, -1, 0))
        total = np.add.reduce(first, axis=0)  # along the last axis, or of one sum, NumPy adds up halves
        return total, first.sum(axis=0, dtype=np.float64) - total
    sums = np.cumsum(terms, axis=-1)
    before, after = sums[..., :-1], sums[..., 1:]
    added = after - before
    lost = (before - (after - added)) + (terms[..., 1:] - added)
    return sums[..., -1], lost.sum(axis=-1, dtype=np.float64)
