"""Exact tracing, which combines the numbers of a formula only if that rounds nothing."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

__all__ = ["is_exact", "rounds_nothing"]

is_exact: ContextVar[bool] = ContextVar("mercer_exact", default=False)

_LARGEST_POWER = 64

_EXACT: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "abs": operator.abs, "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "div": lambda a, b: a / b if b else None, "minimum": min, "maximum": max, "less": operator.lt,
    "less_equal": operator.le, "power": lambda a, b: a**b if b.denominator == 1 and 0 < b <= _LARGEST_POWER else None,
}  # fmt: skip


def rounds_nothing(op: str, found: float, *values: float) -> bool:
    """Whether `found` is the exact result of an operation; always True unless a formula is traced exactly.

    >>> token = is_exact.set(True)
    >>> rounds_nothing("add", 0.75, 0.5, 0.25), rounds_nothing("add", 0.1 + 0.2, 0.1, 0.2)
    (True, False)
    >>> is_exact.reset(token)
    """
    if not is_exact.get():
        return True
    if not all(map(math.isfinite, (found, *values))):
        return True  # no proof uses a formula with such a number
    exactly = _EXACT.get(op)
    return exactly is not None and exactly(*map(Fraction, values)) == Fraction(found)
