"""Numbers as people write them: with decimal commas, commas between thousands, signs of a currency or of percent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message

__all__ = ["as_plain_numbers", "is_number", "unlike_signs"]

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
_NUMERAL = re.compile(r"[\d.,+\-\u2212eE$€£¥₹%()\s'\u2019]+")
_DECIMAL = re.compile(r"[+-]?\d*,(\d{1,2}|\d{4,})")
"""Of which the comma cannot separate thousands."""
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
    frame: Any,
    *,
    commas: bool = False,
    texts: Callable[[list[str]], Any] | None = None,
    like: Mapping[str, str] = MappingProxyType({}),
    who: str = "table",
) -> tuple[Any, list[str], dict[str, str]]:
    """A data frame in which columns of written numbers are numbers, notes that name them, and the marks of each.

    The sign of a currency or of percent is left out if nearly all numbers of a column have it; amounts in brackets are
    negative. With `commas`, for tables that these do not delimit, beside a sign, or where it cannot separate thousands,
    a comma may be the decimal one. If every such comma of the table could also separate thousands, the columns stay
    text. Beside decimal commas a point is one between thousands where it may be, as in 3.014: such columns were read as
    numbers, and `texts` reads them again.

    `like` are the marks that columns had in another table, "text" for those that are not read as numbers. They decide
    where a table does not, and a column that contradicts them raises InvalidInput.

    >>> import pandas as pd
    >>> frame, notes, marks = as_plain_numbers(pd.DataFrame({"price": ["$1,200.50", "$900"], "b": ["x,1", "y"]}))
    >>> frame["price"].tolist(), notes, marks
    ([1200.5, 900.0], ['marks between thousands in price', 'the sign $ left out in price'], {'price': '1,000$'})
    """
    named = [name for name in frame.columns if commas and like.get(name, "")[:1] in ("0", "1")]
    again = _again(texts(named), like, who) if named and texts else {}
    others = [name for name in frame.columns if name not in again and like.get(name) != "text"]
    found = {name: one for name in others if (one := _written(frame[name], commas)) is not None}
    decimal = [name for name, one in found.items() if one.comma_is_decimal]
    doubt = _doubt(field for name in decimal for field in found[name].fields)
    known = again | {name: one for name, one in found.items() if not (doubt and one.comma_is_decimal)}
    pointed = [name for name in others if _in_thousandths(frame[name])] if decimal and not doubt else []
    if pointed and texts:
        known |= _grouped(texts(pointed))
    commaed = [name for name, one in again.items() if one.comma_is_decimal and one.has(",")]
    commaed += [] if doubt else decimal
    thousands = [
        name
        for name, one in known.items()
        if one.between_thousands and (name in found or one.has(one.between_thousands))
    ]
    notes = [f"decimal commas in {_named(commaed)}"] if commaed else []
    notes += [f"marks between thousands in {_named(thousands)}"] if thousands else []
    for sign in dict.fromkeys(one.sign for one in known.values() if one.sign):
        notes.append(f"the sign {sign} left out in {_named(name for name, one in known.items() if one.sign == sign)}")
    if doubt:
        do = "write numbers with a point, and without marks between thousands"
        notes.append(f"{_named(decimal)}: text, for {doubt}; {do}")
    marks = {name: one.mark for name, one in known.items()}
    notes += unlike_signs(frame, marks, like)
    return (frame.assign(**{name: one.numbers() for name, one in known.items()}) if known else frame), notes, marks


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

    def has(self, mark: str) -> bool:
        """Whether some text has the mark."""
        return any(mark in field for field in self.fields)

    @property
    def mark(self) -> str:
        """How they are written: "0,0" with a decimal comma, "1.000" with points between thousands; and the sign."""
        thousand = f"1{self.between_thousands}000" if self.between_thousands else ""
        return ("0,0" if self.comma_is_decimal else thousand) + self.sign

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
    spaced, odd = any(map(_SPACE.search, first)), any("\u2212" in one or one != one.strip() for one in first)
    text = column.map(lambda one: _bare(one, ""), na_action="ignore")
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
    likely = commas or sign or any(map(_DECIMAL.fullmatch, fields))  # in quotes where commas delimit
    if points_between_thousands or (likely and _mostly(fields, _COMMA, _WHOLE)):
        return Written(text, sign, comma_is_decimal=True)
    return Written(text, sign, " " if spaced else "") if (sign or spaced or odd) and _mostly(fields, _POINT) else None


def _again(texts: Any, like: Mapping[str, str], who: str) -> dict[str, Written]:
    """The columns that are written as in another table, by their texts; those without its marks are left out."""
    found = {}
    for name in texts.columns:
        mark = like[name]
        sign = _sign_of(mark)
        text = texts[name].map(lambda one, sign=sign: _bare(one, sign), na_action="ignore")
        fields = list(text.dropna())
        if mark.startswith("0,0") and _mostly(fields, _COMMA, _WHOLE, some=False):
            found[name] = Written(text, sign, comma_is_decimal=True)
        elif mark.startswith("1.000"):
            odd = [one for one in fields if "." in one and not _POINTED.fullmatch(one) and _POINT.fullmatch(one)]
            if odd:
                given = f"{odd[0]!r} in the column {name!r}, which had points between thousands at the fit"
                raise InvalidInput(message(who, given, "give its numbers as there, or without points"))
            found[name] = Written(text, sign, ".")
        elif mark.startswith("1,000") and _mostly(fields, _THOUSANDS, _POINT, some=False):
            found[name] = Written(text, sign, ",")
    return found


def _bare(field: Any, sign: str) -> str:
    """A field without spaces around it, marks of space between thousands, and the sign."""
    text = _SPACE.sub("", _BRACKETS.sub(r"-\1", str(field).strip().replace("\u2212", "-")))
    return _without(sign, text) if sign else text


def unlike_signs(frame: Any, marks: Mapping[str, str], like: Mapping[str, str]) -> list[str]:
    """Notes on columns with another sign than in another table, `like`, or where percent has come or gone."""
    numbers = [name for name in frame.columns if like.get(name, "text") != "text"]
    signs = {name: (_sign_of(like[name]), _sign_of(marks.get(name, ""))) for name in numbers}
    gone = [name for name, (before, now) in signs.items() if before == "%" and not now]
    come = [name for name, (before, now) in signs.items() if now == "%" and not before]
    notes = [f"{_named(gone)}: without the sign % that the fit saw, so that 12 stands for 12 %"] if gone else []
    notes += [f"{_named(come)}: with the sign %, which the fit did not see, so that 12 % stands for 12"] if come else []
    others = [(name, *both) for name, both in signs.items() if all(both) and both[0] != both[1]]
    return notes + [f"{name}: the sign {now}, where the fit saw {before}" for name, before, now in others]


def _sign_of(mark: str) -> str:
    """The sign in the mark of a column.

    >>> _sign_of("1,000$"), _sign_of("%"), _sign_of("0,0")
    ('$', '%', '')
    """
    return mark.lstrip("0123456789., '\u00a0\u202f\u2019")


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
    fields: list[str],
    pattern: re.Pattern[str],
    other: re.Pattern[str] | None = None,
    least: float = _MOSTLY,
    *,
    some: bool = True,
) -> bool:
    """Whether nearly all fields, a share of `least`, match one of the patterns, and some the first."""

    def share(part: list[str]) -> float:
        return sum(bool(pattern.fullmatch(one) or (other and other.fullmatch(one))) for one in part) / max(len(part), 1)

    alike = share(fields[:_LOOK]) >= least and share(fields) >= least
    return alike and (not some or any(map(pattern.fullmatch, fields)))


def _doubt(fields: Iterable[str]) -> str:
    """The doubt about marks that may all be decimal or between thousands, in words."""
    marked = [one for one in fields if "," in one or "." in one]
    if not marked or not all(map(_GROUPED.fullmatch, marked)):
        return ""
    return f"{marked[0]!r} can be {marked[0].replace(',', '.')} or {re.sub('[.,]', '', marked[0])}"


def _named(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
