"""cuda.core without a driver: memory and kernels of the host, streams that work late, and calls that fail as told."""

from __future__ import annotations

import ctypes
import sys
import weakref
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import numpy as np
from host_device import ForeignArray

from mercer.engine.cuda import nvidia

try:
    from cuda.core.utils import StridedMemoryView
except ImportError:
    StridedMemoryView = None


class CUDAError(Exception):
    pass


@dataclass
class Driver:
    """Counts the calls; the n-th fails, and all later ones too if the device is lost. Buffers make up its memory."""

    device: object
    """A `HostDevice`, which compiles."""
    memory: int = 1 << 30
    version: int = 13050
    fails: int = 0
    error: str = "CUDA_ERROR_OUT_OF_MEMORY"
    calls: int = 0
    used: int = 0
    peak: int = 0
    overlapped: int = 0
    """Copies to the device while kernels waited."""
    streams: list = field(default_factory=list)

    def call(self, sticky=("ILLEGAL_ADDRESS", "LAUNCH_FAILED")):
        self.calls += 1
        if self.fails and (self.calls == self.fails or (self.calls > self.fails and self.error.endswith(sticky))):
            raise CUDAError(f"{self.error}: as told")

    def take(self, size):
        self.call()
        if self.used + size > self.memory:
            raise CUDAError("CUDA_ERROR_OUT_OF_MEMORY: The API call failed because of its size.")
        self.used += size
        self.peak = max(self.peak, self.used)
        held = np.full(size, 0xFF, np.uint8)
        buffer = FakeBuffer(self, held.ctypes.data, size, held)
        weakref.finalize(buffer, self.give, held)
        return buffer

    def give(self, held):
        self.used -= held.nbytes
        held[:] = 0xEE  # what still reads it is found

    def install(self, monkeypatch):
        """Put it in the place of cuda.core and of the driver's bindings."""
        core = ModuleType("cuda.core")
        core.Device = lambda number: FakeDevice(self, number)
        core.Buffer = SimpleNamespace(from_handle=lambda address, size, owner: FakeBuffer(self, address, size, owner))
        core.LaunchConfig = lambda grid, block: SimpleNamespace(grid=grid, block=block)
        core.launch = self.launch
        core.LegacyPinnedMemoryResource = lambda: SimpleNamespace(allocate=self.pinned)
        driver = SimpleNamespace(
            cuDriverGetVersion=lambda: (0, self.version),
            cuMemGetInfo=lambda: (self.call(), 0, self.memory - self.used, self.memory)[1:],
        )
        nvrtc = SimpleNamespace(nvrtcVersion=lambda: (0, 13, 5))
        core.ProgramOptions = lambda **options: options
        core.Program = lambda source, *_: SimpleNamespace(compile=lambda kind, cache: self.compiled(source))
        utils = SimpleNamespace(FileStreamProgramCache=lambda folder: nullcontext(), StridedMemoryView=FakeView)
        for name, module in {
            "core": core,
            "core.utils": utils,
            "bindings.driver": driver,
            "bindings.nvrtc": nvrtc,
        }.items():
            monkeypatch.setitem(sys.modules, f"cuda.{name}", module)
        monkeypatch.setattr(nvidia.NvidiaDevice, "side", self.device.side)
        return nvidia.NvidiaDevice(tensor_cores=False)

    def compiled(self, source):
        self.call()
        return self.device.compiled(source)

    def pinned(self, size):
        self.call()
        held = np.empty(size, np.uint8)
        return SimpleNamespace(handle=held.ctypes.data, size=size, held=held)

    def launch(self, stream, config, kernel, *arguments):
        self.call()
        name, code = kernel
        given = [int(one) for one in arguments]
        stream.later(lambda: code.launch(name, config.grid, config.block, given))


class FakeView:
    """Reading is that of cuda.core; buffers of the made-up driver are given as they are."""

    @staticmethod
    def from_dlpack(given, stream_ptr):
        return StridedMemoryView.from_dlpack(given, stream_ptr=-1)

    @staticmethod
    def from_buffer(buffer, shape, dtype):
        given = ForeignArray(buffer.owner.view(dtype).reshape(shape))
        given.buffer = buffer  # whose memory goes with it
        return given


@dataclass
class FakeStream:
    """Work is done when the stream is waited for, as late as possible."""

    handle = 0
    driver: Driver
    waiting: list = field(default_factory=list)

    def later(self, work):
        self.waiting.append(work)

    def sync(self):
        self.driver.call()
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            work()


@dataclass(eq=False)
class FakeBuffer:
    driver: Driver
    handle: int
    size: int
    owner: object

    def copy_from(self, other, stream):
        self.driver.call()
        self.driver.overlapped += any(one.waiting for one in self.driver.streams if one is not stream)
        stream.later(lambda: ctypes.memmove(self.handle, other.handle, other.size))

    def copy_to(self, other, stream):
        other.copy_from(self, stream)


class FakeDevice:
    arch, name = "90", "fake"
    properties = SimpleNamespace(multiprocessor_count=2)

    def __init__(self, driver, number):
        self.driver = driver
        if number > 1:
            raise CUDAError("CUDA_ERROR_INVALID_DEVICE: as told")
        self.memory_resource = SimpleNamespace(attributes=SimpleNamespace(reserved_mem_current=0, used_mem_current=0))

    def set_current(self):
        self.driver.call()

    def create_stream(self):
        self.driver.call()
        self.driver.streams.append(FakeStream(self.driver))
        return self.driver.streams[-1]

    def allocate(self, size, stream):
        return self.driver.take(size)
