"""Detects columns that only identify rows: counters and identifiers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.tables.columns import as_numbers, as_text, plan_column
from mercer.tables.numbers import number_columns, number_runs
from mercer.tables.texts import LOOK, MOSTLY, share

__all__ = ["identifies", "identifying_columns"]

UNNAMED = ("", "unnamed: 0", "__index_level_0__")
"""Names of an index without a name, of pandas in CSV and in Parquet."""
FEW = 20
"""From this many rows on, consecutive numbers or texts of one form are not a coincidence."""
_NAMED = re.compile(r"(?:^|[\s_.\-])(?:id|ids|identifier|uuid|guid|key|index|idx|row|rownum|nr|no|number|#)$")
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{16,}")


def identifying_columns(frame: Any) -> dict[str, str]:
    """The columns that are counters or identifiers, each with the reason.

    Numbers are considered if all are integers, and texts if they are not read as numbers, dates, sequences or
    categories.

    >>> import pandas as pd
    >>> identifying_columns(pd.DataFrame({"Unnamed: 0": range(30), "age": [40, 60, 41] * 10}))
    {'Unnamed: 0': 'a counter of the rows, 0 to 29'}
    """
    looked = np.ones(len(frame.columns), bool)
    for places, X in number_runs(frame, number_columns(frame.dtypes)):
        looked[places] = _mostly_distinct_integers(X)
    return {str(name): why for name, values in frame.iloc[:, looked].items() if (why := _reason(str(name), values))}


def _mostly_distinct_integers(X: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a row, with the values of a column, can be a counter or an identifier."""
    found = (X % 1 == 0).all(axis=1)
    distinct = 1 + np.count_nonzero(np.diff(np.sort(X[found], axis=1), axis=1), axis=1)
    found[found] = distinct >= MOSTLY * X.shape[1]
    return found


def _reason(name: str, values: Any) -> str:
    if values.dtype.kind in "bmM":
        return ""
    numbers = as_numbers(values)
    if np.isfinite(numbers).all():
        return _of_numbers(name, numbers)
    if values.dtype.kind in "iuf" or plan_column(name, values, FEW, 0.01, True).kind != "text":
        return ""
    text, absent = as_text(values)
    return identifies(name, text[~absent], len(set(text[~absent])))


def _of_numbers(name: str, numbers: NDArray[np.float64]) -> str:
    """The reason for a column of numbers without missing values: a counter in any order, or an identifier by name."""
    if len(numbers) < FEW or np.any(numbers % 1 != 0):
        return ""
    ordered = np.sort(numbers)
    if ordered[0] in (0.0, 1.0) and np.all(np.diff(ordered) == 1):
        return f"a counter of the rows, {ordered[0]:.0f} to {ordered[-1]:.0f}"
    distinct = 1 + int(np.count_nonzero(np.diff(ordered)))
    return identifies(name, np.array([f"{one:.0f}" for one in numbers[:LOOK]], dtype=object), distinct, len(numbers))


def identifies(name: str, texts: NDArray[Any], distinct: int, rows: int | None = None) -> str:
    """The reason why a column only identifies rows, or "" if it does not.

    >>> identifies("PassengerId", np.array(["7", "9", "4"]), 3)
    'an identifier, by its name'
    >>> identifies("code", np.array([f"AB-{i}" for i in range(30)]), 30)
    'an identifier: all values are distinct and of one form, as AB-0'
    """
    rows = len(texts) if rows is None else rows
    if distinct < MOSTLY * rows:
        return ""
    spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip()).lower()
    if _NAMED.search(spelled) or spelled in UNNAMED:
        return "an identifier, by its name"
    looked = [str(text) for text in texts[:LOOK]]
    if any(" " in text for text in looked) or distinct < rows:
        return ""
    if share(_UUID, [text.lower() for text in looked]) >= MOSTLY and not all(map(str.isdigit, looked)):
        return "an identifier: hexadecimal digits"
    forms = {re.sub(r"\d+", "9", re.sub(r"[A-Za-z]+", "A", text)) for text in looked}
    if len(forms) == 1 and len(looked) >= FEW and "9" in (form := forms.pop()) and "A" in form:
        return f"an identifier: all values are distinct and of one form, as {looked[0][:20]}"
    return ""
