"""Expressions as sums of products: the shape in which closure rules look at them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from mercer.kernels import Expression
from mercer.kernels.expression import LEAVES, constant, node
from mercer.validity.ranges import Domain, range_of

__all__ = ["Factor", "Linear", "Term", "diagonal", "key", "linear", "mirror", "product", "sides", "substitute"]


class Factor(NamedTuple):
    """base^power."""

    base: Expression
    power: float


class Term(NamedTuple):
    """coefficient · expression; the expression is no constant."""

    coefficient: float
    expression: Expression


class Linear(NamedTuple):
    """constant + Σ terms, each expression once."""

    constant: float
    terms: tuple[Term, ...]

    def expression(self) -> Expression:
        """The sum as an expression."""
        total = constant(self.constant)
        for coefficient, e in self.terms:
            total = total + coefficient * e
        return total


@lru_cache(maxsize=4096)
def linear(e: Expression) -> Linear:
    """The sum that an expression is, constants and equal terms gathered, products not multiplied out.

    >>> s = Expression("pairing", (), ("dot", ()))
    >>> linear(3 + 2 * s - s)
    Linear(constant=3.0, terms=(Term(coefficient=1.0, expression=dot),))
    """
    found: dict[str, Term] = {}
    total = 0.0
    for coefficient, part in _summands(e, 1.0):
        if part is None:
            total += coefficient
            continue
        name = key(part)
        before = found[name].coefficient if name in found else 0.0
        found[name] = Term(before + coefficient, part)
    return Linear(total, tuple(term for term in found.values() if term.coefficient != 0))


def _summands(e: Expression, scale: float) -> Iterable[tuple[float, Expression | None]]:
    if e.op == "const":
        yield scale * e.value, None
    elif e.op in ("add", "sub"):
        yield from _summands(e.args[0], scale)
        yield from _summands(e.args[1], scale if e.op == "add" else -scale)
    elif e.op == "neg":
        yield from _summands(e.args[0], -scale)
    elif e.op in ("mul", "div"):
        yield from _outer(e, scale)
    else:
        yield scale, e


def _outer(e: Expression, scale: float) -> Iterable[tuple[float, Expression | None]]:
    """A product or quotient with the constant factors of its two parts taken out."""
    (a, b), divides = e.args, e.op == "div"
    left, right = linear(a), linear(b)
    if not right.terms and not (divides and right.constant == 0):
        yield from _summands(a, scale / right.constant if divides else scale * right.constant)
        return
    if not left.terms and not divides:
        yield from _summands(b, scale * left.constant)
        return
    parts = []
    for arg, form in ((a, left), (b, right)):
        single = form.constant == 0 and len(form.terms) == 1
        factor, part = form.terms[0] if single else (1.0, arg)
        scale = scale / factor if divides and arg is b else scale * factor
        parts.append(part)
    yield scale, e if parts == [a, b] else node(e.op, *parts)


def product(e: Expression, domain: Domain) -> tuple[float, list[Factor]]:
    """The coefficient (NaN where it has no value) and the powers that an expression is the product of."""
    coefficient, factors = 1.0, []
    for base, power in _powers(e, 1.0, domain):
        single = linear(base)
        if not single.terms:
            coefficient *= _to_power(single.constant, power)
        elif single.constant == 0 and len(single.terms) == 1 and single.terms[0].expression is not base:
            (scale, inner) = single.terms[0]
            if scale < 0 and power != int(power):
                factors.append(Factor(base, power))
                continue
            inner_scale, inner_factors = product(node_power(inner, power), domain)
            coefficient *= _to_power(scale, power) * inner_scale
            factors += inner_factors
        else:
            factors.append(Factor(base, power))
    return coefficient, factors


def _to_power(value: float, power: float) -> float:
    """value^power, NaN where that is no real number."""
    try:
        result = value**power
    except (ZeroDivisionError, OverflowError):
        return math.nan
    return result if isinstance(result, float) else math.nan


def node_power(e: Expression, power: float) -> Expression:
    """e^power as an expression."""
    return e if power == 1 else e**power


def _powers(e: Expression, power: float, domain: Domain) -> list[Factor]:
    whole = power == int(power)
    if e.op in ("mul", "div") and (whole or all(range_of(arg, domain)[0] >= 0 for arg in e.args)):
        sign = 1 if e.op == "mul" else -1
        return _powers(e.args[0], power, domain) + _powers(e.args[1], sign * power, domain)
    if e.op == "pow" and (whole or range_of(e.args[0], domain)[0] >= 0):
        return _powers(e.args[0], power * e.value, domain)
    if e.op == "sqrt":  # of what is real, so the square root of it is no negative number
        return _powers(e.args[0], power / 2, domain)
    if e.op == "abs" and range_of(e.args[0], domain)[0] >= 0:
        return _powers(e.args[0], power, domain)
    if e.op == "neg" and whole:
        return [Factor(constant(-1.0), power), *_powers(e.args[0], power, domain)]
    return [Factor(e, power)]


@lru_cache(maxsize=4096)
def key(e: Expression) -> str:
    """A text that is the same for expressions which differ in the order of sums and products only.

    >>> s, t = (Expression("pairing", (), (kind, ())) for kind in ("dot", "l1"))
    >>> key(s * t + 1) == key(1 + t * s)
    True
    """
    if e.op in LEAVES:
        return repr(e)
    if e.op in ("add", "sub", "neg", "mul", "div") and not _is_atom(e):
        form = linear(e)
        parts = sorted((key(part), coefficient) for coefficient, part in form.terms)
        return "(" + "+".join([repr(form.constant), *(f"{c!r}{name}" for name, c in parts)]) + ")"
    if e.op == "mul":
        return "(" + "*".join(sorted(key(factor) for factor in _chain(e))) + ")"
    if e.op in ("minimum", "maximum"):
        return f"{e.op}({','.join(sorted(map(key, e.args)))})"
    return f"{e.op}[{e.value}]({','.join(map(key, e.args))})"


def _is_atom(e: Expression) -> bool:
    """Whether an expression is no sum of others and no multiple of another."""
    (coefficient, part), *more = _summands(e, 1.0)
    return not more and part is not None and coefficient == 1 and part == e


def _chain(e: Expression) -> list[Expression]:
    return [one for arg in e.args for one in _chain(arg)] if e.op == "mul" else [e]


def substitute(e: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """The expression with its leaves replaced."""
    if e.op == "const":
        return e
    if e.op in LEAVES:
        return leaf(e)
    args = [substitute(arg, leaf) for arg in e.args]
    return args[0] ** e.value if e.op == "pow" else node(e.op, *args)


def mirror(e: Expression) -> Expression:
    """The function with x and z exchanged: every pairing is symmetric, the self-pairings change places."""
    other = {"self_x": "self_z", "self_z": "self_x", "pairing": "pairing"}
    return substitute(e, lambda leaf: Expression(other[leaf.op], (), leaf.value))


def diagonal(e: Expression) -> Expression:
    """x ↦ k(x, x), in pairings of x with itself."""

    def of_itself(leaf: Expression) -> Expression:
        kind, _ = leaf.value
        return Expression("self_x", (), leaf.value) if kind in ("dot", "min_sum") else constant(0.0)

    return substitute(e, of_itself)


def sides(e: Expression) -> frozenset[str]:
    """Which rows a value depends on: "x", "z", both, or none."""
    own = {"pairing": {"x", "z"}, "self_x": {"x"}, "self_z": {"z"}}.get(e.op, set())
    return frozenset(own).union(*(sides(arg) for arg in e.args))
