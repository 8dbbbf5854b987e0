"""NVIDIA's devices by cuda.core: NVRTC compiles, and compiled kernels are kept in the user's cache folder."""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from mercer.engine.cuda.arrays import DeviceArray, adopted
from mercer.engine.cuda.devices import Array, Buffer, Kernels
from mercer.engine.cuda.faults import DRIVER, Faults
from mercer.errors import DeviceError, message
from mercer.planning.machine import cache_folder

__all__ = ["TENSOR_FEATURES", "NvidiaDevice", "NvidiaKernels", "cubin"]

TENSOR_FEATURES = 64
"""With fewer features the bound of tensor cores' errors sends most tiles to differences, at twice the time."""
ELF = b"\x7fELF"
"""The first bytes of object code."""
COMPUTE_CAPABILITY = 8
"""The first generation of devices that multiplies bfloat16 numbers."""


def _library(part: str = "") -> Any:
    try:
        return importlib.import_module(f"cuda.core{part}")
    except ImportError as error:
        raise DeviceError(message("cuda", "cuda.core is not installed", 'pip install "mercer[cuda]"')) from error


def cubin(source: str, architecture: str, *, keep: bool = True, faults: Faults | None = None) -> Any:
    """The object code of a source for an architecture, such as "sm_90"; needs no device and no driver.

    Raises
    ------
    DeviceError
        If cuda.core is not installed, or if the source does not compile.
    """
    core = _library()
    with (faults or Faults()).clear(f"compiling for {architecture}"):
        program = core.Program(source, "c++", core.ProgramOptions(arch=architecture, std="c++17"))
        return _kept(program) if keep else program.compile("cubin")


def _kept(program: Any) -> Any:
    """The object code, which is kept in the user's cache folder if that can be written."""
    try:
        with _library(".utils").FileStreamProgramCache(cache_folder() / "cuda") as cache:
            code = program.compile("cubin", cache=cache)
            if bytes(code.code[:4]) == ELF:
                return code
            cache.clear()  # a file that a crash of the machine left empty
            return program.compile("cubin", cache=cache)
    except OSError:
        return program.compile("cubin")


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
    """The kernels of one source."""

    code: Any
    device: NvidiaDevice

    def launch(self, name: str, grid: tuple[int, int], threads: int, arguments: Sequence[int | Buffer]) -> None:
        """Start a kernel on a grid of blocks; integers are of 64 bits. Its buffers are kept until `fetch`."""
        self.device.launch(self.code, name, grid, threads, arguments)


class NvidiaDevice:
    """An NVIDIA device.

    Parameters
    ----------
    number : int
        Which of the devices that the driver shows.
    tensor_cores : bool
        Whether tensor cores multiply float32 rows of many features.

    Raises
    ------
    DeviceError
        If cuda.core is not installed, or no such device can be used.
    """

    side = 16

    def __init__(self, number: int = 0, *, tensor_cores: bool = True) -> None:
        core = _library()
        self._number, self._faults, self._own = number, Faults(), threading.local()
        self._running: list[Sequence[int | Buffer]] = []
        with self._faults.clear(f"opening device {number}"):
            _check_driver()
            self._device = core.Device(number)
            self._device.set_current()
            self._kernels, self._copies = self._device.create_stream(), self._device.create_stream()
            self.architecture = f"sm_{self._device.arch}"
            self.blocks = 2 * int(self._device.properties.multiprocessor_count)
            self._name = str(self._device.name)
        able = tensor_cores and int(self._device.arch[:-1]) >= COMPUTE_CAPABILITY
        self.tensor_features = TENSOR_FEATURES if able else float("inf")
        self.compiled: Callable[[str], Kernels] = lru_cache(maxsize=None)(self._compiled)

    def name(self) -> str:
        """The name that the driver gives it."""
        return self._name

    def free(self) -> int:
        """Bytes that this process can take now: those of the device, and those that its pool keeps."""
        with self._faults.clear("asking for the free memory"):
            self._use()
            (status, free, _), pool = _driver().cuMemGetInfo(), self._device.memory_resource.attributes
            _check(status)
            return int(free) + int(pool.reserved_mem_current) - int(pool.used_mem_current)

    def empty(self, size: int) -> NvidiaBuffer:
        """So many bytes that are not set."""
        with self._faults.clear(f"taking {size} bytes of the device"):
            self._use()
            buffer = NvidiaBuffer(self._device.allocate(max(size, 1), stream=self._copies))
            self._copies.sync()  # else the other stream might use it before it is there
            return buffer

    def staging(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Pinned memory, one piece a thread, which the next call reuses."""
        size = prod(shape) * dtype.itemsize
        with self._faults.clear(f"taking {size} bytes of pinned memory"):
            self._use()
            if getattr(self._own, "pinned", None) is None or self._own.pinned.size < size:
                self._own.pinned = None
                self._own.pinned = _library().LegacyPinnedMemoryResource().allocate(size)
            memory = (ctypes.c_ubyte * size).from_address(int(self._own.pinned.handle))
            return np.frombuffer(memoryview(memory), dtype).reshape(shape)

    def copy(self, array: Array, buffer: Buffer, offset: int = 0) -> None:
        """Copy a contiguous array into a buffer, from a byte on, while kernels run."""
        with self._faults.clear(f"copying {array.nbytes} bytes to the device"):
            self._use()
            if array.nbytes:
                _view(buffer.address + offset, array.nbytes, buffer).copy_from(_host(array), stream=self._copies)
            self._copies.sync()

    def fetch(self, buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """A copy of the device's memory, when all kernels have ended."""
        out = np.empty(shape, dtype)
        with self._faults.clear(f"copying {out.nbytes} bytes from the device"):
            self._use()
            ended, self._running = self._running, []
            try:
                if out.nbytes:
                    _view(buffer.address, out.nbytes, buffer).copy_to(_host(out), stream=self._kernels)
                self._kernels.sync()
            except BaseException:
                self._running = [*ended, *self._running]  # a kernel may still read them
                raise
        return out

    def ended(self) -> None:
        """Wait until all kernels have ended; what they read may be freed."""
        with self._faults.clear("waiting for kernels"):
            self._use()
            ended, self._running = self._running, []
            try:
                self._kernels.sync()
            except BaseException:
                self._running = [*ended, *self._running]
                raise

    def adopted(self, X: Any) -> DeviceArray | None:
        """An array of another library as it lies on this device; None if it is elsewhere, or not a table of floats."""
        with self._faults.clear("reading an array of another library"):
            self._use()
            return adopted(self, self._number, X, int(self._kernels.handle))

    def exported(self, array: Array) -> Any:
        """A copy on the device, with DLPack's methods."""
        given = np.ascontiguousarray(array)
        buffer = self.empty(given.nbytes)
        self.copy(given, buffer)
        with self._faults.clear("giving an array to another library"):
            return _library(".utils").StridedMemoryView.from_buffer(buffer.held, given.shape, dtype=given.dtype)

    def launch(
        self, code: Any, name: str, grid: tuple[int, int], threads: int, arguments: Sequence[int | Buffer]
    ) -> None:
        """Start a kernel; what it reads and writes is kept until it has ended."""
        core = _library()
        given = [np.int64(one) if isinstance(one, int) else np.int64(one.address) for one in arguments]
        with self._faults.clear(f"the kernel {name}"):
            self._use()
            config = core.LaunchConfig(grid=grid, block=threads)
            self._running.append(arguments)  # before it starts: an interrupt may come as soon as it has
            core.launch(self._kernels, config, code.get_kernel(name), *given)

    def _compiled(self, source: str) -> Kernels:
        return NvidiaKernels(cubin(source, self.architecture, faults=self._faults), self)

    def _use(self) -> None:
        """Make this the device of the thread."""
        _library().Device(self._number).set_current()


def _driver() -> Any:
    return importlib.import_module("cuda.bindings.driver")


def _check(status: Any) -> None:
    if int(status):
        raise RuntimeError(f"{status.name} of the driver")


def _check_driver() -> None:
    """Object code of a newer major version of CUDA than the driver's does not load."""
    status, version = _driver().cuDriverGetVersion()
    _check(status)
    _, major, minor = importlib.import_module("cuda.bindings.nvrtc").nvrtcVersion()
    if version // 1000 < major:
        own = f"{version // 1000}.{version % 1000 // 10}"
        old = f"the driver is too old: it is of CUDA {own}, and NVRTC of {major}.{minor}"
        raise DeviceError(message("cuda", old, DRIVER))


def _host(array: Array) -> Any:
    return _view(array.ctypes.data, array.nbytes, array)


def _view(address: int, size: int, owner: Any) -> Any:
    return _library().Buffer.from_handle(address, size, owner=owner)
