"""Kernels of windows by comparing each window of one sequence with each of another.

Two windows that agree at m positions add `worth[m]`, so an entry is a sum over |x|·|z| pairs of windows, and vector
instructions compare many pairs at once. The alternative is to count patterns, which sorts all windows for each
pattern. The method with less work is predicted from the lengths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.engine.opcodes import LONGEST_COMPARED_WINDOW, MATCH_LEVELS, MatrixPart
from mercer.kernels.sequences.corpus import Corpus
from mercer.kernels.sequences.counts import Pattern, mirrored
from mercer.planning.machine import known

__all__ = ["comparisons", "diagonal", "gram", "is_less_work", "matmul"]

PIECE = 1e8
"""How many vectors of pairs a thread compares between two interrupt checks."""

ENTRIES = 1 << 23
"""Entries of K that a product holds in memory at a time: 64 MB."""

COUNTING = 0.5
"""The cost of a pair of equal windows in counting, in comparisons of two vectors of windows."""

SAMPLED = 1 << 12
"""How many symbols of each side are counted; their frequencies stand for those of all."""


def is_less_work(x: Corpus, z: Corpus | None, worth: NDArray[np.int64], patterns: Sequence[Pattern], span: int) -> bool:
    """Whether comparing all windows of x with all of z is less work than counting patterns; z=None is x itself."""
    if not _possible(worth):
        return False
    return comparisons(x, z, span) < _counting(x, z, patterns, span)


def comparisons(x: Corpus, z: Corpus | None, span: int) -> float:
    """Comparisons of two vectors of windows for all pairs, with those at the start of each diagonal; z=None is x."""
    rows, columns = _windows(x, span), _windows(x if z is None else z, span)
    lanes = backend.engine().match_lanes()
    pairs = rows.sum() * (columns.sum() / lanes + len(columns))
    bands = (rows.sum() * len(columns) + columns.sum() * len(rows)) / lanes + len(rows) * len(columns)
    return _share(z) * float(pairs + bands * (span / 3 + 5))


def _share(z: Corpus | None) -> float:
    """The share of pairs that are visited: half of them for x with itself."""
    return 0.5 if z is None else 1.0


def _sorting() -> float:
    """The cost of a window in counting a pattern, in comparisons of two vectors of windows."""
    machine = known(backend.engine().threads(), backend.instruction_set())
    return machine.compare / machine.sort


def diagonal_is_less_work(x: Corpus, worth: NDArray[np.int64], patterns: Sequence[Pattern], span: int) -> bool:
    """As `is_less_work`, for the diagonal of the matrix of x."""
    if not _possible(worth):
        return False
    windows = _windows(x, span)
    lanes = backend.engine().match_lanes()
    own = float(np.sum(windows * (windows / lanes + 1 + 2 * span / lanes) + 2 * span))
    return own < _sorting() * float(windows.sum()) * len(patterns)


def _possible(worth: NDArray[np.int64]) -> bool:
    span, valuable = len(worth) - 1, np.flatnonzero(worth)
    return 1 <= span <= LONGEST_COMPARED_WINDOW and (len(valuable) == 0 or span - int(valuable[0]) < MATCH_LEVELS)


def _windows(x: Corpus, span: int) -> NDArray[np.float64]:
    return np.maximum(x.lengths - span + 1, 0).astype(np.float64)


def _counting(x: Corpus, z: Corpus | None, patterns: Sequence[Pattern], span: int) -> float:
    """The work of counting: a sort for each pattern, and its equal pairs, as many as random symbols would have."""
    rows, columns = _windows(x, span), _windows(x if z is None else z, span)
    symbols = np.concatenate([_some(side.symbols) for side in ((x,) if z is None else (x, z))])
    frequency = np.bincount(symbols + 1)[1:] / max(len(symbols), 1)  # −1 stands for a gap
    alike, pairs = float(np.sum(frequency**2)), _share(z) * rows.sum() * columns.sum()
    windows, sorting = rows.sum() if z is None else rows.sum() + columns.sum(), _sorting()
    sizes = Counter(len(pattern.offsets) for pattern in patterns)
    return float(sum(n * (sorting * windows + COUNTING * pairs * alike**size) for size, n in sizes.items()))


def _some(symbols: NDArray[np.int32]) -> NDArray[np.int32]:
    """At most `SAMPLED` of the symbols, from all over the sequences."""
    return symbols[:: max(-(-len(symbols) // SAMPLED), 1)]


def gram(x: Corpus, z: Corpus, worth: NDArray[np.int64], symmetric: bool) -> NDArray[np.float64]:
    """Σ worth over all pairs of windows; `symmetric` computes the entries i ≤ j and copies them."""
    out = np.zeros((x.count, z.count))
    _add(x, z, worth, MatrixPart.UPPER if symmetric else MatrixPart.WHOLE, out)
    return mirrored(out) if symmetric else out


def diagonal(x: Corpus, z: Corpus, worth: NDArray[np.int64]) -> NDArray[np.float64]:
    """Σ worth over the pairs of windows of sequence i of x and sequence i of z, for each i."""
    out = np.zeros((x.count, 1))
    _add(x, z, worth, MatrixPart.DIAGONAL, out)
    return out[:, 0]


def matmul(x: Corpus, z: Corpus, worth: NDArray[np.int64], V: NDArray[np.float64]) -> NDArray[np.float64]:
    """K V, some rows of K at a time."""
    out, step = np.empty((x.count, V.shape[1])), max(1, ENTRIES // max(z.count, 1))
    for i in range(0, x.count, step):
        some = x.part(i, min(i + step, x.count))
        out[i : i + step] = gram(some, z, worth, False) @ V
    return out


def _add(x: Corpus, z: Corpus, worth: NDArray[np.int64], which: MatrixPart, out: NDArray[np.float64]) -> None:
    core = backend.engine()
    alphabet = max(x.alphabet, 1)
    sums = core.WindowComparison(
        x=x.symbols, x_starts=x.starts, z=z.symbols, z_starts=z.starts, worth=worth, alphabet=alphabet, which=which
    )
    span, last = len(worth) - 1, int(x.starts[-1])
    columns = z.lengths.max(initial=0) if which == MatrixPart.DIAGONAL else z.starts[-1]
    across = columns / core.match_lanes() + (1 if which == MatrixPart.DIAGONAL else z.count) * (1 + span / 100)
    step = max(int(PIECE * core.threads() / max(float(across), 1.0)), 1)
    for start in range(0, last, step):
        sums.add(start, min(start + step, last), out)
