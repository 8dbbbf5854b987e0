"""Shards from Dask's arrays and data frames. Nothing of Dask is imported before the caller has imported it."""

from __future__ import annotations

import sys
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.opcodes import ROW_BLOCK
from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.points import SparsePoints, points_of
from mercer.shards.cluster import Cluster, joined
from mercer.shards.points import ShardedPoints, Shards, kind_of

__all__ = ["as_array", "current_client", "is_dask", "local", "sharded", "together"]

SHARD = 32 * ROW_BLOCK
"""Rows of a shard if there are at most `SOME` shards. A task takes several neighbouring shards."""
SOME, EVEN, LARGE, MOST = 64, 8, 50_000, 1024
"""For more data, `SOME` shards grow up to `LARGE` rows; then their number grows up to `MOST`; then they grow again.
Above `EVEN`, the number of shards is a multiple of it, so that tasks have the same number of rows."""
CUT = 2
"""Shards that a chunk may be as large as, so that it goes as a whole to workers that hold a part of it. Larger ones are
cut where they are, which takes three tasks a shard instead of one."""
NUMBERS = "give numbers: X.astype(float) where texts spell them, or encode or leave out such columns"


def is_dask(X: object) -> bool:
    """Whether X is an array, a data frame or a series of Dask's.

    >>> is_dask(np.ones(3))
    False
    """
    return "dask" in sys.modules and type(X).__module__.startswith("dask") and hasattr(X, "__dask_graph__")


def local(X: Any) -> Any:
    """X in this process: what is Dask's is computed, anything else returned unchanged."""
    return _described(X.compute(), X) if is_dask(X) else X


def _described(found: Any, X: Any) -> Any:
    """What was computed of X; a data frame has its columns in the order of the first partition."""
    return _in_order(found, X.columns) if hasattr(X, "to_dask_array") and X.ndim == 2 else found


def as_array(X: Any, who: str, read: str = "fbiuOU") -> Any:
    """A data frame of Dask's as an array of float32 or float64, missing values as NaN; an array unchanged.

    The columns of each partition are taken by name, in the order of the data frame's description.

    Parameters
    ----------
    X : array, data frame or series of Dask's
    who : str
        The caller, which messages name.
    read : str
        The kinds of columns that are read; objects and texts may spell numbers.

    Raises
    ------
    InvalidInput
        If a column is of another kind.
    """
    if not hasattr(X, "to_dask_array"):
        return X
    if X.ndim == 1:
        return X.to_dask_array()
    kinds = [_kind_of_column(kind) for kind in X.dtypes]
    if odd := [repr(name) for name, kind in zip(X.columns, kinds, strict=True) if kind.kind not in read]:
        given = f"a dask data frame with {counted(len(odd), 'column')} of no numbers: {', '.join(odd[:5])}"
        raise InvalidInput(message(who, given + (", ..." if len(odd) > 5 else ""), NUMBERS))
    kind = kind_of(np.result_type(np.bool_, *(np.dtype(float) if kind.kind in "OU" else kind for kind in kinds)))
    meta = type(X._meta)(np.empty((0, len(kinds)), kind), columns=X.columns)
    return X.map_partitions(_numbers, X.columns, kind, meta=meta).to_dask_array()


def _kind_of_column(kind: Any) -> np.dtype[Any]:
    """NumPy's dtype of a column's numbers, which may be nullable, sparse or categories; str of texts, void of dates."""
    types, categories = sys.modules["pandas"].api.types, getattr(kind, "categories", None)
    kind = kind if categories is None else categories.dtype
    if types.is_numeric_dtype(kind):
        return np.dtype(getattr(kind, "numpy_dtype", getattr(kind, "subtype", kind)))
    if categories is not None or types.is_object_dtype(kind):  # not known before they are read
        return np.dtype(object)
    return np.dtype(str if types.is_string_dtype(kind) else np.void)


def _numbers(frame: Any, columns: Any, kind: np.dtype[Any]) -> Any:
    """A partition with columns of one dtype, in this order."""
    named = _in_order(frame, columns)
    try:
        values = named.to_numpy(dtype=kind, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InvalidInput(message("Dask", f"a data frame with a column of no numbers ({error})", NUMBERS)) from error
    return type(frame)(values, index=frame.index, columns=columns)


def _in_order(frame: Any, columns: Any) -> Any:
    """A data frame with its columns in this order."""
    if frame.columns.equals(columns):
        return frame
    if odd := list(frame.columns.symmetric_difference(columns)):
        given = f"a data frame whose description and partitions do not all have the column {odd[0]!r}"
        raise InvalidInput(message("Dask", given, "give all of them the same columns"))
    return frame[list(columns)]


def together(*given: Any) -> tuple[Any, ...]:
    """What of these is Dask's, of one computation: a source, or a shuffle, may order its rows anew in each.

    Data frames and rows of unknown number are here then, or the workers of the current client hold them, which two
    graphs that share keys would confuse, too. Other rows are where they were.
    """
    theirs, client = [one for one in given if is_dask(one)], current_client()
    frames = any(hasattr(one, "to_dask_array") or np.isnan(one.shape).any() for one in theirs)
    if len(theirs) < 2 or not frames:
        return given
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Computing mixed collections")  # series of weights beside arrays
        if client is None:
            computed = sys.modules["dask"].compute(*theirs)
            held = iter([_described(found, one) for found, one in zip(computed, theirs, strict=True)])
        else:
            held = iter(client.persist(theirs))
    return tuple(next(held) if is_dask(one) else one for one in given)


def sharded(X: Any, who: str) -> Any:
    """X as points whose rows the workers of the current client hold, or its rows in this process.

    They are here without a client, and if its blocks are not NumPy's, such as sparse ones.

    Raises
    ------
    InvalidInput
        If X has no rows or is not a table.
    """
    client = current_client()
    if client is None:
        return local(X)
    table = as_array(X, who, "fbiuO")  # texts seldom spell numbers, and workers print what they do not do
    if not isinstance(table._meta, np.ndarray) or isinstance(table._meta, np.ma.MaskedArray):
        return local(X)
    if table.ndim != 2:
        do = "give one of two dimensions, (rows, columns)"
        raise InvalidInput(message(who, f"a dask array of {counted(table.ndim, 'dimension')}", do))
    if table.dtype.kind not in "fbiu":
        raise InvalidInput(message(who, f"a dask array of dtype {table.dtype}", NUMBERS))
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
    if sparse := [type(rows).__name__ for rows in chunks if isinstance(points_of(rows), SparsePoints)]:
        given = f"a block of type {sparse[0]} in an array that is described as NumPy's"
        do = "give map_blocks, or what made the array, meta=scipy.sparse.csr_matrix((0, 0))"
        raise InvalidInput(message("Dask", given, do))
    return joined([rows[first:last] for rows, (first, last) in zip(chunks, some, strict=True)])


def boundaries(n: int, chunks: int) -> Any:
    """The first row of each shard, and n. There are at least as many shards as chunks; each starts at a whole tile.

    They depend on the data alone and not on the cluster, and so do the bits of what is computed.

    >>> np.diff(boundaries(50_000, 1)).tolist()
    [3072, 3072, 3072, 3264, 3072, 3072, 3264, 3072, 3072, 3264, 3072, 3072, 3264, 3072, 3072, 3152]
    """
    tiles = -(-n // ROW_BLOCK)
    count = max(min(-(-n // SHARD), SOME), -(-n // LARGE), min(chunks, tiles))
    count = min(count if count <= EVEN else -(-count // EVEN) * EVEN, MOST, tiles)  # no shard without rows
    edges = np.linspace(0, tiles, count + 1).astype(int) * ROW_BLOCK
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
