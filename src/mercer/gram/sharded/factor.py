"""Low-rank factors of kernel matrices whose rows workers compute and hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.factorizations.factor import Factor, inverse_root, squared_correlations
from mercer.gram.operator import KernelOperator
from mercer.kernels import Kernel
from mercer.shards import Cluster
from mercer.shards.cluster import held, joined, one_thread

__all__ = ["ShardedFactor"]

Array: TypeAlias = Any

CHUNK = 1 << 20
"""Entries of a factor that a task computes at a time."""


class ShardedFactor(Factor):
    """V ↦ diag(s) F V, with runs of rows of F held by workers; each product is a task for each run.

    Parameters
    ----------
    cluster : Cluster
    futures : list of futures
        The rows of F, in order.
    starts : array of shape (runs + 1,)
        The first row of each run, and n.
    columns : int
    dtype : dtype
        That of F.
    scale : array of shape (n,), optional
        s.
    squares : array of shape (n,), optional
        ‖fᵢ‖² of each row, if they are known.
    """

    beside_workers = True

    def __init__(
        self,
        cluster: Cluster,
        futures: list[Any],
        starts: NDArray[np.intp],
        columns: int,
        dtype: Any,
        scale: NDArray[np.float64] | None = None,
        squares: NDArray[np.float64] | None = None,
    ) -> None:
        self._cluster, self._futures, self._starts, self._squares = cluster, futures, starts, squares
        self._scale = np.ones(int(starts[-1])) if scale is None else scale
        super().__init__((int(starts[-1]), columns), dtype)

    @classmethod
    def of(
        cls, kernel: Kernel, dtype: Any, cluster: Cluster, runs: list[tuple[int, int, Any]], landmarks: Array
    ) -> ShardedFactor:
        """F = K_nm L⁻ᵀ with LLᵀ = K_mm, so that FFᵀ is equal to K in the rows of the landmarks.

        `runs` has the first row, the row after the last, and the futures of each run of rows.
        """
        m = cluster.submit(held, landmarks)
        root = cluster.submit(_inverse_root, kernel, np.dtype(dtype), m)
        futures = cluster.submit_all([(_factor, kernel, np.dtype(dtype), rows, m, root) for _, _, rows in runs])
        starts = np.array([0, *(last for _, last, _ in runs)])
        return cls(cluster, futures, starts, len(landmarks), dtype)

    def _each(self, function: Any, *arguments: list[Any]) -> Iterator[Any]:
        tasks = [(function, *one) for one in zip(self._futures, *arguments, strict=True)]
        return self._cluster.run(tasks, self.shape[0] * self.shape[1] / len(tasks))

    def _runs(self, V: Array) -> list[Array]:
        """The rows of V that belong to each run, times the scale."""
        scaled = (self._scale[:, None] * V).astype(V.dtype, copy=False)
        return [scaled[first:last] for first, last in pairwise(self._starts.tolist())]

    def _matmat(self, V: Array) -> Array:
        out = np.concatenate(list(self._each(_times, [V] * len(self._futures))))
        return (self._scale[:, None] * out).astype(V.dtype, copy=False)

    def _rmatmat(self, U: Array) -> Array:
        out = np.zeros((self.shape[1], U.shape[1]))
        for part in self._each(_transposed_times, self._runs(U)):
            out += part
        return out.astype(U.dtype, copy=False)

    def _normal_product(self, V: Array, weights: NDArray[np.float64] | None) -> Array:
        weights = self._scale**2 if weights is None else self._scale**2 * weights
        each = [weights[first:last] for first, last in pairwise(self._starts.tolist())]
        out = np.zeros(V.shape)
        for part in self._each(_normal_part, [V] * len(self._futures), each):
            out += part
        return out.astype(V.dtype, copy=False)

    def rows(self, I: Any) -> Array:
        index = self._index(I, 0)
        run = np.searchsorted(self._starts, index, side="right") - 1
        asked = np.unique(run)
        out, places = np.empty((len(index), self.shape[1]), self.dtype), [np.flatnonzero(run == one) for one in asked]
        tasks = [(_some, self._futures[r], index[at] - self._starts[r]) for r, at in zip(asked, places, strict=True)]
        for at, rows in zip(places, self._cluster.run(tasks, places=asked / len(self._futures)), strict=True):
            out[at] = self._scale[index[at], None] * rows
        return out

    def squares(self) -> NDArray[np.float64]:
        if self._squares is None:  # a preconditioner asks six times
            self._squares = np.concatenate(list(self._each(_squares)))
        return np.asarray(self._scale**2 * self._squares)

    def squared_correlations(self, A: Any, some: NDArray[np.intp], left: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each run by the worker that holds it: A has its rows in shards."""
        shards, out, count = A.x.shards, np.zeros(len(some)), len(self._futures)
        rows = [shards.futures[a:b] for a, b in pairwise(np.searchsorted(shards.starts, self._starts).tolist())]
        parts = [[v[a:b] for a, b in pairwise(self._starts.tolist())] for v in (left, self._scale)]
        same = [[one] * count for one in (A.kernel, A.dtype, shards.taken(some), self.rows(some))]
        for part in self._each(_squared_correlations, rows, *parts, *same):
            out += part
        return out / left[some]

    def scaled(self, scale: NDArray[np.float64]) -> ShardedFactor:
        own = self._cluster, self._futures, self._starts, self.shape[1], self.dtype
        return ShardedFactor(*own, self._scale * scale, self._squares)

    def turned(self, R: NDArray[Any]) -> ShardedFactor:
        turn = self._cluster.submit(held, R)
        futures = self._cluster.submit_all([(_times, rows, turn) for rows in self._futures])
        return ShardedFactor(self._cluster, futures, self._starts, R.shape[1], self.dtype, self._scale)

    def gram(self, dtype: np.dtype[Any]) -> NDArray[np.float64]:
        scales = [self._scale[first:last] for first, last in pairwise(self._starts.tolist())]
        tasks = [(_gram, *one, dtype) for one in zip(self._futures, scales, strict=True)]
        return np.array(self._cluster.total(tasks, self.shape[0] * self.shape[1] / len(tasks)))


# ---- what workers do -------------------------------------------------------------------------------------------------


@one_thread()
def _inverse_root(kernel: Kernel, dtype: np.dtype[Any], landmarks: Array) -> Array:
    """`inverse_root` of the landmarks' own kernel matrix."""
    return inverse_root(KernelOperator(kernel, landmarks, dtype=np.float64).toarray(), dtype)


@one_thread()
def _factor(kernel: Kernel, dtype: np.dtype[Any], rows: Any, landmarks: Array, root: Array) -> Array:
    """K(rows, landmarks) L⁻ᵀ."""
    return KernelOperator(kernel, joined(rows), landmarks, dtype=dtype).features(root)


@one_thread()
def _times(F: Array, V: Array) -> Array:
    return _aligned(F) @ V


@one_thread()
def _transposed_times(F: Array, U: Array) -> Array:
    return _aligned(F).T @ U


@one_thread()
def _normal_part(F: Array, V: Array, weights: NDArray[np.float64]) -> Array:
    """Fᵀ diag(w) F V."""
    F = _aligned(F)
    return F.T @ (weights[:, None] * (F @ V)).astype(F.dtype)


def _aligned(F: Array) -> Array:
    """F at an aligned address: what comes from another worker may not be, and its products would have other bits."""
    return np.require(F, requirements="A")


def _some(F: Array, index: NDArray[np.intp]) -> Array:
    return F[index]


def _squares(F: Array) -> NDArray[np.float64]:
    return np.asarray(np.einsum("ij,ij->i", F, F, dtype=np.float64))


@one_thread()
def _squared_correlations(
    F: Array, x: Any, left: Array, scale: Array, kernel: Kernel, dtype: Any, z: Array, near: Array
) -> NDArray[np.float64]:
    """`squared_correlations` for the rows z, whose rows of F are `near`, with these rows x."""
    rows = KernelOperator(kernel, z, joined(x), dtype=dtype).toarray()
    return squared_correlations(rows, (scale[:, None] * (_aligned(F) @ near.T)).T, left)


@one_thread()
def _gram(F: Array, scale: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Fᵀ diag(s)² F, a few rows at a time, always in the same memory."""
    out, step = np.zeros((F.shape[1], F.shape[1])), max(1, CHUNK // F.shape[1])
    room, product = np.empty((min(step, len(F)), F.shape[1]), dtype), np.empty(out.shape, dtype)
    for i in range(0, len(F), step):
        some = F[i : i + step]
        part = np.multiply(scale[i : i + step, None], some, out=room[: len(some)], casting="same_kind")
        out += np.matmul(part.T, part, out=product)
    return out
