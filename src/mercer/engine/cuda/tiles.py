"""The matrix of a program on a device: what `Tiles` promises, by two kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercer.engine.contract import TileProgram, TileRows
from mercer.engine.cuda.devices import Array, Buffer, Device, Kernels
from mercer.engine.cuda.source import DEEP, Source

__all__ = ["CudaTiles"]

VECTORS = 4
"""Vectors that a product takes at a time, if there is more than one."""
WAVES = 4
"""Blocks of a product for each that runs at a time, so that all processors have work to the end."""


@dataclass
class CudaTiles:
    """The matrix of a program on given rows, on a device.

    Distances are taken by norms if the bound of their error holds for the largest norms of all rows; else all are sums
    of squared differences, which take up to twice as long.
    """

    device: Device
    program: TileProgram
    x: TileRows
    z: TileRows
    self_pairs: Array | None

    def __post_init__(self) -> None:
        self.dtype, self.rows, self.columns = self.program.dtype, self.x.count, self.z.count
        depths = [one.shape[1] for one in self.x.rows]
        self._forward = Source(
            self.program,
            tuple(-(-depth // DEEP) for depth in depths),
            tuple(self._by_norms(p) for p in range(len(depths))),
            len(self.x.values),
            len(self.z.values),
            self.device.side,
            self.self_pairs is not None,
        )
        self.row_block = self._forward.tile
        self._buffers: list[Buffer] = []
        self._sides = self._sent()

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
            out += self._product(i0, i1, j0, j1, v)
            return
        for (a, b), (c, d) in _symmetric_parts(i0, i1, max(i0, j0), j1, self.row_block):
            out[a:b] += self._product(a, b, c, d, v)
            if a != c:
                out[c:d] += self._product(c, d, a, b, v)

    @np.errstate(all="ignore")
    def normal_product(self, i0: int, i1: int, *, v: Array, weights: Array | None, out: Array) -> None:
        """`out` += Kᵀ diag(w) K v with K the rows [i0, i1)."""
        images = self._product(i0, i1, 0, self.columns, v)
        if weights is not None:
            images *= weights[i0:i1, None]
        whole = np.zeros((self.rows, images.shape[1]))
        whole[i0:i1] = images
        out += self._product(0, self.columns, i0, i1, whole, transposed=True)

    @np.errstate(all="ignore")
    def group_sums(self, i0: int, i1: int, *, start: Array, weights: Array | None, out: Array) -> None:
        """`out[i − i0, g]` += Σ wⱼ Kᵢⱼ over the columns start[g] ≤ j < start[g + 1]."""
        v = np.ones((self.columns, 1)) if weights is None else np.asarray(weights, np.float64)[:, None]
        out += self._parts(i0, i1, np.asarray(start, np.int64), v)[:, :, 0].T

    # ---- kernels -----------------------------------------------------------------------------------------------------

    def _entries(self, i0: int, i1: int, j0: int, j1: int) -> Array:
        shape = (i1 - i0, j1 - j0)
        if not all(shape):
            return np.empty(shape, self.dtype)
        out = self.device.empty(shape[0] * shape[1] * self.dtype.itemsize)
        tile = self._forward.tile
        grid = (_tiles_of(shape[1], tile), _tiles_of(shape[0], tile))
        self._kernels.launch("entries", grid, self._threads, [*self._head(False), *map(int, (i0, i1, j0, j1)), out])
        return self.device.fetch(out, self.dtype, shape)

    def _upper_rows(self, i0: int, i1: int) -> Array:
        """Rows [i0, i1) from column i0 on; the square on the diagonal is symmetric by its upper triangle."""
        values = self._entries(i0, i1, i0, self.columns)
        square = values[:, : i1 - i0]
        square[...] = np.triu(square) + np.triu(square, 1).T
        return values

    def _product(self, i0: int, i1: int, j0: int, j1: int, v: Array, transposed: bool = False) -> Array:
        """K[i0:i1, j0:j1] v[j0:j1] in float64; with `transposed` of the transposed matrix."""
        tile = self._forward.tile
        high, wide = (_tiles_of(count, tile) for count in (i1 - i0, j1 - j0))
        step = tile * max(1, wide * high // (WAVES * self.device.blocks))
        bounds = np.append(np.arange(j0, max(j1, j0 + 1), step), j1)
        return self._parts(i0, i1, bounds.astype(np.int64), v, transposed).sum(axis=0)

    def _parts(self, i0: int, i1: int, bounds: Array, v: Array, transposed: bool = False) -> Array:
        """Σⱼ Kᵢⱼ vⱼ over the columns of each part, of shape (parts, rows, vectors).

        Each column of v is divided by its largest entry, so that products in float32 do not overflow.
        """
        wide = np.asarray(v, np.float64)
        size = np.abs(wide).max(axis=0, initial=0.0)
        size[~(np.isfinite(size) & (size > 0))] = 1.0
        parts, rows, vectors = len(bounds) - 1, i1 - i0, wide.shape[1]
        out = np.empty((parts, rows, vectors))
        if not (parts and rows):
            return out
        at = self.device.send(bounds)
        for r0 in range(0, vectors, VECTORS):
            some = wide[:, r0 : r0 + VECTORS] / size[r0 : r0 + VECTORS]
            width = VECTORS if some.shape[1] > 1 else 1
            padded = np.zeros((len(wide), width), self.dtype)
            padded[:, : some.shape[1]] = some
            sums = self.device.empty(8 * parts * rows * width)
            kernels = self._transposed if transposed else self._kernels
            grid = (_tiles_of(rows, self._forward.tile), parts)
            arguments = [*self._head(transposed), int(i0), int(i1), at, self.device.send(padded), sums]
            kernels.launch(f"multiply{width}", grid, self._threads, arguments)
            found = self.device.fetch(sums, np.dtype(np.float64), (parts, rows, width))
            out[:, :, r0 : r0 + VECTORS] = found[:, :, : some.shape[1]]
        return out * size

    def _head(self, transposed: bool) -> list[int | Buffer]:
        """The first arguments of every kernel: where the arrays are, the numbers, and the padded sizes."""
        rows, columns = self._padded(self.rows), self._padded(self.columns)
        table, numbers, turned = self._sides
        return [turned, numbers, columns, rows] if transposed else [table, numbers, rows, columns]

    @property
    def _threads(self) -> int:
        return self.device.side**2

    @cached_property
    def _kernels(self) -> Kernels:
        return self.device.compiled(self._forward.text)

    @cached_property
    def _transposed(self) -> Kernels:
        return self.device.compiled(replace(self._forward, transposed=True).text)

    # ---- what lies on the device -------------------------------------------------------------------------------------

    def _by_norms(self, p: int) -> bool:
        """Whether distances by norms keep their promise for the largest norms."""
        norms, row, column = self.program.pairings[p].norms, self.x.norms, self.z.norms
        if norms is None or not self.rows or not self.columns:
            return False
        a, b = row[p], column[p]
        assert a is not None
        assert b is not None
        return bool(norms.fast * norms.rounding * (float(a.max()) + float(b.max())) <= norms.promise)

    def _sent(self) -> tuple[Buffer, Buffer, Buffer]:
        """The table of addresses, the numbers, and the table of the transposed matrix."""
        table: list[int] = []
        turned: list[int] = []
        same_rows = self.z.rows and all(a is b for a, b in zip(self.x.rows, self.z.rows, strict=True))
        for p, pairing in enumerate(self.program.pairings):
            norms = pairing.norms if self._forward.by_norms[p] else None
            origin = pairing.origin if norms is None else norms.origin
            a = self._rows_of(self.x.rows[p], origin)
            b = a if same_rows else self._rows_of(self.z.rows[p], origin)
            ends = [0, 0]
            if norms is not None:
                ends = [self._values_of(side.norms[p]) for side in (self.x, self.z)]
            table += [a, b, self._forward.slices[p], *ends]
            turned += [b, a, self._forward.slices[p], *ends[::-1]]
        rest = [self._values_of(one) for one in (*self.x.values, *self.z.values)]
        if self.self_pairs is not None:
            same = np.full(self._padded(self.rows), -1, np.int64)
            same[: self.rows] = self.self_pairs
            rest.append(self._kept(same))
        numbers = np.asarray(self._forward.numbers, np.float64).astype(self.dtype)
        sent = [self.device.send(one) for one in (_addresses(table + rest), numbers, _addresses(turned + rest))]
        return sent[0], sent[1], sent[2]

    def _padded(self, count: int) -> int:
        """Whole tiles, and one more, so that a tile may start at any row."""
        tile = self._forward.tile
        return (_tiles_of(count, tile) + 1) * tile

    def _rows_of(self, rows: Array, origin: Array | None) -> int:
        """The address of rows less an origin, feature by feature, padded with zeros."""
        count, depth = rows.shape
        moved = np.zeros((-(-depth // DEEP) * DEEP, self._padded(count)), self.dtype)
        moved[:depth, :count] = (rows if origin is None else rows - origin).T
        return self._kept(moved)

    def _values_of(self, values: Array | None) -> int:
        assert values is not None
        padded = np.zeros(self._padded(len(values)), self.dtype)
        padded[: len(values)] = values
        return self._kept(padded)

    def _kept(self, array: Array) -> int:
        self._buffers.append(self.device.send(array))
        return self._buffers[-1].address


def _tiles_of(count: int, tile: int) -> int:
    return -(-count // tile)


def _addresses(table: list[int]) -> Array:
    return np.array(table or [0], np.int64)


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
