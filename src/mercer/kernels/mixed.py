"""Rows with numbers and objects side by side: kernels of which each part reads some of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message

__all__ = ["as_mixed_rows", "numbers_of", "of_mixed_rows", "of_objects", "refuse_whole_rows"]


class Reader(Protocol):
    """What is asked of a kernel here: what it reads of the rows, and the kernels that it is made of."""

    reads: ClassVar[str]

    def _children(self) -> Mapping[str, Reader]: ...


def of_objects(kernel: Reader) -> bool:
    """Whether each row must be an object, such as a sequence or a set of points, and not a vector.

    >>> from mercer.kernels import Linear, Spectrum
    >>> of_objects(0.5 * Spectrum()), of_objects(Spectrum().on([1])), of_objects(Linear())
    (True, False, False)
    """
    if kernel.reads == "columns":
        return False
    return kernel.reads == "objects" or any(map(of_objects, kernel._children().values()))


def of_mixed_rows(kernel: Reader) -> bool:
    """Whether a part of the kernel is one of objects on a chosen column.

    >>> from mercer.kernels import Linear, Spectrum
    >>> of_mixed_rows(Linear().on([0]) + Spectrum().on([1])), of_mixed_rows(Spectrum())
    (True, False)
    """
    children = kernel._children().values()
    if kernel.reads == "columns" and any(map(of_objects, children)):
        return True
    return any(of_mixed_rows(child) for child in children)


def refuse_whole_rows(kernel: Reader) -> None:
    """Raise InvalidInput if a part of a kernel of mixed rows reads all of their columns."""
    if of_mixed_rows(kernel) and (part := _of_whole_rows(kernel)) is not None:
        given = f"{part!r:.200} reads all columns of rows that are not all numbers"
        raise InvalidInput(message(type(kernel).__name__, given, "say which columns each part reads: .on([...])"))


def _of_whole_rows(kernel: Reader) -> Reader | None:
    if kernel.reads in ("columns", "nothing"):
        return None
    children = kernel._children().values()
    parts = (_of_whole_rows(child) for child in children)
    return next((part for part in parts if part is not None), None) if children else kernel


def as_mixed_rows(X: Any, columns: int = 0) -> NDArray[Any]:
    """An array of objects with at least so many columns, of rows with numbers and objects side by side.

    >>> as_mixed_rows([[1.0, "abc"], [2.0, "b"]]).shape
    (2, 2)
    """
    rows = X if isinstance(X, np.ndarray) and X.dtype == object else _one_by_one(X)
    if rows.ndim != 2 or rows.shape[1] < columns or not len(rows):
        given = f"an array of shape {rows.shape} where rows with {columns} columns or more are needed"
        do = "give a table, np.array(rows, dtype=object), or a data frame to a mercer.table_kernel"
        raise InvalidInput(message("on", given, do))
    return rows


def numbers_of(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Columns of numbers among objects, as such."""
    try:
        found = rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        given = f"a column that is not of numbers ({error})"
        raise InvalidInput(message("on", given, "name the columns of numbers: .on([...])")) from error
    if not np.isfinite(found).all():
        raise InvalidInput(message("on", "NaN or infinity among the numbers", "fill missing values in first"))
    return found


def _one_by_one(X: Any) -> NDArray[Any]:
    """At once, NumPy would take texts of tokens for more dimensions."""
    rows = X if isinstance(X, list) and all(isinstance(row, list | tuple | np.ndarray) for row in X) else []
    if len({len(row) for row in rows}) != 1:
        return np.asarray(X, dtype=object)
    out = np.empty((len(X), len(X[0])), dtype=object)
    for place, row in enumerate(X):
        for column, value in enumerate(row):
            out[place, column] = value
    return out
