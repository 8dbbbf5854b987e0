"""The plan that encodes one column of a table: plain values, found once and applied to any later table."""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.tables.numbers import LARGEST, MISSING, NumberPlan, encode_numbers, plan_numbers
from mercer.tables.texts import ISO, PERCENT, date_form, in_form, is_prose, letters_of, percent_form

__all__ = [
    "MOSTLY_NUMBERS",
    "OBJECTS",
    "ColumnPlan",
    "as_frame",
    "as_numbers",
    "as_text",
    "as_the_fit",
    "dropped",
    "given_numbers",
    "odd_texts",
    "plan_column",
    "plan_of",
    "plan_text",
    "read_form",
]

Floats = NDArray[np.float64]
ABSENT = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "nat", "null", "none", "<na>", "?"})
"""Texts, in lower case, that mean a missing value."""
MICROSECONDS = 86_400_000_000
"""Those of a day."""
MOSTLY_NUMBERS = 0.95
"""The share of numbers from which on the other texts of a column count as missing."""
CODES = 2
"""The most distinct texts, such as n.d. and <0.5, that are missing values however many rows of numbers have them."""
OBJECTS = ("sequence", "text")
KINDS = ("number", "flag", "category", *OBJECTS, "dropped")


@dataclass(frozen=True)
class ColumnPlan:
    """The encoding of one column as columns of numbers.

    `kind` is "number", "flag", "category", "sequence", "text" or "dropped". Sequences and texts stay objects, for
    kernels on objects. `numbers` is (fill, mean, std, minimum, scale): `fill` replaces missing values, and
    z = (g(x) − mean)/std with g(x) = log(1 + max(x − minimum, 0)/scale), or g(x) = x if scale is 0.

    Parameters
    ----------
    name, kind, said : str
    numbers : tuple of five float
        The third one is positive.
    categories : tuple of str
    flag, form : str

    Raises
    ------
    InvalidInput
        If the numbers are not such, or a field has another type.

    Examples
    --------
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
    """ "", "missing" (an indicator column for missing values), "other" (rare categories are pooled), or both."""
    said: str = ""
    form: str = ""
    """The form of texts: one of `in_form` for numbers, and "lower" or "upper" case for sequences and texts."""

    def __post_init__(self) -> None:
        self._check_types()
        if len(self.numbers) != 5 or not all(map(math.isfinite, self.numbers)) or not self.numbers[2] > 0:
            given = f"numbers={self.numbers!r:.100} of the column {self.name!r:.40}"
            raise InvalidInput(message("ColumnPlan", given, "give five finite numbers, the third one positive"))

    def _check_types(self) -> None:
        """Check all types, because plans can come from files and `encode` relies on them."""
        known = self.kind in KINDS and set(str(self.flag).split()) <= {MISSING, "other"}
        texts = {*map(type, (self.name, self.kind, self.flag, self.said, self.form, *self.categories))}
        numbers = {*map(type, self.numbers)}
        if not (
            known
            and all(issubclass(one, int | float) for one in numbers)
            and all(issubclass(one, str) for one in texts)
        ):
            given = f"{self.name!r:.40} of the kind {self.kind!r:.40} with flag={self.flag!r:.40}"
            raise InvalidInput(message("ColumnPlan", given, f"give texts, and a kind among {', '.join(KINDS)}"))
        if self.kind == "category" and not self.features:
            given = f"the column {self.name!r} without categories"
            raise InvalidInput(message("ColumnPlan", given, "give its categories"))

    @property
    def of_objects(self) -> bool:
        """Whether the column stays a column of objects."""
        return self.kind in OBJECTS

    @property
    def features(self) -> list[str]:
        """The names of the columns of numbers."""
        if self.kind == "category":
            named = [f"{self.name}={category}" for category in self.categories]
            named += [f"{self.name} is another"] if "other" in self.flag else []
        else:
            named = [self.name]
        return named + ([f"{self.name} is missing"] if MISSING in self.flag else [])

    def encode(self, values: Any) -> NDArray[Any]:
        """One row for each value, one column for each of `features`."""
        if self.of_objects:
            return self._objects(values)
        if self.kind == "category":
            return self._one_hot(values)
        x = given_numbers(self.name, values, self.categories, self.form)
        z = encode_numbers(x[:, None], np.array([self.numbers]))
        return np.column_stack([z, np.isnan(x)]) if MISSING in self.flag else z

    def _objects(self, values: Any) -> NDArray[Any]:
        """The texts as a column of objects; missing ones are empty."""
        text, absent = as_text(values)
        change = {"lower": str.lower, "upper": str.upper}.get(self.form, str)
        out = np.empty((len(text), 1), dtype=object)
        out[:, 0] = [change(one) if not gone else "" for one, gone in zip(text, absent, strict=True)]
        return out

    def _one_hot(self, values: Any) -> Floats:
        text, absent = as_text(values)
        hits = [(text == category) & ~absent for category in self.categories]
        if "other" in self.flag:
            hits.append(~absent & ~np.any(hits, axis=0))
        if MISSING in self.flag:
            hits.append(absent)
        return np.column_stack(hits).astype(np.float64)


def plan_column(name: str, values: Any, most: int, indicator: float, log_skewed: bool) -> ColumnPlan:
    """The plan for a column (a pandas series), from its values.

    >>> import pandas as pd
    >>> plan_column("same", pd.Series([1, 1, 1]), 20, 0.01, True).said
    'dropped: constant'
    """
    if values.dtype.kind in "biuf" or _is_numeric(values):
        return _plan_numbers(name, as_numbers(values), indicator, log_skewed, "")
    if values.dtype.kind in "mM":
        days = as_numbers(values)
        plan = _plan_numbers(name, days, indicator, log_skewed, "dates as days since 1970; ")
        dated = values.dtype.kind == "M" and plan.kind != "dropped"
        return replace(plan, form=ISO) if dated else plan  # as a text file has them
    text, absent = as_text(values)
    if absent.all():
        return _dropped(name, "no values")
    if _truth(text[~absent]):
        return _plan_numbers(name, as_numbers(values), indicator, log_skewed, "")
    x = as_numbers(values)
    good = ~np.isnan(x)
    if good.sum() >= MOSTLY_NUMBERS * (~absent).sum() or _has_codes(text[~absent & ~good], x[good], most):
        return _plan_texts(name, values, "", "text read as numbers", indicator, log_skewed)
    form, doubt = read_form(text[~absent])
    if form:
        said = "percentages as numbers" if form == PERCENT else "dates as days since 1970"
        return _plan_texts(name, values, form, said, indicator, log_skewed)
    return _plan_categories(name, text, absent, most, doubt)


def _has_codes(odd: NDArray[Any], numbers: Floats, most: int) -> bool:
    """Whether the texts beside numbers are codes for missing ones: few and less frequent, beside many values."""
    return len(set(odd)) <= CODES and len(odd) < len(numbers) and len(np.unique(numbers)) > most


def read_form(text: NDArray[Any]) -> tuple[str, str]:
    """The form of percentages or dates, or ""; and the ambiguity, if the texts can be dates in two forms."""
    return (PERCENT, "") if percent_form(text) else date_form(text)


def as_frame(frame: Any, who: str) -> Any:
    """A pandas or polars data frame as a pandas data frame with distinct text names for its columns."""
    import pandas as pd

    polars = sys.modules.get("polars")
    if polars is not None and isinstance(frame, polars.DataFrame):
        plain = {name: kind.is_float() or kind.is_integer() for name, kind in frame.schema.items()}
        columns = {name: one.to_numpy() if plain[name] else one.to_list() for name, one in frame.to_dict().items()}
        frame = pd.DataFrame(columns)
    if not isinstance(frame, pd.DataFrame):
        given = f"a {type(frame).__name__}"
        raise InvalidInput(message(who, given, "give a data frame, such as read_table(path).frame"))
    if len(frame) == 0:
        raise InvalidInput(message(who, "a table without rows", "give at least one row"))
    if frame.columns.nlevels > 1:
        do = 'give each column one name: frame.columns = ["_".join(map(str, names)) for names in frame.columns]'
        raise InvalidInput(message(who, f"columns with names of {frame.columns.nlevels} levels", do))
    if frame.columns.inferred_type != "string" or frame.columns.hasnans:
        frame = frame.rename(columns=str)
    if not frame.columns.is_unique:
        twice = str(frame.columns[frame.columns.duplicated()][0])
        raise InvalidInput(message(who, f"two columns named {twice!r}", "rename one of them"))
    return frame


def as_numbers(values: Any, form: str = "") -> Floats:
    """Numbers in float64, with NaN for other values and infinities. Dates are days, true and false 1 and 0.

    Dates that name a time zone are those of UTC, in a text as in a column of dates.

    Texts are read in the given `form` of `read_form`. Complex numbers raise InvalidInput.
    """
    import pandas as pd

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        x = series.array.to_numpy()  # for wide tables: pandas would look for missing values first
    elif series.dtype.kind == "M":
        if isinstance(series.dtype, pd.ArrowDtype):
            series = pd.to_datetime(series.astype(object).where(series.notna(), None), utc=True)
        instants = series.to_numpy("datetime64[us]")  # of UTC; the year 9999 would overflow a finer unit
        x = np.where(np.isnat(instants), np.nan, instants.astype(np.int64) / MICROSECONDS)
    elif series.dtype.kind == "m":
        x = (series / pd.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)
    elif _is_numeric(series):
        x = series.to_numpy(np.float64, na_value=np.nan)
    elif form and form != PERCENT:
        text = as_text(series)[0]
        found = in_form(text, form)
        if form != ISO and np.isnat(found).any():  # that form is never in doubt, and sheets give dates so
            found = np.where(np.isnat(found), in_form(text, ISO), found)
        return as_numbers(pd.Series(found))
    else:
        text = series.astype(object).where(series.notna(), None)
        if form == PERCENT:
            text = pd.Series([_without_percent(one) for one in text], index=text.index, dtype=object)
        text = text.map(lambda one: _TRUTH.get(str(one).strip().lower(), one))
        found = pd.to_numeric(text, errors="coerce")
        if found.dtype.kind == "c":  # NumPy would drop the imaginary parts
            do = "give the real and the imaginary parts as columns of their own"
            raise InvalidInput(message(f"the column {series.name!r}", "complex numbers", do))
        x = found.to_numpy(np.float64, na_value=np.nan)
    x = np.array(x, np.float64)
    x[~(np.abs(x) < LARGEST)] = np.nan
    return x


def _without_percent(value: Any) -> Any:
    found = in_form(np.array([str(value).strip()], dtype=object), PERCENT)[0]
    return value if np.isnan(found) else found


def given_numbers(name: str, values: Any, stand_for_missing: tuple[str, ...] = (), form: str = "") -> Floats:
    """The numbers of a column that held numbers at the fit. A text that is not a number is refused, not missing.

    >>> import pandas as pd
    >>> given_numbers("size", pd.Series(["1", "NA", "many"]))
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: the column 'size': 'many' in row 3 (counted from 1) is not a number, ...
    """
    import pandas as pd

    values = as_the_fit(f"the column {name!r}", values, form)
    x = as_numbers(values, form)
    odd = _odd(values, x, stand_for_missing)
    if odd:
        row, text = next(iter(odd.items()))
        index = getattr(values, "index", None)
        row = index[row] if isinstance(index, pd.RangeIndex) else row  # that of a chunk begins further down
        more = f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        kind = "date" if form and form != PERCENT else "number"
        given = f"{text[:40]!r} in row {row + 1} (counted from 1){more} is not a {kind}, unlike at the fit"
        do = "correct it, leave it empty or NaN if it is missing, or give dates as dates (pandas.to_datetime)"
        raise InvalidInput(message(f"the column {name!r}", given, do))
    return x


def as_the_fit(who: str, values: Any, form: str) -> Any:
    """Dates where the fit saw dates, and numbers where it saw numbers: days such as 20240331 become dates.

    >>> import pandas as pd
    >>> as_the_fit("the column 'day'", pd.Series([20240331.0, None]), ISO).tolist()
    [Timestamp('2024-03-31 00:00:00'), NaT]
    >>> as_the_fit("the column 'day'", pd.Series([2024]), ISO)
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: the column 'day': the number 2024, where the fit saw dates; write dates as 2024-03-31.
    """
    import pandas as pd

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    kind, dated, present = series.dtype.kind, form not in ("", PERCENT), series.notna().to_numpy(bool)
    if not present.any() or not (_is_numeric(series) or kind in "mM"):
        return values
    if not dated and kind == "M":
        given = f"the date {as_text(series[present])[0][0][:10]}, where the fit saw numbers"
        raise InvalidInput(message(who, given, "give numbers, as the fit saw them"))
    if not dated or kind == "M":
        return values
    days = in_form(as_text(series)[0], "%Y%m%d") if kind != "m" else np.full(len(series), np.datetime64("NaT"))
    if np.isnat(days[present]).any():
        odd = as_text(series[present])[0][np.isnat(days[present])][0]
        given = f"the {'duration' if kind == 'm' else 'number'} {odd}, where the fit saw dates"
        raise InvalidInput(message(who, given, "write dates as 2024-03-31"))
    return pd.Series(days, index=series.index)


def odd_texts(values: Any, form: str = "") -> tuple[str, ...]:
    """The texts of a column of numbers that are not numbers, and do not mean missing values in every column.

    >>> odd_texts(["1", "NA", "many", "2", "few", "many"])
    ('few', 'many')
    """
    return tuple(sorted(set(_odd(values, as_numbers(values, form), ()).values())))


def _odd(values: Any, x: Floats, known: tuple[str, ...]) -> dict[int, str]:
    """The texts of a column, by their rows, that are none of its numbers x, not known, and no word for missing."""
    import pandas as pd

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if series.dtype.kind in "biufmM" or _is_numeric(series) or not np.isnan(x).any():
        return {}
    text, absent = as_text(series)
    words = ABSENT.union(one.lower() for one in known)
    rows = np.flatnonzero(np.isnan(x) & ~absent).tolist()
    return {i: text[i] for i in rows if text[i].lower() not in words and not _is_huge(text[i])}


def _is_huge(text: str) -> bool:
    """Whether a text is an infinite or too large number, which counts as missing."""
    try:
        return math.isinf(float(text)) or abs(float(text)) >= LARGEST
    except ValueError:
        return False


_TRUTH = {"true": 1.0, "false": 0.0}


def _truth(text: NDArray[Any]) -> bool:
    return {str(one).strip().lower() for one in np.unique(text)} <= set(_TRUTH)


def _is_numeric(values: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(values.dtype)) and values.dtype.kind != "c"


def as_text(values: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values as stripped text, and a mask of missing ones. Integers are written without a point."""
    import pandas as pd

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    absent = series.isna().to_numpy(bool)
    if series.dtype.kind == "f" and ((series % 1 == 0) & (series.abs() < 2.0**63) | absent).all():
        series = series.astype("Int64")
    text = np.array([str(one).strip() for one in series.astype(object)], dtype=object)
    return text, absent | (text == "")


def _plan_objects(
    name: str, text: NDArray[Any], absent: NDArray[np.bool_], distinct: int, doubt: str
) -> ColumnPlan | None:
    """A plan for sequences, or for text with nearly all values distinct; None for categories."""
    present = text[~absent]
    letters = letters_of(present)
    missing = f", {absent.mean():.1%} missing, treated as empty" if absent.any() else ""
    if letters:
        lengths = [len(one) for one in present]
        said = f"sequences of {min(lengths)} to {max(lengths)} {letters}{missing}"
        return ColumnPlan(name, "sequence", said=said, form="upper")
    if not is_prose(present, distinct):
        return None
    if doubt:
        return _dropped(name, f"dates in doubt, for {doubt}: write them as 2024-03-31")
    words = np.mean([" " in one for one in present]) > 0.5
    said = f"text, {counted(distinct, 'distinct value')} in {counted(len(text), 'row')}{missing}"
    return ColumnPlan(name, "text", said=said, form="lower" if words else "")


def plan_text(name: str, values: Any) -> ColumnPlan:
    """The plan for a column that the user declares as text.

    >>> import pandas as pd
    >>> plan_text("word", pd.Series(["a", "b", "a"])).said
    'text, 2 distinct values in 3 rows'
    """
    text, absent = as_text(values)
    found = _plan_objects(name, text, absent, len(text), "")
    distinct = len(set(text[~absent]))
    said = f"text, {counted(distinct, 'distinct value')} in {counted(len(text), 'row')}"
    return ColumnPlan(name, "text", said=said) if found is None else replace(found, said=said, kind="text")


def dropped(plan: ColumnPlan) -> ColumnPlan:
    """The plan of a column that is dropped, with the reason."""
    return _dropped(plan.name, plan.said)


def _dropped(name: str, why: str) -> ColumnPlan:
    return ColumnPlan(name, "dropped", said=f"dropped: {why}")


def _plan_numbers(name: str, x: Floats, indicator: float, log_skewed: bool, said: str) -> ColumnPlan:
    return plan_of(name, plan_numbers(x[None], indicator, log_skewed)[0], said)


def _plan_texts(name: str, values: Any, form: str, said: str, indicator: float, log_skewed: bool) -> ColumnPlan:
    """A plan for texts that are numbers in a form, nearly all of them: the others are words for missing values."""
    odd = odd_texts(values, form)
    said += f", {', '.join(map(repr, odd[:3]))} as missing" if odd else ""
    plan = _plan_numbers(name, as_numbers(values, form), indicator, log_skewed, f"{said}; ")
    return plan if plan.kind == "dropped" else replace(plan, form=form, categories=odd)


def plan_of(name: str, plan: NumberPlan, said: str = "") -> ColumnPlan:
    """The plan of a column of numbers, with more that is said of it."""
    if plan.kind == "dropped":
        return _dropped(name, plan.said)
    return ColumnPlan(name, plan.kind, plan.numbers, flag=plan.flag, said=said + plan.said)


def _plan_categories(name: str, text: NDArray[Any], absent: NDArray[np.bool_], most: int, doubt: str) -> ColumnPlan:
    found = Counter(text[~absent])  # an array of texts would take the room of the longest for each
    names = np.array(sorted(found), dtype=object)
    counts = np.array([found[one] for one in names])
    if len(names) > most:
        objects = _plan_objects(name, text, absent, len(names), doubt)
        if objects is not None:
            return objects
    if len(names) == 1 and not absent.any():
        return _dropped(name, "constant")
    order = np.argsort(-counts, kind="stable")
    pooled = len(names) > most
    kept = np.sort(names[order[: most - 1]]) if pooled else names
    share = counts[order[most - 1 :]].sum() / len(text) if pooled else 0.0
    said = f"dates in doubt, for {doubt} (write them as 2024-03-31); " if doubt else ""
    said += f"{len(names)} categor{'y' if len(names) == 1 else 'ies'}"
    said += (
        f", the {len(kept)} most frequent one-hot, the others ({share:.1%} of the rows) pooled"
        if pooled
        else ", one-hot"
    )
    said += f", {absent.mean():.1%} missing as one of its own" if absent.any() else ""
    flag = " ".join(["other"] * pooled + [MISSING] * bool(absent.any()))
    return ColumnPlan(name, "category", categories=tuple(map(str, kept)), flag=flag, said=said)
