"""The engine for a CUDA device: it plans programs there, and leaves the loops over single numbers to the host."""

from __future__ import annotations

from mercer.engine.contract import LOOPS, Capabilities, Engine, TileProgram, TileRows
from mercer.engine.cuda.devices import Array, Device
from mercer.engine.cuda.tiles import CudaTiles

__all__ = ["CudaEngine"]


class CudaEngine(Engine):
    """Tiles on a device; the loops are those of an engine of the host.

    Parameters
    ----------
    device : Device
    host : Engine
    """

    def __init__(self, device: Device, host: Engine) -> None:
        super().__init__(host.loops)
        self._device, self._host = device, host
        for name in LOOPS:
            setattr(self, name, getattr(host, name))

    @property
    def capabilities(self) -> Capabilities:
        name = self._device.name()
        return Capabilities(name, (name,), compiled=self._host.capabilities.compiled)

    def plan(self, program: TileProgram, x: TileRows, z: TileRows, self_pairs: Array | None = None) -> CudaTiles:
        return CudaTiles(self._device, program, x, z, self_pairs)
