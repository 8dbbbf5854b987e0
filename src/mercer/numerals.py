"""Numbers as texts for people to read."""

from __future__ import annotations

import math

__all__ = ["digits", "ratio"]


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


def ratio(value: float) -> str:
    """An R² or another score of at most 1, in four decimals: near 0, four significant digits would be noise.

    >>> ratio(0.82), ratio(-1.4e-5), ratio(-1234.56)
    ('0.8200', '0.0000', '-1235')
    """
    return f"{round(value, 4) + 0.0:.4f}" if abs(value) < 1 else digits(value)
