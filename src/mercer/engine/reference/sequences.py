"""Loops over sequences in NumPy: the reference of the compiled module.

Sequences are stored one after the other: sequence i is symbols[starts[i]:starts[i + 1]]. Symbols are integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = [
    "add_products",
    "alignment_kernel",
    "count_kmers",
    "subsequence_kernel",
    "substring_kernel",
    "substring_product",
]

Array = NDArray[Any]


def count_kmers(
    *,
    symbols: Array,
    starts: Array,
    offsets: Array,
    span: int,
    alphabet: int,
    start: Array,
    rows: Array,
    counts: Array,
    first: Array,
    shown: Array | None = None,
) -> tuple[int, int]:
    """Count the features of windows: the symbols at the positions `offsets` of each window of `span` symbols.

    Features are in lexicographic order. Feature f occurs first at position `first[f]` of `symbols`, and `counts[e]`
    times in sequence `rows[e]` for `start[f]` ≤ e < `start[f + 1]`. Windows with a symbol outside [0, alphabet) are
    ignored. `shown` gets the feature of the window at each position, −1 if it has none. Returns the numbers of features
    and of entries.
    """
    lengths = np.diff(starts)
    windows = np.maximum(lengths - span + 1, 0)
    row = np.repeat(np.arange(len(lengths)), windows)
    at = np.arange(windows.sum()) + np.repeat(starts[:-1] - (np.cumsum(windows) - windows), windows)
    strange = np.concatenate([[0], np.cumsum((symbols < 0) | (symbols >= alphabet))])
    known = strange[at + span] == strange[at]
    row, at = row[known], at[known]
    seen = symbols[at[:, None] + offsets[None, :]]
    order = np.lexsort((row, *seen.T[::-1]))
    row, at, seen = row[order], at[order], seen[order]
    fresh = np.ones(len(row), bool)
    fresh[1:] = np.any(seen[1:] != seen[:-1], axis=1)
    opens = fresh.copy()
    opens[1:] |= row[1:] != row[:-1]
    entries, features = int(opens.sum()), int(fresh.sum())
    places = np.flatnonzero(opens)
    rows[:entries] = row[places]
    counts[:entries] = np.diff(np.append(places, len(row)))
    first[:features] = at[fresh]
    start[:features] = (np.cumsum(opens) - 1)[fresh]
    start[features] = entries
    if shown is not None:
        shown[:] = -1
        shown[at] = np.cumsum(fresh) - 1
    return features, entries


def add_products(
    *,
    row_start: Array,
    features: Array,
    row_values: Array,
    feature_start: Array,
    rows: Array,
    feature_values: Array,
    weight: float,
    triangle: bool,
    i0: int,
    i1: int,
    out: Array,
) -> None:
    """`out[i, j]` += weight · Σ_f x[i, f] z[f, j] for rows i0 ≤ i < i1; with `triangle`, where z is x, only for j ≥ i.

    x is stored by rows and z by features, each as starts, indices and values, whole numbers or floats.
    """
    n, m = out.shape
    shape = len(feature_start) - 1
    x = sp.csr_array((row_values.astype(np.float64), features, row_start), shape=(n, shape))
    z = sp.csr_array((feature_values.astype(np.float64), rows, feature_start), shape=(shape, m))
    values = weight * (x[i0:i1] @ z).toarray()
    out[i0:i1] += np.triu(values, i0) if triangle else values


def subsequence_kernel(
    *,
    x: Array,
    x_starts: Array,
    z: Array,
    z_starts: Array,
    length: int,
    decay: float,
    triangle: bool,
    i0: int,
    i1: int,
    out: Array,
    isa: str = "",
    exact: bool = False,
) -> None:
    """`out[i, j]` = Σ decay^(span in xᵢ + span in zⱼ) over pairs of equal subsequences of up to `length` symbols.

    With `exact` the subsequences have `length` symbols. It computes rows i0 ≤ i < i1 and all j, with `triangle` at
    least those with j ≥ i.
    """
    for i, j in _pairs(i0, i1, len(z_starts) - 1, triangle):
        match = (x[x_starts[i] : x_starts[i + 1], None] == z[None, z_starts[j] : z_starts[j + 1]]).astype(float)
        ending, total = (
            match,
            decay**2 * match.sum(),
        )  # ending: the weight of the subsequences that end at each pair of positions
        for q in range(2, length + 1):
            before = np.zeros_like(match)
            before[1:, 1:] = _decayed(_decayed(ending, decay), decay)[:-1, :-1]
            ending = match * before
            total = (0.0 if exact else total) + decay ** (2 * q) * ending.sum()
        out[i, j] = total


def _decayed(values: Array, decay: float) -> Array:
    """The transpose of Σ_{l ≤ j} decay^(j − l) values[:, l]: applied twice, it sums along both axes."""
    out = np.empty(values.shape[::-1])
    running = np.zeros(values.shape[0])
    for j in range(values.shape[1]):
        running = decay * running + values[:, j]
        out[j] = running
    return out


def _pairs(i0: int, i1: int, columns: int, triangle: bool) -> list[tuple[int, int]]:
    return [(i, j) for i in range(i0, i1) for j in range(i if triangle else 0, columns)]


def alignment_kernel(
    *,
    x: Array,
    x_starts: Array,
    z: Array,
    z_starts: Array,
    gamma: float,
    triangle: bool,
    i0: int,
    i1: int,
    out: Array,
    isa: str = "",
) -> None:
    """`out[i, j]` = log Σ Π κ: the sum is over alignments of xᵢ and zⱼ, the product over the pairs that each aligns.

    κ = g/(2 − g) with g = e^(−γ‖·‖²). A series is a run of rows of x or z; i and j are as for `subsequence_kernel`.
    """
    for i, j in _pairs(i0, i1, len(z_starts) - 1, triangle):
        a, b = x[x_starts[i] : x_starts[i + 1]], z[z_starts[j] : z_starts[j + 1]]
        exponent = -gamma * ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
        local = exponent - np.log(2 - np.exp(exponent))
        table = np.full((len(a) + 1, len(b) + 1), -np.inf)
        table[0, 0] = 0
        for both in range(2, len(a) + len(b) + 1):  # pairs of positions with this sum
            p = np.arange(max(1, both - len(b)), min(len(a), both - 1) + 1)
            q = both - p
            before = [table[p - 1, q - 1], table[p - 1, q], table[p, q - 1]]
            table[p, q] = local[p - 1, q - 1] + np.logaddexp.reduce(before)
        out[i, j] = table[-1, -1]


def substring_kernel(
    *,
    x: Array,
    x_starts: Array,
    z: Array,
    z_starts: Array,
    alphabet: int,
    decay: float,
    triangle: bool,
    j0: int,
    j1: int,
    out: Array,
) -> None:
    """`out[i, j]` = Σ decay^length over pairs of equal substrings, of any length ≥ 1, of xᵢ and zⱼ.

    It computes columns j0 ≤ j < j1 and all i, with `triangle` only i ≤ j.
    """
    for j in range(j0, j1):
        for i in range(j + 1 if triangle else len(x_starts) - 1):
            match = x[x_starts[i] : x_starts[i + 1], None] == z[None, z_starts[j] : z_starts[j + 1]]
            out[i, j] = _substrings(match, decay)


def _substrings(match: Array, decay: float) -> float:
    """One entry: a pair of positions that ends a run of m matching symbols ends m pairs of equal substrings."""
    run, total = np.zeros(match.shape[1] + 1, np.int64), 0.0
    worth = np.concatenate([[0.0], np.cumsum(decay ** np.arange(1.0, min(match.shape) + 1))])
    for row in match:
        run[1:] = np.where(row, run[:-1] + 1, 0)
        total += worth[run[1:]].sum()
    return float(total)


def substring_product(
    *,
    x: Array,
    x_starts: Array,
    z: Array,
    z_starts: Array,
    alphabet: int,
    decay: float,
    v: Array,
    out: Array,
) -> None:
    """`out` += K v for the K of `substring_kernel`."""
    values = np.zeros((len(out), len(v)))
    substring_kernel(
        x=x, x_starts=x_starts, z=z, z_starts=z_starts, alphabet=alphabet, decay=decay, triangle=False, j0=0, j1=len(v),
        out=values,
    )  # fmt: skip
    out += values @ v
