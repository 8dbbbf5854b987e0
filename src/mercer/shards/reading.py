"""Shards from Dask's arrays and data frames. Nothing of Dask is imported before the caller has imported it."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.opcodes import ROW_BLOCK
from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.shards.cluster import Cluster, joined
from mercer.shards.points import ShardedPoints, Shards, kind_of

__all__ = ["current_client", "is_dask", "local", "sharded", "together"]

SHARD = 32 * ROW_BLOCK
"""Rows of a shard if there are at most `SOME` shards. A task takes several neighbouring shards."""
SOME, EVEN, LARGE, MOST = 64, 8, 50_000, 1024
"""For more data, `SOME` shards grow up to `LARGE` rows; then their number grows up to `MOST`; then they grow again.
Above `EVEN`, the number of shards is a multiple of it, so that tasks have the same number of rows."""
CUT = 2
"""Shards that a chunk may be as large as, so that it goes as a whole to workers that hold a part of it. Larger ones are
cut where they are, which takes three tasks a shard instead of one."""


def is_dask(X: object) -> bool:
    """Whether X is an array, a data frame or a series of Dask's.

    >>> is_dask(np.ones(3))
    False
    """
    return "dask" in sys.modules and type(X).__module__.startswith("dask") and hasattr(X, "__dask_graph__")


def local(X: Any) -> Any:
    """X in this process: an array of Dask's is computed, anything else returned unchanged."""
    return X.compute() if is_dask(X) else X


def together(X: Any, *targets: Any) -> tuple[Any, ...]:
    """X of unknown size, and targets, computed by the workers at once: two graphs that share keys confuse these."""
    client = current_client()
    if client is None or hasattr(X, "to_dask_array") or X.ndim != 2 or not np.isnan(X.shape[0]):
        return X, *targets
    held = client.persist([X, *(one for one in targets if is_dask(one))])
    rest = iter(held[1:])
    return held[0], *(next(rest) if is_dask(one) else one for one in targets)


def sharded(X: Any, who: str) -> Any:
    """X as points whose rows the workers of the current client hold; without a client, its rows in this process.

    Raises
    ------
    InvalidInput
        If X has no rows or is not a table.
    """
    client = current_client()
    if client is None:
        return local(X)
    table = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
    if table.ndim != 2:
        do = "give one of two dimensions, (rows, columns)"
        raise InvalidInput(message(who, f"a dask array of {counted(table.ndim, 'dimension')}", do))
    if table.dtype.kind not in "fbiu":
        given = f"a dask {'data frame' if table is not X else 'array'} of dtype {table.dtype}"
        raise InvalidInput(message(who, given, "give numbers: encode or leave out the other columns"))
    if np.isnan(table.shape).any():
        table.compute_chunk_sizes()
    if 0 in table.shape:
        given = f"a dask array of shape {tuple(int(size) for size in table.shape)}"
        raise InvalidInput(message(who, given, "give at least one row and one column"))
    return _points(Cluster(client), table)


def _points(cluster: Cluster, table: Any) -> ShardedPoints:
    from distributed import futures_of

    n, columns = (int(size) for size in table.shape)
    starts = boundaries(n, sum(size > 0 for size in table.chunks[0]))
    kind = kind_of(table.dtype)
    pieces = tuple(np.diff(starts).tolist())
    table = table.astype(kind).rechunk({0: pieces, 1: -1} if max(table.chunks[0]) > CUT * max(pieces) else {1: -1})
    edges = np.cumsum([0, *table.chunks[0]])
    held = cluster.client.persist(table)
    by_key = {future.key: future for future in futures_of(held)}
    chunks = [by_key[key] for row in table.__dask_keys__() for key in row]
    tasks = [(_shard, *_cut(chunks, edges, first, last)) for first, last in pairwise(starts.tolist())]
    return ShardedPoints(Shards(cluster, cluster.submit_all(tasks), starts, columns, kind), kind)


def _cut(chunks: list[Any], edges: NDArray[np.intp], first: int, last: int) -> tuple[list[Any], list[tuple[int, int]]]:
    """The chunks that have the rows from `first` to `last`, and which rows of each these are."""
    own = np.flatnonzero((edges[:-1] < last) & (edges[1:] > first)).tolist()
    return [chunks[i] for i in own], [(max(first - int(edges[i]), 0), last - int(edges[i])) for i in own]


def _shard(chunks: list[Any], some: list[tuple[int, int]]) -> Any:
    return joined([rows[first:last] for rows, (first, last) in zip(chunks, some, strict=True)])


def boundaries(n: int, chunks: int) -> Any:
    """The first row of each shard, and n. There are at least as many shards as chunks; each starts at a whole tile.

    They depend on the data alone and not on the cluster, and so do the bits of what is computed.

    >>> np.diff(boundaries(50_000, 1)).tolist()
    [3072, 3072, 3072, 3264, 3072, 3072, 3264, 3072, 3072, 3264, 3072, 3072, 3264, 3072, 3072, 3152]
    """
    count = max(min(-(-n // SHARD), SOME), -(-n // LARGE), min(chunks, -(-n // ROW_BLOCK)))
    count = min(count if count <= EVEN else -(-count // EVEN) * EVEN, MOST)
    edges = np.linspace(0, -(-n // ROW_BLOCK), count + 1).astype(int) * ROW_BLOCK
    return np.minimum(edges, n)


def current_client() -> Any:
    """The current client; None without one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None
