"""Tiles of points that are not in memory: a plan for each pair of windows of rows, made when it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.engine.contract import Tiles
from mercer.engine.opcodes import ROW_BLOCK
from mercer.gram import tiles as sweep
from mercer.gram.data import Data, Side
from mercer.kernels.symbolic.expression import Expression
from mercer.points import Points, VectorPoints

__all__ = ["COPIES", "MOST_KEPT", "WindowTiles"]

Array: TypeAlias = Any
Part: TypeAlias = tuple[int, int, int, int, Tiles]
"""The first and the last row, the first and the last column, and the plan of these alone."""

COPIES = 5
"""Windows that are in memory at a time for each side: the rows, the next ones, and up to three copies of the engine."""

MOST_KEPT = 1
"""Norms that are kept for each row: every pass of a solver asks for the same windows."""


class WindowTiles:
    """The tiles of a traced formula on points of which a window is in memory at a time.

    Parameters
    ----------
    expression : Expression
    x, z : VectorPoints
    dtype : float32 or float64
        The dtype of the entries.
    same : bool
        Whether point i of x is point i of z.
    """

    row_block = ROW_BLOCK

    def __init__(
        self, expression: Expression, x: VectorPoints, z: VectorPoints, dtype: np.dtype[Any], same: bool
    ) -> None:
        sweep.program(expression)  # raises DoesNotFit now
        self._expression, self._x, self._z, self._dtype, self._same = expression, x, z, dtype, same
        self._columns = None if z.window else Side(z.dense(), dtype)
        self._origins: dict[Any, Any] = {}
        self._kept: dict[tuple[int, int], tuple[dict[Any, Array], dict[Any, float]]] = {}

    def _parts(self, i0: int, i1: int, j0: int, j1: int) -> Iterator[Part]:
        for a, b in _windows(self._x, i0, i1):
            left = self._x.run(a, b)
            for c, d in _windows(self._z, j0, j1):
                right = left if self._same and (a, b) == (c, d) else self._z.run(c, d)
                assert isinstance(left, VectorPoints)
                assert isinstance(right, VectorPoints)
                data = self._data(left, right, (a, b))
                yield a, b, c, d, sweep.program_tiles(self._expression, data, self._pairs(a, b, c, d))

    def _data(self, left: VectorPoints, right: VectorPoints, window: tuple[int, int]) -> Data:
        """The data of a plan. Norms of rows depend on columns in memory alone, and are kept for the next pass."""
        data = Data.of(left, right, self._dtype)
        if self._columns is not None:
            if window not in self._kept and sum(b - a for a, b in self._kept) >= MOST_KEPT * len(self._x):
                self._kept.clear()
            data.z, data.origins = self._columns, self._origins
            data.x.norms, data.tried = self._kept.setdefault(window, ({}, {}))
        return data

    def _pairs(self, a: int, b: int, c: int, d: int) -> NDArray[np.int64] | None:
        """For each row of a window the same point among the columns of the other, or −1."""
        if not self._same:
            return None
        place = np.arange(a, b) - c
        return np.where((place >= 0) & (place < d - c), place, -1)

    def block(self, i0: int, i1: int, j0: int, j1: int, *, out: Array) -> None:
        """Rows [i0, i1) × columns [j0, j1) into `out`."""
        for a, b, c, d, tiles in self._parts(i0, i1, j0, j1):
            some = out[a - i0 : b - i0, c - j0 : d - j0]
            own = some if d - c == j1 - j0 else np.empty(some.shape, some.dtype)
            tiles.block(0, b - a, 0, d - c, out=own)
            if own is not some:
                some[...] = own

    def gram(self, i0: int, i1: int, out: Array) -> None:
        """Rows [i0, i1) and, by symmetry, the same columns, into the n × n matrix `out`."""
        own = np.empty((i1 - i0, len(out) - i0), out.dtype)
        self._upper(i0, i1, own)
        out[i0:i1, i0:] = own
        out[i0:, i0:i1] = own.T

    def upper(self, i0: int, i1: int, out: Array) -> None:
        """The same rows from the diagonal blocks on, into a vector `out` in which each row of blocks is contiguous."""
        n = len(self._x)
        for top in range(i0, i1, self.row_block):
            bottom, start = min(top + self.row_block, i1), top * n - top * (top - self.row_block) // 2
            self._upper(top, bottom, out[start : start + (bottom - top) * (n - top)].reshape(bottom - top, n - top))

    def _upper(self, i0: int, i1: int, own: Array) -> None:
        """Rows [i0, i1) from the column i0 on; the square at the diagonal is symmetric by its upper triangle."""
        self.block(i0, i1, i0, i0 + own.shape[1], out=own)
        square = own[:, : i1 - i0]
        square[...] = np.triu(square) + np.triu(square, 1).T

    def symmetric_product(self, V: Array, work: float) -> Array:
        """K V in float64 for a K whose columns are the points of its rows: each pair is computed once."""
        out = np.zeros((len(self._x), V.shape[1]))
        windows = list(_windows(self._x, 0, len(self._x)))
        for place, (a, b) in enumerate(windows):
            left = self._window(a, b)
            out[a:b] += sweep.multiply(self._square(left), V[a:b], b - a, work, symmetric=True)
            for c, d in windows[place + 1 :]:
                both = left.stack(left, self._window(c, d))
                own = sweep.multiply_across(self._square(both), np.concatenate([V[a:b], V[c:d]]), b - a, work)
                out[a:b] += own[: b - a]
                out[c:d] += own[b - a :]
        return out

    def _window(self, first: int, last: int) -> VectorPoints:
        window = self._x.run(first, last)
        assert isinstance(window, VectorPoints)
        return window

    def _square(self, points: VectorPoints) -> Tiles:
        """The plan of some points with themselves."""
        return sweep.program_tiles(self._expression, Data.of(points, points, self._dtype), np.arange(len(points)))

    def multiply(self, i0: int, i1: int, j0: int, j1: int, *, v: Array, out: Array, symmetric: bool) -> None:
        """`out` += K[i0:i1, j0:j1] v[j0:j1]; `symmetric_product` is for the case that `symmetric` stands for."""
        assert not symmetric
        for a, b, c, d, tiles in self._parts(i0, i1, j0, j1):
            own = out[a - i0 : b - i0]
            tiles.multiply(0, b - a, 0, d - c, v=v[c:d], out=own, symmetric=False)

    def normal_product(self, i0: int, i1: int, *, v: Array, weights: Array | None, out: Array) -> None:
        """`out` += Kᵀ diag(w) K v with K the rows [i0, i1), for columns that are in memory."""
        assert not self._z.window
        for a, b, _, _, tiles in self._parts(i0, i1, 0, len(self._z)):
            tiles.normal_product(0, b - a, v=v, weights=None if weights is None else weights[a:b], out=out)

    def group_sums(self, i0: int, i1: int, *, start: Array, weights: Array | None, out: Array) -> None:
        """`out[i − i0, g]` += Σ wⱼ Kᵢⱼ over the columns start[g] ≤ j < start[g + 1], which are in memory."""
        assert not self._z.window
        for a, b, _, _, tiles in self._parts(i0, i1, 0, len(self._z)):
            tiles.group_sums(0, b - a, start=start, weights=weights, out=out[a - i0 : b - i0])


def _windows(points: Points, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The windows of the points from `first` to `last`; one for points in memory."""
    wanted = points.window * len(points) // max(points.nbytes, 1)
    step = max(wanted // ROW_BLOCK, 1) * ROW_BLOCK if points.window else max(last - first, 1)
    for i in range(first, last, step):
        yield i, min(i + step, last)
