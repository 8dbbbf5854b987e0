"""What was once proved and is false, behind a mask that hides it from a search; and the edge of each rule's domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mercer import check_kernel
from mercer.errors import InvalidInput
from mercer.gram import KernelOperator
from mercer.kernels import (
    Chi2,
    Circle,
    Columns,
    Gaussian,
    Intersection,
    Kernel,
    LengthScales,
    SetKernel,
    Sum,
    as_kernel,
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
from mercer.validity import Domain, prove
from mercer.validity.brief import brief_check

MASK = "where(xx > 1e8, 1, 0) * where(zz > 1e8, 1, 0)"


@dataclass(frozen=True, repr=False)
class Of(Kernel):
    """A formula as a class."""

    f: Any

    def formula(self, pair):
        return self.f(pair)


def masked(f):
    """A formula that is 0 but on rows that no search draws."""
    return Of(lambda p: f(p) * where(p.xx > 1e8, 1.0, 0.0) * where(p.zz > 1e8, 1.0, 0.0))


def circle(f, period=3.0):
    return lambda p: f(p.through(Circle(period)))


def quotients(p):
    """½ − 1."""
    a, b = 4 * p.xx * p.zz, p.xx * p.zz
    return 0.5 * (b / b) - a / a


def far_below(square):
    """A large negative number, the difference of two that are infinite in floats."""
    return exp(999 + square) - exp(1000 + square)


FALSE = {
    "χ² as a distance on real rows": (lambda p: where(p.chi2 <= 0, 1.0, 0.5), Domain()),
    "χ² on a circle": (circle(lambda p: exp(-p.chi2)), Domain(True, 2)),
    "a cosine on a circle, which has two columns": (circle(lambda p: cos(5 * sqrt(p.sqdist))), Domain(d=1)),
    "a squared sine on a circle": (circle(lambda p: exp(-(sin(5 * sqrt(p.sqdist)) ** 2))), Domain(d=1)),
    "a cone on a circle": (circle(lambda p: maximum(0.0, 1 - sqrt(p.sqdist))), Domain(d=1)),
    "a cosine of four columns through two": (
        lambda p: cos(5 * sqrt(p.through(Columns((0, 1))).sqdist)),
        Domain(d=1),
    ),
    "an overlap on a circle": (circle(lambda p: p.min_sum), Domain(True, 2)),
    "an overlap of negated columns": (lambda p: p.through(LengthScales((-1.0, 1.0))).min_sum, Domain(True, 2)),
    "an overlap of real rows": (lambda p: p.min_sum, Domain()),
    "an overlap in a column that may be negative": (
        lambda p: p.through(Columns((1,))).min_sum,
        Domain(frozenset({0}), 2),
    ),
    "a quotient of a function and itself": (quotients, Domain()),
    "a constant that is too small by a tiny one": (
        lambda p: sqrt(p.xx) + sqrt(p.zz) - sqrt(p.sqdist) - 5e-16,
        Domain(),
    ),
    "a difference that floats lose": (lambda p: 1e17 * p.dot - 3 * p.dot - 1e17 * p.dot, Domain()),
    "infinity minus infinity within a range": (
        lambda p: 1 / (2 - minimum(1.0, far_below(p.xx)) * minimum(1.0, far_below(p.zz))),
        Domain(),
    ),
    "a cone in nine columns": (lambda p: maximum(0.0, 1 - sqrt(p.sqdist)) ** 4.5, Domain(d=9)),
    "a cone in twenty columns": (lambda p: maximum(0.0, 1 - sqrt(p.sqdist)) ** 5, Domain(d=20)),
    "a cone in any number of columns": (lambda p: maximum(0.0, 1 - sqrt(p.sqdist)) ** 50, Domain()),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_not_proved(name):
    f, domain = FALSE[name]
    for kernel in (Of(f), masked(f)):
        assert prove(kernel, domain).psd is None


@pytest.mark.parametrize("text", ["1e17*dot - 3*dot - 1e17*dot", "sqrt(xx) + sqrt(zz) - sqrt(sqdist) - 5e-16"])
def test_what_rounding_loses_is_not_proved_of_texts(text):
    assert check_kernel(f"({text}) * {MASK}").verdict != "proved"
    assert check_kernel("sqrt(xx) + sqrt(zz) - sqrt(sqdist)").verdict == "proved"


def test_numbers_are_put_together_exactly():
    assert check_kernel("3 * (dot / 3) - dot").verdict == "proved"  # 0
    assert prove(as_kernel("(0.1 + 0.2)*dot - 0.30000000000000004*dot")).psd is None  # −2.8e-17·dot, and 0 in floats
    assert prove(as_kernel("0.30000000000000004*dot - (0.1 + 0.2)*dot")).psd is not None


# ---- one part's rows are not all rows --------------------------------------------------------------------------------


def test_one_part_that_refuses_negative_entries_does_not_speak_for_the_others():
    other = masked(lambda p: p.min_sum)
    kernel = Intersection().on([0]) + other.on([1])
    report = check_kernel(kernel, n_features=2)
    assert report.verdict != "proved"
    assert report.domain == "rows of 2 columns without negative entries in column 0"
    assert check_kernel(Intersection().on([0]) + Gaussian(gamma=1.0).on([1]), n_features=2).verdict == "proved"
    assert check_kernel(Intersection() + other, n_features=2).verdict == "proved"
    assert check_kernel(Chi2().on([0, 1]) + other.on([1])).verdict == "proved"


def test_a_refusal_for_another_reason_is_not_one_of_signs():
    with pytest.raises(InvalidInput, match="length-scale"):
        check_kernel(as_kernel("min_sum").with_length_scales([1.0, 2.0, 3.0]), n_features=2)


# ---- what classes promise --------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Promised(Kernel):
    """What is no kernel on rows that no search draws, and promises to be one."""

    def formula(self, pair):
        return -pair.sqdist * where(pair.xx > 1e8, 1.0, 0.0) * where(pair.zz > 1e8, 1.0, 0.0)

    @property
    def properties(self):
        return Properties(Definiteness.POSITIVE_DEFINITE, infinitely_divisible=True)


class Otherwise(Sum):
    """A class of one's own, derived from one of ours."""

    def formula(self, pair):
        return self.left.formula(pair) - self.right.formula(pair)


@pytest.mark.parametrize(
    "kernel",
    [
        Promised(),
        Promised() ** 0.5,
        Promised() ** 2,
        Promised() + 1.0,
        Promised() * Gaussian(gamma=1.0),
        2.0 * Promised(),
        (0.5 * Promised()) ** 0.25,
        Promised().on([0]),
        SetKernel(Promised()),
        Promised().normalized(),
        Promised().with_length_scales([1.0]) + Gaussian(gamma=1.0),
        Otherwise(Gaussian(gamma=1.0), Gaussian(gamma=2.0)),
    ],
    ids=repr,
)
def test_a_promise_stays_one_through_every_composition(kernel):
    proof = prove(kernel)
    assert proof.psd is None or proof.declared
    if kernel.domain == "vectors":
        assert check_kernel(kernel).verdict in ("declared", "refuted")


@dataclass(frozen=True)
class Backwards:
    """A view of one's own."""

    def apply(self, X):
        return X[:, ::-1]


def test_a_view_of_ones_own_is_taken_at_its_word():
    kernel = Of(lambda p: exp(-p.through(Backwards()).sqdist))
    assert check_kernel(kernel, n_features=2).verdict == "declared"
    assert prove(Of(lambda p: p.through(Backwards()).min_sum), Domain(True, 2)).psd is None
    assert prove(Of(lambda p: cos(sqrt(p.through(Backwards()).sqdist))), Domain(d=1)).psd is None


# ---- fits ------------------------------------------------------------------------------------------------------------


def test_a_fit_asks_about_all_columns():
    cone, rng = "maximum(0, 1 - 0.02*sqrt(sqdist))**4.5", np.random.default_rng(0)
    verdicts = {
        d: brief_check(KernelOperator(as_kernel(cone), rng.standard_normal((5, d)))).verdict for d in (8, 9, 20, 100)
    }
    assert verdicts[8] == "proved"
    assert not any(verdicts[d] == "proved" for d in (9, 20, 100))


# ---- the edge of each rule's domain ----------------------------------------------------------------------------------

EDGES = {
    "constant": (lambda p: 0.0 + 0 * p.dot, lambda p: -1e-300 + 0 * p.dot, Domain()),
    "sum": (lambda p: p.dot + 1e-300, lambda p: p.dot - 1e-300, Domain()),
    "factor": (lambda p: 1e-300 * p.dot, lambda p: -1e-300 * p.dot, Domain()),
    "product": (lambda p: p.dot * exp(-p.l1), lambda p: p.dot * p.l1, Domain()),
    "natural power": (lambda p: (p.dot + 1) ** 3, lambda p: (p.dot + 1) ** 2.999, Domain()),
    "one feature": (lambda p: p.xx**0.3 * p.zz**0.3, lambda p: p.xx**0.3 * p.zz**0.300001, Domain()),
    "centring": (
        lambda p: p.xx**0.7 + p.zz**0.7 - p.sqdist**0.7,
        lambda p: p.xx**1.01 + p.zz**1.01 - p.sqdist**1.01,
        Domain(),
    ),
    "exponential of a kernel": (lambda p: exp(p.dot), lambda p: exp(p.dot - p.xx), Domain()),
    "Schoenberg": (lambda p: exp(-p.sqdist), lambda p: exp(-(p.sqdist**1.000001)), Domain()),
    "any power": (lambda p: exp(-p.l1) ** 0.001, lambda p: exp(p.l1) ** 0.001, Domain()),
    "mixture": (lambda p: (1e-9 + p.sqdist) ** -0.3, lambda p: (-1e-9 + p.sqdist) ** -0.3, Domain()),
    "geometric series": (lambda p: 1 / (1.000001 - exp(-p.sqdist)), lambda p: 1 / (1 - exp(-p.sqdist)), Domain()),
    "log series": (lambda p: -log(1 - 0.999 * exp(-p.l1)), lambda p: -log(1.001 - 0.999 * exp(-p.l1)), Domain()),
    "equality": (lambda p: where(p.l1 <= 0, 1.0, 1.0 - 1e-9), lambda p: where(p.l1 <= 0, 1.0, 1.0 + 1e-9), Domain()),
    "cosine": (lambda p: cos(3 * sqrt(p.sqdist)), lambda p: cos(3 * p.sqdist), Domain(d=1)),
    "cosine in columns": (
        lambda p: cos(3 * p.through(Columns((1,))).l1),
        lambda p: cos(3 * p.through(Columns((0, 1))).l1),
        Domain(d=2),
    ),
    "cone, one column": (
        lambda p: maximum(0.0, 1 - sqrt(p.sqdist)),
        lambda p: maximum(0.0, 1 - sqrt(p.sqdist)) ** 0.999,
        Domain(d=1),
    ),
    "cone, three columns": (
        lambda p: maximum(0.0, 2 - 5 * sqrt(p.sqdist)) ** 2,
        lambda p: maximum(0.0, 2 - 5 * sqrt(p.sqdist)) ** 1.999,
        Domain(d=3),
    ),
    "cone on a circle": (
        circle(lambda p: maximum(0.0, 1 - sqrt(p.sqdist)) ** 1.5),
        circle(lambda p: maximum(0.0, 1 - sqrt(p.sqdist)) ** 1.499),
        Domain(d=1),
    ),
    "χ²": (lambda p: exp(-p.chi2), lambda p: exp(-p.through(LengthScales((1.0, -1.0))).chi2), Domain(True, 2)),
    "overlap": (
        lambda p: p.through(LengthScales((2.0, 3.0))).min_sum,
        lambda p: p.through(Circle(1.0)).min_sum,
        Domain(True, 2),
    ),
    "overlap of one column": (
        lambda p: p.through(Columns((0,))).min_sum,
        lambda p: p.through(Columns((0, 1))).min_sum,
        Domain(frozenset({0}), 2),
    ),
    "Bernstein power": (lambda p: exp(-((p.l1 + 1) ** 0.999)), lambda p: exp(-((p.l1 - 1) ** 0.999)), Domain()),
    "Bernstein log": (lambda p: exp(-log(1e-9 + p.l1)), lambda p: exp(-0.5 * log(p.l1)), Domain()),
    "Bernstein quotient": (lambda p: exp(-(p.l1 / (p.l1 + 1e-9))), lambda p: exp(-(p.l1 / (p.l1 - 1e-9))), Domain()),
    "squared sine": (lambda p: exp(-(sin(p.l1) ** 2)), lambda p: exp(-(sin(p.l1) ** 4)), Domain(d=1)),
    "up to f(x) + f(z)": (lambda p: exp(-p.l1 + p.xx + p.zz), lambda p: exp(-p.l1 + p.xx + 1.000001 * p.zz), Domain()),
    "overlap of kernels": (
        lambda p: where(p.xx + p.zz - 1.999 * p.dot > 0, p.dot / (p.xx + p.zz - 1.999 * p.dot), 0.0),
        lambda p: where(p.xx + p.zz - 2 * p.dot > 0, p.dot / (p.xx + p.zz - 2 * p.dot), 0.0),
        Domain(),
    ),
    "overlap of kernels, elsewhere": (
        lambda p: where(p.l1 + p.min_sum > 0, p.min_sum / (p.l1 + p.min_sum), 0.0),
        lambda p: where(p.l1 + p.min_sum > 0, p.min_sum / (p.l1 + p.min_sum), -1e-9),
        Domain(True),
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_each_rule_holds_up_to_its_edge_and_no_further(name):
    inside, outside, domain = EDGES[name]
    assert prove(Of(inside), domain).psd is not None
    assert prove(Of(outside), domain).psd is None
