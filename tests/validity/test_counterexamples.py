"""A search by machine for false proofs: random formulas, factors, masks and views, against exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from mpmath import iv

from mercer.kernels import (
    Chi2,
    Circle,
    Columns,
    Intersection,
    Kernel,
    LengthScales,
    SetKernel,
    cos,
    exp,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    where,
)
from mercer.kernels.base import trace_or_none
from mercer.kernels.properties import Definiteness, Properties
from mercer.validity import Domain, prove
from mercer.validity.intervals import Arithmetic, exactly
from mercer.validity.points import within
from mercer.validity.precise import can_evaluate, kernel_value

# ---- exact numbers: fractions where a formula is rational, intervals of mpmath elsewhere -----------------------------

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


# ---- random kernels --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Squares:
    """A view of one's own: x ↦ x²."""

    def apply(self, X):
        return X**2

    def exactly(self, x):
        return mul(x, x)


@dataclass(frozen=True, repr=False)
class Made(Kernel):
    """A formula that was drawn."""

    f: Callable[[Any], Any]

    def formula(self, pair):
        return self.f(pair)


@dataclass(frozen=True, repr=False)
class Promised(Kernel):
    """A class that promises what does not hold."""

    def formula(self, pair):
        return 0.3 - pair.sqdist

    @property
    def properties(self):
        return Properties(Definiteness.POSITIVE_DEFINITE, infinitely_divisible=True)


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


class Drawn:
    """Formulas that the rules would like, with something wrong in a few: a factor, a view, a sign, a mask."""

    def __init__(self, rng, d):
        self.rng, self.d = rng, d or 2

    def number(self):
        rng = self.rng
        value = float(pick(rng, 1.0, 2.0, 0.5, 3.0, 0.1, 1e-3, 7.0, 1e17, round(float(rng.random()), 2) + 0.01))
        return -value if rng.random() < 0.05 else value

    def view(self):
        rng, d = self.rng, self.d
        kind = rng.random()
        if kind < 0.6:
            return ()
        columns = Columns(tuple(int(i) for i in rng.permutation(d)[: int(rng.integers(1, d + 1))]))
        scales = LengthScales(
            tuple(float(pick(rng, 1.0, 2.0, 0.3, -1.0 if rng.random() < 0.3 else 4.0)) for _ in range(d))
        )
        one = pick(
            rng, columns, columns, scales, Circle(pick(rng, 1.0, 3.0)), Squares() if rng.random() < 0.3 else columns
        )
        return (one, Circle(2.0)) if rng.random() < 0.15 else (one,)

    def through(self, f):
        views = self.view()

        def seen(pair):
            for view in views:
                pair = pair.through(view)
            return f(pair)

        return seen

    def similarity(self):
        c = abs(self.number())
        power = pick(self.rng, 1, 1, 2, 1.5, 3, 5)
        shapes = [
            lambda p: p.dot,
            lambda p: p.dot,
            lambda p: p.min_sum,
            lambda p: p.xx * p.zz,
            lambda p: c + 0 * p.dot,
            lambda p: where(pick_distance(p, power) <= 0, c, 0.5),
            lambda p: cos(c * sqrt(p.sqdist)),
            lambda p: maximum(0.0, 1 - c * sqrt(p.sqdist)) ** power,
            lambda p: cos(c * p.l1),
            lambda p: sqrt(p.xx) * sqrt(p.zz),
            lambda p: p.dot / sqrt(p.xx * p.zz),
        ]
        return self.through(pick(self.rng, *shapes))

    def distance(self):
        c = self.number()
        shapes = [
            lambda p: p.sqdist,
            lambda p: p.sqdist,
            lambda p: p.l1,
            lambda p: p.chi2,
            lambda p: p.mismatches,
            lambda p: sin(c * sqrt(p.sqdist)) ** 2,
            lambda p: p.xx + p.zz,
            lambda p: sin(c * p.l1) ** 2,
        ]
        return self.through(pick(self.rng, *shapes))

    def psd(self, depth):
        rng, c = self.rng, self.number()
        if depth == 0:
            return self.similarity()
        a, b, n = self.psd(depth - 1), self.psd(int(rng.integers(depth))), self.cnd(depth - 1)
        power = pick(rng, 2, 3, 2, 0.5, -0.5, -1, -2)
        tiny = pick(rng, 0.0, 0.0, 5e-16, 1e-3)
        alpha, beta = pick(rng, 1.0, 1.0, 0.5), pick(rng, 0.0, 1.0, 0.5, 2.0)
        shapes = [
            lambda p: a(p) + b(p),
            lambda p: a(p) + b(p),
            lambda p: c * a(p) + b(p),
            lambda p: a(p) * b(p),
            lambda p: a(p) * b(p),
            lambda p: c * a(p),
            lambda p: a(p) ** power,
            lambda p: a(p) ** 2,
            lambda p: exp(a(p)),
            lambda p: exp(-n(p)),
            lambda p: exp(-n(p)),
            lambda p: exp(-abs_of(c) * n(p)) * a(p),
            lambda p: (abs_of(c) + n(p)) ** -abs_of(power),
            lambda p: 1 / (abs_of(c) + n(p)),
            lambda p: 1 / (2 - 0.5 * exp(-n(p))),
            lambda p: -log(c - 0.5 * exp(-n(p))),
            lambda p: c * b(p) + 1e17 * a(p) - 1e17 * a(p),
            lambda p: a(p) * (c * p.dot) / (c * p.dot) * p.dot,
            lambda p: a(p) * ((c * p.dot) / (c * p.dot)),
            lambda p: sqrt(p.xx) + sqrt(p.zz) - sqrt(p.sqdist) - tiny,
            lambda p: p.xx**0.7 + p.zz**0.7 - p.sqdist**0.7 + a(p) - tiny,
            lambda p: p.xx + p.zz - p.sqdist,
            lambda p: minimum(1.0, exp(1000.0 + p.sqdist) - exp(999.0 + p.sqdist)) * a(p),
            lambda p: a(p) + c - tiny,
            lambda p: where(
                alpha * (p.xx + p.zz) - beta * p.dot > 0, p.dot / (alpha * (p.xx + p.zz) - beta * p.dot), 1.0
            ),
            lambda p: where(p.l1 + p.min_sum > 0, p.min_sum / (p.l1 + p.min_sum), abs_of(c)) * a(p),
            lambda p: 0.1 * (3.0 * a(p)) - 0.3 * a(p) + tiny,
            lambda p: 0.7 * (0.1 * a(p)) - 0.07 * a(p),
        ]
        return pick(rng, *shapes)

    def cnd(self, depth):
        rng, c = self.rng, abs_of(self.number())
        if depth == 0:
            return self.distance()
        a, b, k = self.cnd(depth - 1), self.cnd(int(rng.integers(depth))), self.psd(int(rng.integers(depth)))
        power, shift = pick(rng, 0.5, 0.3, 0.99, 1.2), pick(rng, 1.0, 1.0, 0.5, -0.1)
        shapes = [
            lambda p: a(p) + b(p),
            lambda p: c * a(p),
            lambda p: a(p) ** power,
            lambda p: sqrt(a(p)),
            lambda p: log(1 + a(p)),
            lambda p: a(p) / (a(p) + shift),
            lambda p: a(p) + c,
            lambda p: a(p) - k(p),
            lambda p: a(p) + p.xx + p.zz,
            lambda p: log(c + a(p)),
            lambda p: a(p) + abs_of(c) * (p.xx**2 + p.zz**2),
        ]
        return pick(rng, *shapes)

    def masked(self, f):
        rng = self.rng
        far = float(pick(rng, 1e8, 0.5, 4.0))
        sides = [
            lambda p: where(p.xx > far, 1.0, 0.0) * where(p.zz > far, 1.0, 0.0),
            lambda p: where(p.xx < far, 1.0, 0.0) * where(p.zz < far, 1.0, 0.0),
            lambda p: where(p.xx > far, 1.0, 0.0),
            lambda p: where(p.x.min_sum > far, 1.0, 0.5) * where(p.z.min_sum > far, 1.0, 0.5),
        ]
        mask = pick(rng, *sides)
        return lambda p: f(p) * mask(p)

    def kernel(self):
        """A kernel, and whether a promise is part of it."""
        rng, how = self.rng, self.rng.random()
        if how < 0.65:
            return self.made(), False
        if how < 0.72:
            other = pick(rng, Intersection().on([0]), Intersection(), Chi2())
            return other + Drawn(rng, 1).made().on([int(rng.integers(self.d))]), False
        if how < 0.8:
            columns = [int(i) for i in rng.permutation(self.d)[: int(rng.integers(1, self.d + 1))]]
            return Drawn(rng, len(columns)).made().on(columns), False
        made = self.made()
        if how < 0.86:
            return (made + Intersection()).with_length_scales(rng.integers(1, 4, self.d).astype(float).tolist()), False
        if how < 0.92:
            return pick(rng, made * made, 2.0 * made + 0.5, made**2, made.normalized()), False
        promised = Promised()
        return pick(rng, promised**0.5, promised + made, SetKernel(promised), promised * made), True

    def made(self):
        """A formula of its own, behind a mask at times."""
        f = self.psd(int(self.rng.integers(0, 4)))
        return Made(self.masked(f) if self.rng.random() < 0.3 else f)


def pick_distance(p, power):
    return {1: p.sqdist, 2: p.l1, 3: p.chi2}.get(power, p.mismatches)


def abs_of(number):
    return number if number >= 0 else -number


# ---- the search ------------------------------------------------------------------------------------------------------

COEFFICIENTS = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -1, 0), (1, 1, 0), (0, 1, -1), (1, 0, -1), (1, -2, 1), (1, 1, -1)]


def few_points(rng, d, domain):
    """Three rows of decimals: small ones, with a zero row; or beyond the mask."""
    scale = Decimal(pick(rng, "0.5", "0.1", "20000", "3"))
    rows = [tuple(scale * int(one) for one in rng.integers(-3, 4, d)) for _ in range(3)]
    rows[0] = tuple(Decimal(0) for _ in range(d)) if rng.random() < 0.3 else rows[0]
    return [tuple(abs(x) if domain.holds(i) else x for i, x in enumerate(row)) for row in rows]


def negative(e, points):
    """Coefficients with a negative sum for three rows; found by decimals, which are quick, then in exact numbers."""
    quick, done, exact = {}, {}, [tuple(map(Fraction, row)) for row in points]
    a = Arithmetic(30)
    for z in COEFFICIENTS:
        with suppress(ArithmeticError):
            if can_evaluate(e):
                total = exactly(0)
                for i, j in product(range(3), repeat=2):
                    if z[i] and z[j]:
                        if (i, j) not in quick:
                            quick[i, j] = kernel_value(e, points[i], points[j], 30)
                        total = a.add(total, a.mul(exactly(z[i] * z[j]), quick[i, j]))
                if total.hi >= 0:
                    continue
            if bound(e, exact, z, done) < 0:
                return exact, z
    return None


def clouds(rng, d, domain):
    """Rows in floats on which rules that ask too little fail: axes, lattices, lines, clusters, beyond the mask."""
    axes = np.vstack([np.zeros(d), np.eye(d), -np.eye(d)])[:14]
    grid = np.zeros((16, d))
    grid[:, 0] = np.repeat(np.arange(4.0), 4) if d > 1 else np.arange(16.0) / 4
    if d > 1:
        grid[:, 1] = np.tile(np.arange(4.0), 4)
    shapes = [rng.standard_normal((12, d)), axes, grid * pick(rng, 0.35, 0.7, 1.0)]
    scale = pick(rng, 1.0, 0.3, 2.0, 20_000.0)
    for points in shapes:
        yield within(scale * points, domain)


def counterexample(kernel, domain, rng):
    """Points and coefficients with Σ zᵢzⱼ k(xᵢ, xⱼ) < 0 in exact arithmetic, or None."""
    e = trace_or_none(kernel, exact=True)
    d = domain.d or 2
    if e is None:
        return None
    if found := negative(e, few_points(rng, d, domain)):
        return found
    for rows in clouds(rng, d, domain):
        with np.errstate(all="ignore"):
            K = np.asarray(kernel.block(rows, rows), float)
        sound = np.isfinite(np.diagonal(K)) & (np.isfinite(K).sum(axis=1) > len(K) // 2)
        rows, K = rows[sound], K[np.ix_(sound, sound)]
        if not len(K) or not np.all(np.isfinite(K)) or np.max(np.abs(K)) > 1e100:
            continue
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        if values[0] < -1e-11 * np.abs(values).max():
            z = [Fraction(int(one), 10**6) for one in np.rint(1e6 * vectors[:, 0])]
            points = [tuple(map(Fraction, row)) for row in rows]
            with suppress(ArithmeticError):
                if bound(e, points, z) < 0:
                    return points, z
    return None


def searched(seed, count):
    """How many of so many random kernels are proved, and which of these have a counterexample."""
    rng, proved, wrong = np.random.default_rng(seed), 0, []
    for number in range(count):
        d = pick(rng, 1, 1, 2, 2, 3, 9, None)
        kernel, is_promised = Drawn(rng, d).kernel()
        domain = Domain(pick(rng, False, False, True, frozenset({0})), d)
        proof = prove(kernel, domain)
        if proof.psd is None or proof.declared:
            continue
        proved += 1
        found = "declared" if is_promised else counterexample(kernel, domain, rng)
        if found is not None:
            wrong.append((number, str(proof.psd), found))
    return proved, wrong


def test_no_random_formula_is_proved_wrongly():
    proved, wrong = searched(0, 400)
    assert not wrong, wrong[0]
    assert proved > 100


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 21))
def test_no_random_formula_is_proved_wrongly_in_a_long_search(seed):
    proved, wrong = searched(seed, 5000)
    assert not wrong, wrong[0]
    assert proved > 1500
