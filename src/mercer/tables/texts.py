"""Recognises the texts of a column: sequences of letters, dates, percentages, or prose."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ISO", "PERCENT", "date_form", "in_form", "is_prose", "letters_of", "near_names", "percent_form", "share"]

MOSTLY = 0.95
LOOK = 2000
"""Most texts of a long column that are examined."""
LONGEST_DATE = 40
"""Characters: a longer text is no date, and patterns of dates would search it again from each of its places."""
LONGEST_NAME = 200
"""Characters of names that are compared with others, which costs the product of their lengths."""
ISO = "ISO8601"
DATES = (
    ISO, "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y%m%d", "%Y.%m.%d",
    "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%y", "%d.%m.%y %H:%M",
    "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%b %Y", "%B %Y",
    "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S",
    "%d-%m-%Y", "%m-%d-%Y", "%d/%m/%y", "%m/%d/%y",
)  # fmt: skip
"""Formats of `pandas.to_datetime`. One of %d/%m and %m/%d is used only if the other does not fit."""
PERCENT = "%"
_PERCENT = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)\s?%")
_DATE = re.compile(rf"(?=.*\d)[\w\s:.,/+\-]{{6,{LONGEST_DATE}}}")
_NUCLEOTIDES = re.compile(r"[ACGTUN\-.]+")
_LETTERS = re.compile(r"[A-Z*\-.]+")


def letters_of(texts: NDArray[Any]) -> str:
    """Whether the texts are sequences: "nucleotides", "amino acids", or "" if they are neither.

    >>> letters_of(np.array(["ACGTACGT", "ttgACC"])), letters_of(np.array(["MKVLAW", "GFDE"]))
    ('nucleotides', 'amino acids')
    >>> letters_of(np.array(["kernel", "matrix"]))
    ''
    """
    upper = [text.upper() for text in texts[:LOOK]]
    if not upper:
        return ""
    length = float(np.median([len(text) for text in upper]))
    if length >= 6 and share(_NUCLEOTIDES, upper) >= MOSTLY:  # in any case, because lower case marks repeats
        return "nucleotides"
    looked = [text for text in texts[:LOOK] if text.isupper()]
    if length < 5 or len(looked) < MOSTLY * len(upper):
        return ""
    usual = [text for text in looked if _LETTERS.fullmatch(text)]
    letters = "".join(usual)
    proper = sum(letters.count(letter) for letter in "ACDEFGHIKLMNPQRSTVWY")
    if len(usual) >= MOSTLY * len(looked) and proper >= 0.98 * len(letters):
        return "amino acids"
    return ""


def is_prose(texts: NDArray[Any], distinct: int) -> bool:
    """Whether the texts are prose instead of categories: nearly all distinct, or of several words each.

    >>> is_prose(np.array(["a b c d", "b c d e", "a b c d"]), 2)
    True
    """
    words = float(np.mean([text.count(" ") + 1 for text in texts[:LOOK]]))
    return distinct > 0.9 * len(texts) or (words >= 4 and distinct > 0.3 * len(texts))


def percent_form(texts: NDArray[Any]) -> str:
    """PERCENT if the texts are percentages, else "".

    >>> percent_form(np.array(["12.5%", "3 %"]))
    '%'
    """
    return PERCENT if len(texts) and share(_PERCENT, texts[:LOOK].tolist()) >= MOSTLY else ""


def date_form(texts: NDArray[Any]) -> tuple[str, str]:
    """The form of the texts if they are dates, or ""; and the ambiguity, if they are dates in two forms.

    >>> date_form(np.array(["2024-03-01", "2024-12-24"])), date_form(np.array(["24.12.2024", "1.3.2024"]))
    (('ISO8601', ''), ('%d.%m.%Y', ''))
    >>> date_form(np.array(["3/4/2024", "12/24/2024"]))
    ('%m/%d/%Y', '')
    >>> date_form(np.array(["3/4/2024", "12/11/2024"]))
    ('', "'3/4/2024' can be 2024-04-03 or 2024-03-04")
    """
    texts = _of_dates(texts)
    some = texts[:LOOK]
    if not len(some) or share(_DATE, some.tolist()) < MOSTLY or not _reasonable(some):
        return "", ""
    fits = [form for form in DATES if _share_of_dates(some[:20], form) >= MOSTLY]
    fits = [form for form in fits if _share_of_dates(texts, form) >= MOSTLY]
    if not fits:
        return "", ""
    swapped = fits[0].replace("%d", "%x").replace("%m", "%d").replace("%x", "%m")
    if swapped != fits[0] and swapped in fits:
        both = [in_form(texts, form) for form in (fits[0], swapped)]
        unlike = np.flatnonzero((both[0] != both[1]) & ~np.isnat(both[0]) & ~np.isnat(both[1]))
        if not len(unlike):  # each day has the number of its month
            return fits[0], ""
        shown = [str(one[unlike[0]])[:10] for one in both]
        return "", f"{str(texts[unlike[0]])!r} can be {shown[0]} or {shown[1]}"
    return fits[0], ""


def in_form(texts: NDArray[Any], form: str) -> NDArray[Any]:
    """The texts as numbers (percentages) or dates (`datetime64`); texts in another form are missing.

    >>> in_form(np.array(["12,5%", "x"], dtype=object), "%").tolist()
    [12.5, nan]
    """
    import pandas as pd

    if form == PERCENT:
        plain = [text[:-1].strip().replace(",", ".") if _PERCENT.fullmatch(text) else "nan" for text in texts]
        return np.array(plain, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pd.to_datetime(pd.Series(_of_dates(texts), dtype=object), format=form, errors="coerce", utc=True)
    return np.asarray(found.dt.tz_localize(None).to_numpy("datetime64[us]"))


def share(pattern: re.Pattern[str], texts: Iterable[str]) -> float:
    """The share of texts that the pattern matches completely."""
    hits = [pattern.fullmatch(text) is not None for text in texts]
    return sum(hits) / len(hits)


def near_names(name: str, names: Iterable[str], n: int = 1) -> list[str]:
    """Up to n of the names that are spelled nearly as this one; long names are near to none.

    >>> near_names("pirce", ["price", "size"]), near_names("x" * 300, ["x" * 299])
    (['price'], [])
    """
    short = [one for one in names if len(one) <= LONGEST_NAME]
    return get_close_matches(name, short, n=n) if len(name) <= LONGEST_NAME else []


def _of_dates(texts: Iterable[Any]) -> NDArray[Any]:
    """The texts, of which those that are too long for dates are empty."""
    return np.array([one if len(one) <= LONGEST_DATE else "" for one in texts], dtype=object)


def _share_of_dates(texts: NDArray[Any], form: str) -> float:
    return float(np.mean(~np.isnat(in_form(texts, form))))


def _reasonable(texts: NDArray[Any]) -> bool:
    """Whether the texts look like dates: two separators, the name of a month, or digits such as 20240301."""
    dated = re.compile(
        r".*\d[-/.\s]\s?\w{1,9}[-/.,\s]\s?\d.*|.*[A-Za-z]{3}.*\d{4}|.*\d{4}-\d\d.*|(19|20)\d\d[01]\d[0-3]\d"
    )
    return share(dated, texts.tolist()) >= MOSTLY
