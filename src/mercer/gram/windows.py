"""Tiles of points that are not in memory: a plan for each pair of windows of rows, made when it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.engine.contract import Tiles
from mercer.engine.opcodes import ROW_BLOCK
from mercer.gram import tiles as sweep
from mercer.gram.data import Data
from mercer.kernels.symbolic.expression import Expression
from mercer.points import Points, VectorPoints

__all__ = ["COPIES", "WindowTiles"]

Array: TypeAlias = Any
Part: TypeAlias = tuple[int, int, int, int, Tiles]
"""The first and the last row, the first and the last column, and the plan of these alone."""

COPIES = 5
"""Windows that are in memory at a time for each side: the rows, the next ones, and up to three copies of the engine."""


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

    def _parts(self, i0: int, i1: int, j0: int, j1: int) -> Iterator[Part]:
        for a, b in _windows(self._x, i0, i1):
            left = self._x.run(a, b)
            for c, d in _windows(self._z, j0, j1):
                right = left if self._same and (a, b) == (c, d) else self._z.run(c, d)
                assert isinstance(left, VectorPoints)
                assert isinstance(right, VectorPoints)
                data = Data.of(left, right, self._dtype)
                yield a, b, c, d, sweep.program_tiles(self._expression, data, self._pairs(a, b, c, d))

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

    def multiply(self, i0: int, i1: int, j0: int, j1: int, *, v: Array, out: Array, symmetric: bool) -> None:
        """`out` += K[i0:i1, j0:j1] v[j0:j1]; the caller asks for each pair twice."""
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
    step = max(1, points.window * len(points) // max(points.nbytes, 1)) if points.window else max(last - first, 1)
    for i in range(first, last, step):
        yield i, min(i + step, last)
