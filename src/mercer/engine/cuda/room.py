"""How much of a plan lies on the device at a time, from the memory that is free there."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.engine.cuda.faults import MEMORY
from mercer.engine.cuda.sides import STAGED, HostSide
from mercer.errors import DeviceError, message

__all__ = ["VECTORS", "Room"]

SHARE = 0.8
"""The share of the free memory that a plan may take; the driver, compiled kernels and other plans need some, too."""
OUTPUT = 1 << 27
"""The most bytes of a result that are computed before they are copied to the host."""
SMALL = 1 << 14
"""Bytes of tables and numbers."""
PARTS = 1024
"""The most parts of a product in one launch."""
GRID = 65534
"""The most tiles of rows in one launch of a block; a driver takes one more, and tiles may begin before the rows."""
VECTORS = 4
"""The most vectors that a product takes at a time."""


@dataclass(frozen=True)
class Room:
    """The memory of a plan.

    Parameters
    ----------
    whole : bool
        Whether all rows of both sides stay on the device.
    rows : int
        The most rows of a side that are there at a time. Those of the next run are copied while a kernel works, so
        there may be twice as many.
    tile : int
        Rows of a tile.
    output : int
        Bytes of a result that are on the device at a time; twice as many exist.
    planned : int
        The most bytes that the plan takes.
    """

    whole: bool
    rows: int
    tile: int
    output: int
    planned: int

    @classmethod
    def of(cls, free: int, x: HostSide, z: HostSide, shared: bool) -> Room:
        """The room in so much free memory; `shared` if both sides have the same rows.

        Raises
        ------
        DeviceError
            If not even two tiles fit.
        """
        budget = int(SHARE * free)
        output = max(min(OUTPUT, budget // 16), 8 * VECTORS * x.tile**2)
        vectors = VECTORS * x.dtype.itemsize

        def scratch(rows: int) -> int:
            return 2 * (output + vectors * rows + SMALL)

        n, m = x.rows.count, z.rows.count
        passing = min(max(x.passing(n), z.passing(m) * (not shared)), STAGED + x.passing(1) + z.passing(1))
        planned = x.bytes(n) + z.bytes(m, shared) + scratch(max(n, m)) + passing
        if planned <= budget:
            return cls(True, max(n, m, 1), x.tile, output, planned)

        def streamed(tiles: int) -> int:
            rows = tiles * x.tile
            return 2 * (x.bytes(rows) + x.passing(rows) + z.bytes(rows) + z.passing(rows)) + scratch(rows)

        each = streamed(2) - streamed(1)
        tiles = (budget - streamed(0)) // each
        if tiles < 1:
            least = streamed(1) / SHARE
            given = f"the device has {free / 1e6:.3g} MB free, and even a few rows need {least / 1e6:.3g} MB"
            raise DeviceError(message("cuda", given, MEMORY))
        return cls(False, tiles * x.tile, x.tile, output, streamed(tiles))

    @property
    def parts(self) -> int:
        """The most parts of a product in one launch, for one tile of rows at least."""
        return max(1, min(PARTS, self.output // (8 * VECTORS * self.tile)))

    def block(self, width: int, itemsize: int) -> tuple[int, int]:
        """Rows and columns of a part of a block of entries."""
        cells = self.output // itemsize
        width = min(width, self.rows, self._tiles(cells // self.tile))
        return min(self.rows, self._tiles(cells // width), GRID * self.tile), width

    def product(self, parts: int, vectors: int) -> tuple[int, int]:
        """Rows and columns of a part of a product in so many parts with so many vectors."""
        return min(self.rows, self._tiles(self.output // (8 * parts * vectors))), self.rows

    def _tiles(self, rows: int) -> int:
        """Rows of whole tiles, one at least."""
        return max(rows // self.tile, 1) * self.tile
