"""Checks of the columns and the length-scales of a kernel."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, NotAKernel, message
from mercer.kernels.parameters import checks
from mercer.kernels.parameters.resolution import Resolver

__all__ = ["checked_columns", "checked_scales", "position_among", "shown_columns"]

MOST_LISTED = 8
"""The most consecutive columns that are listed one by one."""


def shown_columns(columns: tuple[int | str, ...]) -> str:
    """The text of columns, as users write it: a list, or a range for many consecutive columns."""
    first, count = columns[0], len(columns)
    if count > MOST_LISTED and isinstance(first, int) and columns == tuple(range(first, first + count)):
        return f"range({first}, {first + count})"
    return repr(list(columns))


def position_among(name: str, indices: tuple[int, ...], resolver: Resolver) -> int:
    """The position among `indices` of the column with this name."""
    index = resolver.column(name)
    if index not in indices:
        raise InvalidInput(message("on", f"column {name!r} is not among those of the outer .on(...)", "add it there"))
    return indices.index(index)


def checked_columns(columns: Any) -> tuple[int | str, ...]:
    """Indices and names as a tuple of integers and texts; the same object if nothing changed."""
    if isinstance(columns, slice):
        raise InvalidInput(message("on", f"columns={columns!r}", "write the indices out: list(range(0, 3))"))
    if isinstance(columns, (str, numbers.Integral)):
        columns = (columns,)
    if not isinstance(columns, Iterable):
        raise InvalidInput(message("on", f"columns={columns!r}", "give indices or names, such as [0, 2]"))
    given = columns if isinstance(columns, tuple) else tuple(columns)
    for column in given:
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (str, numbers.Integral)):
            raise InvalidInput(message("on", f"column {column!r}", "give indices or names, such as [0, 2]"))
        if not isinstance(column, str) and column < 0:
            raise InvalidInput(message("on", f"column {column}", "count columns from 0"))
    if not given or len(set(given)) < len(given):
        what = "a column twice" if given else "no columns"
        raise InvalidInput(message("on", f"{what} in {list(given)}", "name each column once"))
    exact = tuple(str(column) if isinstance(column, str) else int(column) for column in given)
    # The same object if nothing changed, because scikit-learn's clone compares by identity.
    return given if all(type(a) is type(b) for a, b in zip(given, exact, strict=True)) else exact


def checked_scales(scales: Any) -> tuple[float, ...]:
    """Length-scales as a tuple of floats; the same object if nothing changed."""
    if isinstance(scales, str) or not isinstance(scales, Iterable):
        raise InvalidInput(message("with_length_scales", f"scales={scales!r}", "give one number for each column"))
    given = scales if isinstance(scales, tuple) else tuple(scales)
    exact = tuple(checks.positive("with_length_scales", "scale", scale) for scale in given)
    if not all(math.isfinite(1.0 / scale) for scale in exact):
        raise NotAKernel(message("with_length_scales", "a length-scale too small to divide by", "rescale the column"))
    return given if all(type(scale) is float for scale in given) else exact
