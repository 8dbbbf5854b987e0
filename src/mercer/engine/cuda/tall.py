"""Tall matrices on a device, by blocks of rows, and their products; blocks that do not fit stay on the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mercer.engine.contract import TilePairing, TileProgram, TileRows
from mercer.engine.cuda.arrays import DeviceArray
from mercer.engine.cuda.devices import Array, Device
from mercer.engine.cuda.tiles import CudaTiles
from mercer.engine.opcodes import Pairing

__all__ = ["TallMatrix", "dots"]

BLOCK = 1 << 28
"""The most bytes of a block; three copies of one are on the device while it is computed."""
SHARE = 0.5
"""The share of the free memory that blocks may take."""
PARTS = 16
"""A block takes at most this part of the memory that is free."""


@dataclass(frozen=True, eq=False)
class TallMatrix:
    """A matrix F of shape (n, r) as blocks of rows. All products are dot products of rows with rows.

    Parameters
    ----------
    device : Device
    blocks : tuple
        Tables on the device, or arrays of the host that pass through it for each product.
    shape : (int, int)
    dtype : float32 or float64
    """

    device: Device
    blocks: tuple[DeviceArray | Array, ...]
    shape: tuple[int, int]
    dtype: np.dtype[np.generic]

    @staticmethod
    def room(device: Device) -> int:
        """Bytes on the device for blocks, beside plans."""
        return int(SHARE * device.free())

    @classmethod
    def product(cls, tiles: CudaTiles, R: Array) -> TallMatrix:
        """The matrix of the tiles times R."""
        shape, each = (tiles.rows, R.shape[1]), R.shape[1] * tiles.dtype.itemsize
        right = DeviceArray.of(tiles.device, np.ascontiguousarray(R, tiles.dtype)).T
        step = max(1, min(BLOCK, tiles.device.free() // PARTS) // max(each, tiles.columns * tiles.dtype.itemsize))
        parts = (tiles.held(i, min(i + step, tiles.rows)) for i in range(0, tiles.rows, step))
        return cls._of(tiles.device, (dots(part, right).held(0, len(part)) for part in parts), shape)

    @classmethod
    def _of(cls, device: Device, blocks: Iterator[DeviceArray], shape: tuple[int, int]) -> TallMatrix:
        room, kept = cls.room(device), list[DeviceArray | Array]()
        for block in blocks:
            room -= block.nbytes
            kept.append(block if room >= 0 else np.asarray(block))
        return cls(device, tuple(kept), shape, kept[0].dtype)

    def times(self, V: Array) -> Array:
        """F V, in the dtype of F."""
        columns = DeviceArray.of(self.device, np.ascontiguousarray(V, self.dtype)).T
        out = np.empty((self.shape[0], V.shape[1]), self.dtype)
        for start, block in self._each():
            dots(block, columns).block(0, len(block), 0, V.shape[1], out=out[start : start + len(block)])
        return out

    def transposed_times(self, U: Array) -> Array:
        """Fᵀ U, summed in float64 over the blocks."""
        out = np.zeros((self.shape[1], U.shape[1]))
        for start, block in self._each():
            own = DeviceArray.of(self.device, np.ascontiguousarray(U[start : start + len(block)], self.dtype))
            out += _all(dots(block.T, own.T))
        return out

    def gram(self, scale: Array, dtype: np.dtype[np.generic]) -> Array:
        """Fᵀ diag(s)² F, with products in this dtype and sums over the blocks in float64."""
        out = np.zeros((self.shape[1], self.shape[1]))
        for start, block in self._each():
            turned = block.scaled(scale[start : start + len(block)]).T
            out += _all(dots(turned, turned, dtype))
        return out

    def turned(self, R: Array) -> TallMatrix:
        """F R."""
        right = DeviceArray.of(self.device, np.ascontiguousarray(R, self.dtype)).T
        blocks = (dots(block, right).held(0, len(block)) for _, block in self._each())
        return self._of(self.device, blocks, (self.shape[0], R.shape[1]))

    def squares(self) -> Array:
        """‖fᵢ‖² of each row."""
        return np.concatenate([block.own_sums[0] for _, block in self._each()])

    def rows(self, index: Array) -> Array:
        """The rows with these indices, on the host."""
        out = np.empty((len(index), self.shape[1]), self.dtype)
        for start, block in self._each():
            own = np.flatnonzero((index >= start) & (index < start + len(block)))
            if len(own):
                out[own] = block[index[own] - start]
        return out

    def _each(self) -> Iterator[tuple[int, DeviceArray]]:
        """The first row of each block, and the block on the device."""
        starts = np.cumsum([0, *map(len, self.blocks)]).tolist()
        for (start, _), block in zip(pairwise(starts), self.blocks, strict=True):
            yield start, block if isinstance(block, DeviceArray) else DeviceArray.of(self.device, block)


def dots(A: DeviceArray, B: DeviceArray, dtype: np.dtype[np.generic] | None = None) -> CudaTiles:
    """A Bᵀ."""
    program = TileProgram(A.dtype if dtype is None else dtype, (TilePairing(Pairing.DOT),))
    return CudaTiles(A.device, program, TileRows(len(A), (A,)), TileRows(len(B), (B,)), None, entries_only=True)


def _all(tiles: CudaTiles) -> Array:
    out = np.empty((tiles.rows, tiles.columns), tiles.dtype)
    tiles.block(0, tiles.rows, 0, tiles.columns, out=out)
    return out
