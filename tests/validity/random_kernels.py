"""Kernels drawn at random, which the rules of `mercer.validity` would like, with something wrong in a few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exact_numbers import mul

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
from mercer.kernels.properties import Definiteness, Properties


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
    return getattr(p, {1: "sqdist", 2: "l1", 3: "chi2"}.get(power, "mismatches"))  # χ² has no negative rows


def abs_of(number):
    return number if number >= 0 else -number
