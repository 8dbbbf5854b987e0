"""Plans of the tile engine for a kernel and rows, and sweeps over them."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from mercer.engine import backend, reference
from mercer.engine.contract import TileProgram, Tiles
from mercer.errors import InvalidInput, message
from mercer.events import TilesDone, emit
from mercer.gram.compiler import canonical_form, compile_expression
from mercer.gram.data import Data
from mercer.gram.program import Program
from mercer.gram.registers import DoesNotFit
from mercer.kernels import Kernel
from mercer.kernels.derivatives import Tape
from mercer.kernels.symbolic.expression import Expression
from mercer.points import Points, VectorPoints

__all__ = [
    "block_tiles", "formula_tiles", "know_norms", "multiple", "multiply", "multiply_across", "normal_product", "pieces",
    "program", "program_bytes", "program_tiles",
]  # fmt: skip

Array: TypeAlias = Any


def program_tiles(expression: Expression, data: Data, self_pairs: Array | None) -> Tiles:
    """The tile engine's plan for a traced formula on dense rows.

    `self_pairs` has, for each row of X, the index of the row of Z that is the same point, or −1.
    """
    return _build(program(expression), data, self_pairs)


def formula_tiles(formula: Expression, points: VectorPoints) -> Tiles:
    """Tiles of any formula on all pairs of some dense rows, in float64, whether or not it is a kernel's."""
    with contextlib.suppress(DoesNotFit):
        return program_tiles(formula, Data.of(points, points, np.dtype(np.float64)), np.arange(len(points)))

    def evaluate_block(i0: int, i1: int, j0: int, j1: int) -> Array:
        left = points.rows[i0:i1]
        return Tape(formula, left, left if (i0, i1) == (j0, j1) else points.rows[j0:j1]).at({})

    return reference.BlockTiles(len(points), len(points), evaluate_block)


def program_bytes(expression: Expression, data: Data) -> int:
    """Bytes that the plan takes while it is made."""
    return data.bytes(program(expression))


def know_norms(expression: Expression, data: Data) -> None:
    """Compute the norms of all rows, for the plans of parts of them."""
    for leaf in program(expression).leaves:
        data.by_norms(leaf)


@lru_cache(maxsize=256)
def _programs(shape: Hashable) -> dict[str, Program]:
    """A cache for the program of a formula; compiling it takes as long as 10⁵ entries."""
    return {}


def program(expression: Expression) -> Program:
    """The compiled program of a formula."""
    # Cached by the formula and not by the kernel, because a kernel's formula may change with the kernel's state.
    try:
        kept = _programs(canonical_form(expression))
    except TypeError:  # a view that cannot be hashed
        kept = {}
    if "program" not in kept:
        kept["program"] = compile_expression(expression)
    return kept["program"]


def _build(program: Program, data: Data, self_pairs: Array | None) -> Tiles:
    code = ((*one[:5], _within(data.dtype, one[5]), _within(data.dtype, one[6])) for one in program.code)
    run = TileProgram(
        data.dtype,
        tuple(data.pairing(leaf) for leaf in program.leaves),
        tuple(_within(data.dtype, value) for value in program.constants),
        tuple(code),
        program.registers,
        program.result,
    )
    x = data.side(data.x, program.leaves, program.row_values)
    z = data.side(data.z, program.leaves, program.column_values)
    tiles = backend.engine().plan(run, x, z, self_pairs)
    data.release()
    return tiles


def _within(dtype: np.dtype[Any], value: float) -> float:
    """The number clipped to the range of the dtype, because infinity times 0 would be NaN."""
    most = float(np.finfo(dtype).max)
    return min(max(value, -most), most) if np.isfinite(value) else value


LARGE_BLOCK = 1 << 24
"""Entries of a block of a kernel that prefers large blocks: 128 MB."""


def block_tiles(kernel: Kernel, x: Points, z: Points) -> Tiles:
    """Tiles of a kernel that is not traced, block by block through `kernel.block`."""
    same = z is x

    def evaluate_block(i0: int, i1: int, j0: int, j1: int) -> Array:
        left = x.run(i0, i1).rows
        right = left if same and (i0, i1) == (j0, j1) else z.run(j0, j1).rows
        found = np.asarray(kernel.block(left, right))
        if found.shape != (i1 - i0, j1 - j0):
            given = f"block(X, Z) of shape {found.shape} for {i1 - i0} and {j1 - j0} rows"
            raise InvalidInput(message(type(kernel).__name__, given, "return one value for each pair"))
        if kernel.space.objects and np.isnan(found).any():
            do = "return a number for each pair, or leave such rows out"
            raise InvalidInput(message(type(kernel).__name__, "block(X, Z) with NaN", do))
        return found

    return reference.BlockTiles(len(x), len(z), evaluate_block, LARGE_BLOCK if kernel.prefers_large_blocks else 0)


# ---- sweeps: bounded pieces of work, with interrupt checks and events between them -----------------------------------

PANEL = 12
"""The most rows that the engine evaluates together; pieces with fewer rows waste work."""
OTHERS = 1 << 28
"""Bytes for the sums of other rows that all threads of a symmetric product keep."""
NARROWEST = 4096
"""The number of columns of a piece below which computing each pair once does not pay off."""


def pieces(tiles: Tiles, rows: int, columns: int, work: float, *, align: int = PANEL) -> Iterator[tuple[int, int]]:
    """Runs of rows of about the engine's `piece` for each thread, at `work` operations for an entry; emits progress.

    Runs begin at multiples of the engine's row block, or of `align` if row blocks are too much work.
    """
    threads = backend.engine().threads()
    step = multiple(_share(tiles) * threads / max(work * columns, 1.0), tiles.row_block, align)
    for i in range(0, rows, step):
        yield i, min(i + step, rows)
        emit(TilesDone("tiles", min(i + step, rows), rows))


def multiple(wanted: float, unit: int, least: int) -> int:
    """The largest multiple of `unit` up to `wanted`, else the largest multiple of `least`, but at least `least`."""
    count = int(min(wanted, 2.0**40))
    return count // unit * unit or max(count // least * least, least)


def multiply(tiles: Tiles, V: Array, rows: int, work: float, symmetric: bool) -> Array:
    """K V in float64 for a C-contiguous m × r array V of the tiles' dtype.

    Pieces are about square: in wide and flat ones the work for each column (packing V, adding the threads' sums for
    other rows) would cost as much as the entries.
    """
    m, r = V.shape
    out = np.zeros((rows, r))
    if not r:
        return out
    symmetric = symmetric and backend.engine().mirrors(tiles)
    height, width, symmetric = _piece(_share(tiles), tiles.row_block, rows, m, r, work, symmetric)
    for i0 in range(0, rows, height):
        i1 = min(i0 + height, rows)
        for j0 in range(i0 // width * width if symmetric else 0, m, width):
            j1 = min(j0 + width, m)
            tiles.multiply(i0, i1, j0, j1, v=V, out=out if symmetric else out[i0:i1], symmetric=symmetric)
            emit(TilesDone("tiles", i0 + (i1 - i0) * j1 // m, rows))
    return out


def multiply_across(tiles: Tiles, V: Array, split: int, work: float) -> Array:
    """K V in float64 for a symmetric K without its diagonal blocks: of rows from `split` on with those before it.

    Each pair is computed once. `split` is a multiple of the engine's row block.
    """
    m, r = V.shape
    out = np.zeros((m, r))
    height, width, _ = _piece(_share(tiles), tiles.row_block, split, m - split, r, work, True)
    for i0 in range(0, split, height):
        i1 = min(i0 + height, split)
        for j0 in range(split, m, width):
            tiles.multiply(i0, i1, j0, min(j0 + width, m), v=V, out=out, symmetric=True)
    return out


def normal_product(tiles: Tiles, V: Array, weights: Array | None, rows: int, work: float) -> Array:
    """Kᵀ diag(w) K V in float64 with each entry computed once; V is as for `multiply`, and w in float64."""
    out = np.zeros(V.shape)
    if out.size:
        for i0, i1 in pieces(tiles, rows, len(V), work, align=tiles.row_block):
            tiles.normal_product(i0, i1, v=V, weights=weights, out=out)
    return out


def _share(tiles: Tiles) -> float:
    """Operations of one thread between two interrupt checks."""
    return backend.engine().piece(tiles)


def _piece(
    share: float, block: int, rows: int, columns: int, r: int, work: float, symmetric: bool
) -> tuple[int, int, bool]:
    """The height and width of the pieces of a product, and whether it computes each pair once."""
    threads = backend.engine().threads()
    entries = share * threads / work
    widest = OTHERS // (8 * r * threads)
    if symmetric and widest < min(columns, NARROWEST):
        symmetric = False
    width = max(entries**0.5, NARROWEST)
    width = multiple(min(width, widest) if symmetric else width, block, block)
    width = columns if width >= columns else width
    # Each thread gets a whole number of blocks.
    return multiple(entries / width, block * threads, block), width, symmetric
