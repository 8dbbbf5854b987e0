"""Evaluates the formula of a kernel at decimal points to any number of digits, with rigorous bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from mercer.kernels import Columns, Expression, LengthScales
from mercer.validity.arithmetic.exact import is_known, leaves, size
from mercer.validity.arithmetic.intervals import Arithmetic, Interval, Undecided, enclosing, exactly, pi

__all__ = ["Point", "can_evaluate", "kernel_value", "quadratic_form"]

Point: TypeAlias = tuple[Decimal, ...]
_Row: TypeAlias = tuple[Interval, ...]
ZERO = exactly(0)

DEEPEST = 200
"""Largest depth of a formula that is evaluated, because evaluation is recursive."""


def can_evaluate(e: Expression) -> bool:
    """Whether all views of the rows are known here, and the formula is not nested too deeply."""
    found = leaves(e)
    return all(leaf.op != "param" and all(map(is_known, leaf.value[1])) for leaf in found) and size(e).depth <= DEEPEST


def quadratic_form(e: Expression, points: Sequence[Point], z: Sequence[Decimal], digits: int) -> Interval:
    """An interval that contains Σ zᵢzⱼ k(xᵢ, xⱼ).

    >>> from mercer.kernels import Linear, trace
    >>> quadratic_form(trace(Linear()), [(Decimal(1),), (Decimal("0.5"),)], [Decimal(1), Decimal(-1)], 30)
    Interval(lo=Decimal('0.25'), hi=Decimal('0.25'))
    """
    a, total = Arithmetic(digits), ZERO
    for i, x in enumerate(points):
        for j, y in enumerate(points):
            weight = a.mul(exactly(z[i]), exactly(z[j]))
            total = a.add(total, a.mul(weight, kernel_value(e, x, y, digits)))
    return total


def kernel_value(e: Expression, x: Point, z: Point, digits: int) -> Interval:
    """An interval that contains k(x, z).

    >>> from mercer.kernels import Gaussian, trace
    >>> value = kernel_value(trace(Gaussian(gamma=1.0)), (Decimal(0),), (Decimal(1),), 20)
    >>> str(value.lo)[:18]
    '0.3678794411714423'
    """
    a, done = Arithmetic(digits), dict[Expression, Interval]()
    rows = {"x": tuple(map(exactly, x)), "z": tuple(map(exactly, z))}

    def value(node: Expression) -> Interval:
        if node not in done:
            done[node] = _apply(a, node, value, rows)
        return done[node]

    return value(e)


def _apply(a: Arithmetic, e: Expression, value: Callable[[Expression], Interval], rows: dict[str, _Row]) -> Interval:
    if e.op == "const":
        return enclosing(e.value)
    if e.op in ("pairing", "self_x", "self_z"):
        kind, views = e.value
        left, right = {"pairing": ("x", "z"), "self_x": ("x", "x"), "self_z": ("z", "z")}[e.op]
        return _PAIRINGS[kind](a, _seen(a, rows[left], views), _seen(a, rows[right], views))
    if e.op == "pow":
        return a.power(value(e.args[0]), e.value)
    if e.op == "where":
        # Only the selected branch is evaluated, because the other one may have no value.
        return value(e.args[1] if value(e.args[0]).lo > 0 else e.args[2])
    operation: Callable[..., Interval] = getattr(a, e.op)
    return operation(*map(value, e.args))


def _seen(a: Arithmetic, row: _Row, views: Sequence[Any]) -> _Row:
    for view in views:
        if isinstance(view, Columns):
            row = tuple(row[index] for index in view.indices)
        elif isinstance(view, LengthScales):
            row = tuple(a.div(x, enclosing(scale)) for x, scale in zip(row, view.scales, strict=True))
        else:
            angles = [a.div(a.mul(a.mul(pi(a.digits), exactly(2)), x), enclosing(view.period)) for x in row]
            row = (*map(a.cos, angles), *map(a.sin, angles))
    return row


def _sum(a: Arithmetic, parts: Any) -> Interval:
    total = ZERO
    for part in parts:
        total = a.add(total, part)
    return total


def _chi2(a: Arithmetic, x: Interval, z: Interval) -> Interval:
    if x == z == ZERO:
        return ZERO
    return a.div(a.square(a.sub(x, z)), a.add(x, z))


def _differs(x: Interval, z: Interval) -> Interval:
    if x == z and x.lo == x.hi:
        return ZERO
    if x.hi < z.lo or z.hi < x.lo:
        return exactly(1)
    raise Undecided("whether two rounded numbers are equal")


_PAIRINGS: dict[str, Callable[[Arithmetic, _Row, _Row], Interval]] = {
    "dot": lambda a, x, z: _sum(a, (a.mul(p, q) for p, q in zip(x, z, strict=True))),
    "sqdist": lambda a, x, z: _sum(a, (a.square(a.sub(p, q)) for p, q in zip(x, z, strict=True))),
    "l1": lambda a, x, z: _sum(a, (a.abs(a.sub(p, q)) for p, q in zip(x, z, strict=True))),
    "min_sum": lambda a, x, z: _sum(a, (a.minimum(p, q) for p, q in zip(x, z, strict=True))),
    "chi2": lambda a, x, z: _sum(a, (_chi2(a, p, q) for p, q in zip(x, z, strict=True))),
    "mismatches": lambda a, x, z: _sum(a, (_differs(p, q) for p, q in zip(x, z, strict=True))),
}
