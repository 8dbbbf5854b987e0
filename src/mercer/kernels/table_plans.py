"""Plans that encode a column of texts, or of dates, as columns of numbers for a kernel on tables."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.tables.columns import as_text, given_numbers
from mercer.tables.texts import ISO

__all__ = ["YEAR", "SeasonPlan", "TextPlan"]

Floats = NDArray[np.float64]
YEAR = 365.2425
WIDEST, LONGEST = 1 << 20, 1000
"""The largest width and the largest length of a `TextPlan`."""


@dataclass(frozen=True)
class TextPlan:
    """Text ↦ the counts of its substrings of `length` characters, hashed into `width` columns: spectrum features.

    Parameters
    ----------
    name : str
        The column of the data frame.
    width, length : int

    Examples
    --------
    >>> import pandas as pd
    >>> plan = TextPlan("title", width=8, length=2)
    >>> plan.encode(pd.Series(["ab", None])).sum(axis=1)  # " a", "ab", "b "; nothing
    array([3., 0.])
    """

    name: str
    width: int = 512
    length: int = 3

    def __post_init__(self) -> None:
        if not (_is_text(self.name) and _is_count(self.width, WIDEST) and _is_count(self.length, LONGEST)):
            given = f"name={self.name!r:.40}, width={self.width!r:.40}, length={self.length!r:.40}"
            raise InvalidInput(message("TextPlan", given, f"give integers from 1 to {WIDEST} and to {LONGEST}"))

    @property
    def features(self) -> list[str]:
        """The names of the columns of numbers."""
        return [f"{self.name}[{j}]" for j in range(self.width)]

    def encode(self, values: Any) -> Floats:
        """A row for each value; case is ignored, and a missing value becomes a row of zeros."""
        text, absent = as_text(values)
        out = np.zeros((len(text), self.width))
        for row, one, empty in zip(out, text, absent, strict=True):
            if not empty:
                padded = f" {one.lower()} "
                runs = [padded[i : i + self.length] for i in range(max(1, len(padded) - self.length + 1))]
                np.add.at(row, [zlib.crc32(run.encode()) % self.width for run in runs], 1.0)
        return out


@dataclass(frozen=True)
class SeasonPlan:
    """Dates ↦ the time of the year, from 0 to 1.

    Parameters
    ----------
    name : str
        The column of the data frame.
    fill : float
        Replaces missing dates, in days since 1970.
    form : str
        The format of dates that are texts.
    odd : tuple of str
        Texts that stand for missing dates.

    Examples
    --------
    >>> import pandas as pd
    >>> SeasonPlan("when").encode(pd.to_datetime(pd.Series(["1970-01-01", "1970-07-02"]))).round(2).tolist()
    [[0.0], [0.5]]
    """

    name: str
    fill: float = 0.0
    form: str = ""
    odd: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        texts = isinstance(self.odd, tuple) and _is_text(self.name, self.form, *self.odd)
        if not (texts and isinstance(self.fill, Real) and math.isfinite(self.fill)):
            given = f"name={self.name!r:.40}, fill={self.fill!r:.40}, form={self.form!r:.40}, odd={self.odd!r:.40}"
            do = "give texts, and a finite number to fill missing dates with"
            raise InvalidInput(message("SeasonPlan", given, do))

    @property
    def features(self) -> list[str]:
        """The name of the column of numbers."""
        return [f"{self.name}, part of the year"]

    def encode(self, values: Any) -> Floats:
        """A row for each value."""
        days = given_numbers(self.name, values, self.odd, self.form or ISO)  # dates without a form were no texts
        return np.remainder(np.where(np.isnan(days), self.fill, days) / YEAR, 1.0)[:, None]


def _is_text(*values: Any) -> bool:
    return all(isinstance(one, str) for one in values)


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(1 <= value <= most)
