"""What the engine needs of a device: memory, copies, and kernels compiled from source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Buffer", "Device", "Kernels", "sent"]

Array: TypeAlias = NDArray[Any]


class Buffer(Protocol):
    """Memory of a device, freed with the object."""

    @property
    def address(self) -> int:
        """Where it lies on the device."""


class Kernels(Protocol):
    """The kernels of one compiled source."""

    def launch(self, name: str, grid: tuple[int, int], threads: int, arguments: Sequence[int | Buffer]) -> None:
        """Start a kernel on a grid of blocks; integers are of 64 bits. Its buffers are kept until `fetch`."""


class Device(Protocol):
    """A device that compiles and runs CUDA C++.

    Kernels run one after the other. Copies to the device do not wait for them, and have ended when they return.
    """

    side: int
    """Threads on each side of a block."""
    blocks: int
    """Blocks that run at a time."""
    tensor_features: float
    """The least number of features for which float32 dot products are those of tensor cores."""

    def name(self) -> str:
        """The name of the device, for reports and messages."""

    def free(self) -> int:
        """Bytes that this process can take now."""

    def empty(self, size: int) -> Buffer:
        """So many bytes that are not set."""

    def staging(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory of the host from which copies are fast; the next call may give the same memory."""

    def copy(self, array: Array, buffer: Buffer, offset: int = 0) -> None:
        """Copy a contiguous array into a buffer, from a byte on."""

    def fetch(self, buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """A copy of the device's memory, when all kernels have ended."""

    def ended(self) -> None:
        """Wait until all kernels have ended; what they read may be freed."""

    def compiled(self, source: str) -> Kernels:
        """The kernels of a source; a source is compiled once."""

    def adopted(self, X: Any) -> Any:
        """An array with DLPack's methods as a `DeviceArray`; None if it does not lie on this device, as a table."""

    def exported(self, array: Array) -> Any:
        """A copy on the device, with DLPack's methods."""


def sent(device: Device, array: Array) -> Buffer:
    """A copy of an array on the device."""
    given = np.ascontiguousarray(array)
    buffer = device.empty(given.nbytes)
    device.copy(given, buffer)
    return buffer
