"""k(x, z) in exact numbers: fractions where a formula is rational, intervals of mpmath elsewhere."""

from __future__ import annotations

from fractions import Fraction

from mpmath import iv

from mercer.kernels import Circle, Columns, LengthScales

DIGITS = 50


class NoValue(ArithmeticError):
    """The formula has no value there, or these digits do not tell."""


def interval(value):
    return value if not isinstance(value, Fraction) else iv.mpf(value.numerator) / value.denominator


def low_high(value):
    return (value, value) if isinstance(value, Fraction) else (value.a, value.b)


def less(a, b, or_equal=False):
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return Fraction(a <= b if or_equal else a < b)
    a, b = interval(a), interval(b)
    if a.b < b.a or (or_equal and a.b <= b.a):
        return Fraction(1)
    if a.a > b.b or (not or_equal and a.a >= b.b):
        return Fraction(0)
    raise NoValue


def largest(a, b):
    return a if less(b, a, True) else b


def power(a, p):
    if p.denominator == 1 and isinstance(a, Fraction):
        if a == 0 and p < 0:
            raise NoValue
        return a**p.numerator
    if isinstance(a, Fraction) and a == 0 and p > 0:
        return Fraction(0)
    a = interval(a)
    if p.denominator == 1:
        if p < 0 and a.a <= 0 <= a.b:
            raise NoValue
        return a**p.numerator
    if a.a <= 0:
        raise NoValue
    return iv.exp(interval(p) * iv.log(a))


def divided(a, b):
    low, high = low_high(b)
    if low <= 0 <= high:
        raise NoValue
    return a / b if isinstance(a, Fraction) and isinstance(b, Fraction) else interval(a) / interval(b)


def joined(operation):
    def of(a, b):
        both = isinstance(a, Fraction) and isinstance(b, Fraction)
        return operation(a, b) if both else operation(interval(a), interval(b))

    return of


def root(a):
    return power(a, Fraction(1, 2))


def logarithm(a):
    if low_high(a)[0] <= 0:
        raise NoValue
    return iv.log(interval(a))


def tanh(a):
    return 1 - 2 / (iv.exp(2 * interval(a)) + 1)


add, sub, mul = joined(lambda a, b: a + b), joined(lambda a, b: a - b), joined(lambda a, b: a * b)
OPS = {
    "neg": lambda a: -a,
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": divided,
    "sqrt": root,
    "log": logarithm,
    "tanh": tanh,
    "exp": lambda a: iv.exp(interval(a)),
    "sin": lambda a: iv.sin(interval(a)),
    "cos": lambda a: iv.cos(interval(a)),
    "abs": lambda a: largest(a, -a),
    "less": less,
    "less_equal": lambda a, b: less(a, b, True),
    "maximum": largest,
    "minimum": lambda a, b: a if less(a, b, True) else b,
}


def chi2(x, z):
    return Fraction(0) if x == z == 0 else divided(mul(sub(x, z), sub(x, z)), add(x, z))


PAIRINGS = {
    "dot": mul,
    "sqdist": lambda x, z: mul(sub(x, z), sub(x, z)),
    "l1": lambda x, z: abs(sub(x, z)),
    "min_sum": lambda x, z: x if less(x, z, True) else z,
    "chi2": chi2,
    "mismatches": lambda x, z: unequal(x, z),
}


def unequal(x, z):
    if isinstance(x, Fraction) and x == z:
        return Fraction(0)
    if less(x, z) or less(z, x):
        return Fraction(1)
    raise NoValue


def seen(row, views):
    for view in views:
        if type(view) is Columns:
            row = tuple(row[i] for i in view.indices)
        elif type(view) is LengthScales:
            row = tuple(divided(x, Fraction(scale)) for x, scale in zip(row, view.scales, strict=True))
        elif type(view) is Circle:
            angles = [2 * iv.pi * interval(x) / interval(Fraction(view.period)) for x in row]
            row = (*map(iv.cos, angles), *map(iv.sin, angles))
        else:
            row = tuple(map(view.exactly, row))
    return row


def value(e, x, z):
    """k(x, z) of rows of fractions: a fraction or an interval that holds it; NoValue where there is none."""
    done = {}

    def of(node):
        if node not in done:
            done[node] = apply(node)
        return done[node]

    def apply(node):
        if node.op == "const":
            return Fraction(node.value)
        if node.op in ("pairing", "self_x", "self_z"):
            kind, views = node.value
            left, right = {"pairing": (x, z), "self_x": (x, x), "self_z": (z, z)}[node.op]
            left, right = seen(left, views), seen(right, views)
            if left == right and kind in ("sqdist", "l1", "chi2", "mismatches"):
                return Fraction(0)
            total = Fraction(0)
            for a, b in zip(left, right, strict=True):
                total = add(total, PAIRINGS[kind](a, b))
            return total
        if node.op == "pow":
            return power(of(node.args[0]), Fraction(node.value))
        if node.op == "where":
            return of(node.args[1] if of(node.args[0]) else node.args[2])
        return OPS[node.op](*map(of, node.args))

    iv.dps = DIGITS
    return of(e)


def bound(e, points, z, done=None):
    """A number that Σ zᵢzⱼ k(xᵢ, xⱼ) is no larger than."""
    total, done = Fraction(0), {} if done is None else done
    for i, x in enumerate(points):
        for j, y in enumerate(points):
            if z[i] and z[j]:
                if (i, j) not in done:
                    done[i, j] = value(e, x, y)
                total = add(total, mul(Fraction(z[i]) * Fraction(z[j]), done[i, j]))
    return low_high(total)[1]
