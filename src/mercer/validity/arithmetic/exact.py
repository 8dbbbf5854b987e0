"""Formulas with exact rational numbers, as proofs use them, and limits on their size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from mercer.kernels import Circle, Columns, Expression, LengthScales
from mercer.kernels.symbolic.expression import LEAVES

__all__ = [
    "ZERO", "Size", "build", "exactly", "is_known", "leaves", "number", "power", "rational_power", "scaled", "sides",
    "size", "small_and_exact",
]  # fmt: skip

MOST_NODES, DEEPEST = 6000, 60
"""Most nodes and depth of a formula for the rules and the search; a text of 10,000 letters has fewer nodes."""

MOST_BITS = 4096
"""Most bits of a power of a rational number that is computed."""


def number(value: int | float | Fraction) -> Expression:
    """A rational number as a node."""
    return Expression("const", (), Fraction(value))


ZERO = number(0)


class Size(NamedTuple):
    """The size of a formula: nodes when written out (shared ones each time), different nodes, and depth."""

    written: int
    different: int
    depth: int

    @property
    def is_small(self) -> bool:
        """Whether the rules handle a formula of this size."""
        return self.written <= MOST_NODES and self.depth <= DEEPEST


def size(e: Expression) -> Size:
    """The size of a formula, in time proportional to its different nodes.

    >>> s = Expression("pairing", (), ("dot", ()))
    >>> t = s * s
    >>> size(t * t)
    Size(written=7, different=3, depth=3)
    """
    found = dict[Expression, tuple[int, int]]()
    for one in _each(e):
        parts = [found[arg] for arg in one.args]
        found[one] = 1 + sum(nodes for nodes, _ in parts), 1 + max((depth for _, depth in parts), default=0)
    return Size(found[e][0], len(found), found[e][1])


def leaves(e: Expression) -> list[Expression]:
    """The different pairings and parameters in a formula.

    >>> leaves(Expression("pairing", (), ("dot", ())) + 1.0)
    [dot]
    """
    return [one for one in _each(e) if one.op in LEAVES and one.op != "const"]


def _each(e: Expression) -> Iterator[Expression]:
    """Every different node once, after its arguments; not recursive, because formulas can be deep."""
    seen, waiting = set[Expression](), [e]
    while waiting:
        one = waiting[-1]
        rest = [arg for arg in one.args if arg not in seen]
        if rest:
            waiting += rest
            continue
        waiting.pop()
        if one not in seen:
            seen.add(one)
            yield one


def small_and_exact(e: Expression | None) -> Expression | None:
    """The formula with rational numbers; None without a formula, or if it is too large or not finite."""
    return exactly(e) if e is not None and size(e).is_small else None


def exactly(e: Expression) -> Expression | None:
    """The same formula with each float as an exact rational number; None for infinities and for parameters."""
    if e.op == "const":
        return number(e.value) if math.isfinite(e.value) else None
    if e.op in LEAVES:
        return None if e.op == "param" else e
    args = [exactly(arg) for arg in e.args]
    if e.op == "pow" and not math.isfinite(e.value):
        return None
    known = [arg for arg in args if arg is not None]
    if len(known) < len(args):
        return None
    return build(e.op, known, Fraction(e.value) if e.op == "pow" else None)


def build(op: str, args: Sequence[Expression], value: Fraction | None = None) -> Expression:
    """op(args), evaluated if the result is a rational number of at most `MOST_BITS` bits."""
    if op == "pow":
        assert value is not None
        return power(args[0], value)
    if op == "where" and args[0].op == "const":
        return args[1] if args[0].value else args[2]
    if op != "where" and all(arg.op == "const" for arg in args):
        found = _VALUES[op](*(arg.value for arg in args))
        if found is not None:
            return number(found)
    if op == "neg":
        return scaled(Fraction(-1), args[0])
    if op in ("mul", "div") and args[1].op == "const" and args[1].value:
        return scaled(args[1].value if op == "mul" else 1 / args[1].value, args[0])
    return Expression(op, tuple(args))


def power(e: Expression, exponent: Fraction) -> Expression:
    """e^exponent."""
    if exponent == 1:
        return e
    if e.op == "const" and (found := rational_power(e.value, exponent)) is not None:
        return number(found)
    return Expression("pow", (e,), exponent)


def rational_power(value: Fraction, exponent: Fraction) -> Fraction | None:
    """value^exponent if the exponent is an integer and the result has few bits; otherwise None.

    >>> rational_power(Fraction(2, 3), Fraction(-2)), rational_power(Fraction(2), Fraction(1, 2))
    (Fraction(9, 4), None)
    """
    if value == 1 or (value == 0 and exponent > 0):
        return value
    bits = value.numerator.bit_length() + value.denominator.bit_length()
    if exponent.denominator != 1 or value == 0 or bits * abs(exponent) > MOST_BITS:
        return None
    return Fraction(value**exponent.numerator)


def scaled(factor: Fraction, e: Expression) -> Expression:
    """factor · e."""
    if factor == 1:
        return e
    if e.op == "const":
        return number(factor * e.value)
    if e.op == "neg":
        return scaled(-factor, e.args[0])
    if e.op == "mul" and e.args[0].op == "const":
        return scaled(factor * e.args[0].value, e.args[1])
    return Expression("neg", (e,)) if factor == -1 else Expression("mul", (number(factor), e))


def sides(e: Expression) -> frozenset[str]:
    """Which rows a value depends on: "x", "z", both, or none."""
    own = {"pairing": {"x", "z"}, "self_x": {"x"}, "self_z": {"z"}}.get(e.op, set())
    return frozenset(own).union(*(sides(arg) for arg in e.args))


def is_known(view: object) -> bool:
    """Whether a view is one of mercer's, whose effect on the rows is known to the rules."""
    return type(view) in (Columns, LengthScales, Circle)


def _at(place: int, found: int) -> Callable[[Fraction], Fraction | None]:
    """A function that has one known rational value, `found` at `place`."""
    return lambda value: Fraction(found) if value == place else None


def _root(value: Fraction) -> Fraction | None:
    if value < 0:
        return None
    parts = [math.isqrt(one) for one in (value.numerator, value.denominator)]
    return Fraction(*parts) if [one**2 for one in parts] == [value.numerator, value.denominator] else None


_VALUES: dict[str, Callable[..., Fraction | None]] = {
    "neg": lambda a: -a, "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else None, "abs": abs, "minimum": min, "maximum": max, "sqrt": _root,
    "less": lambda a, b: Fraction(a < b), "less_equal": lambda a, b: Fraction(a <= b),
    "exp": _at(0, 1), "log": _at(1, 0), "tanh": _at(0, 0), "sin": _at(0, 0), "cos": _at(0, 1),
}  # fmt: skip
