"""Between which numbers the values of an expression lie, on all rows of a domain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mercer.kernels import Expression

__all__ = ["Domain", "range_of"]

Range: TypeAlias = tuple[float, float]
EVERYTHING: Range = (-math.inf, math.inf)


@dataclass(frozen=True)
class Domain:
    """The rows that are asked about: all of ℝᵈ, or those without negative entries; d is None for every d."""

    non_negative: bool = False
    d: int | None = None

    def __str__(self) -> str:
        space = "non-negative rows" if self.non_negative else "real rows"
        return f"{space} of " + ("any number of columns" if self.d is None else f"{self.d} column{'s'[: self.d > 1]}")


def range_of(e: Expression, domain: Domain) -> Range:
    """Bounds on the values; not the tightest, always true.

    >>> from mercer.kernels import Gaussian, trace
    >>> range_of(1 + trace(Gaussian(gamma=0.5)), Domain())
    (1.0, 2.0)
    """
    if e.op == "const":
        return e.value, e.value
    if e.op in ("pairing", "self_x", "self_z"):
        kind, _ = e.value
        signed = kind == "dot" and e.op == "pairing"
        bounded = kind in ("sqdist", "l1", "mismatches") or not (signed or kind in ("min_sum", "chi2"))
        return (0.0, math.inf) if bounded or domain.non_negative else EVERYTHING
    return _OPS[e.op](e, *(range_of(arg, domain) for arg in e.args))


def _product(a: Range, b: Range) -> Range:
    corners = [0.0 if 0.0 in (p, q) else p * q for p in a for q in b]
    return min(corners), max(corners)


def _reciprocal(a: Range) -> Range:
    if a[0] > 0 or a[1] < 0:
        return 1 / a[1], 1 / a[0]
    return (0.0, math.inf) if a[0] == 0 else EVERYTHING


def _power(base: Range, p: float) -> Range:
    if p < 0:
        return _reciprocal(_power(base, -p))
    whole = p == int(p)
    if base[0] < 0 and whole and p % 2 == 0:
        return 0.0, max(_raise(-base[0], p), _raise(abs(base[1]), p))
    if base[0] < 0 and not whole:
        return 0.0, _raise(max(base[1], 0.0), p)
    return math.copysign(_raise(abs(base[0]), p), base[0]), math.copysign(_raise(abs(base[1]), p), base[1])


def _raise(value: float, p: float) -> float:
    try:
        return value**p
    except OverflowError:
        return math.inf


def _exp(value: float) -> float:
    return math.inf if value > 700 else math.exp(value)


def _log(value: float) -> float:
    return -math.inf if value <= 0 else math.log(value)


def _monotone(function: Callable[[float], float]) -> Callable[[Expression, Range], Range]:
    return lambda e, a: (function(a[0]), function(a[1]))


def _absolute(e: Expression, a: Range) -> Range:
    return (0.0 if a[0] < 0 < a[1] else min(abs(a[0]), abs(a[1]))), max(abs(a[0]), abs(a[1]))


_OPS: dict[str, Callable[..., Range]] = {
    "neg": lambda e, a: (-a[1], -a[0]),
    "add": lambda e, a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda e, a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda e, a, b: _product(a, b),
    "div": lambda e, a, b: _product(a, _reciprocal(b)),
    "pow": lambda e, a: _power(a, e.value),
    "exp": _monotone(_exp),
    "log": _monotone(_log),
    "sqrt": _monotone(lambda value: math.sqrt(max(value, 0.0))),
    "tanh": _monotone(math.tanh),
    "sin": lambda e, a: (-1.0, 1.0),
    "cos": lambda e, a: (-1.0, 1.0),
    "abs": _absolute,
    "minimum": lambda e, a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda e, a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "less": lambda e, a, b: (0.0, 1.0),
    "less_equal": lambda e, a, b: (0.0, 1.0),
    "where": lambda e, condition, a, b: (min(a[0], b[0]), max(a[1], b[1])),
}
