"""Rows and a kernel in, tiles out: the plan of the tile engine for given data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from mercer import _twin
from mercer.events import TilesDone, emit
from mercer.gram import backend
from mercer.gram.program import Pairing, Program, RowValue, Views, compile_expression
from mercer.kernels import Kernel
from mercer.kernels.expression import Expression, evaluate
from mercer.kernels.pairing import trace

__all__ = ["block_tiles", "multiply", "pieces", "program_tiles"]

Array: TypeAlias = Any
Tiles: TypeAlias = Any
"""`_core.Tiles`, `_twin.Tiles` or `_twin.BlockTiles`: they have the same methods."""


@dataclass
class Side:
    """One side of the pairs: its rows through every view that the program names, each computed once."""

    rows: Array
    seen: dict[Views, Array] = field(default_factory=dict)

    def through(self, views: Views) -> Array:
        if views not in self.seen:
            self.seen[views] = views[-1].apply(self.through(views[:-1])) if views else self.rows
        return self.seen[views]


@dataclass
class Data:
    """Both sides, and the mean of the second one: the common origin of all centred pairings."""

    x: Side
    z: Side
    dtype: np.dtype[Any]
    means: dict[Views, Array] = field(default_factory=dict)
    centered: dict[tuple[int, Views], Array] = field(default_factory=dict)

    def mean(self, views: Views) -> Array:
        if views not in self.means:
            self.means[views] = self.z.through(views).mean(axis=0, dtype=np.float64)
        return self.means[views]

    def rows(self, side: Side, views: Views, center: bool) -> Array:
        """The rows in the engine's dtype, less the common mean if `center`."""
        rows = side.through(views)
        if not center:
            return np.ascontiguousarray(rows, self.dtype)
        key = id(side), views
        if key not in self.centered:
            # The subtraction in float64, so that only the small remainder is rounded.
            self.centered[key] = np.ascontiguousarray(rows - self.mean(views), self.dtype)
        return self.centered[key]

    def value(self, side: Side, value: RowValue) -> Array:
        """A `RowValue` for every row, computed in float64."""
        if value.kind == "sqnorm":
            numbers = value.scale * _squared_norms(self.rows(side, value.views, center=True))
        elif value.kind == "offset":
            mean = self.mean(value.views)
            numbers = side.through(value.views) @ mean - 0.5 * (mean @ mean)
        else:
            assert value.expression is not None
            numbers = evaluate(value.expression, lambda leaf: _self_pairing(leaf, side))
        return np.ascontiguousarray(np.broadcast_to(numbers, (len(side.rows),)), self.dtype)


def _squared_norms(rows: Array) -> Array:
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


def _self_pairing(leaf: Expression, side: Side) -> Array:
    kind, views = leaf.value
    rows = side.through(views)
    return _squared_norms(rows) if kind == "dot" else rows.sum(axis=1, dtype=np.float64)


def program_tiles(kernel: Kernel, X: Array, Z: Array, pins: Array | None, dtype: np.dtype[Any]) -> Tiles:
    """The tile engine's plan, with entries of `dtype`, for a traceable, resolved kernel on dense rows.

    `pins` names, for each row of X, the row of Z that is the same point (−1: none).
    """
    same = Z is X
    x = Side(X)
    data = Data(x, x if same else Side(Z), dtype)
    program = compile_expression(trace(kernel), lambda views: int(data.z.through(views).shape[1]))
    return _build(program, data, pins)


def _build(program: Program, data: Data, pins: Array | None) -> Tiles:
    narrowing = data.x.rows.dtype.itemsize > data.dtype.itemsize
    pairings = []
    for leaf in program.leaves:
        # Differences don't change with the origin, but what is lost by rounding the rows does.
        center = leaf.centered or (narrowing and leaf.pairing in (Pairing.SQDIST, Pairing.L1))
        pairings.append((int(leaf.pairing), data.rows(data.x, leaf.views, center), data.rows(data.z, leaf.views, center)))
    return backend.engine().Tiles(
        data.dtype == np.float64,
        len(data.x.rows),
        len(data.z.rows),
        pairings,
        [data.value(data.x, value) for value in program.row_values],
        [data.value(data.z, value) for value in program.column_values],
        list(program.constants),
        list(program.code),
        program.registers,
        program.result,
        None if pins is None else np.ascontiguousarray(pins, np.int64),
        backend.instruction_set() if backend.is_native() else "",
    )


def block_tiles(kernel: Kernel, X: Array, Z: Array, rows: int, columns: int) -> Tiles:
    """Tiles of a kernel that is not traced, block by block through `kernel.block`."""
    same = Z is X

    def evaluate_block(i0: int, i1: int, j0: int, j1: int) -> Array:
        left = X[i0:i1]
        right = left if same and (i0, i1) == (j0, j1) else Z[j0:j1]
        return np.asarray(kernel.block(left, right))

    return _twin.BlockTiles(rows, columns, evaluate_block)


# ---- sweeps: bounded pieces of work, so that Ctrl-C and observers are heard ------------------------------------------


def pieces(tiles: Tiles, rows: int, columns: int, work: float) -> Iterator[tuple[int, int]]:
    """Runs of rows, each of about a tenth of a second on a slow core at `work` nanoseconds an entry; emits their progress."""
    block = tiles.row_block
    step = max(block, int(1e8 / max(work * columns, 1.0)) // block * block)
    for i in range(0, rows, step):
        yield i, min(i + step, rows)
        emit(TilesDone("tiles", min(i + step, rows), rows))


def multiply(tiles: Tiles, V: Array, rows: int, work: float, symmetric: bool) -> Array:
    """K V in float64; V is n × r of the tiles' own dtype, C-contiguous."""
    r = V.shape[1]
    out = np.zeros((rows, r))
    for i0, i1 in pieces(tiles, rows, len(V), work):
        tiles.multiply(i0, i1, V, out if symmetric else out[i0:i1], symmetric)
    return out

