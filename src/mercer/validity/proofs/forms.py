"""Exact formulas as sums of products, the form that the closure rules work on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from mercer.kernels import Expression
from mercer.kernels.symbolic.expression import LEAVES
from mercer.validity.arithmetic.exact import ZERO, build, is_known, number, power, rational_power, scaled
from mercer.validity.arithmetic.ranges import Domain, range_of

__all__ = ["Factor", "LinearForm", "Term", "diagonal", "key", "linear", "mirror", "plus", "product", "substitute"]


class Factor(NamedTuple):
    """base^power."""

    base: Expression
    power: Fraction

    def expression(self) -> Expression:
        """The factor as an expression, with a root or a quotient for the powers ½ and −1."""
        if self.power == Fraction(1, 2):
            return build("sqrt", [self.base])
        return build("div", [number(1), self.base]) if self.power == -1 else power(self.base, self.power)


class Term(NamedTuple):
    """coefficient · expression; the expression is not a rational number."""

    coefficient: Fraction
    expression: Expression


class LinearForm(NamedTuple):
    """constant + Σ terms, with distinct expressions."""

    constant: Fraction
    terms: tuple[Term, ...]

    def expression(self) -> Expression:
        """The sum as an expression."""
        total = number(self.constant)
        for coefficient, e in self.terms:
            total = plus(total, scaled(coefficient, e))
        return total

    @property
    def single(self) -> Term | None:
        """The term of a sum that consists of one term only; otherwise None."""
        return self.terms[0] if self.constant == 0 and len(self.terms) == 1 else None


def plus(a: Expression, b: Expression) -> Expression:
    """a + b."""
    if a == ZERO:
        return b
    if b == ZERO:
        return a
    return build("sub", [a, b.args[0]]) if b.op == "neg" else build("add", [a, b])


@lru_cache(maxsize=4096)
def linear(e: Expression) -> LinearForm:
    """An expression as a sum with constants and equal terms collected; products are not expanded.

    >>> from mercer.validity.arithmetic.exact import exactly
    >>> s = Expression("pairing", (), ("dot", ()))
    >>> linear(exactly(3 + 2 * s - s))
    LinearForm(constant=Fraction(3, 1), terms=(Term(coefficient=Fraction(1, 1), expression=dot),))
    """
    found: dict[str, Term] = {}
    total = Fraction(0)
    for coefficient, part in _summands(e, Fraction(1)):
        if part is None:
            total += coefficient
            continue
        name = key(part)
        before = found[name].coefficient if name in found else Fraction(0)
        found[name] = Term(before + coefficient, part)
    return LinearForm(total, tuple(term for term in found.values() if term.coefficient != 0))


def _summands(e: Expression, scale: Fraction) -> Iterable[tuple[Fraction, Expression | None]]:
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


def _outer(e: Expression, scale: Fraction) -> Iterable[tuple[Fraction, Expression | None]]:
    """A product or quotient whose constant factors are moved into the coefficient."""
    (a, b), divides = e.args, e.op == "div"
    left, right = linear(a), linear(b)
    if not right.terms and not (divides and right.constant == 0):
        yield from _summands(a, scale / right.constant if divides else scale * right.constant)
        return
    if not left.terms and not divides:
        yield from _summands(b, scale * left.constant)
        return
    above, below = left.single or Term(Fraction(1), a), right.single or Term(Fraction(1), b)
    scale = scale * above.coefficient
    scale = scale / below.coefficient if divides else scale * below.coefficient
    parts = (above.expression, below.expression)
    yield scale, e if parts == (a, b) else Expression(e.op, parts)


def product(e: Expression, domain: Domain) -> tuple[Fraction, list[Factor]]:
    """An expression as a rational coefficient and a product of powers.

    The product equals the expression wherever the expression has a value. It can have values at other points too.
    """
    coefficient, factors = Fraction(1), list[Factor]()
    for base, exponent in _powers(e, Fraction(1), domain):
        form = linear(base)
        scale, inner = form.single or Term(form.constant, base)
        has_scale = inner is not base and inner != base
        outside = rational_power(scale, exponent) if has_scale or not form.terms else None
        if has_scale and (outside is not None or scale > 0):
            if outside is None:  # an irrational power of a positive number
                factors.append(Factor(number(scale), exponent))
            more, others = product(power(inner, exponent), domain)
            coefficient *= more if outside is None else outside * more
            factors += others
        elif not form.terms and outside is not None:
            coefficient *= outside
        else:
            factors.append(Factor(base, exponent))
    return coefficient, factors


def _powers(e: Expression, exponent: Fraction, domain: Domain) -> list[Factor]:
    whole = exponent.denominator == 1
    if e.op in ("mul", "div") and (whole or all(range_of(arg, domain).lo >= 0 for arg in e.args)):
        sign = 1 if e.op == "mul" else -1
        return _powers(e.args[0], exponent, domain) + _powers(e.args[1], sign * exponent, domain)
    if e.op == "pow" and (whole or range_of(e.args[0], domain).lo >= 0):
        return _powers(e.args[0], exponent * e.value, domain)
    if e.op == "sqrt":  # its argument is ≥ 0 wherever the expression has a value
        return _powers(e.args[0], exponent / 2, domain)
    if e.op == "abs" and range_of(e.args[0], domain).lo >= 0:
        return _powers(e.args[0], exponent, domain)
    if e.op == "neg" and whole:
        return [Factor(number(-1), exponent), *_powers(e.args[0], exponent, domain)]
    return [Factor(e, exponent)]


@lru_cache(maxsize=4096)
def key(e: Expression) -> str:
    """A text that identifies a function: only equal functions have the same key, in any order of sums and products.

    >>> from mercer.validity.arithmetic.exact import exactly
    >>> s, t = (Expression("pairing", (), (kind, ())) for kind in ("dot", "l1"))
    >>> key(s * t + exactly(1 + s)) == key(exactly(s + 1) + t * s)
    True
    """
    if e.op in LEAVES:
        return repr(e) if e.op == "const" else _leaf(e)
    if e.op in ("add", "sub", "neg", "mul", "div") and not _is_atom(e):
        form = linear(e)
        parts = sorted((key(part), coefficient) for coefficient, part in form.terms)
        return "(" + "+".join([repr(form.constant), *(f"{c!r}{name}" for name, c in parts)]) + ")"
    if e.op == "mul":
        return "(" + "*".join(sorted(key(factor) for factor in _chain(e))) + ")"
    if e.op in ("minimum", "maximum"):
        return f"{e.op}({','.join(sorted(map(key, e.args)))})"
    return f"{e.op}[{e.value}]({','.join(map(key, e.args))})"


def _leaf(e: Expression) -> str:
    """The key of a pairing: its kind and views. Unknown views are identified by id, because their repr is arbitrary."""
    kind, views = e.value
    seen = "".join(f"[{view!r}]" if is_known(view) else f"[view {id(view)}]" for view in views)
    return f"{e.op} {kind}{seen}"


def _is_atom(e: Expression) -> bool:
    """Whether an expression is neither a sum nor a multiple of another expression."""
    (coefficient, part), *more = _summands(e, Fraction(1))
    return not more and part is not None and coefficient == 1 and part == e


def _chain(e: Expression) -> list[Expression]:
    return [one for arg in e.args for one in _chain(arg)] if e.op == "mul" else [e]


def substitute(e: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """The expression with its leaves replaced."""
    if e.op in LEAVES:
        return e if e.op == "const" else leaf(e)
    return build(e.op, [substitute(arg, leaf) for arg in e.args], e.value)


def mirror(e: Expression) -> Expression:
    """The function with x and z exchanged: pairings are symmetric, and self-pairings are swapped."""
    other = {"self_x": "self_z", "self_z": "self_x", "pairing": "pairing"}
    return substitute(e, lambda leaf: Expression(other[leaf.op], (), leaf.value))


def diagonal(e: Expression) -> Expression:
    """x ↦ k(x, x), in pairings of x with itself."""

    def of_itself(leaf: Expression) -> Expression:
        kind, _ = leaf.value
        return Expression("self_x", (), leaf.value) if kind in ("dot", "min_sum") else ZERO

    return substitute(e, of_itself)
