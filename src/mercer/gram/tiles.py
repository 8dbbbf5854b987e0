"""Rows and a kernel in, tiles out: the plan of the tile engine for given data."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from mercer.engine import backend, reference
from mercer.engine.contract import TileProgram, Tiles
from mercer.events import TilesDone, emit
from mercer.gram.compiler import canonical_form, compile_expression
from mercer.gram.data import Data
from mercer.gram.program import Program
from mercer.kernels import Kernel
from mercer.kernels.symbolic.expression import Expression
from mercer.points import Points

__all__ = ["block_tiles", "multiply", "normal_product", "pieces", "program_bytes", "program_tiles"]

Array: TypeAlias = Any


def program_tiles(expression: Expression, data: Data, self_pairs: Array | None) -> Tiles:
    """The tile engine's plan for a traced formula on dense rows.

    `self_pairs` names, for each row of X, the row of Z that is the same point (−1: none).
    """
    return _build(_program(expression), data, self_pairs)


def program_bytes(expression: Expression, data: Data) -> int:
    """What the plan takes, at its making."""
    return data.bytes(_program(expression))


@lru_cache(maxsize=256)
def _programs(shape: Hashable) -> dict[str, Program]:
    """Where the program of a formula is kept: making it takes as long as 10⁵ entries."""
    return {}


def _program(expression: Expression) -> Program:
    # Kept by the formula and not by the kernel, whose formula may read what changes: a global variable, its own state.
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
    """The number in this dtype's range: what is too large becomes the largest, for infinity times 0 is no number."""
    most = float(np.finfo(dtype).max)
    return min(max(value, -most), most) if np.isfinite(value) else value


LARGE_BLOCK = 1 << 24
"""Entries of a block of a kernel whose blocks cost much less than their parts: 128 MB."""


def block_tiles(kernel: Kernel, x: Points, z: Points) -> Tiles:
    """Tiles of a kernel that is not traced, block by block through `kernel.block`."""
    same = z is x

    def evaluate_block(i0: int, i1: int, j0: int, j1: int) -> Array:
        left = x.run(i0, i1).rows
        right = left if same and (i0, i1) == (j0, j1) else z.run(j0, j1).rows
        return np.asarray(kernel.block(left, right))

    return reference.BlockTiles(len(x), len(z), evaluate_block, LARGE_BLOCK if kernel.prefers_large_blocks else 0)


# ---- sweeps: bounded pieces of work, so that Ctrl-C and observers are heard ------------------------------------------

PIECE = 1e8
"""Operations of one thread between two interrupt checks."""
PANEL = 12
"""Rows that the engine evaluates together at most: fewer would waste some of them."""
OTHERS = 1 << 28
"""Bytes for the sums that each thread of a symmetric product keeps for the other rows."""
NARROWEST = 4096
"""Columns of a piece below which visiting each pair once no longer pays."""


def pieces(tiles: Tiles, rows: int, columns: int, work: float, *, align: int = PANEL) -> Iterator[tuple[int, int]]:
    """Runs of rows, each about `PIECE` of work at `work` operations an entry; emits their progress.

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
            tiles.multiply(i0, i1, j0, j1, v=V, out=out if symmetric else out[i0:i1], symmetric=symmetric)
            emit(TilesDone("tiles", i0 + (i1 - i0) * j1 // m, rows))
    return out


def normal_product(tiles: Tiles, V: Array, weights: Array | None, rows: int, work: float) -> Array:
    """Kᵀ diag(w) K V in float64, each entry computed once; V as for `multiply`, w float64."""
    out = np.zeros(V.shape)
    if out.size:
        for i0, i1 in pieces(tiles, rows, len(V), work, align=tiles.row_block):
            tiles.normal_product(i0, i1, v=V, weights=weights, out=out)
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
