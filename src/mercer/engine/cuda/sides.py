"""The rows of one side of the pairs: how they lie on the device, how many bytes they take there, and their copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mercer.engine.contract import TileRows
from mercer.engine.cuda.arrays import FLOATS, DeviceArray
from mercer.engine.cuda.devices import Array, Buffer, Device
from mercer.engine.cuda.distances import Way
from mercer.engine.cuda.source import BEYOND, DEEP

__all__ = ["STAGED", "DeviceSide", "HostSide"]

STAGED = 1 << 26
"""Bytes of rows that are copied at a time."""
UNIT = 512
"""Bytes that a buffer may take more than it was asked for."""


@dataclass(frozen=True)
class DeviceSide:
    """Rows [start, start + count) on the device.

    For each pairing there are the addresses of the rows, of their squared norms, of the rows for differences, and of
    the scales of tensor cores, each 0 if it is not there; then come those of the values of rows, and of the columns
    that are the same points.
    """

    start: int
    padded: int
    pairings: tuple[tuple[int, int, int, int], ...]
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
            (_deep(rows.shape[1]) * way.copies + way.tensor) * (not shared) + way.by_norms
            for rows, way in zip(self.rows.rows, self.ways, strict=True)
        ]
        each = self.dtype.itemsize * (sum(widths) + len(self.rows.values)) + (self.same is not None) * 8
        buffers = sum(way.copies + way.tensor + way.by_norms for way in self.ways) + len(self.rows.values) + 1
        return each * self.padded(count) + UNIT * buffers

    def passing(self, count: int) -> int:
        """Bytes that so many rows take besides while they are laid out there, if the host holds them."""
        widths = [
            way.copies * rows.shape[1] * max(rows.dtype.itemsize, 4)
            for rows, way in zip(self.rows.rows, self.ways, strict=True)
            if not isinstance(rows, DeviceArray)
        ]
        return sum(widths) * count + UNIT * len(widths)

    def sent(
        self, device: Device, start: int, stop: int, shared: DeviceSide | None = None, wait: bool = False
    ) -> DeviceSide:
        """Rows [start, stop) on the device; those of `shared` are the same, and are not copied again.

        With `wait`, memory that rows pass through is free again before more of it is taken.
        """
        sender = _Sender(device, self.padded(stop - start), self.dtype, wait)
        pairings = []
        for p, (rows, way) in enumerate(zip(self.rows.rows, self.ways, strict=True)):
            norms = 0
            if way.by_norms:
                squared = self.rows.norms[p]
                assert squared is not None
                norms = sender.values(squared[start:stop], BEYOND)
            if shared is not None:
                first, _, other, scales = shared.pairings[p]
            else:
                first, other, scales = sender.pairing(rows[start:stop], way)
            pairings.append((first, norms, other, scales))
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
    wait: bool

    def __post_init__(self) -> None:
        self.buffers: list[Buffer] = []

    def pairing(self, rows: Array | DeviceArray, way: Way) -> tuple[int, int, int]:
        """The addresses of the rows for norms and for terms, and of their scales."""
        first = other = scales = 0
        if way.tensor:
            split, scales = self.split(rows, way.norms_origin if way.by_norms else way.origin)
            first, other = (split, 0) if way.by_norms else (0, split)
        elif way.by_norms:
            first = self.rows(rows, way.norms_origin)
        if way.by_terms and not other:
            other = first if first and way.copies == 1 else self.rows(rows, way.origin)
        return first, other, scales

    def rows(self, rows: Array | DeviceArray, origin: Array | None) -> int:
        """The address of rows less an origin, feature by feature, padded with zeros."""
        deep = _deep(rows.shape[1])
        buffer = self._empty(deep * self.padded * self.dtype.itemsize)
        for start, some, count in self._parts(rows):
            some.lay(origin, self.dtype, (buffer, start, self.padded), count, deep)
        return buffer.address

    def split(self, rows: Array | DeviceArray, origin: Array | None) -> tuple[int, int]:
        """The addresses of rows less an origin as tensor cores take them, and of their scales."""
        groups = _deep(rows.shape[1]) // 8
        buffer, scales = self._empty(32 * groups * self.padded), self._empty(4 * self.padded)
        for start, some, count in self._parts(rows):
            some.split(origin, (buffer, scales, start, self.padded), count, groups)
        return buffer.address, scales.address

    def _parts(self, rows: Array | DeviceArray) -> Iterator[tuple[int, DeviceArray, int]]:
        """Runs of rows on the device, each with its first row and how many rows it makes up with the padding."""
        if isinstance(rows, DeviceArray):
            yield 0, rows, self.padded
            return
        n, dtype = len(rows), rows.dtype if rows.dtype in FLOATS else np.dtype(np.float64)
        step = max(1, STAGED // max(rows.shape[1] * dtype.itemsize, 1))
        for start in range(0, max(n, 1), step):
            some, last = rows[start : start + step], start + step >= n
            own = self.device.staging(some.shape, dtype)
            own[...] = some
            yield start, DeviceArray.of(self.device, own), self.padded - start if last else step
            if self.wait:
                self.device.ended()

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
