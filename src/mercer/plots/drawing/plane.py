"""A plane through the rows: two of their columns vary, the others stay at their medians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.plots.drawing.outputs import quietly

__all__ = ["Plane", "bands"]

MARGIN = 0.08
"""Of the range of a column, on each side."""


@dataclass(frozen=True, eq=False)
class Plane:
    """The points (a, b) of a grid as rows: a and b in two columns, medians in the others.

    Attributes
    ----------
    columns : (int, int)
    first, second : array of shape (side,)
        The values of a and of b.
    middle : array of shape (d,)
        The medians.

    Examples
    --------
    >>> import numpy as np
    >>> plane = Plane.through(np.array([[0.0, 5.0, 1.0], [4.0, 5.0, 1.0]]), (0, 1), 3, "example")
    >>> plane.first, plane.rows().shape
    (array([-0.32,  2.  ,  4.32]), (9, 3))
    """

    columns: tuple[int, int]
    first: np.ndarray
    second: np.ndarray
    middle: np.ndarray

    @classmethod
    def through(cls, rows: np.ndarray, columns: Sequence[int], side: int, who: str) -> Plane:
        """The plane that shows all of the rows; a constant column gets room around its value."""
        d = rows.shape[1]
        i, j = checked_columns(columns, d, who)
        ends = [spread(rows[:, place]) for place in (i, j)]
        first, second = (np.linspace(low, high, side) for low, high in ends)
        return cls((i, j), first, second, np.median(rows, axis=0))

    def rows(self) -> np.ndarray:
        """All points of the grid, those of the lowest b first."""
        a, b = np.meshgrid(self.first, self.second)
        rows = np.tile(self.middle, (a.size, 1))
        rows[:, self.columns[0]], rows[:, self.columns[1]] = a.ravel(), b.ravel()
        return rows

    def values(self, function: Any) -> np.ndarray:
        """A function of the rows, of shape (side, side) or (side, side, outputs); b grows along the first axis."""
        found = np.asarray(quietly(function, self.rows()))
        return found.reshape(len(self.second), len(self.first), *found.shape[1:])

    @property
    def note(self) -> str:
        """A note on the columns that do not vary."""
        others = len(self.middle) - 2
        return f"{counted(others, 'other column')} at the median" if others else ""


def spread(values: np.ndarray) -> tuple[float, float]:
    """The ends of an axis that shows these values."""
    low, high = float(values.min()), float(values.max())
    room = MARGIN * (high - low)
    return (low - room, high + room) if room > 0 else (low - max(1.0, abs(low)), high + max(1.0, abs(high)))


def checked_columns(columns: Sequence[int], d: int, who: str) -> tuple[int, int]:
    """Two different columns of a table that has d."""
    found = [int(one) for one in columns]
    if d < 2:
        raise InvalidInput(message(who, "rows of one column, which span no plane", "give rows of two columns or more"))
    if len(found) != 2 or found[0] == found[1] or not all(0 <= one < d for one in found):
        given = f"columns={columns!r} of a table with {d}"
        raise InvalidInput(message(who, given, f"name two different columns, from 0 to {d - 1}"))
    return found[0], found[1]


def bands(values: np.ndarray, signed: bool) -> np.ndarray:
    """Some twenty round numbers that divide bands of colour; if signs matter, as many are below 0 as above.

    >>> bands(np.array([-0.2, 1.0]), signed=True)[[0, -1]].tolist()
    [-1.0, 1.0]
    """
    low, high = float(values.min()), float(values.max())
    if signed:
        high = max(abs(low), abs(high)) or 1.0
        low = -high
    elif high <= low:
        low, high = low - 1, high + 1
    return np.asarray(MaxNLocator(20, symmetric=signed).tick_values(low, high))
