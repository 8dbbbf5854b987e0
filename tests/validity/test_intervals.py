"""Decimal intervals hold the exact value, and are narrow."""

from __future__ import annotations

from decimal import Decimal

import mpmath
import numpy as np
import pytest

from mercer.kernels import Circle, Gaussian, LengthScales, Periodic, SymbolPair, where
from mercer.kernels.symbolic.pairing import trace
from mercer.validity.arithmetic.intervals import Arithmetic, Undecided, Undefined, enclosing, exactly, pi
from mercer.validity.arithmetic.precise import can_evaluate, kernel_value

TINY = mpmath.mpf(10) ** -70
"""mpmath's own rounding, at 80 digits."""


def holds(found, exact, width):
    lo, hi = mpmath.mpf(str(found.lo)), mpmath.mpf(str(found.hi))
    slack = TINY * max(1, abs(exact))
    assert lo - slack <= exact <= hi + slack
    assert hi - lo <= width


@pytest.mark.parametrize("digits", [15, 30, 50])
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "sin", "cos"])
def test_functions_against_mpmath(name, digits):
    rng = np.random.default_rng(digits)
    values = [
        *rng.uniform(-3, 3, 30),
        *rng.uniform(-500, 500, 30),
        *rng.uniform(-1e-8, 1e-8, 10),
        0.0,
        np.pi,
        np.pi / 2,
    ]
    a = Arithmetic(digits)
    with mpmath.workdps(80):
        for value in values:
            if name in ("log", "sqrt") and value <= 0:
                continue
            x = Decimal(repr(float(value)))
            exact = getattr(mpmath, name)(mpmath.mpf(str(x)))
            width = mpmath.mpf(10) ** (3 - digits) * max(1, abs(exact), abs(float(x)))
            holds(getattr(a, name)(exactly(x)), exact, width)


@pytest.mark.parametrize("exponent", [2.0, 3.0, -1.0, 0.5, 0.7, 1.5, -0.5])
def test_powers_against_mpmath(exponent):
    a = Arithmetic(40)
    with mpmath.workdps(80):
        for x in ("0.001", "0.9", "2", "31.5"):
            exact = mpmath.mpf(x) ** mpmath.mpf(repr(exponent))
            holds(a.power(exactly(x), exponent), exact, abs(exact) * mpmath.mpf("1e-12"))


def test_pi():
    with mpmath.workdps(80):
        assert mpmath.mpf(str(pi(50).lo)) < mpmath.pi < mpmath.mpf(str(pi(50).hi))


def test_an_interval_argument_holds_all_of_it():
    a, rng = Arithmetic(20), np.random.default_rng(0)
    for name in ("exp", "tanh", "sin", "cos"):
        for lo, width in zip(rng.uniform(-3, 3, 20), rng.uniform(0, 1, 20), strict=True):
            found = getattr(a, name)(a.add(exactly(repr(float(lo))), exactly("0")) if not width else _wide(lo, width))
            inside = getattr(np, name)(np.linspace(lo, lo + width, 9))
            assert float(found.lo) <= inside.min() + 1e-12
            assert float(found.hi) >= inside.max() - 1e-12


def _wide(lo, width):
    low = exactly(repr(float(lo))).lo
    return type(exactly(0))(low, low + Decimal(repr(float(width))))


def test_what_has_no_value_and_what_cannot_be_told():
    a = Arithmetic(20)
    for call in (lambda: a.log(exactly(0)), lambda: a.sqrt(exactly(-1)), lambda: a.div(exactly(1), exactly(0)),
                 lambda: a.power(exactly(-2), 0.5)):  # fmt: skip
        with pytest.raises(Undefined):
            call()
    around = _wide(-1.0, 2.0)
    for call in (lambda: a.log(around), lambda: a.div(exactly(1), around), lambda: a.less(around, exactly(0)),
                 lambda: a.exp(exactly("1e9"))):  # fmt: skip
        with pytest.raises(Undecided):
            call()
    assert a.less(exactly(1), exactly(2)) == exactly(1)
    assert a.less_equal(exactly(2), exactly(2)) == exactly(1)


def test_a_float_is_read_both_as_stored_and_as_printed():
    assert enclosing(0.1).lo == Decimal("0.1") < enclosing(0.1).hi == Decimal.from_float(0.1)
    assert enclosing(0.5) == exactly("0.5")


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.3), Periodic(period=1.5, length_scale=0.7)])
def test_kernel_values_with_views(kernel):
    x, z = (Decimal("0.25"), Decimal("1.5")), (Decimal("-1"), Decimal("0.125"))
    for k in (kernel, kernel.on([1]), kernel.with_length_scales([2.0, 0.3])):
        found = kernel_value(trace(k), x, z, 40)
        value = k(np.array([x], float), np.array([z], float))[0, 0]
        assert float(found.lo) == pytest.approx(value, rel=1e-14)
        assert float(found.hi - found.lo) < 1e-14


def test_the_branch_that_is_not_taken_needs_no_value():
    pair = SymbolPair()
    e = where(pair.sqdist > 0, 1 / pair.sqdist, 7.0)
    point = (Decimal(2),)
    assert kernel_value(e, point, point, 30) == exactly(7)


def test_a_view_that_is_not_known_is_left_to_float64():
    class Cube:
        def apply(self, X):
            return X**3

    assert can_evaluate(SymbolPair().through(Circle(1.0)).through(LengthScales((1.0, 2.0))).sqdist)
    assert not can_evaluate(SymbolPair().through(Cube()).sqdist + 1)
