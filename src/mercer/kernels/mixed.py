"""Rows with numbers and objects side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.numerals import counted

__all__ = ["as_mixed_rows", "numbers_of"]


def as_mixed_rows(X: Any, columns: int = 0) -> NDArray[Any]:
    """Rows with numbers and objects side by side as an array of objects; refused with fewer than `columns` columns.

    >>> as_mixed_rows([[1.0, "abc"], [2.0, "b"]]).shape
    (2, 2)
    """
    rows = X if isinstance(X, np.ndarray) and X.dtype == object else _one_by_one(X)
    if rows.ndim != 2 or rows.shape[1] < columns or not len(rows):
        given = f"an array of shape {rows.shape} where rows with {counted(columns, 'column')} or more are needed"
        do = "give a table, np.array(rows, dtype=object), or a data frame to a mercer.table_kernel"
        raise InvalidInput(message("on", given, do))
    return rows


def numbers_of(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Columns of an array of objects as floating-point numbers."""
    try:
        found = rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        given = f"a column that is not of numbers ({error})"
        raise InvalidInput(message("on", given, "name the columns of numbers: .on([...])")) from error
    if not np.isfinite(found).all():
        raise InvalidInput(message("on", "NaN or infinity among the numbers", "fill missing values in first"))
    return found


def _one_by_one(X: Any) -> NDArray[Any]:
    """An array of objects, filled entry by entry: np.asarray would take lists of tokens for a further dimension."""
    rows = X if isinstance(X, list) and all(isinstance(row, list | tuple | np.ndarray) for row in X) else []
    if len({len(row) for row in rows}) != 1:
        return np.asarray(X, dtype=object)
    out = np.empty((len(X), len(X[0])), dtype=object)
    for place, row in enumerate(X):
        for column, value in enumerate(row):
            out[place, column] = value
    return out
