"""Zarr arrays, read by slabs: runs of rows that end where the stored chunks do."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.points.budget import require
from mercer.points.disk.arrow import needed
from mercer.points.disk.sources import Array, Chunks, RowSource, Stamp, floats

__all__ = ["ZarrSource"]


class ZarrSource(RowSource):
    """The rows of a Zarr array in a folder (``.zarr``).

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path
        zarr = needed("zarr")
        try:
            self._array = zarr.open_array(str(path), mode="r")
        except Exception as error:  # whatever its codecs and its reader of JSON raise
            raise _unreadable(path.name, error) from error
        if self._array.ndim != 2 or self._array.dtype.kind not in "fiub" or 0 in self._array.shape:
            given = f"has shape {self._array.shape} and dtype {self._array.dtype}"
            raise InvalidInput(message(path.name, given, "give a table of numbers, one row a point"))
        self.count, self.columns = self._array.shape
        self.dtype, self._stamps = floats(self._array.dtype), self._found()
        self._require_all()

    def _found(self) -> dict[Path, Stamp]:
        return {path: Stamp.of(path) for path in sorted(self._path.rglob("*")) if path.is_file()}

    def _require_all(self) -> None:
        """Raise InvalidInput if stored chunks are missing: Zarr would read fill values for them."""
        unit = self._array.shards or self._array.chunks
        wanted = math.prod(-(-size // each) for size, each in zip(self._array.shape, unit, strict=True))
        stored = len(self._stamps) - 1  # one describes the array
        if stored >= wanted:  # or a list of all of them could be longer than memory
            wanted, stored = self._array.nchunks, self._array.nchunks_initialized
        if stored < wanted:
            given = f"{wanted - stored} of {wanted} stored chunks are missing"
            raise InvalidInput(message(self.name, given, "copy the folder again, or write all chunks"))

    def check(self) -> None:
        if self._found() != self._stamps:
            raise InvalidInput(message(self.name, "changed while it was read", "fit again when it is complete"))

    def _chunks(self, rows: int, budget: int) -> Chunks:
        step = max(rows // self._array.chunks[0], 1) * self._array.chunks[0]
        what = f"{self.name}: rows of one stored chunk"
        require(self._taken(step), budget, what, "write it with smaller chunks")
        for first in range(0, self._array.shape[0], step):
            yield self._slab(first, first + step)

    def _taken(self, step: int) -> int:
        """The bytes that are in memory while so many rows are read."""
        n, width = self._array.shape[0], self._array.chunks[1]
        stored, kept = self._array.dtype.itemsize, self.dtype.itemsize
        # Chunks are whole, also at the edges. As they are stored they are in memory too, and take at most as much.
        unpacked = step * -(-self.columns // width) * width * stored
        slab, before = min(step, n) * self.columns, min(step, max(n - step, 0)) * self.columns
        return 2 * unpacked + slab * (stored + kept * (self._array.dtype != self.dtype)) + before * kept

    def _slab(self, first: int, last: int) -> Array:
        try:
            rows = self._array[first:last]
        except Exception as error:  # whatever its codecs raise
            raise _unreadable(self.name, error) from error
        return np.ascontiguousarray(rows, self.dtype)


def _unreadable(name: str, error: Exception) -> InvalidInput:
    do = "give the folder of one Zarr array; it may be incomplete"
    return InvalidInput(message(name, f"cannot be read as Zarr ({error})", do))
