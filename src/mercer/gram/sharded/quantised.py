"""Kernel matrices with entries in 16 bits whose rows workers compute and hold."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.gram.operator import KernelOperator
from mercer.kernels import Kernel
from mercer.operators import Operator, Quantised
from mercer.operators.quantised import Run, block_starts
from mercer.shards.cluster import joined, one_thread

if TYPE_CHECKING:
    from mercer.shards import Shards

__all__ = ["ShardedQuantised"]

Array: TypeAlias = Any

RUN, RUNS = 1e8, (3, 10)
"""The entries of a run of rows, which takes 0.2 GB, and the fewest and the most doublings of one run. There are two to
some power of them, so that workers add up their products in pairs."""


class ShardedQuantised(Quantised):
    """V ↦ K̃ V as `Quantised`, with runs of rows of K̃ held by workers; each product is a task for each run.

    To compute a run a thread needs all rows, so that `ShardedOperator.room_elsewhere` leaves room for them.

    Parameters
    ----------
    K : KernelOperator
        That of the shards.
    most : float
        As for `Quantised`.
    shards : Shards
    """

    def __init__(self, K: KernelOperator, most: float, shards: Shards) -> None:
        self._cluster, self._rows, self._kernel = shards.cluster, shards.futures, K.kernel
        super().__init__(K, most)

    def _round(self, A: Operator, most: float) -> tuple[Array, Array]:
        starts = block_starts(A.shape[0])
        count = 2 ** int(np.clip(round(np.log2(starts[-1] / RUN)), *RUNS))
        edges = np.searchsorted(starts, np.linspace(0, starts[-1], count + 1)).tolist()
        self._runs = self._cluster.submit_all(
            [(_run, self._kernel, self._rows, first, last, most) for first, last in pairwise(edges)]
        )
        scales = list(self._cluster.run([(_scales, run) for run in self._runs]))
        centres, steps = np.concatenate(scales, axis=1)
        return centres, steps

    def _add_products(self, v: Array, out: Array) -> None:
        tasks = [(_products, run, v) for run in self._runs]
        out += self._cluster.total(tasks, len(v) ** 2 / len(tasks))


# ---- what workers do -------------------------------------------------------------------------------------------------


@one_thread()
def _run(kernel: Kernel, rows: Any, first: int, last: int, most: float) -> Run:
    return Run.of(KernelOperator(kernel, joined(rows), dtype=np.float32), first, last, most)


def _scales(run: Run) -> NDArray[np.float64]:
    return np.array([run.centres, run.steps])


@one_thread()
def _products(run: Run, v: Array) -> NDArray[np.float64]:
    out = np.zeros(v.shape)
    run.add_products(v, out)
    return out
