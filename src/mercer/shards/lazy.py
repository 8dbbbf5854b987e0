"""Outputs of fitted models for Dask's arrays and data frames: arrays of Dask's, computed block by block when asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.shards.cluster import one_thread
from mercer.shards.reading import as_array

__all__ = ["lazily"]


def lazily(method: Callable[..., Any], model: Any, X: Any) -> Any:
    """``method(model, rows)`` of the rows of X as an array of Dask's, with a chunk for each chunk of rows.

    The model is one object of the graph, which each worker gets once. Its method is called on one row of ones first, to
    know the dtype and the number of columns.
    """
    import dask

    table = as_array(X, type(model).__name__)
    if table.numblocks[1] > 1:
        table = table.rechunk({1: -1})
    dtype = table.dtype if table.dtype.kind in "fbiu" else np.float64
    example = np.asarray(method(model, np.ones((1, table.shape[1]), dtype)))
    shape = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (table.chunks[0], (example.shape[1],))}
    return table.map_blocks(
        _output,
        method=method,
        model=dask.delayed(model, pure=False),
        empty=example[:0],
        dtype=example.dtype,
        meta=np.empty((0,) * example.ndim, example.dtype),
        **shape,
    )


def _output(rows: Any, *, method: Callable[..., Any], model: Any, empty: Any) -> Any:
    """The outputs of one chunk, which may have no rows."""
    with one_thread():
        if not rows.shape[0]:
            return empty
        return method(model, np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows)
