"""The matrix of a program on several devices, by blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mercer.engine.cuda.devices import Array, Device
from mercer.engine.cuda.tiles import CudaTiles

__all__ = ["SharedTiles"]


@dataclass
class SharedTiles(CudaTiles):
    """Tiles of which each device computes a block of rows: the same sums as on one, in the same order."""

    others: Sequence[Device] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        rest = (CudaTiles(one, self.program, self.x, self.z, self.self_pairs) for one in self.others)
        self._each: tuple[CudaTiles, ...] = (self, *rest)

    def _entries(self, i0: int, i1: int, j0: int, j1: int) -> Array:
        blocks = self._shared(i0, i1, lambda one, a, b: CudaTiles._entries(one, a, b, j0, j1))
        return np.concatenate(blocks) if blocks else super()._entries(i0, i1, j0, j1)

    def _parts(self, i0: int, i1: int, bounds: Array, v: Array, transposed: bool = False) -> Array:
        blocks = self._shared(i0, i1, lambda one, a, b: CudaTiles._parts(one, a, b, bounds, v, transposed))
        return np.concatenate(blocks, axis=1) if blocks else super()._parts(i0, i1, bounds, v, transposed)

    def _shared(self, i0: int, i1: int, compute: Callable[[CudaTiles, int, int], Array]) -> list[Array]:
        """The blocks of rows [i0, i1), each from a device of its own, at the same time."""
        step = -(-self._tiles_of(i1 - i0) // len(self._each)) * self.row_block
        starts = range(i0, i1, max(step, 1))
        with ThreadPoolExecutor(len(self._each)) as pool:
            running = [
                pool.submit(compute, one, a, min(a + step, i1)) for one, a in zip(self._each, starts, strict=False)
            ]
            return [one.result() for one in running]
