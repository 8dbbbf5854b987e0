"""What the engine needs of a device: memory, copies, and kernels compiled from source; and NVIDIA's, by cuda.core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Buffer", "Device", "Kernels"]

Array: TypeAlias = NDArray[Any]


class Buffer(Protocol):
    """Memory of a device, freed with the object."""

    @property
    def address(self) -> int:
        """Where it lies on the device."""


class Kernels(Protocol):
    """The kernels of one compiled source."""

    def launch(self, name: str, grid: tuple[int, int], threads: int, arguments: Sequence[int | Buffer]) -> None:
        """Run a kernel on a grid of blocks; integers are of 64 bits."""


class Device(Protocol):
    """A device that compiles and runs CUDA C++."""

    side: int
    """Threads on each side of a block."""
    blocks: int
    """Blocks that run at a time."""

    def name(self) -> str:
        """What it is, for reports and messages."""

    def send(self, array: Array) -> Buffer:
        """A copy on the device."""

    def empty(self, size: int) -> Buffer:
        """So many bytes that are not set."""

    def fetch(self, buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """A copy of the device's memory, when all launches have ended."""

    def compiled(self, source: str) -> Kernels:
        """The kernels of a source; a source is compiled once."""
