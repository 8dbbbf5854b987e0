"""Matrices of kernels that compute each pair of sequences, sorted so that pairs of one vector have similar lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.kernels.sequences.counts import mirrored

__all__ = ["Ordered", "by_pairs", "own_pairs"]


class Ordered(Protocol):
    """Sequences in one array, which can be reordered."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each sequence."""

    def ordered(self, order: NDArray[np.intp]) -> Any:
        """The sequences in this order."""


Fill: TypeAlias = Callable[[Any, Any, bool, int, int, NDArray[np.float64]], None]
"""(rows, columns, whether only the upper triangle, i0, i1, out) ↦ rows [i0, i1) of the matrix are written to `out`."""

PIECE = 1e8
"""The cost of the pairs that a thread computes between two interrupt checks."""


def by_pairs(x: Ordered, z: Ordered | None, cost: float, fill: Fill) -> NDArray[np.float64]:
    """The matrix that `fill` writes, at `cost` for each pair of positions; z=None is x with itself."""
    same = z is None
    rows = np.argsort(x.lengths, kind="stable")
    columns = rows if z is None else np.argsort(z.lengths, kind="stable")
    x = x.ordered(rows)
    z = x if z is None else z.ordered(columns)
    out = np.zeros((len(rows), len(columns)))
    work = np.cumsum(np.maximum(x.lengths, 1) * max(float(z.lengths.sum()), 1.0) * cost)
    core = backend.engine()
    threads, i0 = core.threads(), 0
    while i0 < len(rows):
        reached = work[i0 - 1] if i0 else 0.0
        wanted = int(np.searchsorted(work, reached + PIECE * threads, side="right")) - i0
        i1 = min(i0 + max(wanted // threads, 1) * threads, len(rows))
        fill(x, z, same, i0, i1, out)
        i0 = i1
    found = np.empty_like(out)
    found[np.ix_(rows, columns)] = mirrored(out) if same else out
    return found


def own_pairs(parts: Iterable[Any], fill: Fill) -> NDArray[np.float64]:
    """The values of each part with itself: the diagonal."""
    values: list[NDArray[np.float64]] = []
    for part in parts:
        values.append(np.empty((1, 1)))
        fill(part, part, False, 0, 1, values[-1])
    return np.array([value[0, 0] for value in values])
