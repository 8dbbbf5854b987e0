"""What becomes of one column of a table: a plan of plain values, made once and applied to any later table."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message

__all__ = ["ColumnPlan", "as_frame", "as_numbers", "as_text", "given_numbers", "plan_column"]

Floats = NDArray[np.float64]
MISSING = "missing"
ABSENT = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "nat", "null", "none", "<na>", "?"})
"""Texts, in lower case, that stand for a missing value."""
SKEWED = 1.0
"""Skewness from which on a column is skewed."""
MOSTLY_NUMBERS = 0.95
MOSTLY_DISTINCT = 0.9


@dataclass(frozen=True)
class ColumnPlan:
    """How one column becomes columns of numbers.

    `kind` is "number", "flag", "category" or "dropped". `numbers` is (fill, mean, std, minimum, scale): what a missing
    value becomes, then z = (g(x) − mean)/std with g(x) = log(1 + max(x − minimum, 0)/scale), or g(x) = x where
    scale is 0.

    >>> plan = ColumnPlan("size", "number", (2.0, 2.0, 1.0, 0.0, 0.0))
    >>> plan.encode([1.0, None])
    array([[-1.],
           [ 0.]])
    """

    name: str
    kind: str
    numbers: tuple[float, ...] = (0.0, 0.0, 1.0, 0.0, 0.0)
    categories: tuple[str, ...] = ()
    flag: str = ""
    """ "" or "missing" (a column that says where it was missing), "other" (rare categories are pooled), or both."""
    said: str = ""

    @property
    def features(self) -> list[str]:
        """The names of the columns of numbers."""
        if self.kind == "category":
            named = [f"{self.name}={category}" for category in self.categories]
            named += [f"{self.name} is another"] if "other" in self.flag else []
        else:
            named = [self.name]
        return named + ([f"{self.name} is missing"] if MISSING in self.flag else [])

    def encode(self, values: Any) -> Floats:
        """One row for each value, one column for each of `features`."""
        if self.kind == "category":
            return self._one_hot(values)
        x = given_numbers(self.name, values, self.categories)
        absent = np.isnan(x)
        fill, mean, std, minimum, scale = self.numbers
        x = np.where(absent, fill, x)
        z = (_log(x, minimum, scale) if scale > 0 else x) / std - mean / std
        return np.column_stack([z, absent]) if MISSING in self.flag else z[:, None]

    def _one_hot(self, values: Any) -> Floats:
        text, absent = as_text(values)
        hits = [(text == category) & ~absent for category in self.categories]
        if "other" in self.flag:
            hits.append(~absent & ~np.any(hits, axis=0))
        if MISSING in self.flag:
            hits.append(absent)
        return np.column_stack(hits).astype(np.float64)


def plan_column(name: str, values: Any, most: int, indicator: float, log_skewed: bool) -> ColumnPlan:
    """Look at one column (a pandas series) and decide.

    >>> import pandas as pd
    >>> plan_column("same", pd.Series([1, 1, 1]), 20, 0.01, True).said
    'dropped: constant'
    """
    if values.dtype.kind in "biuf" or _is_numeric(values):
        return _plan_numbers(name, as_numbers(values), indicator, log_skewed, "")
    if values.dtype.kind in "mM":
        days = as_numbers(values)
        return _plan_numbers(name, days, indicator, log_skewed, "dates as days since 1970; ")
    text, absent = as_text(values)
    if absent.all():
        return _dropped(name, "no values")
    if _truth(text[~absent]):
        return _plan_numbers(name, as_numbers(values), indicator, log_skewed, "")
    x = as_numbers(values)
    good = ~np.isnan(x)
    if good.sum() >= MOSTLY_NUMBERS * (~absent).sum():
        odd = sorted(set(text[~absent & ~good].tolist()))
        said = (
            f"text read as numbers, {', '.join(map(repr, odd[:3]))} as missing; " if odd else "text read as numbers; "
        )
        plan = _plan_numbers(name, x, indicator, log_skewed, said)
        return plan if plan.kind == "dropped" else replace(plan, categories=tuple(odd))
    return _plan_categories(name, text, absent, most)


def as_frame(frame: Any, who: str) -> Any:
    """A pandas data frame with distinct text names for its columns, of one in pandas or polars."""
    import pandas as pd

    polars = sys.modules.get("polars")
    if polars is not None and isinstance(frame, polars.DataFrame):
        frame = pd.DataFrame({name: frame[name].to_list() for name in frame.columns})
    if not isinstance(frame, pd.DataFrame):
        given = f"a {type(frame).__name__}"
        raise InvalidInput(message(who, given, "give a data frame, such as read_table(path).frame"))
    if len(frame) == 0:
        raise InvalidInput(message(who, "a table without rows", "give at least one row"))
    if frame.columns.duplicated().any():
        twice = str(frame.columns[frame.columns.duplicated()][0])
        raise InvalidInput(message(who, f"two columns named {twice!r}", "rename one of them"))
    return frame if all(isinstance(name, str) for name in frame.columns) else frame.rename(columns=str)


def as_numbers(values: Any) -> Floats:
    """Numbers in float64; what is none, or infinite, is NaN. Dates are days, true and false 1 and 0."""
    import pandas as pd

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if series.dtype.kind == "M":
        plain = series.dt.tz_localize(None) if series.dt.tz is not None else series
        x = ((plain - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)
    elif series.dtype.kind == "m":
        x = (series / pd.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)
    elif _is_numeric(series):
        x = series.to_numpy(np.float64, na_value=np.nan)
    else:
        text = series.astype(object).where(series.notna(), None)
        text = text.map(lambda one: _TRUTH.get(str(one).strip().lower(), one))
        x = pd.to_numeric(text, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    x = np.array(x, np.float64)
    # Beyond this, squares overflow; such a value is no measurement.
    x[~(np.abs(x) < 1e150)] = np.nan
    return x


def given_numbers(name: str, values: Any, stand_for_missing: tuple[str, ...] = ()) -> Floats:
    """The numbers of a column that the fit found to be one of numbers; a text that is none is refused, not missing.

    >>> import pandas as pd
    >>> given_numbers("size", pd.Series(["1", "NA", "many"]))
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: the column 'size': 'many' in row 3 (counted from 1) is no number, ...
    """
    import pandas as pd

    x = as_numbers(values)
    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if series.dtype.kind in "biufmM" or _is_numeric(series) or not np.isnan(x).any():
        return x
    text, absent = as_text(series)
    known = ABSENT.union(one.lower() for one in stand_for_missing)
    odd = [i for i in np.flatnonzero(np.isnan(x) & ~absent) if text[i].lower() not in known and not _is_huge(text[i])]
    if odd:
        more = f", and {len(odd) - 1} more" if odd[1:] else ""
        given = f"{text[odd[0]][:40]!r} in row {odd[0] + 1} (counted from 1){more} is no number, as it was at the fit"
        do = "mend it, leave it empty or NaN if it is missing, or give dates as dates (pandas.to_datetime)"
        raise InvalidInput(message(f"the column {name!r}", given, do))
    return x


def _is_huge(text: str) -> bool:
    """A number beyond all measurement, or infinite: missing, as among numbers."""
    try:
        return math.isinf(float(text)) or abs(float(text)) >= 1e150
    except ValueError:
        return False


_TRUTH = {"true": 1.0, "false": 0.0}


def _truth(text: NDArray[Any]) -> bool:
    return {str(one).strip().lower() for one in np.unique(text)} <= set(_TRUTH)


def _is_numeric(values: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(values.dtype)) and values.dtype.kind != "c"


def as_text(values: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values as stripped text, and where they are missing. Whole numbers are written without a point."""
    import pandas as pd

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    absent = series.isna().to_numpy(bool)
    if series.dtype.kind == "f" and (series.dropna() % 1 == 0).all():
        series = series.astype("Int64")
    text = np.array([str(one).strip() for one in series.astype(object)], dtype=object)
    return text, absent | (text == "")


def _dropped(name: str, why: str) -> ColumnPlan:
    return ColumnPlan(name, "dropped", said=f"dropped: {why}")


def _plan_numbers(name: str, x: Floats, indicator: float, log_skewed: bool, said: str) -> ColumnPlan:
    absent = np.isnan(x)
    share, present = float(absent.mean()), x[~absent]
    if present.size == 0:
        return _dropped(name, "no values")
    flag = MISSING if share > 0 and share >= indicator else ""
    if present.min() == present.max():
        return _dropped(name, "constant")
    if set(np.unique(present)) == {0.0, 1.0}:
        fill = float(present.mean() > 0.5)
        said += _said_missing(share, f"the more frequent, {fill:g}", flag)
        return ColumnPlan(name, "flag", (fill, 0.0, 1.0, 0.0, 0.0), flag=flag, said=f"{said}0 or 1, as it is")
    fill = float(np.median(present))
    minimum, scale = _log_rule(present, fill) if log_skewed else (0.0, 0.0)
    filled = np.where(absent, fill, x)
    g = _log(filled, minimum, scale) if scale > 0 else filled
    mean, std = float(g.mean()), float(g.std())
    said += _said_missing(share, "the median", flag)
    said += "skewed, so its logarithm is standardised" if scale > 0 else "standardised"
    return ColumnPlan(name, "number", (fill, mean, std, minimum, scale), flag=flag, said=said)


def _said_missing(share: float, filled: str, flag: str) -> str:
    if share == 0:
        return ""
    return f"{share:.1%} missing, filled by {filled}{', and a column says where' if flag else ''}; "


def _log(x: Floats, minimum: float, scale: float) -> Floats:
    return np.log1p(np.maximum(x - minimum, 0.0) / scale)


def _log_rule(x: Floats, median: float) -> tuple[float, float]:
    """(minimum, scale) of the logarithm where it makes a non-negative column less skewed, else (0, 0)."""
    minimum = float(x.min())
    if minimum < 0 or median <= minimum or _skewness(x) < SKEWED:
        return 0.0, 0.0
    scale = median - minimum
    return (minimum, scale) if abs(_skewness(_log(x, minimum, scale))) < abs(_skewness(x)) else (0.0, 0.0)


def _skewness(x: Floats) -> float:
    """The third standardised moment."""
    unit = float(np.abs(x).max()) or 1.0
    z = x / unit - float((x / unit).mean())
    std = math.sqrt(float((z**2).mean()))
    return float((z**3).mean()) / std**3 if std > 0 else 0.0


def _plan_categories(name: str, text: NDArray[Any], absent: NDArray[np.bool_], most: int) -> ColumnPlan:
    names, counts = np.unique(text[~absent].astype(str), return_counts=True)
    if len(names) > MOSTLY_DISTINCT * (~absent).sum() and len(names) > most:
        return _dropped(name, f"text, {len(names)} distinct values in {len(text)} rows")
    if len(names) == 1 and not absent.any():
        return _dropped(name, "constant")
    order = np.argsort(-counts, kind="stable")
    pooled = len(names) > most
    kept = np.sort(names[order[: most - 1]]) if pooled else names
    share = counts[order[most - 1 :]].sum() / len(text) if pooled else 0.0
    said = f"{len(names)} categories"
    said += (
        f", the {len(kept)} most frequent one-hot, the others ({share:.1%} of the rows) pooled"
        if pooled
        else ", one-hot"
    )
    said += f", {absent.mean():.1%} missing as one of its own" if absent.any() else ""
    flag = " ".join(["other"] * pooled + [MISSING] * bool(absent.any()))
    return ColumnPlan(name, "category", categories=tuple(map(str, kept)), flag=flag, said=said)
