"""Columns of numbers with decimal commas."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["is_number", "with_points"]

_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
"""Ambiguous: a comma between thousands, or a decimal comma with three digits."""
_MOSTLY = 0.95


def is_number(field: str, *, commas: bool = False) -> bool:
    """Whether a field is a number, optionally with a decimal comma.

    >>> is_number("1,5"), is_number("1,5", commas=True), is_number("1.234,5", commas=True), is_number("1e3")
    (False, True, True, True)
    """
    try:
        float(field)
    except ValueError:
        return commas and _COMMA.fullmatch(field.strip()) is not None
    return True


def with_points(frame: Any) -> tuple[Any, list[str]]:
    """A data frame in which columns with decimal commas are numbers, and notes that name them.

    If every comma of the table could also separate thousands, the columns stay text.

    >>> import pandas as pd
    >>> frame, notes = with_points(pd.DataFrame({"a": ["1,5", "2"], "b": ["x,1", "y"]}))
    >>> frame["a"].tolist(), notes
    ([1.5, 2.0], ['decimal commas in a'])
    """
    found = {name: text for name in frame.columns if (text := _commas(frame[name])) is not None}
    if not found:
        return frame, []
    named = ", ".join(list(found)[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
    fields = (one for text in found.values() for one in text.dropna() if "," in one)
    sure = [one for one in fields if not _GROUPED.fullmatch(one)]
    if not sure:
        example = next(one for one in next(iter(found.values())).dropna() if "," in one)
        doubt = f"{example!r} can be {example.replace(',', '.')} or {example.replace(',', '')}"
        return frame, [f"{named}: text, for {doubt}; write numbers with a point, and without marks between thousands"]
    return frame.assign(**{name: _numbers(text) for name, text in found.items()}), [f"decimal commas in {named}"]


def _commas(column: Any) -> Any:
    """The stripped texts of a column, if nearly all are numbers and some have a decimal comma; otherwise None."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return None
    text = column.map(lambda one: one.strip() if isinstance(one, str) else str(one), na_action="ignore")
    present = text.dropna()
    marked = sum(_COMMA.fullmatch(one) is not None for one in present)
    plain = sum(_WHOLE.fullmatch(one) is not None for one in present)
    return text if marked and marked + plain >= _MOSTLY * len(present) else None


def _numbers(text: Any) -> Any:
    """The column with points for commas, as numbers if all values are numbers."""
    import pandas as pd

    def one_number(field: str) -> str:
        known = _COMMA.fullmatch(field) or _WHOLE.fullmatch(field)
        return field.replace(".", "").replace(",", ".") if known else field

    changed = text.map(one_number, na_action="ignore")
    try:
        return pd.to_numeric(changed)
    except (ValueError, TypeError):
        return changed  # a few words remain; the encoder treats them as missing values
