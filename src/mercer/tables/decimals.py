"""Numbers as people write them: with decimal commas, commas between thousands, signs of a currency or of percent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["as_plain_numbers", "is_number"]

_POINT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)")
_POINTED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
_SMALL = re.compile(r"[+-]?\d{1,3}")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
"""Ambiguous: a mark between thousands, or a decimal one with three digits."""
_DIGITS = r"(?:\d[\d.,]*|[.,]\d+)"
_SIGNED = re.compile(rf"[+-]?\s?([$€£¥₹])\s?[+-]?{_DIGITS}|[+-]?{_DIGITS}\s?([$€£¥₹%])")
_BRACKETS = re.compile(r"^\(([\d.,$€£¥₹\s]+)\)$")
"""A negative amount, as accountants write it."""
_SPACE = re.compile(r"(?<=\d)[\u00a0\u202f'\u2019](?=\d{3}(?!\d))")
"""A fixed space or an apostrophe between thousands."""
_NUMERAL = re.compile(r"[\d.,+\-eE$€£¥₹%()\s'\u2019]+")
_MOSTLY = 0.95
_LOOK = 2000
"""Fields that are looked at before all of a long column are."""


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


def as_plain_numbers(
    frame: Any, *, commas: bool = False, texts: Callable[[list[str]], Any] | None = None
) -> tuple[Any, list[str]]:
    """A data frame in which columns of written numbers are numbers, and notes that name them.

    The sign of a currency or of percent is left out if nearly all numbers of a column have it; amounts in brackets are
    negative. With `commas`, for tables that these do not delimit, or beside a sign, a comma may be the decimal one. If
    every such comma of the table could also separate thousands, the columns stay text. Beside decimal commas a point is
    one between thousands where it may be, as in 3.014: such columns were read as numbers, and `texts` reads them again.

    >>> import pandas as pd
    >>> frame, notes = as_plain_numbers(pd.DataFrame({"price": ["$1,200.50", "$900"], "b": ["x,1", "y"]}))
    >>> frame["price"].tolist(), notes
    ([1200.5, 900.0], ['marks between thousands in price', 'the sign $ left out in price'])
    """
    found = {name: one for name in frame.columns if (one := _written(frame[name], commas)) is not None}
    decimal = [name for name, one in found.items() if one.comma_is_decimal]
    doubt = _doubt(field for name in decimal for field in found[name].fields)
    known = {name: one for name, one in found.items() if not (doubt and one.comma_is_decimal)}
    pointed = [name for name in frame.columns if _in_thousandths(frame[name])] if decimal and not doubt else []
    if pointed and texts:
        known |= _grouped(texts(pointed))
    thousands = [name for name, one in known.items() if one.between_thousands]
    notes = [f"decimal commas in {_named(decimal)}"] if decimal and not doubt else []
    notes += [f"marks between thousands in {_named(thousands)}"] if thousands else []
    for sign in dict.fromkeys(one.sign for one in known.values() if one.sign):
        notes.append(f"the sign {sign} left out in {_named(name for name, one in known.items() if one.sign == sign)}")
    if doubt:
        do = "write numbers with a point, and without marks between thousands"
        notes.append(f"{_named(decimal)}: text, for {doubt}; {do}")
    return (frame.assign(**{name: one.numbers() for name, one in known.items()}) if known else frame), notes


@dataclass(frozen=True)
class Written:
    """A column of written numbers: its texts without their sign, the sign, the mark between thousands, and commas."""

    text: Any
    sign: str = ""
    between_thousands: str = ""
    comma_is_decimal: bool = False

    @property
    def fields(self) -> list[str]:
        """The texts that are there."""
        return list(self.text.dropna())

    def numbers(self) -> Any:
        """The column as numbers; as texts if a few words remain, which the encoder takes as missing."""
        import pandas as pd

        plain = self.text.map(self._plain, na_action="ignore")
        try:
            return pd.to_numeric(plain)
        except (ValueError, TypeError):
            return plain

    def _plain(self, field: str) -> str:
        if self.comma_is_decimal and (_COMMA.fullmatch(field) or _WHOLE.fullmatch(field)):
            return field.replace(".", "").replace(",", ".")
        grouped = _POINTED if self.between_thousands == "." else _THOUSANDS
        mark = self.between_thousands
        return field.replace(mark, "") if mark and grouped.fullmatch(field) else field


def _written(column: Any, commas: bool) -> Written | None:
    """The column as written numbers, if nearly all of it are such; None if it is numbers already, or words."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return None
    first = list(map(str, column.dropna().iloc[:_LOOK]))
    if not _mostly(first, _NUMERAL):
        return None
    spaced = any(map(_SPACE.search, first))
    text = column.map(lambda one: _SPACE.sub("", _BRACKETS.sub(r"-\1", str(one).strip())), na_action="ignore")
    sign = _sign(list(text.dropna()))
    if sign:
        text = text.map(lambda one: _without(sign, one), na_action="ignore")
    fields = list(text.dropna())
    # Where commas delimit, they are not expected to be decimal as well, but for percentages.
    if _mostly(fields, _THOUSANDS, _POINT) and _has_thousands(fields, not commas and sign != "%"):
        return Written(text, sign, ",")
    several = any(one.count(".") > 1 for one in fields) and not any("," in one for one in fields)
    if several and _mostly(fields, _POINTED, _SMALL):
        return Written(text, sign, ".")
    # A price has two decimals; what else has a sign, or none, may have three.
    points_between_thousands = sign not in ("", "%") and _mostly(fields, _POINTED, _SMALL)
    if points_between_thousands or ((commas or sign) and _mostly(fields, _COMMA, _WHOLE)):
        return Written(text, sign, comma_is_decimal=True)
    return Written(text, sign, " " if spaced else "") if (sign or spaced) and _mostly(fields, _POINT) else None


def _in_thousandths(column: Any) -> bool:
    """Whether a column of floating-point numbers may be one of whole numbers with points between thousands."""
    if column.dtype.kind != "f":
        return False
    thousandths = 1000 * column.dropna().to_numpy()
    return bool(np.all(np.abs(thousandths - np.round(thousandths)) <= 1e-6 * np.maximum(np.abs(thousandths), 1)))


def _grouped(texts: Any) -> dict[str, Written]:
    """The columns of whole numbers only, in groups of three digits if they have more, as some have."""
    found = {name: Written(texts[name].str.strip(), "", ".") for name in texts.columns}
    return {name: one for name, one in found.items() if _mostly(one.fields, _POINTED, _SMALL, least=1.0)}


def _has_thousands(fields: list[str], likely: bool) -> bool:
    """Whether commas separate thousands: one can only do so, or it is likely, and none can only be decimal."""
    marked = [one for one in fields if "," in one]
    known = list(filter(_THOUSANDS.fullmatch, marked))
    sure = any("." in one or one.count(",") > 1 for one in known)
    return sure or (likely and not any(_COMMA.fullmatch(one) for one in set(marked) - set(known)))


def _sign(fields: list[str]) -> str:
    """The sign that nearly all fields have; "" if there is none, or more than one."""
    if not _mostly(fields, _SIGNED):
        return ""
    signs = {one for field in fields if (found := _SIGNED.fullmatch(field)) for one in found.groups() if one}
    return signs.pop() if len(signs) == 1 else ""


def _without(sign: str, field: str) -> str:
    return "".join(field.replace(sign, "").split()) if _SIGNED.fullmatch(field) else field


def _mostly(
    fields: list[str], pattern: re.Pattern[str], other: re.Pattern[str] | None = None, least: float = _MOSTLY
) -> bool:
    """Whether nearly all fields, a share of `least`, match one of the patterns, and some the first."""

    def share(some: list[str]) -> float:
        return sum(bool(pattern.fullmatch(one) or (other and other.fullmatch(one))) for one in some) / max(len(some), 1)

    return share(fields[:_LOOK]) >= least and share(fields) >= least and any(map(pattern.fullmatch, fields))


def _doubt(fields: Iterable[str]) -> str:
    """The doubt about marks that may all be decimal or between thousands, in words."""
    marked = [one for one in fields if "," in one or "." in one]
    if not marked or not all(map(_GROUPED.fullmatch, marked)):
        return ""
    return f"{marked[0]!r} can be {marked[0].replace(',', '.')} or {re.sub('[.,]', '', marked[0])}"


def _named(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
