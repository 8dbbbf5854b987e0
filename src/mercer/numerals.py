"""Numbers as texts for people to read."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["counted", "digits", "of_metric", "ratio", "shown"]

RATIOS = ("R²", "accuracy", "balanced accuracy", "AUC", "area under the ROC curve", "95% coverage")
"""The scores without a unit, at most 1; other scores are errors in the unit of the target."""


def counted(count: int, noun: str, thousands: str = "") -> str:
    """A count with its noun in the singular or the plural, with `thousands` between groups of three digits.

    >>> counted(1, "row"), counted(0, "class"), counted(1500, "entry", ",")
    ('1 row', '0 classes', '1,500 entries')
    """
    if count != 1:
        noun = noun[:-1] + "ies" if noun.endswith("ry") else noun + ("es" if noun.endswith("s") else "s")
    return f"{count:,} {noun}".replace(",", thousands)


def digits(value: float, thousands: str = "") -> str:
    """Four significant digits, with `thousands` between groups of three.

    >>> digits(0.5), digits(1234.56), digits(123456.0), digits(1.23456e-7), digits(2e9), digits(9999.6)
    ('0.5000', '1235', '123500', '1.235e-07', '2.000e+09', '10000')
    >>> digits(32784.2, ","), digits(1.5e9, ","), digits(2e12, ",")
    ('32,780', '1,500,000,000', '2.000e+12')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.4g}")
    if 1e4 <= abs(rounded) < (1e12 if thousands else 1e9):
        return f"{rounded:,.0f}".replace(",", thousands)
    return f"{value:#.4g}".rstrip(".")


def shown(value: Any) -> str:
    """A value as in Python, a NumPy number without the name of its type.

    >>> import numpy as np
    >>> shown(np.float64(0.5)), shown("auto"), shown(np.int64(3))
    ('0.5', "'auto'", '3')
    """
    plain = getattr(value, "item", None) if getattr(value, "shape", None) == () else None
    return repr(value if plain is None else plain())


def ratio(value: float) -> str:
    """A score of at most 1, in four decimals: near 0, four significant digits would be noise.

    >>> ratio(0.82), ratio(1.0), ratio(-1.4e-5), ratio(-1234.56)
    ('0.8200', '1.0000', '0.0000', '-1235')
    """
    return f"{round(value, 4) + 0.0:.4f}" if abs(value) <= 1 else digits(value)


def of_metric(value: float, metric: str, thousands: str = "") -> str:
    """A value of a metric: a `ratio`, or four significant digits of an error in the unit of the target.

    >>> of_metric(0.044, "accuracy"), of_metric(0.044, "RMSE"), of_metric(32784.2, "MAE", ",")
    ('0.0440', '0.04400', '32,780')
    """
    return ratio(value) if metric in RATIOS else digits(value, thousands)
