"""The Cholesky factor of a matrix of tiles, in the memory of a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt, sqrt

import numpy as np
import scipy.linalg

from mercer.engine.cuda.arrays import TOGETHER, DeviceArray
from mercer.engine.cuda.devices import Array, Device
from mercer.engine.cuda.tall import dots
from mercer.engine.cuda.tiles import CudaTiles

__all__ = ["DeviceCholesky"]

BLOCK = 1024
"""Rows that the host factors at a time, in float64."""
SHARE = 0.8
"""The share of the free memory that a factor may take."""
PART = 4
"""Rows that are multiplied take at most this part of the free memory besides."""


@dataclass(frozen=True, eq=False)
class DeviceCholesky:
    """A + μI = LLᵀ, by block columns of L: L_ik = (A_ik − Σ_{j<k} L_ij L_kjᵀ) L_kk⁻ᵀ.

    The blocks L_kk and their inverses are computed on the host; all else are dot products of rows with rows.

    Parameters
    ----------
    upper : DeviceArray of shape (m, m)
        Lᵀ in the upper triangle.
    inverses : DeviceArray of shape (m, BLOCK)
        L_kk⁻¹, one above the other.
    """

    upper: DeviceArray
    inverses: DeviceArray

    @staticmethod
    def most_rows(device: Device) -> int:
        """The most rows for which there is room, in float32."""
        return isqrt(int(SHARE * device.free() / 4))

    @classmethod
    def of(cls, tiles: CudaTiles, shift: float, largest: float) -> DeviceCholesky | None:
        """Factor A + shift·I, whose largest entry is at most `largest`; None if it is not positive definite."""
        m, device = tiles.rows, tiles.device
        upper = DeviceArray.empty(device, (m, m), tiles.dtype, sqrt(largest))
        made = cls(upper, DeviceArray.empty(device, (m, min(BLOCK, m)), tiles.dtype))
        for first, last in _blocks(m):
            row = upper[first:last]
            row.write(tiles.held(first, last))
            if first:
                made._subtract_known(first, last)
            factor = _factored(np.asarray(row.columns(first, last), np.float64) + shift * np.eye(last - first))
            if factor is None:
                return None
            inverse = made._inverse(first, last)
            for place, values in ((row.columns(first, last), factor.T), (inverse, _inverse(factor))):
                place.write(DeviceArray.of(device, np.ascontiguousarray(values, tiles.dtype)))
            if last < m:
                rest = replace(row.columns(last, m), known=largest)
                rest.write(dots(inverse, rest.T).held(0, last - first))
        return made

    def _subtract_known(self, first: int, last: int) -> None:
        """A_kj − Σ_{i<k} L_ki L_jiᵀ for a block k and all j ≥ k, some columns at a time."""
        above, m = self.upper[:first], len(self.upper)
        width = max(BLOCK, self.upper.device.free() // (PART * first * self.upper.dtype.itemsize))
        for start in range(first, m, width):
            end = min(start + width, m)
            known = dots(above.columns(first, last).T, above.columns(start, end).T).held(0, last - first)
            self.upper[first:last].columns(start, end).subtract(known)

    def solve(self, B: Array) -> Array:
        """(A + μI)⁻¹ B, in the precision of the factor, as float64."""
        B = np.asarray(B, np.float64)
        size = np.max(np.abs(B), axis=0, initial=0.0)  # in float32 a residual of 1e-50 is 0, but its direction is not
        size = np.where((size > 0) & np.isfinite(size), size, 1.0)
        out = np.empty(B.shape)
        for c in range(0, B.shape[1], TOGETHER):
            some = slice(c, min(c + TOGETHER, B.shape[1]))
            X = np.zeros((len(B), TOGETHER), self.upper.dtype)
            X[:, : some.stop - c] = B[:, some] / size[some]
            out[:, some] = np.asarray(self._solved(DeviceArray.of(self.upper.device, X)))[:, : some.stop - c]
        return np.asarray(out * size)

    def _solved(self, X: DeviceArray) -> DeviceArray:
        """L y = x from the first block to the last, and Lᵀ x = y back."""
        m, own = len(X), DeviceArray.empty(X.device, (min(BLOCK, len(X)), TOGETHER), X.dtype)
        blocks = list(_blocks(m))
        for first, last in blocks:
            part = own[: last - first]
            self._inverse(first, last).times(X[first:last], part)
            X[first:last].write(part)
            self.upper[first:last].columns(last, m).T.times(part, X[last:], X[last:])
        for first, last in reversed(blocks):
            part = own[: last - first]
            self.upper[first:last].columns(last, m).times(X[last:], part, X[first:last])
            self._inverse(first, last).T.times(part, X[first:last])
        return X

    def _inverse(self, first: int, last: int) -> DeviceArray:
        return self.inverses[first:last].columns(0, last - first)


def _blocks(m: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + BLOCK, m)) for first in range(0, m, BLOCK))


def _factored(A: Array) -> Array | None:
    L, info = scipy.linalg.lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
    return L if info == 0 and np.all(np.isfinite(np.diagonal(L))) else None


def _inverse(L: Array) -> Array:
    return np.asarray(scipy.linalg.lapack.dtrtri(L, lower=1)[0])
