"""Symmetric matrices with entries in 16 bits in NumPy: the reference of ``_core.quantise`` and of the product."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.engine.opcodes import QUANTISED_GROUP as GROUP
from mercer.engine.opcodes import QUANTISED_MOST
from mercer.engine.opcodes import QUANTISED_ROWS as ROWS
from mercer.engine.opcodes import QUANTISED_STRIP as STRIP

__all__ = ["quantise", "quantised_product"]

_MOST = np.float32(QUANTISED_MOST)


def quantise(x: Any, seeds: Any, out: Any, isa: str = "") -> tuple[float, float]:
    """x ≈ centre + step · q off the diagonal; q = ⌊(x − centre)/step + u⌋, 0 on the diagonal. Returns centre and step.

    Parameters
    ----------
    x : float32 array of shape (h, w)
        Rows of a block, from their diagonal entry's column on; h = 192, or h = w.
    seeds : uint32 array of shape (w,)
        u ∈ [0, 1) of the pair (i, j) is a hash of seeds[i] + seeds[j], so that the square on the diagonal is symmetric.
    out : int16 array, zeros
        Result, in the order in which products read it: strips of 8 rows, and in each of them groups of 16 columns.

    Returns
    -------
    centre, step : float
        Both are NaN if an entry is not finite.
    """
    h, w = x.shape
    on = np.arange(h)
    others = x.copy()
    others[on, on] = x[0, 1] if w > 1 else 0.0
    if not np.all(np.isfinite(others)):
        return float("nan"), float("nan")
    low, high = float(others.min()), float(others.max())
    if w == 1:
        out[:] = 0
        return 0.0, 0.0
    centre, step = 0.5 * (low + high), (high - low) / (2.0 * float(_MOST))
    scale = np.float32(1.0 / step if step > 1e-38 else 0.0)
    z = seeds[:h, None] + seeds[None, :]
    z = (z ^ (z >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    z = (z ^ (z >> np.uint32(12))) * np.uint32(0x297A2D39)
    u = (z >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    q = np.clip(np.floor((others - np.float32(centre)) * scale + u), -_MOST, _MOST)
    q[on, on] = 0
    padded = np.zeros((-(-h // STRIP) * STRIP, -(-w // GROUP) * GROUP), np.int16)
    padded[:h, :w] = q
    out[:] = padded.reshape(-1, STRIP, padded.shape[1] // GROUP, GROUP).swapaxes(1, 2).ravel()
    return centre, step


def quantised_product(
    *, entries: Any, start: Any, step: Any, first: int, last: int, v: Any, out: Any, isa: str = ""
) -> None:
    """out += Q v for the blocks `first` to `last` of the symmetric Q, whose entries are step · q.

    Parameters
    ----------
    entries : int16 array
        The results of ``quantise``, block after block; block b is entries[start[b]:start[b + 1]].
    start : integers of shape (b + 1,)
    step : array of shape (b,)
    first, last : int
    v : float32 array of shape (n, r)
    out : float64 array of shape (n, r)
    """
    n = len(v)
    for b in range(first, last):
        i0, i1 = b * ROWS, min((b + 1) * ROWS, n)
        groups = -(-(n - i0) // GROUP)
        strips = entries[start[b] : start[b + 1]].reshape(-1, groups, STRIP, GROUP)
        q = strips.swapaxes(1, 2).reshape(-1, groups * GROUP)[: i1 - i0, : n - i0].astype(np.float32)
        out[i0:i1] += step[b] * (q @ v[i0:])
        out[i1:] += step[b] * (q[:, i1 - i0 :].T @ v[i0:i1])
