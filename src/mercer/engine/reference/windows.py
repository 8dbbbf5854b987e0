"""Comparisons of windows in NumPy: the reference of ``_core.WindowComparison``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.opcodes import MatrixPart

__all__ = ["WindowComparison", "match_lanes"]

Array = NDArray[Any]


def match_lanes(isa: str = "") -> int:
    """How many pairs of windows are compared at once."""
    return 1


class WindowComparison:
    """Entries Σ worth[m(a, b)] over windows a of xᵢ and b of zⱼ that agree at m positions.

    `worth` has an entry for each number of matches from 0 to the length of a window. Windows with a symbol outside [0,
    alphabet) are ignored. `which` is a `MatrixPart`; for all but the whole matrix, z is x.
    """

    def __init__(
        self, *, x: Array, x_starts: Array, z: Array, z_starts: Array, worth: Array, alphabet: int, which: int,
        isa: str = "",
    ) -> None:  # fmt: skip
        self._sides = (x, x_starts), (z, z_starts)
        self._worth, self._alphabet, self._which = worth, alphabet, which

    def add(self, start: int, end: int, out: Array) -> None:
        """`out[i, j]` += the sum over windows of x that begin at symbols [start, end); entry (i, i) is `out[i, 0]`."""
        (_, x_starts), (_, z_starts) = self._sides
        diagonal = self._which == MatrixPart.DIAGONAL
        for i in range(len(x_starts) - 1):
            rows = self._windows(0, max(start, x_starts[i]), min(end, x_starts[i + 1]), x_starts[i + 1])
            columns = range(i if self._which else 0, i + 1 if diagonal else len(z_starts) - 1)
            for j in columns if len(rows) else ():
                others = self._windows(1, z_starts[j], z_starts[j + 1], z_starts[j + 1])
                matches = (rows[:, None, :] == others[None, :, :]).sum(axis=2)
                out[i, 0 if diagonal else j] += self._worth[matches].sum(dtype=np.float64)

    def _windows(self, side: int, start: int, end: int, until: int) -> Array:
        """The windows that begin in [start, end), end by `until`, and have known symbols only, one a row."""
        symbols, span = self._sides[side][0], len(self._worth) - 1
        at = np.arange(start, max(min(end, until - span + 1), start))
        seen = symbols[at[:, None] + np.arange(span)]
        return np.asarray(seen[np.all((seen >= 0) & (seen < self._alphabet), axis=1)])
