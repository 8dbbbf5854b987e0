"""The rows of one side of the pairs: how they lie on the device, how many bytes they take there, and their copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer.engine.contract import TileRows
from mercer.engine.cuda.arrays import DeviceArray
from mercer.engine.cuda.devices import Array, Buffer, Device
from mercer.engine.cuda.distances import Way
from mercer.engine.cuda.source import DEEP

__all__ = ["BEYOND", "STAGED", "DeviceSide", "HostSide"]

STAGED = 1 << 26
"""Bytes of rows that are turned, and copied, at a time."""
UNIT = 512
"""Bytes that a buffer may take more than it was asked for."""
BEYOND = 1e30
"""The squared norm of the padding, so that its distances are large, and not an obstacle to distances by norms."""


@dataclass(frozen=True)
class DeviceSide:
    """Rows [start, start + count) on the device.

    For each pairing there are the addresses of the rows, of their squared norms, and of the rows for differences, each
    0 if it is not there; then come those of the values of rows, and of the columns that are the same points.
    """

    start: int
    padded: int
    pairings: tuple[tuple[int, int, int], ...]
    values: tuple[int, ...]
    same: int
    buffers: Sequence[Buffer]


@dataclass(frozen=True)
class HostSide:
    """Rows of one side on the host.

    Parameters
    ----------
    rows : TileRows
    ways : tuple of Way
        How each pairing is computed.
    dtype : dtype of the entries
    tile : int
        Rows of a tile.
    same : array of int64 or None
        For each row, the column that is the same point, or −1.
    """

    rows: TileRows
    ways: tuple[Way, ...]
    dtype: np.dtype[np.generic]
    tile: int
    same: Array | None = None

    def padded(self, count: int) -> int:
        """Whole tiles, and one more, so that a tile may start at any row."""
        return (-(-count // self.tile) + 1) * self.tile

    def bytes(self, count: int, shared: bool = False) -> int:
        """Bytes of so many rows on the device; if they are `shared` with the other side, of their values only."""
        widths = [
            _deep(rows.shape[1]) * way.copies * (not shared) + way.by_norms
            for rows, way in zip(self.rows.rows, self.ways, strict=True)
        ]
        each = self.dtype.itemsize * (sum(widths) + len(self.rows.values)) + (self.same is not None) * 8
        buffers = sum(way.copies + way.by_norms for way in self.ways) + len(self.rows.values) + 1
        return each * self.padded(count) + UNIT * buffers

    def sent(self, device: Device, start: int, stop: int, shared: DeviceSide | None = None) -> DeviceSide:
        """Rows [start, stop) on the device; those of `shared` are the same, and are not copied again."""
        sender = _Sender(device, self.padded(stop - start), self.dtype)
        pairings = []
        for p, (rows, way) in enumerate(zip(self.rows.rows, self.ways, strict=True)):
            first = other = norms = 0
            if way.by_norms:
                squared = self.rows.norms[p]
                assert squared is not None
                norms = sender.values(squared[start:stop], BEYOND)
            if shared is not None:
                first, _, other = shared.pairings[p]
            else:
                first = sender.rows(rows[start:stop], way.norms_origin) if way.by_norms else 0
                if way.by_terms:
                    other = first if first and way.copies == 1 else sender.rows(rows[start:stop], way.origin)
            pairings.append((first, norms, other))
        values = tuple(sender.values(one[start:stop]) for one in self.rows.values)
        same = 0 if self.same is None else sender.values(self.same[start:stop], -1)
        kept = [*sender.buffers, *(shared.buffers if shared is not None else [])]
        return DeviceSide(start, sender.padded, tuple(pairings), values, same, kept)


@dataclass
class _Sender:
    """Makes the copies, and keeps their memory."""

    device: Device
    padded: int
    dtype: np.dtype[np.generic]

    def __post_init__(self) -> None:
        self.buffers: list[Buffer] = []

    def rows(self, rows: Array | DeviceArray, origin: Array | None) -> int:
        """The address of rows less an origin, feature by feature, padded with zeros; a few features at a time."""
        count, depth = rows.shape
        size = self.padded * self.dtype.itemsize
        buffer, step = self._empty(_deep(depth) * size), max(1, STAGED // size)
        if isinstance(rows, DeviceArray):
            rows.lay(origin, self.dtype, self.padded, _deep(depth), buffer)
            return buffer.address
        for k in range(0, _deep(depth), step):
            high = min(step, _deep(depth) - k)
            turned = self.device.staging((high, self.padded), self.dtype)
            turned[...] = 0
            some = rows[:, k : k + high]
            moved = some if origin is None else some - origin[k : k + high]
            turned[: some.shape[1], :count] = moved.T
            self.device.copy(turned, buffer, k * size)
        return buffer.address

    def values(self, values: Array, beyond: float = 0) -> int:
        """The address of a value of each row."""
        padded = np.full(self.padded, beyond, np.int64 if values.dtype == np.int64 else self.dtype)
        padded[: len(values)] = values
        buffer = self._empty(padded.nbytes)
        self.device.copy(padded, buffer)
        return buffer.address

    def _empty(self, size: int) -> Buffer:
        self.buffers.append(self.device.empty(size))
        return self.buffers[-1]


def _deep(depth: int) -> int:
    """Whole slices of features."""
    return -(-depth // DEEP) * DEEP
