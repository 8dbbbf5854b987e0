"""The kernel matrix of points in shards: workers compute products with its blocks, and this process adds them up.

Each task computes the products with one block, of some rows and some columns, on one thread. The blocks
depend on the points and vectors only, and sums are added in the order of the blocks. So the results have the same bits
on every cluster, and when a block is computed again because a worker died.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.engine.backend import one_blas_thread
from mercer.factorizations.factor import Factor
from mercer.factorizations.pivoted_cholesky import PivotedCholesky
from mercer.gram import tiles as sweep
from mercer.gram.inputs import narrowed
from mercer.gram.operator import KernelOperator
from mercer.gram.sharded.factor import ShardedFactor
from mercer.gram.sharded.quantised import ShardedQuantised
from mercer.kernels import Kernel
from mercer.operators import Operator, Quantised
from mercer.points import Points, available_memory
from mercer.shards import Cluster, ShardedPoints, Shards, is_dask, sharded
from mercer.shards.cluster import held, joined, one_thread

__all__ = ["ShardedOperator"]

Array: TypeAlias = Any

HERE = 1e8
"""Matrices of up to this many entries are computed in this process, which takes less time than some tasks' messages."""
TASK = 2e8
"""The entries of a task of some shards with all other points: about a second on one thread."""
FEWEST = 64
"""Tasks for fewer entries than this many tasks have: one for each of `SOME` shards, whose rows need not be joined."""
ROWS, BLOCKS = 12_500, (4, 64)
"""Rows of a block of a symmetric matrix, and the fewest and the most such blocks. There is a task for each pair of
blocks, of a quarter of a second at these rows and 20 columns. Four blocks are ten tasks, and 64 are 2080."""

RUNS = 8
"""The tasks that compute a sum of squares."""
FACTOR = 4, 50_000_000
"""The fewest runs of rows of a factor, and its entries for each of more runs. A product with it is a task for each run,
of little work beside its messages, and a fit of ridge makes some thirty products."""
KEPT = 0.125
"""The share of a worker's free memory for blocks that are kept for the next product."""
ROWS_OF_A_RUN = 3
"""Times the bytes of all rows that a thread needs to make entries in 16 bits: as they came, joined, and in float32."""
SENT = 1 << 22
"""Bytes of vectors up to which they are sent with the tasks: more are sent once, and from worker to worker."""


class ShardedOperator(KernelOperator):
    """V ↦ K V with rows xᵢ, columns zⱼ, or both, in shards that the workers of a cluster hold.

    Of a symmetric K each pair of points is computed once: a task computes the products with a block above the diagonal
    and with its transpose. `rows`, `block` and `toarray` fetch the rows that they need and compute here.

    Parameters
    ----------
    kernel : Kernel, str or callable
    X, Z : points on the workers of a cluster, or rows as for `KernelOperator`
    **options : dict
        As for `KernelOperator`.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> ShardedOperator("gaussian(gamma=1.0)", da.ones((1000, 3))) @ np.ones(1000)  # doctest: +SKIP
    """

    @classmethod
    def takes(cls, side: Any) -> bool:
        return isinstance(side, ShardedPoints) or is_dask(side)

    def __init__(self, kernel: Any, X: Any, Z: Any = None, **options: Any) -> None:
        same = Z is X
        X = sharded(X, "KernelOperator") if is_dask(X) else X
        Z = X if same else sharded(Z, "KernelOperator") if is_dask(Z) else Z
        super().__init__(kernel, X, Z, **options)

    # ---- products ----------------------------------------------------------------------------------------------------

    def _matmat(self, V: Array) -> Array:
        if not self._elsewhere:
            return self._here._matmat(V)
        own, scale = narrowed(V, self.dtype)
        out = np.zeros((self.shape[0], V.shape[1]))
        if out.size:
            self._add_products(own, V.dtype, out)
        return np.ldexp(out, scale, out=out).astype(V.dtype, copy=False)

    def _add_products(self, V: Array, sums: Any, out: Array) -> None:
        """Add K V. Workers send sums in the dtype `sums` of the product: of float32 half as many bytes."""
        if self.symmetric:
            self._add_pairs(V, sums, out)
        elif isinstance(self.x, ShardedPoints):
            parts, others = self._parts(self.x.shards, self.shape[1]), self._others_held
            v = self._sent(V)
            tasks = [(_product, self.kernel, self.dtype, sums, rows, others, v) for _, _, rows in parts]
            for (first, last, _), part in zip(parts, self._cluster.run(tasks, self._each(parts)), strict=True):
                out[first:last] = part
        else:
            assert isinstance(self.z, ShardedPoints)
            parts, others = self._parts(self.z.shards, self.shape[0]), self._hold(self.x)
            own = self.kernel, self.dtype, sums
            tasks = [(_product, *own, others, rows, V[first:last]) for first, last, rows in parts]
            for part in self._cluster.run(tasks, self._each(parts)):
                out += part

    def _add_pairs(self, V: Array, sums: Any, out: Array) -> None:
        """K V for a symmetric K: first the blocks above the diagonal, which take twice as long as those on it."""
        parts, pairs, sizes = self._blocks()
        vectors = [V[first:last] for first, last, _ in parts]
        if len(parts) * V.nbytes > SENT:
            vectors = self._cluster.submit_all([(held, v) for v in vectors])
        own = self.kernel, self.dtype, sums
        tasks: list[tuple[Any, ...]] = []
        tasks += [(_pair, *own, parts[i][2], parts[j][2], vectors[i], vectors[j]) for i, j in pairs]
        tasks += [(_product, *own, rows, None, v) for (_, _, rows), v in zip(parts, vectors, strict=True)]
        results = self._cluster.run(tasks, sizes)
        for i, j in pairs:
            upper, lower = next(results)
            out[parts[i][0] : parts[i][1]] += upper
            out[parts[j][0] : parts[j][1]] += lower
        for (first, last, _), part in zip(parts, results, strict=True):
            out[first:last] += part

    def _blocks(self) -> tuple[list[tuple[int, int, list[Any]]], list[tuple[int, int]], list[float]]:
        """The blocks of rows of a symmetric K, the pairs of them, and the entries of each pair and of each block."""
        shards = self._sharded.shards
        wanted = min(max(round(len(shards) / ROWS), BLOCKS[0]), BLOCKS[1])
        parts = list(_groups(shards, min(wanted, len(shards.futures))))
        pairs = [(i, j) for i in range(len(parts)) for j in range(i + 1, len(parts))]
        entries = self._each(parts) / len(parts)
        return parts, pairs, [2 * entries] * len(pairs) + [entries] * len(parts)

    def _normal_product(self, V: Array, weights: Array | None) -> Array:
        if not self._elsewhere:
            return self._here._normal_product(V, weights)
        if self.symmetric or not isinstance(self.x, ShardedPoints):
            return Operator._normal_product(self, V, weights)
        others, v, parts = self._others_held, self._sent(V), self._parts(self.x.shards, self.shape[1])
        tasks = [
            (_normal_part, self.kernel, self.dtype, rows, others, v, None if weights is None else weights[first:last])
            for first, last, rows in parts
        ]
        out = np.zeros(V.shape)
        for part in self._cluster.run(tasks, self._each(parts)):
            out += part
        return out.astype(V.dtype, copy=False)

    def group_sums(
        self, labels: Any, groups: int | None = None, weights: Any = None, columns: Any = None
    ) -> NDArray[np.float64]:
        if not self._elsewhere:
            return self._here.group_sums(labels, groups, weights, columns)
        return Operator.group_sums(self, labels, groups, weights, columns)

    @property
    def has_fast_matmul(self) -> bool:
        """Whether workers make the entries of products, so that solvers do not store entries here instead."""
        return self._elsewhere

    @cached_property
    def _elsewhere(self) -> bool:
        """Whether workers compute the products."""
        there = [one for one in self._sides if isinstance(one, ShardedPoints)]  # none without a client
        small = self.shape[0] * self.shape[1] <= HERE and all(side.shards.affordable for side in there)
        return bool(there) and not small

    def features(self, R: NDArray[np.float64], dtype: DTypeLike | None = None, out: Array | None = None) -> Array:
        if not self._elsewhere or not isinstance(self.x, ShardedPoints):
            return super().features(R, dtype, out)
        out = np.empty((self.shape[0], R.shape[1]), dtype or self.dtype) if out is None else out
        own = self.kernel, self.dtype
        parts = self._parts(self.x.shards, R.shape[1])
        others, right = self._others_held, self._cluster.submit(held, R.astype(self.dtype))
        tasks = [(_features, *own, rows, others, right) for _, _, rows in parts]
        features = self._cluster.results(self._cluster.submit_all(tasks))  # too large to come together
        for (first, last, _), Phi in zip(parts, features, strict=True):
            out[first:last] = Phi
        return out

    def add_gram(self, I: NDArray[np.intp], weights: NDArray[np.float64], G: Array) -> Array:
        if not self._elsewhere or self.symmetric or not isinstance(self.x, ShardedPoints):
            return super().add_gram(I, weights, G)
        shards, others, tasks = self.x.shards, self._others_held, []
        for first, last, rows in _groups(shards, min(RUNS, len(shards.futures))):
            own = np.flatnonzero((first <= I) & (last > I))
            tasks.append((_gram, self.kernel, self.dtype, rows, others, I[own] - first, weights[own]))
        G += self._cluster.total(tasks)
        return G

    def diagonal(self) -> Array:
        if not self._elsewhere or not self.symmetric:
            return super().diagonal()
        parts = self._parts(self._sharded.shards, 1)
        tasks = [(_diagonal, self.kernel, self.dtype, rows) for _, _, rows in parts]
        return np.concatenate(list(self._cluster.run(tasks, self.shape[0] / len(parts))))

    def low_rank(self, rank: int, *, tol: float = 0.0) -> PivotedCholesky:
        # More threads of BLAS would spin on processors that workers on this machine need next.
        with one_blas_thread() if self._elsewhere else nullcontext():
            return super().low_rank(rank, tol=tol)

    @contextmanager
    def ahead_of_products(self) -> Iterator[None]:
        """Workers fetch the rows of their pairs from each other, and copy them, while this process works within."""
        if not (self.symmetric and self._elsewhere):
            yield
            return
        parts, pairs, sizes = self._blocks()
        blocks = [[*parts[i][2], *parts[j][2]] for i, j in pairs] + [rows for _, _, rows in parts]
        tasks = [(_copied, self.kernel, self.dtype, rows) for rows in blocks]
        with self._cluster.beside(tasks, sizes):
            yield

    def _factor_elsewhere(self, pivots: NDArray[np.intp]) -> Factor:
        """F on the workers."""
        n, shards = len(self.x), self._sharded.shards
        runs = list(_groups(shards, min(max(n * len(pivots) // FACTOR[1], FACTOR[0]), len(shards.futures))))
        return ShardedFactor.of(self.kernel, self.dtype, self._cluster, runs, shards.taken(pivots))

    def quantised(self, most: float) -> Quantised:
        elsewhere = self._elsewhere and self.symmetric
        return ShardedQuantised(self, most, self._sharded.shards) if elsewhere else super().quantised(most)

    def room_elsewhere(self, most: int) -> int:
        if not (self._elsewhere and self.symmetric):
            return 0
        return self._cluster.room(most, ROWS_OF_A_RUN * self.x.nbytes)

    @property
    def factor_room(self) -> int:
        return 0  # plans count it here, as no worker says what room it has

    @property
    def _has_factor_elsewhere(self) -> bool:
        return self._elsewhere

    # ---- what is computed here ---------------------------------------------------------------------------------------

    @cached_property
    def _here(self) -> KernelOperator:
        """The same operator on rows in this process."""
        z = None if self.z is None else _fetched(self.z)
        return self._like(_fetched(self.x), z, self.shape, self.dtype, self.symmetric)

    def _plan_for(self, rows: NDArray[np.intp] | None, columns: NDArray[np.intp] | None) -> Any:
        there = [side.shards for side in self._sides if isinstance(side, ShardedPoints)]
        whole = (rows is None and columns is None) or (columns is None and isinstance(self._others, ShardedPoints))
        if all(one.fetched for one in there) or (whole and all(one.affordable for one in there)):
            return self._here._plan_for(rows, columns)
        return super()._plan_for(rows, columns)

    def _in_full_plan(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> bool:
        return False

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        return self._here._rows_times(index, V)

    def release(self) -> None:
        self._plan = None
        for name in ("_here", "_others_held"):
            self.__dict__.pop(name, None)

    @cached_property
    def copies(self) -> int:
        """0: workers make the copies for products, and free them with the task."""
        return 0

    # ---- tasks -------------------------------------------------------------------------------------------------------

    @property
    def _sharded(self) -> ShardedPoints:
        return next(side for side in self._sides if isinstance(side, ShardedPoints))

    @property
    def _cluster(self) -> Cluster:
        return self._sharded.shards.cluster

    @cached_property
    def _others_held(self) -> Any:
        """The points of the columns, held once for all products, because workers know blocks by their arrays."""
        return self._hold(self._others)

    def _hold(self, side: Points) -> Any:
        """The other side's rows, as each task reads them: a future, or the futures of all shards."""
        if isinstance(side, ShardedPoints):
            return side.shards.futures
        return self._cluster.submit(held, side.rows)

    def _sent(self, V: Array) -> Any:
        """V for all tasks: in the message that has them, or on its own and from worker to worker."""
        return V if V.nbytes * len(self._cluster.threads()) <= SENT else self._cluster.submit(held, V)

    def _each(self, parts: list[Any]) -> float:
        """The entries of K for each part of its rows or columns."""
        return float(self.shape[0] * self.shape[1] / len(parts))

    @staticmethod
    def _parts(shards: Shards, others: int) -> list[tuple[int, int, list[Any]]]:
        """Runs of shards, so many that a task takes about a second, but at least `FEWEST` tasks."""
        wanted = max(len(shards) * others / TASK, FEWEST)
        return list(_groups(shards, int(min(wanted, len(shards.futures)))))


def _groups(shards: Shards, count: int) -> Iterator[tuple[int, int, list[Any]]]:
    """The first row, the row after the last, and the futures of `count` runs of shards."""
    edges = np.linspace(0, len(shards.futures), count + 1).astype(int)
    for a, b in pairwise(edges.tolist()):
        yield int(shards.starts[a]), int(shards.starts[b]), shards.futures[a:b]


def _fetched(side: Points) -> Points:
    return side.run(0, len(side)) if isinstance(side, ShardedPoints) else side


# ---- what workers do: each function gets arrays, or lists of the arrays of shards ------------------------------------


def _block(kernel: Kernel, dtype: Any, x: Any, z: Any | None) -> KernelOperator:
    return KernelOperator(kernel, joined(x), None if z is None else joined(z), dtype=dtype)


_kept: OrderedDict[Any, tuple[Any, KernelOperator]] = OrderedDict()
"""The blocks of this worker's last products, with their arrays, by the identities of these; the latest is the last."""
_keeping = Lock()
"""Threads of a worker change the kept blocks one at a time."""


@contextmanager
def _kept_block(kernel: Kernel, dtype: Any, x: Any, z: Any | None) -> Iterator[KernelOperator]:
    """The block with the copies of rows from the last product, as far as an eighth of the free memory holds them.

    A block that is in use is not among the kept ones, so that no two threads use the same.
    """
    arrays = [side if isinstance(side, list) else [side] for side in (x, z)]
    key = kernel, np.dtype(dtype), *(tuple(map(id, side)) for side in arrays)
    try:
        with _keeping:
            found = _kept.pop(key, None)
    except TypeError:  # a kernel that cannot be hashed
        yield _block(kernel, dtype, x, z)
        return
    block = _block(kernel, dtype, x, z) if found is None else found[1]
    yield block
    room = KEPT * available_memory()
    with _keeping:
        _kept[key] = arrays, block
        while _kept and sum(2 * one.x.nbytes + one.copies for _, one in _kept.values()) > room:
            _kept.popitem(last=False)


def _product(kernel: Kernel, dtype: Any, sums: Any, x: Any, z: Any | None, V: Array) -> Array:
    """K(x, z) V in the dtype `sums`."""
    with one_thread(), _kept_block(kernel, dtype, x, z) as K:
        out = sweep.multiply(K._tiles(), V, K.shape[0], K._work(V.shape[1]), K.symmetric)
        return out.astype(sums, copy=False)


def _pair(kernel: Kernel, dtype: Any, sums: Any, x: Any, z: Any, V: Array, U: Array) -> tuple[Array, Array]:
    """K(x, z) U and K(z, x) V with each entry computed once, in the dtype `sums`."""
    with one_thread(), _kept_block(kernel, dtype, [*x, *z], None) as K:
        split = sum(map(len, x))
        out = sweep.multiply_across(K._tiles(), np.concatenate([V, U]), split, K._work(V.shape[1]))
        out = out.astype(sums, copy=False)
        return out[:split], out[split:]


def _copied(kernel: Kernel, dtype: Any, x: Any) -> None:
    """Make and keep the copies of a block's rows."""
    with one_thread(), _kept_block(kernel, dtype, x, None) as K:
        K._tiles()


def _diagonal(kernel: Kernel, dtype: Any, x: Any) -> Array:
    """k(xᵢ, xᵢ) of each row."""
    with one_thread():
        return _block(kernel, dtype, x, None).diagonal()


def _features(kernel: Kernel, dtype: Any, x: Any, z: Any, R: Array) -> Array:
    """K(x, z) R by BLAS."""
    with one_thread():
        return _block(kernel, dtype, x, z).features(R)


def _gram(
    kernel: Kernel, dtype: Any, x: Any, z: Any, some: NDArray[np.intp], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The upper triangle of K(xₛ, z)ᵀ diag(w) K(xₛ, z) for some rows xₛ."""
    with one_thread():
        K = _block(kernel, dtype, joined(x)[some], z)
        return np.asarray(K.add_gram(np.arange(len(some)), weights, np.zeros((K.shape[1],) * 2, order="F")))


def _normal_part(kernel: Kernel, dtype: Any, x: Any, z: Any, V: Array, weights: Array | None) -> Array:
    """K(x, z)ᵀ diag(w) K(x, z) V."""
    with one_thread(), _kept_block(kernel, dtype, x, z) as K:
        return K._normal_product(V, weights)
