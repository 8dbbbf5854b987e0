"""Sets of points and time series: objects that are tables of numbers with different numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.kernels.sequences.corpus import reordered
from mercer.points import as_rows, points_of, require_collection
from mercer.points.sequences import as_array

__all__ = ["Series", "as_tables", "same_width", "stacked"]


def as_tables(X: Any, who: str) -> NDArray[Any]:
    """X as a one-dimensional array of objects, each a float64 table; all have the same number of columns.

    An object that is a vector becomes one column, so that the rows of a matrix are series of numbers.

    Raises
    ------
    InvalidInput
        Unless X is a list of tables of finite numbers with equal numbers of columns, and at least one row each.

    Examples
    --------
    >>> [table.shape for table in as_tables([[1.0, 2.0], [[3.0], [4.0], [5.0]]], "example")]
    [(2, 1), (3, 1)]
    """
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1 and all(_is_table(x) for x in X):
        tables = list(X)
    else:
        require_collection(X, who)
        tables = [_table(x, f"{who}: object {i}") for i, x in enumerate(points_of(X).items)]
    if not tables:
        raise InvalidInput(message(who, "no objects", "give at least one"))
    if len({table.shape[1] for table in tables}) > 1:
        widths = sorted({table.shape[1] for table in tables})
        raise InvalidInput(message(who, f"objects of {widths[0]} and of {widths[1]} columns", "give all the same"))
    return as_array(tables)


def _is_table(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype == np.float64 and x.flags.c_contiguous and x.size > 0


def _table(x: Any, who: str) -> NDArray[np.float64]:
    x = points_of(x).items
    if not isinstance(x, np.ndarray | list | tuple):
        raise InvalidInput(message(who, f"{x!r:.60} of type {type(x).__name__}", "give an array of its points"))
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise InvalidInput(message(who, f"not a table ({error})", "give rows of equal length")) from error
    rows = array.reshape(-1, 1) if array.ndim == 1 else array
    return np.asarray(as_rows(rows, dtype=np.float64, accept_sparse=False, who=who))


@dataclass(frozen=True, eq=False)
class Series:
    """Tables in one array: object i is rows[starts[i]:starts[i + 1]]."""

    rows: NDArray[np.float64]
    starts: NDArray[np.int64]

    @property
    def count(self) -> int:
        """The number of objects."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of rows of each object."""
        return np.diff(self.starts)

    def ordered(self, order: NDArray[np.intp]) -> Series:
        """The objects in this order."""
        positions, starts = reordered(self.starts, order)
        return Series(self.rows[positions], starts)

    def part(self, first: int, last: int) -> Series:
        """Objects [first, last)."""
        begin, end = self.starts[first], self.starts[last]
        return Series(self.rows[begin:end], self.starts[first : last + 1] - begin)


def stacked(tables: NDArray[Any]) -> Series:
    """The tables in one array."""
    starts = np.zeros(len(tables) + 1, np.int64)
    np.cumsum([len(table) for table in tables], out=starts[1:])
    return Series(np.ascontiguousarray(np.concatenate(list(tables))), starts)


def same_width(x: Series, z: Series, who: str) -> None:
    """Raise InvalidInput if two collections of objects have different numbers of columns."""
    if x.rows.shape[1] != z.rows.shape[1]:
        given = f"objects of {x.rows.shape[1]} and of {z.rows.shape[1]} columns"
        raise InvalidInput(message(who, given, "give both the same columns"))
