"""Points as the rows of shards that workers hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.errors import InvalidInput
from mercer.points import DensePoints, FarPoints, as_rows, available_memory
from mercer.points.base import FLOAT32, FLOAT64, Index
from mercer.shards.cluster import Cluster

__all__ = ["ShardedPoints", "Shards"]

SHARE = 0.125
"""The share of this process's free memory that a copy of all rows may take: exact methods read rows many times."""

FEW = 0.125
"""The share of the rows up to which they are taken from the workers that hold them; beyond it all rows are fetched."""


class Shards:
    """Consecutive rows of a table, in futures of arrays that the workers hold.

    Parameters
    ----------
    cluster : Cluster
    futures : sequence of futures
        Of arrays of shape (nᵢ, d), one dtype for all.
    starts : array of shape (shards + 1,)
        The first row of each shard, and n.
    columns : int
    dtype : dtype
        That of the arrays.
    """

    def __init__(
        self, cluster: Cluster, futures: list[Any], starts: NDArray[np.intp], columns: int, dtype: Any
    ) -> None:
        self.cluster, self.futures, self.starts = cluster, futures, starts
        self.columns, self.dtype = columns, np.dtype(dtype)
        self._whole: NDArray[Any] | None = None
        self._taken = 0
        self._facts: list[tuple[str, float]] | None = None

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def nbytes(self) -> int:
        return len(self) * self.columns * self.dtype.itemsize

    @property
    def affordable(self) -> bool:
        """Whether this process may hold a copy of all rows."""
        return self.fetched or self.nbytes <= SHARE * available_memory()

    @property
    def fetched(self) -> bool:
        """Whether this process holds a copy of all rows."""
        return self._whole is not None

    def whole(self) -> NDArray[Any]:
        """All rows, fetched once."""
        if self._whole is None:
            parts = list(self.cluster.results(self.futures))
            self._whole = np.ascontiguousarray(np.concatenate(parts))
            self._whole.flags.writeable = False
        return self._whole

    def taken(self, index: Index) -> NDArray[Any]:
        """The rows with these indices, each shard asked for its own."""
        self._taken += len(index)
        if self.fetched or (self._taken > FEW * len(self) and self.affordable):
            return self.whole()[index]
        out = np.empty((len(index), self.columns), self.dtype)
        shard = np.searchsorted(self.starts, index, side="right") - 1
        asked = np.unique(shard)
        wanted = [np.flatnonzero(shard == one) for one in asked]
        tasks = [(_taken, self.futures[s], index[at] - self.starts[s]) for s, at in zip(asked, wanted, strict=True)]
        for at, rows in zip(wanted, self.cluster.run(tasks, places=asked / len(self.futures)), strict=True):
            out[at] = rows
        return out

    def facts(self) -> list[tuple[str, float]]:
        """Of each shard: why a kernel cannot have values for it, or "", and its largest |number|; computed once."""
        if self._facts is None:
            self._facts = list(self.cluster.run([(_facts, one) for one in self.futures]))
        return self._facts


@dataclass(frozen=True, eq=False)
class ShardedPoints(FarPoints):
    """The rows of shards that workers hold: what needs an array fetches one.

    Parameters
    ----------
    shards : Shards
    kind : float32 or float64
        The dtype in which kernel values are computed.
    """

    shards: Shards
    kind: np.dtype[Any]

    @property
    def columns(self) -> int:
        return self.shards.columns

    @property
    def written(self) -> int:
        return 0 if self.shards.fetched else self.nbytes

    def __len__(self) -> int:
        return len(self.shards)

    def __repr__(self) -> str:
        return f"ShardedPoints({len(self)} rows of {self.columns} {self.kind}s in {len(self.shards.futures)} shards)"

    def __getitem__(self, place: Any) -> NDArray[Any]:
        if isinstance(place, slice) and self.shards.affordable:
            return self.shards.whole()[place].astype(self.kind, copy=False)
        index = np.arange(len(self))[place]
        return np.asarray(
            self.shards.taken(np.atleast_1d(index))
            .astype(self.kind, copy=False)
            .reshape((*np.shape(index), self.columns))
        )

    def validate(self, who: str) -> ShardedPoints:
        edges = pairwise(self.shards.starts.tolist())
        for (first, last), (wrong, _) in zip(edges, self.shards.facts(), strict=True):
            if wrong:
                raise InvalidInput(f"{who}, counted from row {first} of rows {first} to {last - 1}: {wrong}")
        return self

    def take(self, index: Index, *, copy: bool = True) -> DensePoints:
        return DensePoints(self[index])

    def run(self, first: int, last: int) -> DensePoints:
        return DensePoints(self[first:last])

    def dense(self) -> NDArray[Any]:
        return self.shards.whole().astype(self.kind, copy=False)

    def astype(self, dtype: DTypeLike, copy: bool = False) -> ShardedPoints:
        return self if self.kind == dtype else replace(self, kind=np.dtype(dtype))

    def largest(self) -> float:
        return max(most for _, most in self.shards.facts())


def kind_of(dtype: DTypeLike) -> np.dtype[Any]:
    """The precision of kernel values of rows of this dtype."""
    return FLOAT32 if np.dtype(dtype).kind == "f" and np.dtype(dtype).itemsize <= 4 else FLOAT64


def _taken(rows: NDArray[Any], index: Index) -> NDArray[Any]:
    return rows[index]


def _facts(rows: NDArray[Any]) -> tuple[str, float]:
    try:
        return "", DensePoints(as_rows(rows, who="")).largest()
    except InvalidInput as error:
        return str(error).removeprefix(": "), np.nan
