"""The plans of the tile engine for a kernel matrix or for parts of it, and their memory."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.engine.contract import HeldFactors
from mercer.gram import tiles as sweep
from mercer.gram.data import Data
from mercer.gram.registers import DoesNotFit
from mercer.gram.windows import COPIES, MOST_KEPT, WindowTiles
from mercer.kernels import Kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.factors import Factors, narrow
from mercer.kernels.symbolic.expression import Expression
from mercer.operators import Operator
from mercer.points import Points, VectorPoints

__all__ = ["CHEAP_COLUMNS", "TiledOperator"]

Array: TypeAlias = Any

CHEAP_COLUMNS = 100
"""The most features for which entries are recomputed, and not stored, for checks and for working sets. It does not
depend on measured rates, because it decides by which entries solutions are checked."""

CHUNK = 1 << 23
"""Bytes of the columns' points that are copied at a time for a block of few rows."""
ACROSS = 8
"""A block of few rows is computed for at least this many times as many columns, so that rows are seldom copied."""

FACTORS_SHARE = 0.25
"""Share of a memory that factors may take; while a sum of kernels joins them, they take twice as much."""

ZEROS = 8
"""Sparse rows stay so for products by the rows if an array would take so many times their memory."""


class TiledOperator(Operator):
    """K(X, Z), or K(X, X) if Z is None, by plans of the tile engine."""

    kernel: Kernel
    x: Points
    """The points of the rows."""
    z: Points | None
    """The points of the columns; None if they are those of the rows."""
    _plan: Any
    _factors: Factors | None = None
    """Sparse factors for products, if they are kept."""

    @property
    def X(self) -> Any:
        """The points of the rows as they were given: an array, a CSR matrix, or a sequence."""
        return self.x.rows

    @property
    def Z(self) -> Any:
        """The points of the columns as they were given; None for K(X, X)."""
        return None if self.z is None else self.z.rows

    @property
    def _others(self) -> Points:
        """The points of the columns."""
        return self.x.anchors() if self.z is None else self.z

    @property
    def _sides(self) -> tuple[Points, ...]:
        """The points of both sides, once if they are the same."""
        return (self.x,) if self.z is None else (self.x, self.z)

    def _tiles(self) -> Any:
        if self._plan is None:
            self._plan = self._plan_for(None, None)
        return self._plan

    def _cross(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None) -> Array:
        if self._factors is not None:
            return self._factors.block(rows, columns).astype(self.dtype, copy=False)
        m = self.shape[1] if columns is None else len(columns)
        out = np.empty((len(rows), m), self.dtype)
        step = self._columns_at_a_time(len(rows))
        if m <= step or not self.runs_as_program:
            return self._block_of(rows, columns, out)
        # Some columns at a time, because a plan copies the points of its columns.
        every = np.arange(m) if columns is None else columns
        for j in range(0, m, step):
            some = every[j : j + step]
            out[:, j : j + step] = self._block_of(rows, some, np.empty((len(rows), len(some)), self.dtype))
        return out

    def _columns_at_a_time(self, rows: int) -> int:
        return max(ACROSS * rows, CHUNK // (self.dtype.itemsize * self._width))

    def _block_of(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None, out: Array) -> Array:
        if out.size:
            plan = self._plan_for(rows, columns)
            for i0, i1 in sweep.pieces(plan, len(rows), out.shape[1], self._work(0)):
                plan.block(i0, i1, 0, out.shape[1], out=out[i0:i1])
        return out

    def _plan_for(self, rows: NDArray[np.intp] | None, columns: NDArray[np.intp] | None) -> Any:
        """The tiles of K[rows, columns]; None stands for all."""
        others, whole = self._others, rows is None and columns is None
        x = self.x if rows is None else self.x.take(rows, copy=False)
        square = others is self.x and rows is not None and columns is not None and np.array_equal(rows, columns)
        z = x if square else others if columns is None else others.take(columns, copy=False)
        if self._expression is not None and self.runs_as_program:
            self_pairs = np.arange(len(x)) if whole and self.symmetric else self._self_pairs(rows, columns)
            with contextlib.suppress(DoesNotFit):
                if x.window or z.window:
                    return self._windows(x, z, z is others is self.x and rows is None)
                data = self._data if whole else self._data_of_some(x, z, rows, columns)
                return sweep.program_tiles(self._expression, data, self_pairs)
        if not self.kernel.space.vectors:
            return sweep.block_tiles(self.kernel, x, z)
        left = x.here().widened(self.dtype)
        return sweep.block_tiles(self.kernel, left, left if z is x else z.here().widened(self.dtype))

    def _data_of_some(self, x: Points, z: Points, rows: Any, columns: Any) -> Data:
        """The data of some rows and columns, by what is known of all."""
        known = self.__dict__.get("_data")
        return _data_of(x, z, self.dtype) if known is None else known.part(x, z, rows, columns)

    def _windows(self, x: Points, z: Points, same: bool) -> WindowTiles:
        """The tiles of points that are not in memory."""
        assert self._expression is not None
        assert isinstance(x, VectorPoints)
        assert isinstance(z, VectorPoints)
        return WindowTiles(self._expression, x, z, self.dtype, same)

    def release(self) -> None:
        """Free the copies of the rows; a later product makes new ones."""
        self._plan = None
        self.__dict__.pop("_data", None)

    @cached_property
    def copies(self) -> int:
        """Bytes of the copies of the rows that products need; for objects, of factors that are kept."""
        if self._factors is not None:
            return self._factors.nbytes
        if not self.kernel.space.vectors or not all(self.shape):
            return 0
        if not self.in_memory:
            norms = MOST_KEPT * self.dtype.itemsize * len(self.x)
            return norms + sum(COPIES * side.window or 2 * side.nbytes for side in self._sides)
        if self._expression is not None and self.runs_as_program:
            with contextlib.suppress(DoesNotFit):
                return sweep.program_bytes(self._expression, self._data)
        return sum(len(x) * x.columns * self.dtype.itemsize * (x.dtype != self.dtype) for x in self._sides)

    def copies_of(self, rows: int, columns: int) -> int:
        """Bytes of the copies for a part of K with these numbers of rows and columns."""
        return self.copies * (rows + columns) // sum(self.shape)

    def copies_of_few(self, rows: int, columns: int) -> int:
        """Bytes of the copies for ``block`` of this many rows, which takes some of the columns at a time."""
        return self.copies_of(rows, min(columns, self._columns_at_a_time(rows)))

    @cached_property
    def _data(self) -> Data:
        """The rows of both sides for the engine."""
        return _data_of(self.x, self._others, self.dtype)

    def _self_pairs(self, rows: NDArray[np.intp] | None, columns: NDArray[np.intp] | None) -> NDArray[np.int64] | None:
        """For each chosen row, the position of the same point among the chosen columns, or −1."""
        if self.z is not None:
            return None
        place = np.full(self.shape[1], -1, np.int64)
        chosen = np.arange(self.shape[1]) if columns is None else columns
        place[chosen] = np.arange(len(chosen))
        return place if rows is None else place[rows]

    @property
    def in_memory(self) -> bool:
        """Whether the points of both sides are in memory."""
        return not any(side.window for side in self._sides)

    @property
    def factor_room(self) -> int:
        """Bytes of the factor of `low_rank` that are not in this process; 0 if it is an array here."""
        return backend.engine().room() // 2 if self._in_plan else 0  # a factor and F R exist at a time

    @property
    def _has_factor_elsewhere(self) -> bool:
        """Whether the factor of `low_rank` may be computed and kept elsewhere."""
        return self.factor_room > 0

    @property
    def cholesky_rows(self) -> int:
        """The most rows for which `held_factors` has room; 0 if the engine has no memory of its own."""
        return backend.engine().cholesky_rows() if self._in_plan else 0

    def held_factors(self, jitter: float, shift: float) -> HeldFactors | None:
        """T and U with TᵀT = K + jitter·I and UᵀU = TTᵀ + shift·I in the engine's own memory.

        None if it has none, or K + jitter·I is not positive definite in the precision of the entries.
        """
        largest = float(np.max(np.abs(self.diagonal()), initial=0.0))
        return backend.engine().kept_factors(self._tiles(), jitter, shift, largest)

    @property
    def _in_plan(self) -> bool:
        """Whether one plan of the engine has all entries."""
        return self.in_memory and self.runs_as_program

    @property
    def cheap(self) -> bool:
        """Whether computing entries is about as fast as reading stored ones: see `CHEAP_COLUMNS`."""
        return self.native and self.x.columns <= CHEAP_COLUMNS

    @property
    def is_narrow(self) -> bool:
        """Whether X(ZᵀV) takes fewer operations than the entries of K = XZᵀ, for the linear kernel and its kin."""
        linear = self.kernel.space.vectors and self.kernel.has_fast_matmul and self.in_memory
        return linear and narrow(self.x.rows, self._others.rows)

    @property
    def pair_columns(self) -> int:
        """The columns of dense rows whose entries take as long: for sparse rows the numbers that two of them have."""
        x = self.x
        return min(x.columns, -(-2 * x.rows.nnz // max(len(x), 1))) if x.sparse else x.columns

    @property
    def product_columns(self) -> int:
        """`pair_columns` for products: those by factors take about as long as those by entries of one column."""
        return min(self.pair_columns, 1) if self.is_narrow else self.pair_columns

    def product_work(self, columns: int) -> float:
        """Multiply-adds of a product of K with so many columns, by entries or by factors.

        >>> from mercer import KernelOperator
        >>> X = np.ones((100, 5))
        >>> KernelOperator("gaussian(gamma=1)", X).product_work(2), KernelOperator("linear", X).product_work(2)
        (70000.0, 2000.0)
        """
        if self.is_narrow:
            return float(columns) * (self.x.rows.size + self._others.rows.size)
        return float(self.shape[0]) * self.shape[1] * (self.pair_columns + columns)

    @property
    def native(self) -> bool:
        """Whether the compiled engine computes the entries from a traced formula."""
        return self.runs_as_program and backend.engine().capabilities.compiled

    @cached_property
    def _expression(self) -> Expression | None:
        """The traced formula of a kernel on vectors; None for others."""
        return trace_or_none(self.kernel) if self.kernel.space.vectors else None

    def keep_factors(self, room: float) -> bool:
        """Compute products by factors from now on, if the kernel has them, of a quarter of `room` bytes or less.

        Examples
        --------
        >>> from itertools import product
        >>> import numpy as np
        >>> from mercer import KernelOperator
        >>> K = KernelOperator("spectrum(k=4)", ["".join(word) for word in product("abcd", repeat=5)])
        >>> K.keep_factors(1e8), float((K @ np.ones(1024))[0])
        (True, 16.0)
        """
        if self._factors is None and self.kernel.has_fast_matmul and self.in_memory:
            self._factors = self.kernel.factors(self.x.rows, self._others.rows, FACTORS_SHARE * room)
            self.__dict__.pop("copies", None)
        return self._factors is not None

    def drop_factors(self) -> None:
        """Free the factors of `keep_factors`; products are the kernel's own again."""
        self._factors = None
        self.__dict__.pop("copies", None)

    @property
    def factor_columns(self) -> int:
        """The columns of the factors, the most that the rank of K can be; 0 if there are none."""
        return 0 if self._factors is None else int(self._factors.A.shape[1])

    def factor(self) -> NDArray[np.float64]:
        """A new array F with K = FFᵀ for a symmetric K that keeps factors, with at most `factor_columns` columns."""
        assert self._factors is not None
        A = self._factors.A
        return np.array(A, np.float64) if isinstance(A, np.ndarray) else np.asarray(A.toarray())

    @property
    def has_factors(self) -> bool:
        """Whether products are by factors of K."""
        return self._factors is not None

    @property
    def runs_as_program(self) -> bool:
        """Whether an engine computes the entries from a traced formula."""
        dense = all(isinstance(side, VectorPoints) and side.may_be_dense for side in self._sides)
        return self._expression is not None and dense and not self._is_mostly_zeros

    @property
    def _is_mostly_zeros(self) -> bool:
        """Whether products take few numbers, of which a dense array of the rows would hold many copies of zero."""
        sparse = [side for side in self._sides if isinstance(side, VectorPoints) and side.sparse]
        return any(side.written > ZEROS * side.nbytes for side in sparse) and self.is_narrow

    @property
    def _width(self) -> int:
        """The number of features, or an estimate for points that are not rows of a table."""
        return self.x.columns or 100

    def _work(self, r: int) -> float:
        """Operations for an entry, as engines count them. Measured rates must not change the order of sums."""
        if self.kernel.prefers_large_blocks:  # its loops check for interrupts themselves
            return 1e-6
        if not self.runs_as_program:
            return 20.0 + 0.5 * self._width
        return (1.0 + 0.05 * self._width + 0.05 * r) * self.dtype.itemsize / 4


def _data_of(x: Points, z: Points, dtype: np.dtype[Any]) -> Data:
    """The engine's data for points of a traced kernel."""
    assert isinstance(x, VectorPoints)
    assert isinstance(z, VectorPoints)
    return Data.of(x, z, dtype)
