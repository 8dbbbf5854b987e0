"""Sums by group and the nearest means in NumPy: the reference of ``_core.add_rows`` and ``_core.nearest_means``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

__all__ = ["add_rows", "nearest_means"]

BLOCK = 1 << 18
"""How many entries are converted to float64 at a time."""


@np.errstate(all="ignore")  # as in the compiled module: the caller checks for entries that are not finite
def add_rows(*, matrix: Any, row: Any, place: Any, weight: Any, out: Any, isa: str = "") -> None:
    """`out`[place[t]] += weight[t] · matrix[row[t]] for t = 0, 1, …, in float64.

    Parameters
    ----------
    matrix : array of shape (n, m), float32 or float64
    row, place : integers of shape (count,)
    weight : array of shape (count,) or None
        None stands for 1.
    out : array of shape (places, m)
    """
    height = max(1, BLOCK // max(1, matrix.shape[1]))
    for first in range(0, len(row), height):
        some = slice(first, min(first + height, len(row)))
        count = some.stop - first
        w = np.ones(count) if weight is None else weight[some]
        out += csr_array((w, (place[some], np.arange(count))), (len(out), count)) @ matrix[row[some]].astype(np.float64)


@np.errstate(all="ignore")
def nearest_means(
    *, sums: Any, slope: Any, offset: Any, diagonal: Any, labels: Any, rounding: float, own: Any, nearest: Any,
    left: Any, isa: str = "",
) -> None:  # fmt: skip
    """For each i the first c with D_ci = max(sums_ci slope_c + offset_c + diagonal_i, 0) ≤ min_c D_ci + rounding.

    D_ci is infinite if the offset is. If D_ci is NaN for some c, the result is c = 0.

    Parameters
    ----------
    sums : array of shape (k, n)
    slope, offset : arrays of shape (k,)
    diagonal : array of shape (n,)
    labels : integers of shape (n,)
    rounding : float
    own, nearest, left : arrays of shape (n,)
        Results: D of the label, the c that was found, and its D.
    """
    D = sums * slope[:, None]
    D += offset[:, None]
    D += diagonal
    np.maximum(D, 0.0, out=D)
    D[offset == np.inf] = np.inf
    rows = np.arange(len(labels))
    nearest[...] = (D.min(axis=0) + rounding >= D).argmax(axis=0)
    own[...], left[...] = D[labels, rows], D[nearest, rows]
