"""The matrix of a program on a device: what `Tiles` promises, by two kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mercer.engine.contract import TileProgram, TileRows
from mercer.engine.cuda.arrays import DeviceArray
from mercer.engine.cuda.devices import Array, Buffer, Device, Kernels, sent
from mercer.engine.cuda.distances import Way
from mercer.engine.cuda.room import GRID, VECTORS, Room
from mercer.engine.cuda.sides import DeviceSide, HostSide
from mercer.engine.cuda.source import Source

__all__ = ["CudaTiles"]

GROUP = 4
"""Tiles begin at multiples of this, where copies of 16 bytes may begin."""
SUMS = 64 << 20
"""Bytes of the sums of parts, of which there are many more than of the product."""
WAVES = 4
"""Blocks of a product for each that runs at a time, so that all processors have work to the end."""


@dataclass(frozen=True)
class Table:
    """Memory of a device with addresses of other memory, which is kept with it."""

    buffer: Buffer
    named: tuple[DeviceSide, DeviceSide]

    @property
    def address(self) -> int:
        """Where it lies on the device."""
        return self.buffer.address


@dataclass
class Job:
    """A kernel that is to run, and what becomes of its result."""

    name: str
    kernels: Kernels
    grid: tuple[int, int]
    arguments: list[int | Buffer]
    out: Buffer
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    use: Callable[[Array], None]


@dataclass
class CudaTiles:
    """The matrix of a program on given rows, on a device.

    Rows stay on the device if there is room for them. Else they are copied there in runs, again for each product, while
    the kernel of the run before works.
    """

    device: Device
    program: TileProgram
    x: TileRows
    z: TileRows
    self_pairs: Array | None
    entries_only: bool = False
    """Whether only entries are asked of dot products, so that long sums can be added where they are written."""

    def __post_init__(self) -> None:
        self.dtype, self.rows, self.columns = self.program.dtype, self.x.count, self.z.count
        depths = [one.shape[1] for one in self.x.rows]
        may = [self.dtype == np.float32 and depth >= self.device.tensor_features for depth in depths]
        pairings = enumerate(zip(self.program.pairings, may, strict=True))
        ways = tuple(Way.of(p, pairing, (self.x, self.z), tensor) for p, (pairing, tensor) in pairings)
        values = len(self.x.values), len(self.z.values)
        self._forward = Source(
            self.program, tuple(depths), ways, *values, self.device.side, self.self_pairs is not None,
            apart=self.entries_only,
        )  # fmt: skip
        self.row_block = self._forward.tile
        same = None if self.self_pairs is None else np.asarray(self.self_pairs, np.int64)
        self._x = HostSide(self.x, ways, self.dtype, self.row_block, same)
        self._z = HostSide(self.z, ways, self.dtype, self.row_block)
        self._rows_are_columns = bool(self.z.rows) and all(
            a is b for a, b in zip(self.x.rows, self.z.rows, strict=True)
        )
        self.room = Room.of(self.device.free(), self._x, self._z, self._rows_are_columns)
        self._held: dict[bool, DeviceSide] = {}
        self._known: dict[tuple[int, bool], Kernels] = {}
        numbers = np.asarray(self._forward.numbers, np.float64).astype(self.dtype)
        self._numbers = sent(self.device, numbers)
        if self.room.whole:
            self._held[False] = self._x.sent(self.device, 0, self.rows, wait=True)
            shared = self._held[False] if self._rows_are_columns else None
            self._held[True] = self._z.sent(self.device, 0, self.columns, shared, wait=True)

    # ---- Tiles -------------------------------------------------------------------------------------------------------

    def block(self, i0: int, i1: int, j0: int, j1: int, *, out: Array) -> None:
        """Rows [i0, i1) × columns [j0, j1) into `out`."""
        out[...] = self._entries(i0, i1, j0, j1)

    def gram(self, i0: int, i1: int, out: Array) -> None:
        """Rows [i0, i1) and, by symmetry, the same columns, into the n × n matrix `out`."""
        values = self._upper_rows(i0, i1)
        out[i0:i1, i0:] = values
        out[i1:, i0:i1] = values[:, i1 - i0 :].T

    def upper(self, i0: int, i1: int, out: Array) -> None:
        """The same rows from the diagonal blocks on, into a vector `out` in which each row of blocks is contiguous."""
        n, height = self.columns, self.row_block
        for top in range(i0, i1, height):
            bottom, start = min(top + height, i1), top * n - top * (top - height) // 2
            out[start : start + (bottom - top) * (n - top)] = self._upper_rows(top, bottom).ravel()

    @np.errstate(all="ignore")
    def multiply(self, i0: int, i1: int, j0: int, j1: int, *, v: Array, out: Array, symmetric: bool) -> None:
        """`out` += K[i0:i1, j0:j1] v[j0:j1]; `symmetric` uses each entry for its mirror image, too."""
        if not symmetric:
            out += self._product(i0, i1, j0, j1, v[j0:j1])
            return
        for (a, b), (c, d) in _symmetric_parts(i0, i1, max(i0, j0), j1, self.row_block):
            out[a:b] += self._product(a, b, c, d, v[c:d])
            if a != c:
                out[c:d] += self._product(c, d, a, b, v[a:b])

    @np.errstate(all="ignore")
    def normal_product(self, i0: int, i1: int, *, v: Array, weights: Array | None, out: Array) -> None:
        """`out` += Kᵀ diag(w) K v with K the rows [i0, i1)."""
        images = self._product(i0, i1, 0, self.columns, v)
        if weights is not None:
            images *= weights[i0:i1, None]
        out += self._product(0, self.columns, i0, i1, images, transposed=True)

    @np.errstate(all="ignore")
    def group_sums(self, i0: int, i1: int, *, start: Array, weights: Array | None, out: Array) -> None:
        """`out[i − i0, g]` += Σ wⱼ Kᵢⱼ over the columns start[g] ≤ j < start[g + 1]."""
        v = np.ones((self.columns, 1)) if weights is None else np.asarray(weights, np.float64)[:, None]
        bounds = np.asarray(start, np.int64)
        out += self._parts(i0, i1, bounds, v[bounds[0] : bounds[-1]])[:, :, 0].T

    def held(self, i0: int, i1: int) -> DeviceArray:
        """Rows [i0, i1) as a table on the device."""
        if not (self.room.whole and i1 > i0 and self.columns):
            return DeviceArray.of(self.device, self._entries(i0, i1, 0, self.columns))
        left, right = self._held[False], self._held[True]
        out = DeviceArray.empty(self.device, (i1 - i0, self.columns), self.dtype)
        for a, b in _runs(i0, i1, GRID * self.row_block):
            grid = self._grid(0, self.columns), self._grid(a, b)
            arguments = [*self._head(left, right, False), a, b, 0, self.columns, out[a - i0 : b - i0]]
            self._kernels(0).launch("entries", grid, self._threads, arguments)
        return out

    # ---- kernels -----------------------------------------------------------------------------------------------------

    def _entries(self, i0: int, i1: int, j0: int, j1: int) -> Array:
        out = np.empty((i1 - i0, j1 - j0), self.dtype)
        if out.size:
            self._run(self._entry_jobs(int(i0), int(i1), int(j0), int(j1), out))
        return out

    def _entry_jobs(self, i0: int, i1: int, j0: int, j1: int, out: Array) -> Iterator[Job]:
        height, width = self.room.block(j1 - j0, self.dtype.itemsize)
        for a, b in _runs(i0, i1, height):
            left = self._part(False, a, b)
            for c, d in _runs(j0, j1, width):
                right = self._part(True, c, d)
                buffer = self.device.empty((b - a) * (d - c) * self.dtype.itemsize)
                ends = (a - left.start, b - left.start, c - right.start, d - right.start)
                grid = self._grid(*ends[2:]), self._grid(*ends[:2])
                arguments = [*self._head(left, right, False), *ends, buffer]
                use = _writes(out[a - i0 : b - i0, c - j0 : d - j0])
                yield Job("entries", self._kernels(0), grid, arguments, buffer, self.dtype, (b - a, d - c), use)

    def _upper_rows(self, i0: int, i1: int) -> Array:
        """Rows [i0, i1) from column i0 on; the square on the diagonal is symmetric by its upper triangle."""
        values = self._entries(i0, i1, i0, self.columns)
        square = values[:, : i1 - i0]
        square[...] = np.triu(square) + np.triu(square, 1).T
        return values

    def _product(self, i0: int, i1: int, j0: int, j1: int, v: Array, transposed: bool = False) -> Array:
        """K[i0:i1, j0:j1] v in float64; with `transposed` of the transposed matrix."""
        high, wide = (self._tiles_of(count) for count in (i1 - i0, j1 - j0))
        step = self.row_block * max(1, wide * high // (WAVES * self.device.blocks))
        bounds = np.append(np.arange(j0, max(j1, j0 + 1), step), j1).astype(np.int64)
        out = np.empty((i1 - i0, v.shape[1]))
        # Of many vectors the sums of all parts would be many times their product. Rows that pass through the device do
        # so once, for all vectors.
        fitting = SUMS // (8 * max(1, (len(bounds) - 1) * len(out))) // VECTORS * VECTORS
        some = max(VECTORS, fitting) if self.room.whole else max(1, v.shape[1])
        for r, s in _runs(0, v.shape[1], some):
            out[:, r:s] = self._parts(int(i0), int(i1), bounds, v[:, r:s], transposed).sum(axis=0)
        return out

    def _parts(self, i0: int, i1: int, bounds: Array, v: Array, transposed: bool = False) -> Array:
        """Σⱼ Kᵢⱼ vⱼ over the columns of each part, of shape (parts, rows, vectors); v begins with the first column.

        Each column of v is divided by its largest entry, so that products in float32 do not overflow.
        """
        wide = np.asarray(v, np.float64)
        size = np.abs(wide).max(axis=0, initial=0.0)
        size[~(np.isfinite(size) & (size > 0))] = 1.0
        out = np.zeros((len(bounds) - 1, i1 - i0, wide.shape[1]))
        if out.size and bounds[-1] > bounds[0]:
            self._run(self._product_jobs(i0, i1, bounds, wide / size, out, transposed))
        out *= size
        return out

    def _product_jobs(self, i0: int, i1: int, bounds: Array, v: Array, out: Array, transposed: bool) -> Iterator[Job]:
        first, last, vectors = int(bounds[0]), int(bounds[-1]), v.shape[1]
        width = min(VECTORS, 1 << (vectors - 1).bit_length())
        kernels = self._kernels(width, transposed)
        height, along = self.room.product(min(len(bounds) - 1, self.room.parts), width)
        for a, b in _runs(i0, i1, height):
            left = self._part(transposed, a, b)
            for c, d in _runs(first, last, along):
                right = self._part(not transposed, c, d)
                s0, s1 = int(np.searchsorted(bounds, c, "right")) - 1, int(np.searchsorted(bounds, d, "left"))
                for (s, e), r in (
                    (run, r) for run in _runs(s0, s1, self.room.parts) for r in range(0, vectors, VECTORS)
                ):
                    ends = np.clip(bounds[s : e + 1], c, d) - right.start
                    padded = np.zeros((int(ends[-1] - ends[0]), width), self.dtype)
                    padded[:, : min(width, vectors - r)] = v[ends[0] + right.start - first :][
                        : len(padded), r : r + width
                    ]
                    shape = (e - s, b - a, width)
                    buffers = [sent(self.device, ends), sent(self.device, padded), self.device.empty(8 * _size(shape))]
                    places = [a - left.start, b - left.start, int(ends[0])]
                    arguments = [*self._head(left, right, transposed), *places, *buffers]
                    use = _adds(out[s:e, a - i0 : b - i0, r : r + width])
                    grid, total = (self._grid(*places[:2]), e - s), np.dtype(np.float64)
                    yield Job("multiply", kernels, grid, arguments, buffers[-1], total, shape, use)

    def _run(self, jobs: Iterator[Job]) -> None:
        """Run jobs one after the other; what one needs is copied to the device while the one before runs."""
        running: Job | None = None
        for job in jobs:
            self._finish(running)
            job.kernels.launch(job.name, job.grid, self._threads, job.arguments)
            running = job
        self._finish(running)

    def _finish(self, job: Job | None) -> None:
        if job is not None:
            job.use(self.device.fetch(job.out, job.dtype, job.shape))

    def _part(self, columns: bool, start: int, stop: int) -> DeviceSide:
        """Rows or columns from `start` to `stop` on the device, or all of them."""
        if self.room.whole:
            return self._held[columns]
        side = self._z if columns else self._x
        return side.sent(self.device, start, stop)

    def _head(self, left: DeviceSide, right: DeviceSide, transposed: bool) -> list[int | Buffer]:
        """The first arguments of every kernel: where the arrays are, the numbers, and the padded sizes."""
        table: list[int] = []
        for a, b, features in zip(left.pairings, right.pairings, self._forward.features, strict=True):
            table += [a[0], b[0], features, a[1], b[1], a[2], b[2], a[3], b[3]]
        x, z = (right, left) if transposed else (left, right)
        table += [*x.values, *z.values, x.same, z.start]
        lies = Table(sent(self.device, np.array(table, np.int64)), (left, right))
        return [lies, self._numbers, left.padded, right.padded]

    def _tiles_of(self, count: int) -> int:
        return -(-count // self.row_block)

    def _grid(self, start: int, stop: int) -> int:
        """Tiles from the last whole group of rows up to `start`."""
        return self._tiles_of(stop - start // GROUP * GROUP)

    @property
    def _threads(self) -> int:
        return self.device.side**2

    def _kernels(self, vectors: int, transposed: bool = False) -> Kernels:
        """The kernel for entries (0) or for so many vectors; each is compiled when it is first used."""
        assert not (vectors and self.entries_only)
        if (vectors, transposed) not in self._known:
            source = replace(self._forward, transposed=transposed)
            self._known[vectors, transposed] = self.device.compiled(source.text(vectors))
        return self._known[vectors, transposed]


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _runs(start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    return ((a, min(a + step, stop)) for a in range(start, stop, step))


def _writes(out: Array) -> Callable[[Array], None]:
    def write(values: Array) -> None:
        out[...] = values

    return write


def _adds(out: Array) -> Callable[[Array], None]:
    def add(values: Array) -> None:
        out[...] += values[..., : out.shape[-1]]

    return add


def _symmetric_parts(
    i0: int, i1: int, j0: int, j1: int, height: int
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Rows and columns of the parts whose entries, and mirror images, make up a product from the diagonal on."""
    if j0 == i0 and j1 >= i1:
        yield (i0, i1), (i0, i1)
        if j1 > i1:
            yield (i0, i1), (i1, j1)
    elif j0 >= i1:
        yield (i0, i1), (j0, j1)
    else:
        for top in range(i0, i1, height):
            bottom = min(top + height, i1)
            if j0 <= top < j1:
                yield (top, bottom), (top, bottom)
            if max(bottom, j0) < j1:
                yield (top, bottom), (max(bottom, j0), j1)
