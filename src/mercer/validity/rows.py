"""The domain of a check: which rows a proof or a search is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.kernels import Expression, Kernel, OnColumns, Rescaled
from mercer.numerals import counted
from mercer.validity.arithmetic.exact import leaves
from mercer.validity.arithmetic.ranges import Domain

__all__ = ["chosen_columns", "domain_of", "needs_columns", "of_histograms", "refused", "widths_to_draw"]

_NEGATIVE = (-1.0, -1e-3, -1e3)
"""Test entries: a kernel for non-negative rows refuses all of them."""


def domain_of(
    kernel: Kernel, rows: Any, e: Expression | None, n_features: int | None, non_negative: bool | None
) -> Domain:
    """The rows to consider: without negative entries in the columns in which the kernel refuses them.

    All columns have no negative entries if `non_negative` is True, or by default if the formula is for histograms and
    the rows have none.
    """
    d = int(rows.shape[1]) if rows is not None else n_features
    widths = set(_widths(kernel))
    if len(widths | {d} - {None}) > 1:
        given = f"length-scales for {counted(min(widths), 'column')} and n_features={d}"
        raise InvalidInput(message("check_kernel", given, "give one length-scale for each column"))
    d = next(iter(widths), d)
    if non_negative is None:
        non_negative = rows is not None and of_histograms(e, rows)
    return Domain(non_negative or refused(kernel, d), d)


def refused(kernel: Kernel, d: int | None) -> bool | frozenset[int]:
    """The columns in which the kernel refuses negative entries: True for all, False for none."""
    # If d is not given, one column more than those named stands for all others.
    width = d if d is not None else 2 + max(chosen_columns(kernel), default=-1)
    row = np.ones((1, width))

    def refuses(columns: Any, value: float) -> bool:
        changed = row.copy()
        changed[:, columns] = value
        try:
            kernel.check_data(changed)
        except InvalidInput:
            return True
        return False

    if not width or refuses([], 1.0) or not refuses(slice(None), -1.0):
        return False
    found = [column for column in range(width) if all(refuses(column, value) for value in _NEGATIVE)]
    return len(found) == width or frozenset(found) or False


def of_histograms(e: Expression | None, rows: Any) -> bool:
    """Whether a formula has pairings for histograms, and the rows have no negative entries."""
    kinds = [] if e is None else [leaf.value[0] for leaf in leaves(e) if leaf.op == "pairing"]
    return ("min_sum" in kinds or "chi2" in kinds) and bool(rows.min() >= 0)


def chosen_columns(kernel: Kernel) -> list[int]:
    """The indices of all columns that the kernel or its parts select."""
    return [column for column in _columns(kernel) if isinstance(column, int)]


def needs_columns(kernel: Kernel) -> bool:
    """Whether the kernel or its parts select columns by name."""
    return any(isinstance(column, str) for column in _columns(kernel))


def _columns(kernel: Kernel) -> Iterable[Any]:
    if isinstance(kernel, OnColumns):
        yield from kernel.columns
    for child in kernel._children().values():
        yield from _columns(child)


def _widths(kernel: Kernel) -> Iterable[int]:
    """The numbers of columns that length-scales require."""
    if isinstance(kernel, Rescaled):
        yield len(kernel.scales)
    elif not isinstance(kernel, OnColumns):
        for child in kernel._children().values():
            yield from _widths(child)


def widths_to_draw(kernel: Kernel, d: int | None, some: Iterable[int], most: int) -> list[int]:
    """The numbers of columns in which points are drawn, at most `most`: zeros in further columns change no pairing."""
    least = 1 + max(chosen_columns(kernel), default=0)
    if d is None:
        return [width for width in some if width >= least] or [least]
    return [d if set(_widths(kernel)) else max(min(d, most), min(least, d))]
