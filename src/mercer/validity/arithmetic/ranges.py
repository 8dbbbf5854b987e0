"""Bounds on the values of an exact formula over all rows of a domain, rounded outwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from mercer.kernels import Circle, Columns, Expression, LengthScales
from mercer.numerals import counted
from mercer.validity.arithmetic.exact import is_known
from mercer.validity.arithmetic.intervals import Arithmetic, Interval, exactly

__all__ = ["Domain", "range_of"]

INFINITY = Decimal("Infinity")
EVERYTHING = Interval(-INFINITY, INFINITY)
_A = Arithmetic(30)
_EXACT_POWER = 64
"""Powers with larger exponents are only bounded by 1, from above or below."""


@dataclass(frozen=True)
class Domain:
    """The rows that a proof or a search is about.

    Attributes
    ----------
    non_negative : bool or frozenset of int
        Whether no entry is negative, or the columns without negative entries.
    d : int or None
        The number of columns; None for any number.
    """

    non_negative: bool | frozenset[int] = False
    d: int | None = None

    @property
    def is_non_negative(self) -> bool:
        """Whether no entry of any column is negative."""
        if isinstance(self.non_negative, bool):
            return self.non_negative
        return self.d is not None and self.non_negative.issuperset(range(self.d))

    def holds(self, column: int) -> bool:
        """Whether no entry of a column is negative."""
        return self.non_negative if isinstance(self.non_negative, bool) else column in self.non_negative

    def seen(self, views: Sequence[Any]) -> Domain:
        """The domain of the rows after these views.

        >>> Domain(True, 3).seen([Columns((2,))])
        Domain(non_negative=True, d=1)
        >>> Domain(True, 1).seen([Circle(2.0)])
        Domain(non_negative=False, d=2)
        """
        domain = self
        for view in views:
            domain = domain._through(view)
        return domain

    def _through(self, view: Any) -> Domain:
        if not is_known(view):
            return Domain()
        if isinstance(view, Circle):  # a cosine and a sine for each column
            return Domain(False, None if self.d is None else 2 * self.d)
        if isinstance(view, Columns):
            kept = [self.holds(column) for column in view.indices]
        else:
            assert isinstance(view, LengthScales)
            kept = [self.holds(i) and 0 < scale < math.inf for i, scale in enumerate(view.scales)]
        found = True if all(kept) else frozenset(i for i, holds in enumerate(kept) if holds)
        return Domain(found or False, len(kept))

    def __str__(self) -> str:
        columns = "any number of columns" if self.d is None else counted(self.d, "column")
        if isinstance(self.non_negative, bool):
            return f"{'non-negative' if self.non_negative else 'real'} rows of {columns}"
        which = ", ".join(map(str, sorted(self.non_negative)))
        return f"rows of {columns} without negative entries in column{'s'[: len(self.non_negative) != 1]} {which}"


@lru_cache(maxsize=4096)
def range_of(e: Expression, domain: Domain) -> Interval:
    """Bounds on the values of a formula where it has any; always true, but not always the tightest.

    >>> from mercer.kernels import Gaussian, trace
    >>> from mercer.validity.arithmetic.exact import exactly
    >>> tuple(map(float, range_of(exactly(1 + trace(Gaussian(gamma=0.5))), Domain())))
    (1.0, 2.0)
    """
    if e.op == "const":
        return _rational(e.value)
    if e.op in ("pairing", "self_x", "self_z"):
        return _of_leaf(e, domain)
    parts = [range_of(arg, domain) for arg in e.args]
    try:
        found = _OPS[e.op](e, *parts)
    except ArithmeticError:  # beyond the largest decimal
        return EVERYTHING
    return found if found.lo <= found.hi else EVERYTHING


def _of_leaf(e: Expression, domain: Domain) -> Interval:
    kind, views = e.value
    is_norm = kind == "dot" and e.op != "pairing"
    bounded = kind in ("sqdist", "l1", "mismatches") or is_norm
    return Interval(Decimal(0), INFINITY) if bounded or domain.seen(views).is_non_negative else EVERYTHING


def _rational(value: Fraction) -> Interval:
    return _A.div(exactly(value.numerator), exactly(value.denominator))


def _product(a: Interval, b: Interval) -> Interval:
    corners = [Interval(Decimal(0), Decimal(0)) if 0 in (p, q) else _one_product(p, q) for p in a for q in b]
    return Interval(min(one.lo for one in corners), max(one.hi for one in corners))


def _one_product(p: Decimal, q: Decimal) -> Interval:
    return exactly(p * q) if p.is_infinite() or q.is_infinite() else _A.mul(exactly(p), exactly(q))


def _reciprocal(a: Interval) -> Interval:
    if a.hi <= 0 and a.lo < 0:
        return _A.neg(_reciprocal(_A.neg(a)))
    if a.lo < 0 or a.hi <= 0:
        return EVERYTHING
    low = Decimal(0) if a.hi == INFINITY else _A.div(exactly(1), exactly(a.hi)).lo
    return Interval(low, INFINITY if a.lo == 0 else _A.div(exactly(1), exactly(a.lo)).hi)


def _power(a: Interval, p: Fraction) -> Interval:
    if p < 0:
        return _reciprocal(_power(a, -p))
    whole = p.denominator == 1
    if not whole:  # a negative base has no real power
        a = Interval(max(a.lo, Decimal(0)), max(a.hi, Decimal(0)))
    elif p % 2 == 0:
        a = _absolute(a)
    low, high = (_raised(end.copy_abs(), p) for end in a)
    return Interval(_A.neg(low).lo if a.lo < 0 else low.lo, _A.neg(high).hi if a.hi < 0 else high.hi)


def _raised(value: Decimal, p: Fraction) -> Interval:
    """value^p for a value ≥ 0."""
    if value in (0, 1) or value == INFINITY:
        return exactly(value)
    beyond = Interval(Decimal(0), Decimal(1)) if value < 1 else Interval(Decimal(1), INFINITY)
    if p > _EXACT_POWER:
        return beyond
    try:
        if p.denominator == 1:
            return _A.power(exactly(value), float(p))
        return _A.exp(_A.mul(_rational(p), _A.log(exactly(value))))
    except ArithmeticError:
        return beyond


def _increasing(function: Callable[[Interval], Interval], least: Decimal, most: Decimal) -> Callable[..., Interval]:
    """The bounds of an increasing function with values from `least` at −∞ to `most` at ∞."""

    def end(value: Decimal) -> Interval:
        if value.is_infinite():
            return exactly(most if value > 0 else least)
        try:
            return function(exactly(value))
        except ArithmeticError:
            return Interval(least, most)

    def bounds(e: Expression, a: Interval) -> Interval:
        low, high = end(a.lo).lo, end(a.hi).hi
        return Interval(-INFINITY if low == INFINITY else low, INFINITY if high == -INFINITY else high)

    return bounds


def _log(e: Expression, a: Interval) -> Interval:
    low = -INFINITY if a.lo <= 0 else _A.log(exactly(a.lo)).lo
    return Interval(low, INFINITY if a.hi <= 0 or a.hi == INFINITY else _A.log(exactly(a.hi)).hi)


def _sqrt(e: Expression, a: Interval) -> Interval:
    return _power(a, Fraction(1, 2))


def _absolute(a: Interval) -> Interval:
    low, high = sorted((a.lo.copy_abs(), a.hi.copy_abs()))
    return Interval(Decimal(0) if a.lo < 0 < a.hi else low, high)


_OPS: dict[str, Callable[..., Interval]] = {
    "neg": lambda e, a: _A.neg(a),
    "add": lambda e, a, b: _A.add(a, b),
    "sub": lambda e, a, b: _A.sub(a, b),
    "mul": lambda e, a, b: _product(a, b),
    "div": lambda e, a, b: _product(a, _reciprocal(b)),
    "pow": lambda e, a: _power(a, e.value),
    "exp": _increasing(_A.exp, Decimal(0), INFINITY),
    "log": _log,
    "sqrt": _sqrt,
    "tanh": _increasing(_A.tanh, Decimal(-1), Decimal(1)),
    "sin": lambda e, a: Interval(Decimal(-1), Decimal(1)),
    "cos": lambda e, a: Interval(Decimal(-1), Decimal(1)),
    "abs": lambda e, a: _absolute(a),
    "minimum": lambda e, a, b: _A.minimum(a, b),
    "maximum": lambda e, a, b: _A.maximum(a, b),
    "less": lambda e, a, b: Interval(Decimal(0), Decimal(1)),
    "less_equal": lambda e, a, b: Interval(Decimal(0), Decimal(1)),
    "where": lambda e, condition, a, b: Interval(min(a.lo, b.lo), max(a.hi, b.hi)),
}
