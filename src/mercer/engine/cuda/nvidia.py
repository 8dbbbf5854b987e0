"""NVIDIA's devices by cuda.core: NVRTC compiles, and compiled kernels are kept in the user's cache folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer.engine.cuda.devices import Array, Buffer, Kernels
from mercer.errors import DeviceError, message
from mercer.planning.machine import cache_folder

__all__ = ["NvidiaDevice", "NvidiaKernels", "cubin"]


def _library() -> Any:
    try:
        import cuda.core
    except ImportError as error:
        raise DeviceError(message("cuda", "cuda.core is not installed", 'pip install "mercer[cuda]"')) from error
    return cuda.core


@contextmanager
def _clear(doing: str) -> Iterator[None]:
    """One error for whatever the driver, the compiler or the device reports."""
    try:
        yield
    except DeviceError:
        raise
    except Exception as error:
        told = " ".join(str(error).split()) or type(error).__name__
        do = 'see what nvidia-smi says of the device and its driver, or go on without it: mercer.use("native")'
        if "OUT_OF_MEMORY" in told:
            do = 'give fewer rows, or float32 rows, end other programs on the device, or mercer.use("native")'
        raise DeviceError(message("cuda", f"{doing} failed: {told.rstrip('.')}", do)) from error


def cubin(source: str, architecture: str, *, keep: bool = True) -> Any:
    """The object code of a source for an architecture, such as "sm_90"; needs no device and no driver.

    Raises
    ------
    DeviceError
        If cuda.core is not installed, or if the source does not compile.
    """
    core = _library()
    with _clear(f"compiling for {architecture}"):
        program = core.Program(source, "c++", core.ProgramOptions(arch=architecture, std="c++17"))
        if not keep:
            return program.compile("cubin")
        from cuda.core.utils import FileStreamProgramCache

        with FileStreamProgramCache(cache_folder() / "cuda") as cache:
            return program.compile("cubin", cache=cache)


@dataclass(frozen=True)
class NvidiaBuffer:
    """Memory of the device, freed with this object."""

    held: Any

    @property
    def address(self) -> int:
        """Where it lies on the device."""
        return int(self.held.handle)


@dataclass(frozen=True)
class NvidiaKernels:
    """The kernels of one source, on the stream of their device."""

    code: Any
    stream: Any

    def launch(self, name: str, grid: tuple[int, int], threads: int, arguments: Sequence[int | Buffer]) -> None:
        """Run a kernel on a grid of blocks; integers are of 64 bits."""
        core = _library()
        given = [np.int64(one) if isinstance(one, int) else np.int64(one.address) for one in arguments]
        with _clear(f"the kernel {name}"):
            config = core.LaunchConfig(grid=grid, block=threads)
            core.launch(self.stream, config, self.code.get_kernel(name), *given)


class NvidiaDevice:
    """An NVIDIA device.

    Parameters
    ----------
    number : int
        Which of the devices that the driver shows.

    Raises
    ------
    DeviceError
        If cuda.core is not installed, or no such device can be used.
    """

    side = 16

    def __init__(self, number: int = 0) -> None:
        core = _library()
        with _clear(f"opening device {number}"):
            self._device = core.Device(number)
            self._device.set_current()
            self._stream = self._device.create_stream()
            self.architecture = f"sm_{self._device.arch}"
            self.blocks = 2 * int(self._device.properties.multiprocessor_count)
        self.compiled: Callable[[str], Kernels] = lru_cache(maxsize=None)(self._compiled)

    def name(self) -> str:
        """What the driver calls it."""
        return str(self._device.name)

    def send(self, array: Array) -> NvidiaBuffer:
        """A copy on the device."""
        given = np.ascontiguousarray(array)
        buffer = self.empty(given.nbytes)
        with _clear(f"copying {given.nbytes} bytes to the device"):
            if given.nbytes:
                buffer.held.copy_from(self._host(given), stream=self._stream)
                self._stream.sync()
        return buffer

    def empty(self, size: int) -> NvidiaBuffer:
        """So many bytes that are not set."""
        with _clear(f"taking {size} bytes of the device"):
            return NvidiaBuffer(self._device.allocate(max(size, 1), stream=self._stream))

    def fetch(self, buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """A copy of the device's memory, when all launches have ended."""
        out = np.empty(shape, dtype)
        assert isinstance(buffer, NvidiaBuffer)
        with _clear(f"copying {out.nbytes} bytes from the device"):
            if out.nbytes:
                buffer.held.copy_to(self._host(out), stream=self._stream)
            self._stream.sync()
        return out

    def _host(self, array: Array) -> Any:
        return _library().Buffer.from_handle(array.ctypes.data, array.nbytes, owner=array)

    def _compiled(self, source: str) -> Kernels:
        return NvidiaKernels(cubin(source, self.architecture), self._stream)
