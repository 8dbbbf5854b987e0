"""The tile engine in NumPy: the reference of the compiled `Tiles`.

`Tiles` has the constructor and the methods of the compiled class; `BlockTiles` has the same methods for any function
that evaluates a block of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.opcodes import CHUNK_OF_DOUBLES, ROW_BLOCK, Operation, Pairing

__all__ = ["BlockTiles", "Tiles", "instruction_sets", "threads"]

Array = NDArray[Any]
_TILE_ENTRIES = 1 << 19  # 4 MB of float64


def instruction_sets() -> list[str]:
    """The only one: "numpy"."""
    return ["numpy"]


def threads() -> int:
    """How many threads the next call uses, besides those of NumPy's BLAS."""
    return 1


class BlockTiles:
    """Sweeps over a matrix whose blocks a function computes.

    Parameters
    ----------
    rows, columns : int
    evaluate : callable
        (i0, i1, j0, j1) ↦ the entries of rows [i0, i1) and columns [j0, j1). A subclass has the method `_evaluate`.
    entries : int
        The least number of entries of a block, if it should be larger than by default.
    """

    row_block = ROW_BLOCK

    def __init__(
        self,
        rows: int,
        columns: int,
        evaluate: Callable[[int, int, int, int], Array] | None = None,
        entries: int = 0,
    ) -> None:
        self.rows, self.columns, self._given = rows, columns, evaluate
        self._entries = max(entries, _TILE_ENTRIES)
        self.row_block = max(self.row_block, entries // max(1, columns))

    def _evaluate(self, i0: int, i1: int, j0: int, j1: int) -> Array:
        assert self._given is not None
        return self._given(i0, i1, j0, j1)

    def _tiles(self, i0: int, i1: int, j0: int, j1: int) -> Iterator[tuple[int, int]]:
        step = max(self.row_block, self._entries // max(1, i1 - i0))
        for j in range(j0, j1, step):
            yield j, min(j + step, j1)

    def block(self, i0: int, i1: int, j0: int, j1: int, *, out: Array) -> None:
        """Rows [i0, i1) × columns [j0, j1) into `out`."""
        out[...] = self._evaluate(i0, i1, j0, j1)

    def gram(self, i0: int, i1: int, out: Array) -> None:
        """Rows [i0, i1) and, by symmetry, the same columns, into the n × n matrix `out`."""
        for top in range(i0, i1, self.row_block):
            bottom = min(top + self.row_block, i1)
            out[top:bottom, top:bottom] = self._square(top, bottom)
            for j, end in self._tiles(top, bottom, bottom, self.columns):
                values = self._evaluate(top, bottom, j, end)
                out[top:bottom, j:end] = values
                out[j:end, top:bottom] = values.T

    def upper(self, i0: int, i1: int, out: Array) -> None:
        """The same rows from the diagonal blocks on, into a vector `out` in which each row of blocks is contiguous."""
        n = self.columns
        for top in range(i0, i1, self.row_block):
            bottom, start = min(top + self.row_block, i1), top * n - top * (top - self.row_block) // 2
            rows = out[start : start + (bottom - top) * (n - top)].reshape(bottom - top, n - top)
            rows[:, : bottom - top] = self._square(top, bottom)
            for j, end in self._tiles(top, bottom, bottom, n):
                rows[:, j - top : end - top] = self._evaluate(top, bottom, j, end)

    def _square(self, top: int, bottom: int) -> Array:
        """The block on the diagonal, symmetric by its upper triangle."""
        square = self._evaluate(top, bottom, top, bottom)
        return np.asarray(np.triu(square) + np.triu(square, 1).T)

    @np.errstate(all="ignore")  # as in the compiled module: the caller checks for entries that are not finite
    def multiply(self, i0: int, i1: int, j0: int, j1: int, *, v: Array, out: Array, symmetric: bool) -> None:
        """`out` += K[i0:i1, j0:j1] v[j0:j1].

        With `symmetric`, `out` has n rows, and each entry right of the diagonal blocks is also used as its mirror
        image. All ranges end at multiples of `row_block`, or at the last row.
        """
        wide = v.astype(np.float64, copy=False)
        for top in range(i0, i1, self.row_block):
            bottom = min(top + self.row_block, i1)
            if not symmetric:
                for j, end in self._tiles(top, bottom, j0, j1):
                    out[top - i0 : bottom - i0] += self._evaluate(top, bottom, j, end) @ wide[j:end]
                continue
            if j0 <= top < j1:
                out[top:bottom] += self._evaluate(top, bottom, top, bottom) @ wide[top:bottom]
            for j, end in self._tiles(top, bottom, max(bottom, j0), j1):
                values = self._evaluate(top, bottom, j, end)
                out[top:bottom] += values @ wide[j:end]
                out[j:end] += values.T @ wide[top:bottom]

    @np.errstate(all="ignore")
    def normal_product(self, i0: int, i1: int, *, v: Array, weights: Array | None, out: Array) -> None:
        """`out` += Kᵀ diag(w) K v with the rows [i0, i1) of K; each entry is computed once."""
        wide, height = v.astype(np.float64, copy=False), max(1, min(self.row_block, self._entries // self.columns))
        for top in range(i0, i1, height):
            bottom = min(top + height, i1)
            values = self._evaluate(top, bottom, 0, self.columns)
            images = values @ wide
            if weights is not None:
                images *= weights[top:bottom, None]
            out += values.T @ images

    @np.errstate(all="ignore")
    def group_sums(self, i0: int, i1: int, *, start: Array, weights: Array | None, out: Array) -> None:
        """`out[i − i0, g]` += Σ wⱼ Kᵢⱼ over the columns start[g] ≤ j < start[g + 1]."""
        for j, end in self._tiles(i0, i1, 0, self.columns):
            values = self._evaluate(i0, i1, j, end).astype(np.float64)
            if weights is not None:
                values *= weights[j:end]
            for g in range(len(start) - 1):
                a, b = max(int(start[g]), j), min(int(start[g + 1]), end)
                if a < b:
                    out[:, g] += values[:, a - j : b - j].sum(axis=1)


class Tiles(BlockTiles):
    """The matrix of a program over pairings; `mercer.engine.contract` describes the parameters."""

    def __init__(
        self,
        *,
        is_double: bool,
        rows: int,
        columns: int,
        pairings: Sequence[tuple[int, Array, Array, Array | None]],
        row_values: Sequence[Array],
        column_values: Sequence[Array],
        constants: Sequence[float],
        program: Sequence[tuple[Any, ...]],
        registers: int,
        result: int,
        self_pairs: Array | None = None,
        isa: str = "",
        norms: Sequence[tuple[Any, ...]] = (),
    ) -> None:
        super().__init__(rows, columns)  # an object that held its own method would outlive its last use
        self._dtype = np.dtype(np.float64 if is_double else np.float32)
        self._pairings = [(kind, self._moved(a, origin), self._moved(b, origin)) for kind, a, b, origin in pairings]
        self._rows, self._columns = row_values, column_values
        self._constants, self._program = constants, program
        self._registers, self._result, self._self_pairs = registers, result, self_pairs
        self._norms = {
            at: ByNorms(self._moved(pairings[at][1], origin), self._moved(pairings[at][2], origin), *parts)
            for at, origin, *parts in norms
        }

    def _moved(self, rows: Array, origin: Array | None) -> Array:
        """Rows less an origin, subtracted in float64 so that only the difference is rounded, some rows at a time."""
        if origin is None:
            return rows.astype(self._dtype, copy=False)
        moved = np.empty(rows.shape, self._dtype)
        height = max(1, _TILE_ENTRIES // rows.shape[1])
        for i in range(0, len(rows), height):
            moved[i : i + height] = rows[i : i + height] - origin
        return moved

    @np.errstate(all="ignore")
    def _evaluate(self, i0: int, i1: int, j0: int, j1: int) -> Array:
        reg: list[Any] = [None] * self._registers
        for r, (kind, a, b) in enumerate(self._pairings):
            if r in self._norms:
                distances = self._norms[r].block(a, b, slice(i0, i1), slice(j0, j1))
                reg[r] = self._zero_self_pairs(distances, i0, i1, j0, j1)
            else:
                reg[r] = PAIRINGS[kind](a[i0:i1], b[j0:j1])
        read = (
            lambda index: reg[index],
            lambda index: self._rows[index][i0:i1, None],
            lambda index: self._columns[index][None, j0:j1],
            lambda index: self._dtype.type(self._constants[index]),
        )
        for op, target, *operands, k0, k1 in self._program:
            args = [read[where](index) for where, index in operands if where >= 0]
            reg[target] = np.asarray(OPERATIONS[op](self._dtype.type(k0), self._dtype.type(k1), *args), self._dtype)
        return np.array(np.broadcast_to(reg[self._result], (i1 - i0, j1 - j0)))

    def _zero_self_pairs(self, distances: Array, i0: int, i1: int, j0: int, j1: int) -> Array:
        if self._self_pairs is not None:
            at = self._self_pairs[i0:i1]
            inside = (at >= j0) & (at < j1)
            distances[np.flatnonzero(inside), at[inside] - j0] = 0.0
        return distances


@dataclass(frozen=True)
class ByNorms:
    """‖x‖² + ‖z‖² − 2⟨x, z⟩ where that is accurate enough, else ‖x − z‖²: see `core/pairing/distances.inl`."""

    a: Array
    b: Array
    row_norms: Array
    column_norms: Array
    rounding: float
    promise: float
    slow: float
    fast: float
    root: float

    def block(self, given_a: Array, given_b: Array, rows: slice, columns: slice) -> Array:
        """The squared distances of rows × columns; differences are computed from the rows without an origin."""
        size = self.row_norms[rows, None] + self.column_norms[None, columns]
        found = np.maximum(size - 2 * PAIRINGS[Pairing.DOT](self.a[rows], self.b[columns]), 0)
        error = self.rounding * size.astype(np.float64)
        excess = self.fast * error / self.promise
        least = np.maximum(excess, 1)
        grown = (least**self.root - 1) / self.root if self.root else np.log(least)
        far = grown / self.slow if self.slow > 0 else np.inf
        enough = (excess <= 1) | (found * self.promise >= error - self.rounding * found) | (found - error >= far)
        near = ~enough | ~np.isfinite(size)
        left, right = given_a[rows], given_b[columns]
        if 3 * np.count_nonzero(near) > near.size:
            return PAIRINGS[Pairing.SQDIST](left, right)
        i, j = np.nonzero(near)
        step = max(1, _TILE_ENTRIES // left.shape[1])
        for some in (slice(at, at + step) for at in range(0, len(i), step)):
            found[i[some], j[some]] = np.square(left[i[some]] - right[j[some]]).sum(axis=1, dtype=np.float64)
        return found


def _by_column(term: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Σ over columns of term(aᵢ, bᵢ), in float64, without an n × m × d array."""

    def pairing(a: Array, b: Array) -> Array:
        total = np.zeros((len(a), len(b)))
        for k in range(a.shape[1]):
            total += term(a[:, k, None], b[None, :, k])
        return total.astype(a.dtype, copy=False)

    return pairing


def _dot(a: Array, b: Array) -> Array:
    """⟨aᵢ, bⱼ⟩ in float64; long sums are sums of shorter ones, as in the core."""
    left, right, d = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False), a.shape[1]
    each = -(-d // max(-(-d // CHUNK_OF_DOUBLES), 1)) or 1
    total = left[:, :each] @ right[:, :each].T
    for k in range(each, d, each):
        total += left[:, k : k + each] @ right[:, k : k + each].T
    return total.astype(a.dtype, copy=False)


def _chi2(a: Array, b: Array) -> Array:
    s = a + b
    return np.divide(a - b, s, out=np.zeros_like(s), where=s > 0) * (a - b)


PAIRINGS: dict[int, Callable[[Array, Array], Array]] = {
    Pairing.DOT: _dot,
    Pairing.SQDIST: _by_column(lambda a, b: (a - b) ** 2),
    Pairing.L1: _by_column(lambda a, b: np.abs(a - b)),
    Pairing.MIN_SUM: _by_column(np.minimum),
    Pairing.CHI2: _by_column(_chi2),
    Pairing.MISMATCHES: _by_column(lambda a, b: (a != b).astype(a.dtype)),
}

OPERATIONS: dict[int, Callable[..., Any]] = {
    Operation.ADD: lambda k0, k1, a, b: a + b,
    Operation.SUB: lambda k0, k1, a, b: a - b,
    Operation.MUL: lambda k0, k1, a, b: a * b,
    Operation.DIV: lambda k0, k1, a, b: a / b,
    Operation.MINIMUM: lambda k0, k1, a, b: np.minimum(a, b),
    Operation.MAXIMUM: lambda k0, k1, a, b: np.maximum(a, b),
    Operation.LESS: lambda k0, k1, a, b: np.less(a, b).astype(k0.dtype),
    Operation.LESS_EQUAL: lambda k0, k1, a, b: np.less_equal(a, b).astype(k0.dtype),
    Operation.WHERE: lambda k0, k1, a, b, c: np.where(a != 0, b, c),
    Operation.NEG: lambda k0, k1, a: -a,
    Operation.ABS: lambda k0, k1, a: np.abs(a),
    Operation.EXP: lambda k0, k1, a: np.exp(a),
    Operation.LOG: lambda k0, k1, a: np.log(a),
    Operation.SQRT: lambda k0, k1, a: np.sqrt(a),
    Operation.TANH: lambda k0, k1, a: np.tanh(a),
    Operation.SIN: lambda k0, k1, a: np.sin(a),
    Operation.COS: lambda k0, k1, a: np.cos(a),
    Operation.POW: lambda k0, k1, a: np.power(a, k0),
    Operation.POW_INTEGER: lambda k0, k1, a: np.power(a, k0),
    Operation.AFFINE: lambda k0, k1, a: k0 * a + k1,
    Operation.EXP_AFFINE: lambda k0, k1, a: np.exp(k0 * a + k1),
    Operation.GAUSS_FROM_SQDIST: lambda k0, k1, a: np.exp2(k0 * a),
}
