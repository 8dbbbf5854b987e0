"""The engine for CUDA devices: it plans programs there, and leaves the loops over single numbers to the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mercer.engine.contract import LOOPS, Capabilities, Engine, TileProgram, TileRows
from mercer.engine.cuda.arrays import DeviceArray
from mercer.engine.cuda.cholesky import DeviceFactors
from mercer.engine.cuda.devices import Array, Device
from mercer.engine.cuda.shared import SharedTiles
from mercer.engine.cuda.sides import STAGED
from mercer.engine.cuda.tall import TallMatrix
from mercer.engine.cuda.tiles import CudaTiles

__all__ = ["CudaEngine"]

PIECE = 1e13
"""Operations of a device between two interrupt checks."""


class CudaEngine(Engine):
    """Tiles on devices; the loops are those of an engine of the host.

    Parameters
    ----------
    devices : sequence of Device
        Each has all rows, or as many as fit, and computes a share of the rows of each result.
    host : Engine
    """

    def __init__(self, devices: Sequence[Device], host: Engine) -> None:
        super().__init__(host.loops)
        self._devices, self._host = tuple(devices), host
        for name in LOOPS:
            setattr(self, name, getattr(host, name))

    @property
    def capabilities(self) -> Capabilities:
        name = " and ".join(one.name() for one in self._devices)
        return Capabilities(name, (name,), compiled=self._host.capabilities.compiled)

    def piece(self, tiles: object) -> float:
        """Operations on these tiles between two interrupt checks, for one of the host's threads."""
        return PIECE / self.threads() if isinstance(tiles, CudaTiles) else super().piece(tiles)

    def mirrors(self, tiles: object) -> bool:
        return not isinstance(tiles, CudaTiles)

    def adopted(self, X: Any) -> DeviceArray | None:
        """Rows that lie on the device, if one device is in use: several would read them from each other."""
        return self._devices[0].adopted(X) if len(self._devices) == 1 else None

    def reads(self, rows: Any) -> bool:
        return isinstance(rows, DeviceArray) and self._devices == (rows.device,)

    def exported(self, values: Array) -> Any:
        return self._devices[0].exported(values)

    def host_bytes(self, copies: int) -> int:
        """As much as is turned at a time, on the way to each device."""
        return min(copies, len(self._devices) * STAGED)

    def room(self) -> int:
        return TallMatrix.room(self._devices[0]) if len(self._devices) == 1 else 0

    def kept_product(self, tiles: object, R: Array) -> TallMatrix | None:
        if len(self._devices) > 1 or not isinstance(tiles, CudaTiles):
            return None
        return TallMatrix.product(tiles, R)

    def cholesky_rows(self) -> int:
        return DeviceFactors.most_rows(self._devices[0]) if len(self._devices) == 1 else 0

    def kept_factors(self, tiles: object, jitter: float, shift: float, largest: float) -> DeviceFactors | None:
        if len(self._devices) > 1 or not isinstance(tiles, CudaTiles):
            return None
        return DeviceFactors.of(tiles, jitter, shift, largest)

    def plan(self, program: TileProgram, x: TileRows, z: TileRows, self_pairs: Array | None = None) -> CudaTiles:
        first, *others = self._devices
        if not others:
            return CudaTiles(first, program, x, z, self_pairs)
        return SharedTiles(first, program, x, z, self_pairs, others=others)
