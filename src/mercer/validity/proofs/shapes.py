"""Recognises the shapes of formulas that theorems apply to, for the rows of a domain."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from mercer.kernels import Expression
from mercer.validity.arithmetic.exact import ZERO, build, scaled
from mercer.validity.arithmetic.ranges import Domain
from mercer.validity.proofs.forms import LinearForm, diagonal, key, linear, mirror, plus, substitute

__all__ = ["Cone", "cone", "equality", "is_difference", "is_distance", "of_sqdist", "overlap"]


def is_distance(leaf: Expression, domain: Domain) -> bool:
    """Whether a pairing is a CND distance on these rows that is 0 exactly if the rows are equal after its views."""
    if leaf.op != "pairing":
        return False
    kind, views = leaf.value
    return kind in ("sqdist", "l1", "mismatches") or (kind == "chi2" and domain.seen(views).is_non_negative)


def of_sqdist(e: Expression) -> bool:
    """Whether an expression depends on squared distances only."""
    if e.op in ("pairing", "self_x", "self_z"):
        return bool(e.op == "pairing" and e.value[0] == "sqdist")
    return all(map(of_sqdist, e.args))


def is_difference(e: Expression, domain: Domain) -> bool:
    """Whether e is a·|x − z| of rows that have one column after the views."""
    inner = term.expression if (term := linear(e).single) else e
    root = _under_root(inner)
    leaf, wanted = (inner, "l1") if root is None else (root, "sqdist")
    if leaf.op != "pairing":
        return False
    kind, views = leaf.value
    return kind == wanted and domain.seen(views).d == 1


def _under_root(e: Expression) -> Expression | None:
    """The argument of a square root; None for other expressions."""
    return e.args[0] if e.op == "sqrt" or (e.op == "pow" and e.value == Fraction(1, 2)) else None


def equality(e: Expression, domain: Domain) -> bool:
    """Whether e is where(x = z after the views, a, b) with numbers a ≥ b ≥ 0."""
    condition, a, b = e.args
    if condition.op != "less_equal" or condition.args[1] != ZERO or not is_distance(condition.args[0], domain):
        return False
    return bool(a.op == b.op == "const" and a.value >= b.value >= 0)


class Cone(NamedTuple):
    """(c − a‖x − z‖)₊ with a, c > 0, of rows with d columns after the views (None for any number)."""

    d: int | None


def cone(e: Expression, domain: Domain) -> Cone | None:
    """The cone that a maximum represents; None for other expressions."""
    if e.op != "maximum" or ZERO not in e.args:
        return None
    form = linear(e.args[1] if e.args[0] == ZERO else e.args[0])
    falls = len(form.terms) == 1 and form.constant > 0 and form.terms[0].coefficient < 0
    leaf = _under_root(form.terms[0].expression) if falls else None
    if leaf is None or leaf.op != "pairing" or leaf.value[0] != "sqdist":
        return None
    return Cone(domain.seen(leaf.value[1]).d)


def overlap(e: Expression) -> Expression | None:
    """k if e is where(0 < s, c·k/s, b) with s = α(k(x, x) + k(z, z)) − βk, 0 ≤ β < 2α, c > 0 and b ≥ 0.

    For a PSD k, 2|k| ≤ k(x, x) + k(z, z). So s is 0 only if k(x, x) = k(z, z) = 0, and otherwise positive.
    """
    condition, inside, other = e.args
    if condition.op != "less" or condition.args[0] != ZERO or other.op != "const" or other.value < 0:
        return None
    term, s = linear(inside).single, condition.args[1]
    if term is None or term.coefficient <= 0 or term.expression.op != "div":
        return None
    k, below = term.expression.args
    if below.op == "where" and below.args[0] == condition:  # the formula avoids a division by 0
        below = below.args[1]
    return k if key(below) == key(s) and _weighs(linear(_apart(s)), k) else None


def _weighs(s: LinearForm, k: Expression) -> bool:
    """Whether s = α(k(x, x) + k(z, z)) − βk with 0 ≤ β < 2α."""
    weights = {key(e): c for c, e in s.terms}
    beta = -weights.pop(key(k), Fraction(0))
    own = key(diagonal(k)), key(mirror(diagonal(k)))
    alpha = weights.get(own[0], Fraction(0))
    return s.constant == 0 and weights == dict.fromkeys(own, alpha) and 0 <= beta < 2 * alpha


def _apart(e: Expression) -> Expression:
    """Expand ‖x − z‖₁ = Σxᵢ + Σzᵢ − 2Σmin(xᵢ, zᵢ) and ‖x − z‖² = ‖x‖² + ‖z‖² − 2⟨x, z⟩."""

    def opened(leaf: Expression) -> Expression:
        kind = {"l1": "min_sum", "sqdist": "dot"}.get(leaf.value[0])
        if leaf.op != "pairing" or kind is None:
            return leaf
        x, z, both = (Expression(op, (), (kind, leaf.value[1])) for op in ("self_x", "self_z", "pairing"))
        return build("sub", [plus(x, z), scaled(Fraction(2), both)])

    return substitute(e, opened)
