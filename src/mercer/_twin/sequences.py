"""Loops over sequences in NumPy: the definition of what the compiled module does, and its stand-in where there is none.

Sequences lie end to end: sequence i is symbols[starts[i]:starts[i + 1]], symbols are integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["add_products", "count_kmers"]

Array = NDArray[Any]


def count_kmers(
    symbols: Array,
    starts: Array,
    offsets: Array,
    span: int,
    alphabet: int,
    start: Array,
    rows: Array,
    counts: Array,
    first: Array,
) -> tuple[int, int]:
    """What the windows of `span` symbols show at the places `offsets`; the numbers of features and of entries.

    Feature f, in the order of symbols, is seen at place `first[f]` of `symbols`, and `counts[e]` times in sequence
    `rows[e]` for `start[f]` ≤ e < `start[f + 1]`. Windows with a symbol outside [0, alphabet) are left out.
    """
    lengths = np.diff(starts)
    windows = np.maximum(lengths - span + 1, 0)
    row = np.repeat(np.arange(len(lengths)), windows)
    at = np.arange(windows.sum()) + np.repeat(starts[:-1] - (np.cumsum(windows) - windows), windows)
    strange = np.concatenate([[0], np.cumsum((symbols < 0) | (symbols >= alphabet))])
    known = strange[at + span] == strange[at]
    row, at = row[known], at[known]
    shown = symbols[at[:, None] + offsets[None, :]]
    order = np.lexsort((row, *shown.T[::-1]))
    row, at, shown = row[order], at[order], shown[order]
    fresh = np.ones(len(row), bool)
    fresh[1:] = np.any(shown[1:] != shown[:-1], axis=1)
    opens = fresh.copy()
    opens[1:] |= row[1:] != row[:-1]
    entries, features = int(opens.sum()), int(fresh.sum())
    places = np.flatnonzero(opens)
    rows[:entries] = row[places]
    counts[:entries] = np.diff(np.append(places, len(row)))
    first[:features] = at[fresh]
    start[:features] = (np.cumsum(opens) - 1)[fresh]
    start[features] = entries
    return features, entries


def add_products(
    row_start: Array,
    features: Array,
    row_counts: Array,
    feature_start: Array,
    rows: Array,
    feature_counts: Array,
    weight: float,
    triangle: bool,
    i0: int,
    i1: int,
    out: Array,
) -> None:
    """`out[i, j]` += weight · Σ_f x[i, f] z[f, j] for rows i0 ≤ i < i1; with `triangle` only j ≥ i, z being x.

    x is given by rows, z by features, both as starts, indices and counts.
    """
    n, m = out.shape
    shape = len(feature_start) - 1
    x = sp.csr_array((row_counts.astype(np.float64), features, row_start), shape=(n, shape))
    z = sp.csr_array((feature_counts.astype(np.float64), rows, feature_start), shape=(shape, m))
    values = weight * (x[i0:i1] @ z).toarray()
    out[i0:i1] += np.triu(values, i0) if triangle else values
