"""Rows and a kernel in, tiles out: the plan of the tile engine for given data."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from mercer import _twin, backend
from mercer.events import TilesDone, emit
from mercer.gram.compiler import compile_expression, structure
from mercer.gram.program import Leaf, Pairing, Program, Views
from mercer.kernels import Kernel
from mercer.kernels.expression import Expression, evaluate
from mercer.kernels.views import Columns

__all__ = ["block_tiles", "multiply", "normal_product", "pieces", "program_tiles"]

Array: TypeAlias = Any
Tiles: TypeAlias = Any
"""`_core.Tiles`, `_twin.Tiles` or `_twin.BlockTiles`: they have the same methods."""

DIRECT_DEPTH = 16
"""Up to this many columns, differences cost no more than norms and a dot product, and are exact."""
PROMISE = {4: 8e-7, 8: 8e-14}
"""By bytes of an entry: how much its distance may add to its error, less than the promised 10⁻⁶ and 10⁻¹³."""
ROUNDINGS = {4: 8.0, 8: 16.0}
"""Roundings of ‖x‖² + ‖z‖² in a squared distance by norms: the largest of millions, of sums over runs of features."""
NEAR_ZERO = 0.05
"""If the squared mean is this share of the mean square of the rows, 0 is as good an origin, and saves a copy."""


@dataclass
class Side:
    """One side of the pairs: its rows through every view that the program names, each computed once."""

    rows: Array
    dtype: np.dtype[Any]
    seen: dict[Views, Array] = field(default_factory=dict)

    def through(self, views: Views) -> Array:
        if views not in self.seen:
            self.seen[views] = self._shown(self.through(views[:-1]), views[-1]) if views else self.rows
        return self.seen[views]

    def _shown(self, rows: Array, view: Any) -> Array:
        """What a view shows, in the dtype of the entries where the rows have a narrower one: it may round."""
        wider = self.dtype.itemsize > rows.dtype.itemsize and not isinstance(view, Columns)
        return view.apply(rows.astype(self.dtype) if wider else rows)


@dataclass
class Data:
    """Both sides, in the engine's dtype."""

    x: Side
    z: Side
    dtype: np.dtype[Any]
    origins: dict[Views, Array | None] = field(default_factory=dict)
    moved: dict[tuple[int, Views], Array] = field(default_factory=dict)

    @property
    def narrows(self) -> bool:
        """Whether rows lose digits in this dtype."""
        return self.x.rows.dtype.itemsize > self.dtype.itemsize

    def given(self, side: Side, views: Views) -> Array:
        """The rows as they are."""
        return np.ascontiguousarray(side.through(views), self.dtype)

    def origin(self, views: Views) -> Array | None:
        """A point amid the second side's rows; None for 0, where that is as good."""
        if views not in self.origins:
            rows = self.z.through(views)
            mean = rows.mean(axis=0, dtype=np.float64)
            near = not self.narrows and len(rows) * (mean @ mean) <= NEAR_ZERO * _squared_norms(rows).sum()
            self.origins[views] = None if near else mean
        return self.origins[views]

    def less_origin(self, side: Side, views: Views) -> Array:
        """The rows less the common origin, subtracted in float64, so that only the small remainder is rounded."""
        if self.origin(views) is None:
            return self.given(side, views)
        key = id(side), views
        if key not in self.moved:
            rows = side.through(views)
            less = np.empty(rows.shape, self.dtype)
            for some in _runs(rows):
                less[some] = rows[some] - self.origin(views)
            self.moved[key] = less
        return self.moved[key]

    def pairing(self, leaf: Leaf) -> tuple[int, Array, Array]:
        """(kind, rows, columns) for the engine. Differences are of the rows as they are, which makes them exact.

        Rows that are narrowed lose less without their common origin, and differences don't change with it.
        """
        rows = self.less_origin if self.narrows and leaf.pairing in (Pairing.SQDIST, Pairing.L1) else self.given
        return int(leaf.pairing), rows(self.x, leaf.views), rows(self.z, leaf.views)

    def by_norms(self, leaf: Leaf) -> tuple[Array, Array, Array, Array, float, float, float, float] | None:
        """What squared distances by norms take, and how exact they have to be: see `core/distances.hpp`."""
        if leaf.pairing != Pairing.SQDIST or self.z.through(leaf.views).shape[1] <= DIRECT_DEPTH:
            return None
        x, z = (self.less_origin(side, leaf.views) for side in (self.x, self.z))
        with np.errstate(over="ignore"):
            norms = [_squared_norms(rows).astype(self.dtype) for rows in (x, z)]
        rounding = ROUNDINGS[self.dtype.itemsize] * float(np.finfo(self.dtype).eps) / 2
        promise = PROMISE[self.dtype.itemsize]
        slow, fast = leaf.rates or (0.0, math.inf)
        return x, z, *norms, rounding, promise, slow, fast

    def value(self, side: Side, value: Expression) -> Array:
        """The expression for every row, computed in float64."""
        with np.errstate(all="ignore"):
            values = evaluate(value, lambda leaf: _self_pairing(leaf, side))
            return np.ascontiguousarray(np.broadcast_to(values, (len(side.rows),)), self.dtype)


def _runs(rows: Array) -> list[slice]:
    """Runs of a few megabytes each, so that work in float64 makes no copy of all rows."""
    height = max(1, (1 << 19) // max(1, rows.shape[1]))
    return [slice(i, i + height) for i in range(0, len(rows), height)]


def _squared_norms(rows: Array) -> Array:
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


def _self_pairing(leaf: Expression, side: Side) -> Array:
    kind, views = leaf.value
    rows = side.through(views)
    return _squared_norms(rows) if kind == "dot" else rows.sum(axis=1, dtype=np.float64)


def program_tiles(expression: Expression, X: Array, Z: Array, pins: Array | None, dtype: np.dtype[Any]) -> Tiles:
    """The tile engine's plan, with entries of `dtype`, for a traced formula on dense rows.

    `pins` names, for each row of X, the row of Z that is the same point (−1: none).
    """
    same = Z is X
    x = Side(X, dtype)
    data = Data(x, x if same else Side(Z, dtype), dtype)
    return _build(_program(expression), data, pins)


@lru_cache(maxsize=256)
def _programs(shape: Hashable) -> dict[str, Program]:
    """Where the program of a formula is kept: making it takes as long as 10⁵ entries."""
    return {}


def _program(expression: Expression) -> Program:
    # Kept by the formula and not by the kernel, whose formula may read what changes: a global variable, its own state.
    try:
        kept = _programs(structure(expression))
    except TypeError:  # a view that cannot be hashed
        kept = {}
    if "program" not in kept:
        kept["program"] = compile_expression(expression)
    return kept["program"]


def _build(program: Program, data: Data, pins: Array | None) -> Tiles:
    norms = [(at, norms) for at, leaf in enumerate(program.leaves) if (norms := data.by_norms(leaf))]
    return backend.engine().Tiles(
        data.dtype == np.float64,
        len(data.x.rows),
        len(data.z.rows),
        [data.pairing(leaf) for leaf in program.leaves],
        [data.value(data.x, value) for value in program.row_values],
        [data.value(data.z, value) for value in program.column_values],
        [_within(data.dtype, value) for value in program.constants],
        [(*code[:5], _within(data.dtype, code[5]), _within(data.dtype, code[6])) for code in program.code],
        program.registers,
        program.result,
        None if pins is None else np.ascontiguousarray(pins, np.int64),
        backend.instruction_set() if backend.is_native() else "",
        [(at, *parts) for at, parts in norms],
    )


def _within(dtype: np.dtype[Any], value: float) -> float:
    """The number in this dtype's range: what is too large becomes the largest, for infinity times 0 is no number."""
    most = float(np.finfo(dtype).max)
    return min(max(value, -most), most) if np.isfinite(value) else value


LARGE_BLOCK = 1 << 24
"""Entries of a block of a kernel whose blocks cost much less than their parts: 128 MB."""


def block_tiles(kernel: Kernel, X: Array, Z: Array, rows: int, columns: int) -> Tiles:
    """Tiles of a kernel that is not traced, block by block through `kernel.block`."""
    same = Z is X

    def evaluate_block(i0: int, i1: int, j0: int, j1: int) -> Array:
        left = X[i0:i1]
        right = left if same and (i0, i1) == (j0, j1) else Z[j0:j1]
        return np.asarray(kernel.block(left, right))

    return _twin.BlockTiles(rows, columns, evaluate_block, LARGE_BLOCK if kernel.whole else 0)


# ---- sweeps: bounded pieces of work, so that Ctrl-C and observers are heard ------------------------------------------

PIECE = 1e8
"""Nanoseconds of one thread's work between two looks at the keyboard, on a slow core."""
PANEL = 12
"""Rows that the engine evaluates together at most: fewer would waste some of them."""
OTHERS = 1 << 28
"""Bytes for the sums that each thread of a symmetric product keeps for the other rows."""
NARROWEST = 4096
"""Columns of a piece below which visiting each pair once no longer pays."""


def pieces(tiles: Tiles, rows: int, columns: int, work: float, *, align: int = PANEL) -> Iterator[tuple[int, int]]:
    """Runs of rows, each about `PIECE` of work at `work` nanoseconds an entry; emits their progress.

    They begin on multiples of `align` and, while that is little work, of the engine's row block.
    """
    threads = backend.engine().threads()
    step = _multiple(PIECE * threads / max(work * columns, 1.0), tiles.row_block, align)
    for i in range(0, rows, step):
        yield i, min(i + step, rows)
        emit(TilesDone("tiles", min(i + step, rows), rows))


def _multiple(wanted: float, unit: int, least: int) -> int:
    """The largest multiple of `unit` up to `wanted`; where there is none, the largest of `least`, and at least that."""
    count = int(min(wanted, 2.0**40))
    return count // unit * unit or max(count // least * least, least)


def multiply(tiles: Tiles, V: Array, rows: int, work: float, symmetric: bool) -> Array:
    """K V in float64; V is m × r of the tiles' own dtype, C-contiguous.

    Rectangular pieces: in a wide and flat one, what is done once per column (packing V, adding the threads' sums for
    the other rows) would cost as much as the entries.
    """
    m, r = V.shape
    out = np.zeros((rows, r))
    if not r:
        return out
    height, width, symmetric = _piece(tiles.row_block, rows, m, r, work, symmetric)
    for i0 in range(0, rows, height):
        i1 = min(i0 + height, rows)
        for j0 in range(i0 // width * width if symmetric else 0, m, width):
            j1 = min(j0 + width, m)
            tiles.multiply(i0, i1, j0, j1, V, out if symmetric else out[i0:i1], symmetric)
            emit(TilesDone("tiles", i0 + (i1 - i0) * j1 // m, rows))
    return out


def normal_product(tiles: Tiles, V: Array, weights: Array | None, rows: int, work: float) -> Array:
    """Kᵀ diag(w) K V in float64, each entry computed once; V as for `multiply`, w float64."""
    out = np.zeros(V.shape)
    if out.size:
        for i0, i1 in pieces(tiles, rows, len(V), work, align=tiles.row_block):
            tiles.normal_product(i0, i1, V, weights, out)
    return out


def _piece(block: int, rows: int, columns: int, r: int, work: float, symmetric: bool) -> tuple[int, int, bool]:
    """Height and width of a product's pieces, and whether it visits each pair once."""
    threads = backend.engine().threads()
    entries = PIECE * threads / work
    widest = OTHERS // (8 * r * threads)
    if symmetric and widest < min(columns, NARROWEST):
        symmetric = False
    width = max(entries**0.5, NARROWEST)
    width = _multiple(min(width, widest) if symmetric else width, block, block)
    width = columns if width >= columns else width
    # A whole number of blocks for each thread.
    return _multiple(entries / width, block * threads, block), width, symmetric
