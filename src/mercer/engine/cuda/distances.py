"""How a pairing is computed: term by term over the features, by norms and dot products, or by either, tile by tile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.engine.contract import NormAccuracy, TilePairing, TileRows
from mercer.engine.cuda.arrays import DeviceArray
from mercer.engine.cuda.devices import Array
from mercer.engine.opcodes import Pairing

__all__ = ["TENSOR_ROUNDINGS", "Way"]

TENSOR_ROUNDINGS = 11.0
"""What tensor cores add to the roundings of a distance by norms, in units u (‖x‖² + ‖z‖²): 4 for what the two parts
lose of each number, 4 for the product of the lower parts, which is left out, and 3 because they cut off sums of 16
products where processors round: see docs/gpu.md."""
HUGE = 1e38
"""Norms, and entries for tensor cores, below this have a finite split and a bound of their error."""


@dataclass(frozen=True)
class Way:
    """How one pairing is computed.

    Parameters
    ----------
    by_norms, by_terms : bool
        Whether by norms, or feature by feature. If both, a tile is computed by norms first, and feature by feature if
        the distance s of one of its pairs is not at least share·(‖x‖² + ‖z‖²) + bound.
    tensor : bool
        Whether dot products are those of tensor cores.
    norms_origin, origin : array of shape (d,) or None
        What is subtracted from the rows, for norms and feature by feature; None stands for 0.
    """

    by_norms: bool = False
    by_terms: bool = True
    tensor: bool = False
    norms_origin: Array | None = None
    origin: Array | None = None
    share: float = 0.0
    bound: float = 0.0

    @classmethod
    def of(cls, p: int, pairing: TilePairing, sides: tuple[TileRows, TileRows], tensor: bool) -> Way:
        """The fastest way that keeps the promise, for the rows of both sides; `tensor` if tensor cores may be used."""
        norms, plain = pairing.norms, cls(origin=pairing.origin)
        if not all(side.count for side in sides):
            return plain
        if pairing.kind == Pairing.DOT:
            return cls(origin=pairing.origin, tensor=tensor and max(_largest(side.rows[p]) for side in sides) < HUGE)
        if norms is None:
            return plain
        rows, columns = (side.norms[p] for side in sides)
        assert rows is not None
        assert columns is not None
        size = float(rows.max()) + float(columns.max())
        rounding = norms.rounding + tensor * TENSOR_ROUNDINGS * float(np.finfo(np.float32).eps) / 2
        if norms.fast * rounding * size <= norms.promise:
            return cls(True, False, tensor, norms.origin, pairing.origin)
        if not size < HUGE:  # an overflow has no error bound
            return plain
        share, bound = _condition(norms, rounding, float(rows.max()) + float(columns.mean(dtype=np.float64)))
        return cls(True, True, tensor, norms.origin, pairing.origin, share, bound)

    @property
    def copies(self) -> int:
        """How many copies of the rows it needs."""
        both = self.by_norms and self.by_terms
        return 2 if both and (self.tensor or self.norms_origin is not self.origin) else 1


def _condition(norms: NormAccuracy, rounding: float, usual: float) -> tuple[float, float]:
    """The share and the bound: the promise is kept if s − share A ≥ bound, with A = ‖x‖² + ‖z‖².

    The error r A of s is within the promise p if r A ≤ p s, or if the derivative at s times r A is at most p. The
    latter is slow s ≥ ((level A)^root − 1) / root with level = fast r / p, the logarithm for root = 0. Its tangent at a
    usual A is above it for all A. We take the condition that asks for less, as the native engine does.
    """
    always, level = rounding / (rounding + norms.promise), norms.fast * rounding / norms.promise
    if not norms.slow > 0:
        return always, 0.0
    try:
        grown = (level * usual) ** norms.root
        far = ((grown - 1) / norms.root if norms.root else math.log(level * usual)) / norms.slow
    except (OverflowError, ValueError):
        return always, 0.0
    slope = grown / (norms.slow * usual)
    if not far < always * usual:
        return always, 0.0
    return 2 * rounding + slope, far - slope * usual


def _largest(rows: Array | DeviceArray) -> float:
    if isinstance(rows, DeviceArray):
        return rows.largest()
    return max(float(rows.max(initial=0.0)), -float(rows.min(initial=0.0)))
