"""The rows of a plan in the form that the tile engine reads, and the memory that they take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.engine.contract import NormAccuracy, TilePairing, TileRows
from mercer.engine.opcodes import Pairing
from mercer.gram.inputs import parts_of, wider
from mercer.gram.program import Leaf, Program, Views
from mercer.gram.roundings import most_roundings, roundings
from mercer.kernels.symbolic.expression import Expression
from mercer.kernels.symbolic.values import evaluate
from mercer.kernels.symbolic.views import Columns
from mercer.points import VectorPoints

__all__ = ["Data", "Side"]

Array: TypeAlias = Any
Float64s: TypeAlias = NDArray[np.float64]

DIRECT_DEPTH = 16
"""Up to this many columns, differences cost no more than norms and a dot product, and are exact."""
PROMISE = {4: 8e-7, 8: 8e-14}
"""By bytes of an entry: the error that its distance may cause, below the documented 10⁻⁶ and 10⁻¹³ of entries."""
NEAR_ZERO = 0.05
"""If the squared mean is at most this share of the mean square of the rows, 0 is as good an origin as the mean."""
SHORT = 64
"""Features of a short sum of squares."""
PANEL = 16
"""The most rows that the engine packs together; it pads the last panel."""
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass
class Side:
    """One side of the pairs: its rows, and their images by the views of the program, each computed once."""

    rows: Array
    dtype: np.dtype[Any]
    seen: dict[Views, Array] = field(default_factory=dict)
    norms: dict[Views, Array] = field(default_factory=dict)
    """Squared norms of the images less their origin."""

    def through(self, views: Views) -> Array:
        """The images of the rows by a chain of views."""
        if views not in self.seen:
            self.seen[views] = self._shown(self.through(views[:-1]), views[-1]) if views else _readable(self.rows)
        return self.seen[views]

    def _shown(self, rows: Array, view: Any) -> Array:
        """The images by one view, in the wider dtype of rows and entries, because a view may round."""
        rows = np.asarray(rows)  # views of rows that the engine has adopted are made on the host
        if isinstance(view, Columns):
            return view.apply(rows)
        dtype, shown, done = wider(rows.dtype, self.dtype), None, 0
        for part in parts_of(rows):
            seen = view.apply(part.astype(dtype, copy=False))
            shown = np.empty((len(rows), seen.shape[1]), seen.dtype) if shown is None else shown
            shown[done : done + len(part)] = seen
            done += len(part)
        return shown

    def bytes(self, views: Views) -> int:
        """The memory of the images by a chain of views; 0 without views, as the rows are not copied."""
        if not views:
            return 0
        one = Side(self.rows[:1], self.dtype).through(views)
        return len(self.rows) * one.nbytes


@dataclass
class Data:
    """Both sides, and the dtype of the entries."""

    x: Side
    z: Side
    dtype: np.dtype[Any]
    written: int = 0
    """Bytes of the arrays that were made of sparse rows."""
    origins: dict[Views, Float64s | None] = field(default_factory=dict)
    tried: dict[Views, float] = field(default_factory=dict)

    @classmethod
    def of(cls, x: VectorPoints, z: VectorPoints, dtype: np.dtype[Any]) -> Data:
        """The data of the points of both sides, which may be the same object."""
        first = Side(x.for_engine(), dtype)
        if z is x:
            return cls(first, first, dtype, x.written)
        return cls(first, Side(z.for_engine(), dtype), dtype, x.written + z.written)

    def part(self, x: VectorPoints, z: VectorPoints, rows: Any, columns: Any) -> Data:
        """The data of the points x and z, which are some of these rows and columns, or all of them if None.

        What is known of all serves for some: origins, norms, and how many roundings a distance has.
        """
        part = Data.of(x, z, self.dtype)
        part.origins, part.tried = dict(self.origins), dict(self.tried)
        for side, whole, index in ((part.x, self.x, rows), (part.z, self.z, columns)):
            some = slice(None) if index is None else index
            side.norms = {views: norms[some] for views, norms in whole.norms.items()}
        return part

    @property
    def narrows(self) -> bool:
        """Whether the entries have a narrower dtype than the rows, so that rows are rounded."""
        return self.x.rows.dtype.itemsize > self.dtype.itemsize

    def origin(self, views: Views) -> Float64s | None:
        """The mean of the second side's rows; None if 0 is as good an origin."""
        if views not in self.origins:
            rows = self.z.through(views)
            mean = rows.mean(axis=0, dtype=np.float64) if isinstance(rows, np.ndarray) else rows.mean()
            near = not self.narrows and len(rows) * (mean @ mean) <= NEAR_ZERO * _squared_norms(rows).sum()
            self.origins[views] = None if near else mean
        return self.origins[views]

    def pairing(self, leaf: Leaf) -> TilePairing:
        """The engine's pairing for a leaf.

        Differences of the given rows are exact. If rows are rounded to a narrower dtype, an origin is subtracted first,
        which reduces the rounding error and does not change differences.
        """
        return TilePairing(leaf.pairing, self._given_origin(leaf), self.by_norms(leaf))

    def side(self, side: Side, leaves: Sequence[Leaf], values: Sequence[Expression]) -> TileRows:
        """The rows of a side in the form that the engine reads."""
        norms = (self._moved_norms(side, leaf.views) if self._has_norms(leaf) else None for leaf in leaves)
        rows = tuple(side.through(leaf.views) for leaf in leaves)
        return TileRows(len(side.rows), rows, tuple(norms), tuple(self.value(side, value) for value in values))

    def _given_origin(self, leaf: Leaf) -> Float64s | None:
        moves = self.narrows and leaf.pairing in (Pairing.SQDIST, Pairing.L1)
        return self.origin(leaf.views) if moves else None

    def _has_norms(self, leaf: Leaf) -> bool:
        return leaf.pairing == Pairing.SQDIST and self.z.through(leaf.views).shape[1] > DIRECT_DEPTH

    def by_norms(self, leaf: Leaf) -> NormAccuracy | None:
        """The accuracy for squared distances by norms; None if differences are as cheap."""
        if not self._has_norms(leaf):
            return None
        unit, promise = float(np.finfo(self.dtype).eps) / 2, PROMISE[self.dtype.itemsize]
        slow, fast, root = leaf.rates or (0.0, math.inf, 0.0)
        rounding = self._roundings(leaf.views, promise / (unit * fast)) * unit
        return NormAccuracy(self.origin(leaf.views), rounding, promise, slow, fast, root)

    def _roundings(self, views: Views, enough: float) -> float:
        """The roundings of a squared distance by norms.

        They are not tried if no distance can have more than `enough`, in units of the squared norms of its rows.
        """
        if views not in self.tried:
            rows = self.x.through(views), self.z.through(views)
            sizes = self._moved_norms(self.x, views), self._moved_norms(self.z, views)
            most = most_roundings(rows[0].shape[1], self.dtype)
            if most * sum(float(part.max(initial=0.0)) for part in sizes) <= enough:
                return most
            self.tried[views] = roundings(*rows, self.origin(views), self.dtype, sizes)
        return self.tried[views]

    def _moved_norms(self, side: Side, views: Views) -> Array:
        """The squared norms of the rows less the origin, rounded as the engine rounds them."""
        if views not in side.norms:
            rows, origin = side.through(views), self.origin(views)
            with np.errstate(over="ignore"):
                if not isinstance(rows, np.ndarray):
                    side.norms[views] = rows.row_sums(origin, self.dtype)[0].astype(self.dtype)
                    return side.norms[views]
                moved = (part if origin is None else part - origin for part in parts_of(rows))
                norms = [_squared_norms(part.astype(self.dtype, copy=False)) for part in moved]
                side.norms[views] = np.concatenate(norms).astype(self.dtype)
        return side.norms[views]

    def value(self, side: Side, value: Expression) -> Array:
        """The value of an expression for each row, computed in float64.

        Finite values are clipped to the range of the dtype, because infinity times 0 would be NaN.
        """
        most = float(np.finfo(self.dtype).max)
        with np.errstate(all="ignore"):
            values = np.asarray(evaluate(value, lambda leaf: _self_pairing(leaf, side)))
            values = np.where(np.isfinite(values), np.clip(values, -most, most), values)
            return np.ascontiguousarray(np.broadcast_to(values, (len(side.rows),)), self.dtype)

    def release(self) -> None:
        """Free the images by views, which the engine has copied."""
        self.x.seen.clear()
        self.z.seen.clear()

    def bytes(self, program: Program) -> int:
        """Bytes of the engine's copies of the rows in this process, and of the images by views that exist meanwhile."""
        sides = (self.x,) if self.x is self.z else (self.x, self.z)
        chains = {leaf.views[:i] for leaf in program.leaves for i in range(len(leaf.views) + 1)}
        shown = sum(side.bytes(views) for side in sides for views in chains)
        height = sum(-(-len(side.rows) // PANEL) * PANEL for side in (self.x, self.z))
        width = sum(self._width(leaf.views) * self._packed(leaf) for leaf in program.leaves)
        values = len(self.x.rows) * len(program.row_values) + len(self.z.rows) * len(program.column_values)
        self.release()
        copies = backend.engine().host_bytes(self.dtype.itemsize * height * width)
        return self.written + shown + copies + self.dtype.itemsize * values

    def _width(self, views: Views) -> int:
        return int(Side(self.z.rows[:1], self.dtype).through(views).shape[1])

    def _packed(self, leaf: Leaf) -> int:
        """The number of the engine's copies of the rows: 2 if it may need differences of the rows without an origin."""
        parts = self.by_norms(leaf)
        if parts is None or parts.origin is self._given_origin(leaf):
            return 1
        largest = sum(float(self._moved_norms(side, leaf.views).max()) for side in (self.x, self.z))
        return 1 if parts.fast * parts.rounding / parts.promise * largest <= 1 else 2


def _readable(rows: Array) -> Array:
    """Rows in the form that the engine reads: contiguous, in float32 or float64, or as it has adopted them."""
    if not isinstance(rows, np.ndarray):
        return rows
    return np.ascontiguousarray(rows, None if rows.dtype in FLOATS else np.float64)


def _squared_norms(rows: Array) -> Array:
    """‖x‖² in float64, as sums of short sums, whose roundings are few also if all fall to one side."""
    if not isinstance(rows, np.ndarray):
        return rows.own_sums[0]
    # A copy of a run that stays in the cache: einsum that widens as it multiplies takes twice as long.
    return np.concatenate([_sums_of_squares(part.astype(np.float64, copy=False)) for part in parts_of(rows)])


def _sums_of_squares(rows: Float64s) -> Float64s:
    whole = rows.shape[1] // SHORT
    runs, rest = rows[:, : whole * SHORT].reshape(len(rows), whole, SHORT), rows[:, whole * SHORT :]
    return np.einsum("ikj,ikj->ki", runs, runs).sum(axis=0) + np.einsum("ij,ij->i", rest, rest)


def _self_pairing(leaf: Expression, side: Side) -> Array:
    kind, views = leaf.value
    rows = side.through(views)
    if kind == "dot":
        return _squared_norms(rows)
    return rows.sum(axis=1, dtype=np.float64) if isinstance(rows, np.ndarray) else rows.own_sums[1]
