"""A device on the host: the sources of the CUDA engine, compiled by the C++ compiler that is there."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mercer.engine.cuda.arrays import adopted

SHIM = Path(__file__).with_name("host_device.hpp")
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
GIVEN = ["const FROM* in", "Index s0", "Index s1", "Index count", "Index columns"]
HEAD = ["const Index* at", "const REAL* numbers", "Index rows", "Index columns", "Index i0", "Index i1"]
HIGHEST = 65535
"""The most blocks of a grid in its second direction."""
ONE = threading.Lock()
"""The blocks of a library are static."""
SIGNATURES = {
    "entries": [*HEAD, "Index j0", "Index j1", "REAL* out"],
    "multiply": [*HEAD, "Index j0", "const Index* bounds", "const REAL* v", "double* out"],
}
OF_ROWS = {
    "laid": [*GIVEN, "const Index* index", "const double* origin", "const double* scale", "REAL* out",
             "Index start", "Index p0", "Index p1", "Index rows", "Index deep"],
    "split": [*GIVEN, "const double* origin", "Eight* out", "float* scales", "Index start", "Index pitch", "Index rows",
              "Index groups", "Index shift"],
    "row_sums": [*GIVEN, "const double* origin", "double* out"],
    "column_sums": [*GIVEN, "Index height", "double* out"],
    "subtracted": [*GIVEN, "REAL* out", "Index p0", "Index p1"],
    "multiplied": [*GIVEN, "const REAL* v", "const REAL* from", "REAL* out"],
}  # fmt: skip


@dataclass
class HostBuffer:
    array: np.ndarray

    @property
    def address(self):
        return self.array.ctypes.data


class HostKernels:
    code = b"\x7fELF"

    def __init__(self, library):
        self.loaded = library

    def get_kernel(self, name):
        return name, self

    def launch(self, name, grid, threads, arguments):
        if not (grid[0] and 1 <= grid[1] <= HIGHEST):
            raise RuntimeError(f"a grid of {grid}, which no driver takes")
        values = [one if isinstance(one, int) else one.address for one in arguments]
        numbers = [ctypes.c_longlong(int(value)) for value in (*grid, threads, *values)]
        with ONE:
            getattr(self.loaded, f"run_{name}")(*numbers)


@dataclass
class HostDevice:
    folder: Path
    side: int = 4
    blocks: int = 3
    tensor_features: float = float("inf")
    memory: int = 1 << 30
    optimise: str = "-O0"
    """Of the compiler: "-O1" where more time goes into running kernels than into compiling them."""
    known: dict = field(default_factory=dict)
    staged: int = 0
    """Copies of rows to the device."""
    moved: list = field(default_factory=list)
    """The bytes of each copy to the device or from it."""

    def name(self):
        return "host"

    def free(self):
        return self.memory

    def empty(self, size):
        return HostBuffer(np.full(size, 0xFF, np.uint8))

    def staging(self, shape, dtype):
        self.staged += 1
        return np.empty(shape, dtype)

    def copy(self, array, buffer, offset=0):
        self.moved.append(array.nbytes)
        buffer.array[offset : offset + array.nbytes] = np.ascontiguousarray(array).view(np.uint8).ravel()

    def fetch(self, buffer, dtype, shape):
        out = np.empty(shape, dtype)
        self.moved.append(out.nbytes)
        ctypes.memmove(out.ctypes.data, buffer.address, out.nbytes)
        return out

    def adopted(self, X):
        return adopted(self, 0, X, -1)

    def exported(self, array):
        return ForeignArray(array.copy())

    def ended(self):
        pass

    def compiled(self, source):
        if source not in self.known:
            self.known[source] = HostKernels(ctypes.CDLL(str(self._built(source))))
        return self.known[source]

    def _built(self, source):
        """The library of a source; processes that share the folder compile each source once."""
        name = hashlib.sha256((self.optimise + source).encode()).hexdigest()[:16]
        library = self.folder / f"{name}.so"
        if not library.exists():
            signatures = (OF_ROWS if "FROM" in source else SIGNATURES).items()
            entry = [_entry(kernel, parameters) for kernel, parameters in signatures if f" {kernel}(" in source]
            text = self.folder / f"{name}-{os.getpid()}.cpp"
            text.write_text("\n".join([f'#include "{SHIM}"', source, *entry]))
            _compile(text, self.optimise, library)
        return library


class ForeignArray:
    """An array of a made-up library on the device: DLPack's methods say so of memory that is the host's."""

    dtype = property(lambda self: self.values.dtype)
    shape = property(lambda self: self.values.shape)

    def __init__(self, values, place=(2, 0)):
        self.values, self.place = values, place

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, *, stream=None, dl_device=None, **_):
        if dl_device is not None:
            return self.values.__dlpack__()
        capsule = self.values.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        (ctypes.c_int32 * 2).from_address(pointer(capsule, b"dltensor") + 8)[:] = self.place
        return capsule

    def __array_namespace__(self):
        return Library


class Library:
    """The made-up library."""

    @staticmethod
    def from_dlpack(given):
        return ForeignArray(given.values, given.__dlpack_device__())


def _compile(text, optimise, library):
    """The library appears when it is complete, because other processes may wait for it."""
    part = library.with_suffix(f".{os.getpid()}")
    brief = ["-pipe", "-fno-exceptions", "-fno-asynchronous-unwind-tables"]  # a fifth less time, for hundreds of them
    command = [COMPILER, "-std=c++17", "-w", "-fPIC", "-shared", optimise, *brief, str(text), "-o", str(part)]
    subprocess.run(command, check=True, capture_output=True)
    part.replace(library)


def _entry(kernel, parameters):
    """A function that runs a kernel on a grid; its arguments wait in static variables, for all threads."""
    kept = [f"static Index kept_{kernel}_{k};" for k in range(len(parameters))]
    taken = ", ".join(f"({one.rsplit(' ', 1)[0]})kept_{kernel}_{k}" for k, one in enumerate(parameters))
    given = ", ".join(f"Index a{k}" for k in range(len(parameters)))
    body = " ".join(f"kept_{kernel}_{k} = a{k};" for k in range(len(parameters)))
    return "\n".join([
        *kept,
        f"static void go_{kernel}() {{ {kernel}({taken}); }}",
        f'extern "C" void run_{kernel}(Index gx, Index gy, Index threads, {given}) {{',
        f"    {body} run(int(gx), int(gy), int(threads), go_{kernel});",
        "}",
    ])  # fmt: skip
