"""Tables that lie in the memory of a device: those of other libraries, by DLPack, are read there and not copied."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from mercer.engine.cuda.devices import Array, Buffer, Device, Kernels, sent

__all__ = ["FLOATS", "TOGETHER", "DeviceArray", "adopted"]

ON_CUDA = (2, 13)
"""DLPack's numbers of a CUDA device's memory, and of memory that CUDA moves between host and device."""
FLOATS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
RUNS = 256
"""The most runs of rows whose sums by column are added on the host."""
BLOCKS = 1024
"""The most blocks of a launch on each side."""
SCALED, EACH = 14, 1 << 20
"""The power of two to which the largest number is scaled for tensor cores, and what stands for a scale of each row."""
TOGETHER, LINES = 4, 4
"""Vectors that a table is multiplied by at a time, and rows for which a block of threads reads them once."""


def adopted(device: Device, number: int, X: Any, stream: int) -> DeviceArray | None:
    """An array of another library as it lies on the device with this number; None if it does not.

    Work of the other library on the array ends before what is started on `stream` later begins.
    """
    kind, place = X.__dlpack_device__()
    if kind not in ON_CUDA or place != number:
        return None
    seen = importlib.import_module("cuda.core.utils").StridedMemoryView.from_dlpack(X, stream_ptr=stream)
    try:
        dtype = seen.dtype
    except (NotImplementedError, TypeError, ValueError):  # bfloat16 and smaller ones, which NumPy has not
        return None
    if len(seen.shape) != 2 or dtype not in FLOATS:
        return None
    strides = seen.strides or (seen.shape[1], 1)
    return DeviceArray(device, seen.ptr, tuple(seen.shape), tuple(strides), dtype, (X, seen))


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """A table of float32 or float64 numbers on a device.

    Parameters
    ----------
    device : Device
    address : int
        Where its first number lies.
    shape, strides : (int, int)
        Strides count numbers.
    dtype : float32 or float64
    owner : object
        What keeps the memory.
    known : float, optional
        A bound of the |numbers|. Then tensor cores take all rows with one scale.
    """

    device: Device
    address: int
    shape: tuple[int, int]
    strides: tuple[int, int]
    dtype: np.dtype[Any]
    owner: Any = field(repr=False)
    known: float | None = None

    @classmethod
    def empty(
        cls, device: Device, shape: tuple[int, int], dtype: np.dtype[Any], known: float | None = None
    ) -> DeviceArray:
        """A table on the device whose numbers are not set."""
        held = device.empty(shape[0] * shape[1] * dtype.itemsize)
        return cls(device, held.address, shape, (shape[1], 1), dtype, held, known)

    @classmethod
    def of(cls, device: Device, array: Array) -> DeviceArray:
        """A copy of a table on the device."""
        held = sent(device, array)
        return cls(device, held.address, array.shape, (array.shape[1], 1), array.dtype, held)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> DeviceArray:
        """The transposed table, in the same memory."""
        return replace(self, shape=self.shape[::-1], strides=self.strides[::-1], owner=self)

    def columns(self, first: int, last: int) -> DeviceArray:
        """A run of columns, where they are."""
        return self.T[first:last].T

    def __getitem__(self, place: Any) -> Any:
        """A run of rows, where they are; rows with given indices as a copy on the host."""
        if isinstance(place, slice) and place.step in (None, 1):
            first, last, _ = place.indices(len(self))
            start = self.address + first * self.strides[0] * self.dtype.itemsize
            return replace(self, address=start, shape=(max(last - first, 0), self.shape[1]))
        return self.take(np.atleast_1d(np.arange(len(self))[place]))._copied()

    def take(self, index: Array) -> DeviceArray:
        """The rows with these indices, on the device."""
        return self._picked(sent(self.device, index.astype(np.int64)), 0, len(index))

    def scaled(self, scale: Array) -> DeviceArray:
        """Each row times its number, on the device."""
        return self._picked(0, sent(self.device, scale.astype(np.float64)), len(self))

    def write(self, other: DeviceArray) -> None:
        """Take the numbers of another table of this shape."""
        into, given = self._along(other)
        given._launch("laid", self.dtype, given.shape, [0, 0, 0, into, 0, *into.strides, *given.shape])

    def subtract(self, other: DeviceArray) -> None:
        """Take the numbers of another table of this shape from these."""
        into, given = self._along(other)
        given._launch("subtracted", self.dtype, given.shape, [into, *into.strides])

    def times(self, v: DeviceArray, out: DeviceArray, start: DeviceArray | None = None) -> None:
        """The product A v into `out`, or start − A v; v and the others are float64, and have `TOGETHER` columns.

        `out` may be `start`, and no part of v.
        """
        threads = self.device.side**2
        blocks = -(-len(self) // (LINES if self.strides[1] == 1 else threads))
        given: list[int | Buffer] = [v, 0 if start is None else start, out]
        self._launch("multiplied", np.dtype(np.float64), (blocks * threads, 1), given)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self._copied(), dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @cached_property
    def own_sums(self) -> Array:
        """`row_sums` of the rows as they are."""
        return self.row_sums(None)

    def largest(self) -> float:
        """The largest |number|."""
        if self.known is not None:
            return self.known
        if isinstance(self.owner, DeviceArray):  # of which this is the transposed table
            return self.owner.largest()
        return float(self.own_sums[2].max(initial=0.0))

    def mean(self) -> Array:
        """The mean of each column."""
        (n, d), height = self.shape, -(-len(self) // RUNS)
        runs = -(-n // height)
        out = self.device.empty(8 * runs * d)
        self._launch("column_sums", self.dtype, (d, runs), [height, out])
        return np.asarray(self.device.fetch(out, np.dtype(np.float64), (runs, d)).sum(axis=0) / n)

    def row_sums(self, origin: Array | None, dtype: np.dtype[Any] | None = None) -> Array:
        """‖x − o‖² of each row, with x − o rounded to `dtype`; then Σ xₖ, and the largest |xₖ|."""
        out, moved = self.device.empty(24 * len(self)), self._origin(origin)
        self._launch("row_sums", dtype or self.dtype, (len(self), 1), [moved, out])
        return self.device.fetch(out, np.dtype(np.float64), (3, len(self)))

    def lay(
        self, origin: Array | None, dtype: np.dtype[Any], place: tuple[Buffer, int, int], rows: int, deep: int
    ) -> None:
        """The rows less an origin, feature by feature, padded with zeros to `rows` and `deep` features.

        `place` is a buffer of the device, the row in it at which they begin, and how many rows it has.
        """
        buffer, start, pitch = place
        given = [0, self._origin(origin), 0, buffer, start, 1, pitch, rows, deep]
        self._launch("laid", dtype, (rows, deep), given)

    def split(self, origin: Array | None, place: tuple[Buffer, Buffer, int, int], rows: int, groups: int) -> None:
        """The same as tensor cores take them, and their scales: `place` has a buffer for each."""
        buffer, scales, start, pitch = place
        shift = SCALED - math.frexp(self.known)[1] + 1 if self.known and origin is None else EACH
        given = [self._origin(origin), buffer, scales, start, pitch, rows, groups, shift]
        self._launch("split", np.dtype(np.float32), (rows, 1 if shift == EACH else groups), given)

    def _copied(self) -> Array:
        plain = self.strides == (self.shape[1], 1)
        return self.device.fetch(self if plain else self.take(np.arange(len(self))), self.dtype, self.shape)

    def _along(self, other: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """Both tables, transposed if the threads of a block should go along the columns of this one."""
        return (self.T, other.T) if self.strides[1] == 1 else (self, other)

    def _picked(self, index: int | Buffer, scale: int | Buffer, count: int) -> DeviceArray:
        shape = count, self.shape[1]
        out = self.device.empty(count * shape[1] * self.dtype.itemsize)
        given = [index, 0, scale, out, 0, shape[1], 1, *shape]
        replace(self, shape=shape)._launch("laid", self.dtype, shape, given)
        return DeviceArray(self.device, out.address, shape, (shape[1], 1), self.dtype, out)

    def _origin(self, origin: Array | None) -> int | Buffer:
        return 0 if origin is None else sent(self.device, np.asarray(origin, np.float64))

    def _launch(self, name: str, dtype: np.dtype[Any], size: tuple[int, int], more: list[int | Buffer]) -> None:
        if 0 in size:  # a driver refuses a grid without blocks
            return
        threads = self.device.side**2
        grid = min(-(-size[0] // threads), BLOCKS), min(size[1], BLOCKS)
        head: list[int | Buffer] = [self, *self.strides, *self.shape]
        self._kernels(dtype, threads).launch(name, grid, threads, [*head, *more])

    def _kernels(self, dtype: np.dtype[Any], threads: int) -> Kernels:
        return self.device.compiled(_source(FLOATS[self.dtype], FLOATS[dtype], threads))


@cache
def _source(given: str, computed: str, threads: int) -> str:
    """What is done with rows of such numbers, as CUDA C++."""
    lines = [f"typedef {given} FROM;", f"typedef {computed} REAL;", f"constexpr int EACH = {EACH};"]
    lines.append(f"constexpr int THREADS = {threads}, SCALED = {SCALED}, TOGETHER = {TOGETHER}, LINES = {LINES};")
    text = files("mercer.engine.cuda").joinpath("rows.cu").read_text(encoding="utf-8")
    return "\n".join([*lines, text])
