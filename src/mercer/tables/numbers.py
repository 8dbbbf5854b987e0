"""Plans for columns of numbers, many at a time, and their encoding: fill, logarithm if skewed, standardise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST", "MISSING", "RUN", "NumberPlan", "encode_numbers", "number_columns", "number_runs", "plan_numbers"]

Floats = NDArray[np.float64]
MISSING = "missing"
LARGEST = 1e150
"""Numbers from this magnitude on count as missing, because their squares overflow."""
SKEWED = 1.0
"""Columns with at least this skewness are skewed."""
RUN = 1 << 20
"""Numbers that are looked at at a time."""


class NumberPlan(NamedTuple):
    """Fields of a `ColumnPlan` for a column of numbers, from its values alone."""

    kind: str
    said: str
    flag: str = ""
    numbers: tuple[float, ...] = (0.0, 0.0, 1.0, 0.0, 0.0)


def number_columns(types: Any) -> NDArray[np.bool_]:
    """Which `dtypes` of a pandas data frame are NumPy's, of real numbers or of true and false."""
    known = {one: isinstance(one, np.dtype) and one.kind in "biuf" for one in set(types)}
    return np.array([known[one] for one in types], bool)


def number_runs(frame: Any, wanted: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """The places of some `number_columns`, and their values as rows with NaN for missing ones; many at a time."""
    places, width = np.flatnonzero(wanted), max(1, RUN // max(1, len(frame)))
    for first in range(0, len(places), width):
        some = places[first : first + width]
        X = np.array(frame.iloc[:, some].to_numpy(np.float64).T, order="C")
        X[~(np.abs(X) < LARGEST)] = np.nan
        yield some, X


def plan_numbers(X: Floats, indicator: float, log_skewed: bool) -> list[NumberPlan]:
    """The plan for each row of X, which has the values of a column.

    >>> plan_numbers(np.array([[1.0, 3.0, np.nan], [5.0, 5.0, 5.0]]), 0.01, True)[1]
    NumberPlan(kind='dropped', said='constant', flag='', numbers=(0.0, 0.0, 1.0, 0.0, 0.0))
    """
    plans = [NumberPlan("dropped", "no values")] * len(X)
    missing = np.isnan(X).sum(axis=1)
    for count in np.unique(missing[missing < X.shape[1]]):  # columns with as many values are one matrix
        places = np.flatnonzero(missing == count)
        for place, plan in zip(places, _plans(X[places], int(count), indicator, log_skewed), strict=True):
            plans[place] = plan
    return plans


def _plans(X: Floats, missing: int, indicator: float, log_skewed: bool) -> list[NumberPlan]:
    """The plans for rows with `missing` missing values each, and others."""
    absent, share = np.isnan(X), missing / X.shape[1]
    present = X[~absent].reshape(len(X), -1) if missing else X
    flag = MISSING if share > 0 and share >= indicator else ""
    least, most = present.min(axis=1), present.max(axis=1)
    plans = [NumberPlan("dropped", "constant")] * len(X)
    flags = (least == 0) & (most == 1) & ((present == 0) | (present == 1)).all(axis=1)
    fills = (present[flags].mean(axis=1) > 0.5).astype(np.float64)
    for place, fill in zip(np.flatnonzero(flags), fills.tolist(), strict=True):
        said = f"{_said_missing(share, f'the more frequent, {fill:g}', flag)}0 or 1, as it is"
        plans[place] = NumberPlan("flag", said, flag, (fill, 0.0, 1.0, 0.0, 0.0))
    rest = np.flatnonzero((least < most) & ~flags)
    if rest.size == 0:
        return plans
    present, absent, X = present[rest], absent[rest], X[rest]
    numbers = _numbers(np.where(absent, 0, X), absent, present, log_skewed)
    before = _said_missing(share, "the median", flag)
    says = f"{before}standardised", f"{before}skewed, so its logarithm is standardised"
    for place, five in zip(rest, map(tuple, numbers.tolist()), strict=True):
        varies = five[2] > 0
        plans[place] = (
            NumberPlan("number", says[five[4] > 0], flag, five)
            if varies
            else NumberPlan("dropped", "constant to rounding")
        )
    return plans


def _numbers(X: Floats, absent: NDArray[np.bool_], present: Floats, log_skewed: bool) -> Floats:
    """(fill, mean, std, minimum, scale) of each row of X with the values `present`."""
    fill = np.median(present, axis=1)
    minimum, scale = _log_rule(present, fill) if log_skewed else np.zeros((2, len(X)))
    X = np.where(absent, fill[:, None], X)
    log = scale > 0
    X[log] = _log(X[log], minimum[log, None], scale[log, None])
    return np.column_stack([fill, X.mean(axis=1), _deviation(X), minimum, scale])


def encode_numbers(X: Floats, numbers: Floats) -> Floats:
    """The columns of X as `ColumnPlan.encode` gives them, by the `numbers` of their plans, a row for each column.

    >>> encode_numbers(np.array([[1.0], [np.nan]]), np.array([[2.0, 2.0, 1.0, 0.0, 0.0]]))
    array([[-1.],
           [ 0.]])
    """
    fill, mean, std, minimum, scale = numbers.T
    X = np.where(np.abs(X) < LARGEST, X, fill)
    log = scale > 0
    X[:, log] = _log(X[:, log], minimum[log], scale[log])
    X -= mean
    X /= std
    return np.ascontiguousarray(X)


def _said_missing(share: float, filled: str, flag: str) -> str:
    if share == 0:
        return ""
    return f"{share:.1%} missing, filled by {filled}{', and a column says where' if flag else ''}; "


def _log(x: Floats, minimum: Any, scale: Any) -> Floats:
    return np.log1p(np.maximum(x - minimum, 0.0) / scale)


def _log_rule(X: Floats, median: Floats) -> Floats:
    """(minimum, scale) of the logarithm if it makes a non-negative row less skewed, else (0, 0)."""
    minimum, skewness = X.min(axis=1), _skewness(X)
    log = (minimum >= 0) & (median > minimum) & (skewness >= SKEWED)
    scale = np.where(log, median - minimum, 0.0)
    after = _skewness(_log(X[log], minimum[log, None], scale[log, None]))
    log[log] = np.abs(after) < np.abs(skewness[log])
    return np.where(log, (minimum, scale), 0.0)


def _unit(X: Floats) -> Floats:
    """The largest magnitude of each row; 1 for zeros."""
    most = np.abs(X).max(axis=1, keepdims=True)
    return np.where(most == 0, 1.0, most)


def _deviation(X: Floats) -> Floats:
    """The standard deviation of each row, computed without underflow of squares."""
    away = X - X.mean(axis=1, keepdims=True)
    unit = _unit(away)
    return unit[:, 0] * np.sqrt(((away / unit) ** 2).mean(axis=1))


def _skewness(X: Floats) -> Floats:
    """The third standardised moment of each row."""
    z = X / _unit(X)
    z -= z.mean(axis=1, keepdims=True)
    std = np.sqrt((z**2).mean(axis=1))
    return (z**3).mean(axis=1) / np.where(std > 0, std, np.inf) ** 3
