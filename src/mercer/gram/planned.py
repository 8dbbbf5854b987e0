"""A kernel on rows as the tile engine takes it: the plans of its matrix, or of parts of it, and their memory."""

from __future__ import annotations

import contextlib
import math
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.gram import tiles as sweep
from mercer.gram.data import Data
from mercer.gram.inputs import chosen, may_be_dense, take
from mercer.gram.registers import DoesNotFit
from mercer.kernels import Kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.symbolic.expression import Expression
from mercer.operators import Operator

__all__ = ["CHEAP_COLUMNS", "Planned"]

Array: TypeAlias = Any

CHEAP_COLUMNS = 100
"""Columns of the rows up to which entries are made again rather than kept for a check, or for working sets. It decides
with which entries answers are checked, so the rates have no say."""

CHUNK = 1 << 23
"""Bytes of the columns that are copied at a time for a block of few rows."""
ACROSS = 8
"""Times as many columns as rows at a time at least, so that the rows are not copied too often."""


class Planned(Operator):
    """K(X, Z), or K(X, X) without Z, by plans of the tile engine."""

    kernel: Kernel
    X: Any
    Z: Any
    _plan: Any

    def _tiles(self) -> Any:
        if self._plan is None:
            self._plan = self._plan_for(None, None)
        return self._plan

    def _cross(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None) -> Array:
        m = self.shape[1] if columns is None else len(columns)
        out = np.empty((len(rows), m), self.dtype)
        step = max(ACROSS * len(rows), CHUNK // (self.dtype.itemsize * self._width))
        if m <= step or not self._runs_as_program:
            return self._block_of(rows, columns, out)
        # Some columns at a time: all of them would be copied for few rows.
        every = np.arange(m) if columns is None else columns
        for j in range(0, m, step):
            some = every[j : j + step]
            out[:, j : j + step] = self._block_of(rows, some, np.empty((len(rows), len(some)), self.dtype))
        return out

    def _block_of(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None, out: Array) -> Array:
        if out.size:
            plan = self._plan_for(rows, columns)
            for i0, i1 in sweep.pieces(plan, len(rows), out.shape[1], self._work(0)):
                plan.block(i0, i1, 0, out.shape[1], out[i0:i1])
        return out

    def _plan_for(self, rows: NDArray[np.intp] | None, columns: NDArray[np.intp] | None) -> Any:
        """Tiles of K[rows, columns]; None is all of them."""
        shape = self.shape[0] if rows is None else len(rows), self.shape[1] if columns is None else len(columns)
        if self.kernel.domain == "precomputed":
            index = np.arange(self.shape[1]) if self.Z is None else self.Z
            return sweep.block_tiles(self.kernel, take(self.X, rows), take(index, columns), *shape)
        Z, whole = self.X if self.Z is None else self.Z, rows is None and columns is None
        x = chosen(self.X, rows)
        square = self.Z is None and rows is not None and columns is not None and np.array_equal(rows, columns)
        z = x if square else chosen(Z, columns)
        same = z is x
        if self._expression is not None and self._runs_as_program:
            pins = np.arange(shape[0]) if whole and self.symmetric else self._pins(rows, columns)
            with contextlib.suppress(DoesNotFit):
                return sweep.program_tiles(self._expression, self._data if whole else Data.of(x, z, self.dtype), pins)
        if self.kernel.domain == "vectors" and x.dtype.itemsize < self.dtype.itemsize:
            x = x.astype(self.dtype)
            z = x if same else z.astype(self.dtype)
        return sweep.block_tiles(self.kernel, x, z, *shape)

    def release(self) -> None:
        """Let go of the copies of the rows; a later product makes them anew."""
        self._plan = None

    @cached_property
    def copies(self) -> int:
        """Bytes of the copies of the rows that a product is computed from; 0 for objects."""
        if self.kernel.domain != "vectors" or not all(self.shape):
            return 0
        if self._expression is not None and self._runs_as_program:
            with contextlib.suppress(DoesNotFit):
                return sweep.program_bytes(self._expression, self._data)
        sides = (self.X,) if self.Z is None else (self.X, self.Z)
        return sum(math.prod(rows.shape) * self.dtype.itemsize * (rows.dtype != self.dtype) for rows in sides)

    def copies_of(self, rows: int, columns: int) -> int:
        """Bytes of the copies for a part of K with so many rows and columns."""
        return self.copies * (rows + columns) // sum(self.shape)

    @cached_property
    def _data(self) -> Data:
        """The rows of both sides for the engine."""
        return Data.of(self.X, self.X if self.Z is None else self.Z, self.dtype)

    def _pins(self, rows: NDArray[np.intp] | None, columns: NDArray[np.intp] | None) -> NDArray[np.int64] | None:
        """For each chosen row, the place among the chosen columns of the same point."""
        if not self.symmetric:
            return None
        place = np.full(self.shape[1], -1, np.int64)
        chosen = np.arange(self.shape[1]) if columns is None else columns
        place[chosen] = np.arange(len(chosen))
        return place if rows is None else place[rows]

    @property
    def cheap(self) -> bool:
        """Whether a product computes the entries about as fast as it would read stored ones: see `CHEAP_COLUMNS`."""
        return self.native and self.X.shape[1] <= CHEAP_COLUMNS

    @property
    def native(self) -> bool:
        """Whether the compiled engine makes the entries from a traced formula, at the rates of a `Machine`."""
        return self._runs_as_program and backend.is_native()

    @cached_property
    def _expression(self) -> Expression | None:
        """The traced formula of a kernel of vectors."""
        return trace_or_none(self.kernel) if self.kernel.domain == "vectors" else None

    @property
    def _runs_as_program(self) -> bool:
        return self._expression is not None and may_be_dense(self.X) and (self.Z is None or may_be_dense(self.Z))

    @property
    def _width(self) -> int:
        """Columns of the rows; what stands for them where there are none."""
        return int(self.X.shape[1]) if hasattr(self.X, "shape") and len(self.X.shape) == 2 else 100

    def _work(self, r: int) -> float:
        """Operations an entry, for `tiles.PIECE`. It fixes the order of sums, so the rates have no say."""
        if self.kernel.whole:  # it looks itself
            return 1e-6
        if not self._runs_as_program:
            return 20.0 + 0.5 * self._width
        return (1.0 + 0.05 * self._width + 0.05 * r) * self.dtype.itemsize / 4
