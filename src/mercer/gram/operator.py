"""The kernel matrix as a linear operator: the only place where kernels meet operators."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike, NDArray

from mercer.engine import backend
from mercer.engine.opcodes import ROW_BLOCK
from mercer.errors import InvalidInput, message
from mercer.factorizations.factor import Factor, inverse_root
from mercer.factorizations.held import HeldFactor
from mercer.factorizations.pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.gram import tiles as sweep
from mercer.gram.inputs import RUN, commutes, narrowed, seen_to_commute
from mercer.gram.reach import all_modest, kernel_holds, not_held
from mercer.gram.registers import DoesNotFit
from mercer.gram.tiled import TiledOperator
from mercer.gram.windows import WindowTiles
from mercer.kernels import Kernel, as_kernel
from mercer.operators import Operator, Packed, Quantised, row_blocks
from mercer.operators.groups import Groups
from mercer.points import Points, Precomputed, VectorPoints, sample_rows
from mercer.points.runs import index_runs, run_ends

__all__ = ["KernelOperator"]

Array: TypeAlias = Any

DIAGONAL_RUN = 64
"""Rows of a block from which a diagonal is taken; the other entries of the block are wasted."""

MOST_RUNS = 16
"""The most runs of consecutive rows that are computed one by one, each at least as a panel; more get a new plan."""

MOST_TOGETHER = 10
"""The most vectors for which a normal product computes entries once. For 8, 10, 12, 16 vectors that took 1/1.84,
1/1.85, 1/1.44, 1/1.11 of the time of two products in float32, and 1/1.23, 1/1.34, 1/1.17, 1/0.97 in float64 (40 000
rows, 3000 columns, d = 20; busy machine). At d = 5 in float64, where entries are cheap, one took 1/0.92 and ten
1/1.07."""

FEATURES, GRAM = 1 << 22, 1 << 24
"""Entries that are in memory at a time for features, and for Gram matrices of rows."""

POOL = 4
"""Rows for each pivot of a low-rank factor among which pivots are chosen, as for landmarks."""
AHEAD = 500
"""The fewest pivots whose choice takes as long as rows take from worker to worker."""

FEW_GROUPS, FEW_OF_PAIRS = 8, 2
"""With this many times fewer groups than features, sums by group are products with indicators of the groups: they take
few multiplications, and do not copy the rows to sort them by group. Products compute each pair of a symmetric matrix
once, sums of sorted columns twice."""


def feature_rows(columns: int) -> int:
    """Rows of features at a time: runs begin where blocks of rows do, so that windows have the bits of arrays."""
    return sweep.multiple(FEATURES / max(columns, 1), ROW_BLOCK, sweep.PANEL)


class KernelOperator(TiledOperator):
    r"""V ↦ K V with Kᵢⱼ = k(xᵢ, zⱼ), never stored.

    Each product computes the entries tile by tile, with O(n m d) operations and O((n + m) d) memory. Without Z the
    operator is symmetric, and each pair is computed once.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel, its name, or an expression as on the command line. Parameters that depend on data are resolved on X if
        Z is omitted, and must be resolved otherwise.
    X : array-like of shape (n, d)
        The points of the rows. float32 rows give float32 entries, unless the kernel overflows or underflows in float32;
        all others give float64 entries. A precomputed kernel takes rows of kernel values, a `Function` any sequence.
    Z : array-like of shape (m, d), optional
        The points of the columns, by default X. A precomputed kernel takes indices of its columns.
    dtype : float32 or float64, optional
        The dtype of the entries, by default that of the rows. If float64 rows give float32 entries, means are
        subtracted before rows are rounded.

    Raises
    ------
    InvalidInput
        For data on which the kernel is not defined, or has values that overflow or underflow in float64, as far as
        k(x, x) shows: single entries may be infinite or NaN all the same. Also for parameters that depend on data if Z
        is given.

    Notes
    -----
    ``K @ V`` accumulates in float64 and has the dtype of V; the entries have the dtype of the rows. Use
    ``K.astype(numpy.float64)`` for entries in float64 from float32 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelOperator
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 1, 5).reshape(-1, 1)
    >>> K = KernelOperator(Gaussian(gamma=1.0), X)
    >>> K.shape, bool(np.allclose(K @ np.ones(5), Gaussian(gamma=1.0)(X).sum(axis=1)))
    ((5, 5), True)
    >>> K.block([0, 1], [4]).round(4)
    array([[0.3679],
           [0.5698]])
    """

    def __new__(cls, kernel: Any = None, X: Any = None, Z: Any = None, **_: Any) -> Self:
        """An object of the subclass that `takes` the points, for points that are computed with elsewhere."""
        return super().__new__(cls._of(X, Z))

    def __init__(
        self, kernel: Kernel | str, X: Array, Z: Array | None = None, *, dtype: DTypeLike | None = None
    ) -> None:
        kernel, Z = as_kernel(kernel), None if Z is X else Z
        kernel, X, Z = kernel.prepared(X, Z)
        if Z is None:
            kernel = kernel.resolve(X)
        elif not kernel.is_resolved:
            advice = "call kernel.resolve(X_train) first, or give numbers"
            raise InvalidInput(message("KernelOperator", f"{kernel!r} of two data sets", advice))
        self.kernel: Kernel = kernel
        self.x, self.z = kernel.space.pair(X, Z, "KernelOperator", kernel.as_objects)
        if kernel.space.vectors:
            for side in self._sides if kernel.checks_data else ():
                for part in side.chunks():
                    kernel.check_data(part.rows)
        rows, columns = len(self.x), len(self._others)
        entries = self.x.dtype if dtype is None else dtype
        symmetric = Z is None and rows == columns and self.x.symmetric and self._commutes()
        if entries == np.float32 and dtype is None and not self.fits_float32:
            entries = np.dtype(np.float64)
        super().__init__((rows, columns), entries, symmetric=symmetric)
        self._plan: Any = None
        self._require_held()

    def _commutes(self) -> bool:
        """Whether k(x, z) = k(z, x), by the formula, or where that leaves it open on some rows."""
        if commutes(self.kernel, self._expression):
            return True
        x, z = self._sides[0], self._sides[-1]
        if not (isinstance(x, VectorPoints) and isinstance(z, VectorPoints) and self._expression is not None):
            return False
        return len(x) > 0 and len(z) > 0 and seen_to_commute(self.kernel, x, z)

    @classmethod
    def takes(cls, side: Any) -> bool:
        """Whether this class computes with points of this kind, or with rows that become such points."""
        return False

    @classmethod
    def _of(cls, *sides: Any) -> type[Self]:
        return next((kind for kind in cls.__subclasses__() if any(map(kind.takes, sides))), cls)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; those of earlier versions have rows instead of points."""
        if "X" in state:
            X, Z, kernel = state["X"], state["Z"], state["kernel"]
            x = kernel.space.of(X)
            z = None if Z is None else kernel.space.others(x, Z, "KernelOperator", kernel.as_objects)
            state = {name: value for name, value in state.items() if name not in ("X", "Z")} | {"x": x, "z": z}
        super().__setstate__(state)

    # ---- the operator's contract ------------------------------------------------------------------------------------

    @cached_property
    def fits_float32(self) -> bool:
        """Whether the entries, and intermediate values of the formula, are in the range of float32."""
        return self._holds(np.float32)

    def _require_held(self) -> None:
        if self.dtype == np.float64 and not self._holds(np.float64):
            raise not_held(self.kernel, self._sides)

    def _holds(self, dtype: DTypeLike) -> bool:
        if self.z is None and self.kernel.space.objects and dtype == np.float32:
            return all_modest([self._own])
        return kernel_holds(self.kernel, self._expression, self._sides, dtype)

    def _matmat(self, V: Array) -> Array:
        if V.shape[1] == 0:
            return np.zeros((self.shape[0], 0), V.dtype)
        if self._factors is not None:
            return self._factors.times(V).astype(V.dtype, copy=False)
        if self.has_fast_matmul or self.is_narrow:
            return self._folded(self.x, V)
        own, scale = narrowed(V, self.dtype)
        tiles, work = self._tiles(), self._work(V.shape[1])
        if self.symmetric and isinstance(tiles, WindowTiles):
            out = tiles.symmetric_product(own, work)
        else:
            out = sweep.multiply(tiles, own, self.shape[0], work, self.symmetric)
        return np.ldexp(out, scale, out=out).astype(V.dtype, copy=False)

    @property
    def has_fast_matmul(self) -> bool:
        """Whether the kernel computes products without entries, or with those that a sparse matrix has."""
        space = self.kernel.space
        of_sparse = space.numbered and isinstance(self.x, Precomputed) and self.x.values.sparse
        return (space.objects or of_sparse) and self.kernel.has_fast_matmul

    def _folded(self, x: Points, V: Array) -> Array:
        """K(x, columns) V by the kernel's own product."""
        product = self.kernel.matmul(x.rows, self._others.rows, V.astype(np.float64, copy=False))
        return np.asarray(product).astype(V.dtype, copy=False)

    def _transpose(self) -> Operator:
        if self.symmetric:
            return self
        if self.z is None or self.kernel.space.numbered or not self._commutes():
            return super()._transpose()
        return self._like(self.z, self.x, self.shape[::-1], self.dtype, symmetric=False)

    def diagonal(self) -> Array:
        """k(xᵢ, xᵢ) (with Z given: k(xᵢ, zᵢ))."""
        if self.symmetric and self.kernel.space.objects:
            return self._own.astype(self.dtype)
        if self.symmetric and self.kernel.space.vectors:
            out, first = np.empty(self.shape[0], self.dtype), 0
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # as in products
                for part in self.x.blocks(RUN * self.x.dtype.itemsize):
                    out[first : first + len(part)] = self.kernel.diagonal(part.widened(self.dtype).rows)
                    first += len(part)
            return out
        size = min(self.shape)
        runs = [np.arange(i, min(i + DIAGONAL_RUN, size)) for i in range(0, size, DIAGONAL_RUN)]
        return np.concatenate([np.diagonal(self._cross(run, run)) for run in runs])

    @cached_property
    def _own(self) -> NDArray[np.float64]:
        """All k(x, x) of objects, which takes a pass over them; solvers ask for it again."""
        return np.asarray(self.kernel.diagonal(self.X), np.float64)

    def rows(self, I: Any) -> Array:
        """The rows K[I, :]."""
        index = self._index(I, 0)
        if self._factors is not None:
            return self._cross(index, None)
        out = np.empty((len(index), self.shape[1]), self.dtype)
        runs = 1 + np.count_nonzero(np.diff(index) != 1)
        if runs > 1 and (runs > MOST_RUNS or len(index) * sweep.PANEL > self.shape[0]):
            return self._cross(index, None)
        # By the plan of all rows, which exists already or will be used again; a new plan costs as much as some rows.
        for first, last in index_runs(index):
            self._write(slice(index[first], index[last] + 1), out[first : last + 1])
        return out

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        """K[I, :] V by tiles, so that the rows of K are never in memory together."""
        if not (len(index) and V.shape[1]):
            return np.zeros((len(index), V.shape[1]), V.dtype)
        if self._factors is not None:
            return self._factors.times(V, index).astype(V.dtype, copy=False)
        if self.has_fast_matmul:
            return self._folded(self.x.take(index), V)
        own, scale = narrowed(V, self.dtype)
        out = sweep.multiply(self._plan_for(index, None), own, len(index), self._work(V.shape[1]), symmetric=False)
        return np.ldexp(out, scale, out=out).astype(V.dtype, copy=False)

    def _normal_product(self, V: Array, weights: Array | None) -> Array:
        """Kᵀ diag(w) K V; for few vectors and a K that is not symmetric, each entry is computed once."""
        if self.symmetric or self.has_fast_matmul or self._others.window or V.shape[1] > MOST_TOGETHER:
            return super()._normal_product(V, weights)
        own, scale = narrowed(V, self.dtype)
        out = sweep.normal_product(self._tiles(), own, weights, self.shape[0], self._work(2 * V.shape[1]))
        if not np.all(np.isfinite(out)):  # the engine stores K V in float32, where it may overflow
            return super()._normal_product(V, weights)
        return np.ldexp(out, scale, out=out).astype(V.dtype, copy=False)

    def _block_times(self, rows: NDArray[np.intp], columns: NDArray[np.intp], V: Array) -> Array:
        """K[I, J] V by tiles, so that the block is never in memory as a whole."""
        if len(np.unique(columns)) < len(columns) or not (len(rows) and len(columns) and V.shape[1]):
            return super()._block_times(rows, columns, V)
        if self.symmetric and 2 * len(rows) * len(columns) >= self.shape[0] ** 2:
            # The product with all rows computes each pair once, and copies no rows.
            full = np.zeros((self.shape[1], V.shape[1]), V.dtype)
            full[columns] = V
            return self._matmat(full)[rows]
        own, scale = narrowed(V, self.dtype)
        plan = self._plan_for(rows, columns)
        out = sweep.multiply(plan, own, len(rows), self._work(V.shape[1]), symmetric=False)
        return np.ldexp(out, scale, out=out).astype(V.dtype, copy=False)

    def block(self, I: Any, J: Any) -> Array:
        """The entries K[I, J], all pairs of the two index sets."""
        rows, columns = self._index(I, 0), self._index(J, 1)
        unique, back = np.unique(columns, return_inverse=True)
        if len(unique) < len(columns):  # the engine sets the distance to 0 for only one column of a row
            return self._cross(rows, unique)[:, back]
        if self._in_full_plan(rows, columns):
            out = np.empty((len(rows), len(columns)), self.dtype)
            self._write(slice(rows[0], rows[-1] + 1), out, columns[0])
            return out
        return self._cross(rows, columns)

    def principal(self, I: Any) -> Operator:
        """K[I, I] for different rows I; if K is symmetric, it is, too, and computes each pair once."""
        if not self.symmetric or self.kernel.space.numbered:
            return super().principal(I)
        index = self._index(I, 0)
        return self._like(self.x.take(index), None, (len(index), len(index)), self.dtype, symmetric=True)

    def between(self, X: Any, Z: Any) -> KernelOperator:
        """The operator of the same kernel for other rows, without their checks: for many small parts of checked data.

        Parameters
        ----------
        X, Z : arrays or CSR matrices of shape (n, d) and (m, d)
            At least one row each, in the form of this operator's, of its columns and of one dtype.

        Raises
        ------
        InvalidInput
            If the kernel's values overflow or underflow in float64 on these rows. If they do so only in float32, the
            entries are in float64.

        Examples
        --------
        >>> from mercer import KernelOperator
        >>> K = KernelOperator("linear", [[1.0], [2.0]])
        >>> K.between(np.array([[3.0]]), np.array([[4.0], [5.0]])).toarray()
        array([[12., 15.]])
        """
        x, z = self.kernel.space.of(X), self.kernel.space.of(Z)
        K = self._like(x, z, (len(x), len(z)), x.dtype, symmetric=False)
        if K.dtype == np.float32 and not K.fits_float32:
            K = K._like(x, z, K.shape, np.float64, symmetric=False)
        K._require_held()
        return K

    def columns(self, J: Any) -> KernelOperator:
        """K[:, J] for different columns J; norms of all rows are computed once for all such parts.

        Examples
        --------
        >>> from mercer import KernelOperator
        >>> KernelOperator("linear", [[1.0], [2.0]]).columns([1]).toarray()
        array([[2.],
               [4.]])
        """
        index = self._index(J, 1)
        part = self._like(self.x, self._others.take(index), (self.shape[0], len(index)), self.dtype, symmetric=False)
        if self.in_memory and self._expression is not None and self.runs_as_program:
            with contextlib.suppress(DoesNotFit):
                sweep.know_norms(self._expression, self._data)
                part._data = self._data_of_some(part.x, part._others, None, index)
        return part

    def features(self, R: NDArray[np.float64], dtype: DTypeLike | None = None, out: Array | None = None) -> Array:
        """K R in `dtype`, or in `out`, for as many columns as BLAS is faster for: a few rows at a time, in K's dtype.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelOperator
        >>> KernelOperator("linear", [[1.0], [2.0]], [[1.0]]).features(np.eye(1))
        array([[1.],
               [2.]])
        """
        (n, m), right = self.shape, R.astype(self.dtype)
        step = feature_rows(m)
        out = np.empty((n, R.shape[1]), dtype or self.dtype) if out is None else out
        with backend.one_blas_thread(2.0 * min(step, n) * right.size):
            for i in range(0, n, step):
                np.matmul(self.rows(slice(i, i + step)), right, out=out[i : i + step], casting="same_kind")
        return out

    def add_gram(self, I: NDArray[np.intp], weights: NDArray[np.float64], G: Array) -> Array:
        """G + K[I, :]ᵀ diag(w) K[I, :] in the upper triangle, a few rows at a time; it may have the memory of G.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelOperator
        >>> K = KernelOperator("linear", [[1.0], [2.0]], [[1.0]])
        >>> K.add_gram(np.arange(2), np.ones(2), np.zeros((1, 1), order="F"))
        array([[5.]])
        """
        m = self.shape[1]
        step = max(1, GRAM // max(m, 1))
        for i in range(0, len(I), step):
            rows = np.asarray(self.block(I[i : i + step], np.arange(m)), np.float64)
            rows *= np.sqrt(weights[i : i + step])[:, None]
            G = scipy.linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=G, overwrite_c=1)
        return G

    def low_rank(self, rank: int, *, tol: float = 0.0) -> PivotedCholesky:
        """F Fᵀ ≈ K of at most this rank, until tr(K − F Fᵀ) ≤ `tol`, by `pivoted_cholesky`.

        Where F is computed and kept elsewhere, on workers or on a device, pivoted Cholesky of some rows chooses the
        pivots in this process, and FFᵀ is equal to K in their rows.

        Examples
        --------
        >>> from mercer import KernelOperator
        >>> KernelOperator("linear", [[1.0], [2.0]]).low_rank(2).rank
        1
        """
        n, pool = self.shape[0], POOL * rank
        if not (self._has_factor_elsewhere and self.symmetric) or pool >= n:
            return pivoted_cholesky(self, rank, tol=tol)
        some = sample_rows(n, pool, 0)
        sample = self.principal(some)
        with self.ahead_of_products() if rank >= AHEAD else contextlib.nullcontext():
            found = pivoted_cholesky(sample, rank, tol=tol * pool / n)
        pivots = some[found.pivots]
        F = self._factor_elsewhere(pivots) if len(pivots) else None
        if F is None:
            return pivoted_cholesky(self, rank if len(pivots) else 0, tol=tol)
        diagonal = np.asarray(self.diagonal(), np.float64)
        left = np.maximum(diagonal - F.squares(), 0.0)
        left[pivots] = 0.0
        return PivotedCholesky(F, pivots, left, float(diagonal.sum()), found.proposed, found.power, found.bend)

    def quantised(self, most: float) -> Quantised:
        """The symmetric K with entries in 16 bits, as far as their noise is at most `most`.

        Of rows in shards, workers compute and hold them.

        Examples
        --------
        >>> from mercer import KernelOperator
        >>> KernelOperator("linear", [[1.0], [2.0]]).quantised(1e-3) @ [1.0, 1.0]
        array([3., 6.])
        """
        return Quantised(self, most)

    def room_elsewhere(self, most: int) -> int:
        """Bytes that other processes have for entries, at most `most` in each; 0 where entries are kept in this one.

        Examples
        --------
        >>> from mercer import KernelOperator
        >>> KernelOperator("linear", [[1.0], [2.0]]).room_elsewhere(1000)
        0
        """
        return 0

    def ahead_of_products(self) -> contextlib.AbstractContextManager[None]:
        """What is done elsewhere for later products with K while this process works within; here nothing.

        Of rows in shards, workers fetch what the first product needs.

        Examples
        --------
        >>> from mercer import KernelOperator
        >>> K = KernelOperator("linear", [[1.0], [2.0]])
        >>> with K.ahead_of_products():
        ...     first = K.rows([0])
        """
        return contextlib.nullcontext()

    def _factor_elsewhere(self, pivots: NDArray[np.intp]) -> Factor | None:
        """K(x, pivots) L⁻ᵀ with LLᵀ = K(pivots, pivots), where the engine computes; None if it keeps no arrays."""
        root = inverse_root(np.asarray(self.principal(pivots).astype(np.float64).toarray()), self.dtype)
        cross = self._like(self.x, self.x.take(pivots), (self.shape[0], len(pivots)), self.dtype, symmetric=False)
        held = backend.engine().kept_product(cross._tiles(), root)
        return None if held is None else HeldFactor(held)

    def entries(self) -> Any:
        """The compiled engine's tiles if the kernel runs as a program, else None."""
        engine = backend.engine()
        plan = self._tiles() if self.runs_as_program and engine.capabilities.compiled else None
        return plan if engine.makes_entries(plan) else None

    def _in_full_plan(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> bool:
        """Whether to compute a block by the plan of all rows, which must exist or pay off."""
        if self._factors is not None or not (len(rows) and len(columns)):
            return False
        if self._plan is None and 2 * len(columns) < self.shape[1]:
            return False
        return len(run_ends(rows)) == 1 == len(run_ends(columns))

    def fill(self, out: Array) -> Array:
        """Write K into `out`: in place and exactly symmetric if `out` is contiguous and has K's dtype."""
        self._check_out(out)
        if out.dtype != self.dtype:
            return self.astype(out.dtype).fill(out)
        if self.symmetric and (out.flags.c_contiguous or out.flags.f_contiguous):
            plan, target = self._tiles(), out if out.flags.c_contiguous else out.T
            for i0, i1 in sweep.pieces(plan, self.shape[0], self.shape[1], self._work(0), align=plan.row_block):
                plan.gram(i0, i1, target)
            return out
        if not out.flags.c_contiguous:
            return super().fill(out)
        self._write(slice(0, self.shape[0]), out)
        return out

    def packed(self) -> Packed:
        """The entries of a symmetric K, stored once for each pair.

        Examples
        --------
        >>> from mercer import KernelOperator
        >>> KernelOperator("linear", [[1.0], [2.0]]).packed().toarray()
        array([[1., 2.],
               [2., 4.]])
        """
        if not self.symmetric:
            raise self._invalid("packed() of a K that is not symmetric", "use toarray()")
        n, plan = self.shape[0], self._tiles()
        out = np.empty(Packed.size(n, plan.row_block), self.dtype)
        for i0, i1 in sweep.pieces(plan, n, n, self._work(0), align=plan.row_block):
            plan.upper(i0, i1, out)
        return Packed(out, n, plan.row_block)

    @property
    def packed_bytes(self) -> int:
        """An upper bound of the bytes of `packed()`."""
        n = self.shape[0]
        return self.dtype.itemsize * Packed.size(n, max(n, 1) if self.kernel.prefers_large_blocks else ROW_BLOCK)

    def add_to(self, out: Array) -> Array:
        """Add K to `out` in place, a few rows at a time."""
        self._check_out(out)
        for rows in row_blocks(self.shape[0], self.shape[1], elements=1 << 20):
            out[rows] += self.rows(rows)
        return out

    def _write(self, rows: slice, out: Array, first: int = 0) -> None:
        """The entries of consecutive rows, from the column `first` on, into a C-contiguous array."""
        plan, last = self._tiles(), first + out.shape[1]
        for i0, i1 in sweep.pieces(plan, len(out), out.shape[1], self._work(0)):
            plan.block(rows.start + i0, rows.start + i1, first, last, out=out[i0:i1])

    def astype(self, dtype: DTypeLike) -> Operator:
        """The operator of the same kernel on the same rows with entries of another dtype."""
        if np.dtype(dtype) == self.dtype:
            return self
        other = self._like(self.x, self.z, self.shape, dtype, self.symmetric)
        other._factors = self._factors
        other.__dict__ |= {name: value for name, value in self.__dict__.items() if name == "_own"}
        return other

    def in_float32(self) -> Operator:
        """The operator with entries in float32 if that can hold the kernel's values, else the operator itself."""
        return self.astype(np.float32) if self.fits_float32 else self

    def _like(
        self, x: Points, z: Points | None, shape: tuple[int, int], dtype: DTypeLike, symmetric: bool
    ) -> KernelOperator:
        """The operator of the same kernel on points that were validated before."""
        other = KernelOperator.__new__(KernelOperator, self.kernel, x, z)
        other.kernel, other.x, other.z, other._plan = self.kernel, x, z, None
        if "_expression" in self.__dict__:
            other._expression = self._expression
        Operator.__init__(other, shape, dtype, symmetric=symmetric)
        return other

    # ---- other consumers --------------------------------------------------------------------------------------------

    def group_sums(
        self, labels: Any, groups: int | None = None, weights: Any = None, columns: Any = None
    ) -> NDArray[np.float64]:
        """S[i, g] = Σ wⱼ Kᵢⱼ over the columns j of group g, in one pass over the tiles; see `Operator.group_sums`.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelOperator
        >>> K = KernelOperator("linear", np.array([[1.0], [2.0], [3.0]]))
        >>> K.group_sums([0, 1, 1])
        array([[ 1.,  5.],
               [ 2., 10.],
               [ 3., 15.]])
        """
        of = self._groups(labels, groups, weights, columns)
        out = np.zeros((self.shape[0], of.size))
        if not out.size or not len(of.columns):
            return out
        if self._others.window:
            return self._sums_by_window(of, whole=columns is None)
        fewer = FEW_OF_PAIRS if self.symmetric else FEW_GROUPS
        if len(of.columns) == self.shape[1] and fewer * of.size <= self._width:
            return super().group_sums(labels, groups, weights)
        order = np.argsort(of.labels, kind="stable")
        start = np.searchsorted(of.labels[order], np.arange(of.size + 1)).astype(np.int64)
        w, scale = None, np.zeros((), int)
        if of.weights is not None:
            own, scale = narrowed(of.weights[order][:, None], self.dtype)
            w = own[:, 0]
        plan = self._plan_for(None, of.columns[order])
        for i0, i1 in sweep.pieces(plan, self.shape[0], len(order), self._work(1)):
            plan.group_sums(i0, i1, start=start, weights=w, out=out[i0:i1])
        return np.ldexp(out, scale, out=out)

    def _sums_by_window(self, of: Groups, *, whole: bool) -> NDArray[np.float64]:
        """`group_sums` of columns that are not in memory, one run of them after the other; `whole` is all in order."""
        order = None if whole else np.argsort(of.columns, kind="stable")
        out, z = np.zeros((self.shape[0], of.size)), self._others
        step = max(1, z.window * len(z) // z.nbytes)
        for first in range(0, len(of.labels), step):
            last = min(first + step, len(of.labels))
            some = slice(first, last) if order is None else order[first:last]
            part = z.run(first, last) if order is None else z.take(of.columns[some], copy=False)
            K = self._like(self.x, part, (self.shape[0], last - first), self.dtype, symmetric=False)
            out += K.group_sums(of.labels[some], of.size, None if of.weights is None else of.weights[some])
        return out
