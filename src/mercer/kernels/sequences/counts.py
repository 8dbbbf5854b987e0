"""Counts of patterns in windows of sequences, and kernel matrices as sums of their products.

A *pattern* is a set of positions in a window of `span` symbols. A feature f is a choice of symbols at these positions,
and F[i, f] is the number of windows of sequence i that have it. A kernel matrix is Σ weight · F_X F_Zᵀ over patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.kernels.factors import Factors
from mercer.kernels.sequences.corpus import Corpus
from mercer.kernels.symbolic.products import add_products

__all__ = ["Counts", "Pattern", "count", "factors", "gram", "joined", "matmul", "mirrored", "self_products"]

BYTES = 24
"""Bytes of a feature of a window in two factors: in each a number and its place."""


@dataclass(frozen=True)
class Pattern:
    """Positions in a window, and the weight of the products of their counts."""

    offsets: tuple[int, ...]
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts F of a pattern.

    `matrix` is F as a CSC array. `first[f]` is the position in the corpus of a window with feature f, and `shown[p]`
    the feature of the window that begins at position p, −1 if there is none.
    """

    matrix: Any
    first: NDArray[np.int64]
    shown: NDArray[np.int32] | None = None


def count(corpus: Corpus, pattern: Pattern, span: int, *, windows_too: bool = False) -> Counts:
    """The counts of a pattern, with features in lexicographic order; with `windows_too` also `shown`."""
    shown = np.empty(len(corpus.symbols), np.int32) if windows_too else None
    windows = int(np.maximum(corpus.lengths - span + 1, 0).sum())
    start, first = np.empty(windows + 1, np.int64), np.empty(windows, np.int64)
    rows, counts = np.empty(windows, np.int32), np.empty(windows, np.int32)
    offsets = np.array(pattern.offsets, np.int64)
    core = backend.engine()
    features, entries = core.count_kmers(
        symbols=corpus.symbols,
        starts=corpus.starts,
        offsets=offsets,
        span=span,
        alphabet=corpus.alphabet,
        start=start,
        rows=rows,
        counts=counts,
        first=first,
        shown=shown,
    )
    parts = counts[:entries], rows[:entries], start[: features + 1]
    return Counts(_csc(parts, (corpus.count, features)), first[:features].copy(), shown)


def _csc(parts: tuple[Any, Any, Any], shape: tuple[int, int]) -> Any:
    data, indices, start = parts
    return sp.csc_array((data, indices, start.astype(np.int32)), shape=shape)


def gram(x: Corpus, z: Corpus | None, patterns: Sequence[Pattern], span: int) -> NDArray[np.float64]:
    """Σ weight · F_X F_Zᵀ, exact below 2⁵³, for corpora with the same symbols; z=None is x itself."""
    out = np.zeros((x.count, x.count if z is None else z.count))
    for pattern in patterns:
        if z is None:
            columns = count(x, pattern, span).matrix
            add_products(columns.tocsr(), columns, out, pattern.weight, triangle=True)
        else:
            rows = count(joined(x, z), pattern, span).matrix.tocsr()
            add_products(rows[: x.count], rows[x.count :].tocsc(), out, pattern.weight)
    return mirrored(out) if z is None else out


def mirrored(out: NDArray[np.float64], step: int = 64) -> NDArray[np.float64]:
    """Copy the upper triangle into the lower one, in place."""
    lower = np.tri(step, k=-1, dtype=bool)
    for i in range(0, len(out), step):
        square = out[i : i + step, i : i + step]
        np.copyto(square, square.T, where=lower[: len(square), : len(square)])
        out[i : i + step, :i] = out[:i, i : i + step].T
    return out


def joined(x: Corpus, z: Corpus) -> Corpus:
    """The sequences of x, followed by those of z."""
    starts = np.concatenate([x.starts, z.starts[1:] + x.starts[-1]])
    return Corpus(np.concatenate([x.symbols, z.symbols]), starts, x.names)


def matmul(
    x: Corpus, z: Corpus | None, patterns: Sequence[Pattern], span: int, V: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Σ weight · F_X (F_Zᵀ V), in linear time."""
    out = np.zeros((x.count, V.shape[1]))
    for pattern in patterns:
        both = count(x if z is None else joined(x, z), pattern, span).matrix.astype(np.float64).tocsr()
        F = Factors(both, both) if z is None else Factors(both[: x.count], both[x.count :])
        out += pattern.weight * F.times(V)
    return out


def factors(x: Corpus, z: Corpus | None, patterns: Sequence[Pattern], span: int, room: float) -> Factors | None:
    """Σ weight · F_X F_Zᵀ as one product of sparse factors; None if they may take more than `room` bytes.

    Both have the roots of the weights, so that they are one array for z=None, unless weights are negative.
    """
    both = x if z is None else joined(x, z)
    windows = float(np.maximum(both.lengths - span + 1, 0).sum()) * len(patterns)
    if BYTES * windows > room or windows > np.iinfo(np.int32).max:
        return None
    parts = [np.sqrt(abs(one.weight)) * count(both, one, span).matrix.astype(np.float64) for one in patterns]
    B = sp.hstack(parts, format="csr")
    A = B
    if any(pattern.weight < 0 for pattern in patterns):
        signs = np.repeat([np.sign(pattern.weight) for pattern in patterns], [part.shape[1] for part in parts])
        A = B.multiply(signs).tocsr()
    return Factors(A, B) if z is None else Factors(A[: x.count], B[x.count :])


def self_products(x: Corpus, patterns: Sequence[Pattern], span: int) -> NDArray[np.float64]:
    """The diagonal of `gram(x, None, …)`."""
    out = np.zeros(x.count)
    for pattern in patterns:
        counts = count(x, pattern, span).matrix
        squares = counts.data.astype(np.float64) ** 2
        out += pattern.weight * np.bincount(counts.indices, squares, minlength=x.count)
    return out
