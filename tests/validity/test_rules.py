"""What the rules prove is true: against the spectrum on random points; and they do not prove what is false."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import (
    ArrayPair,
    Expression,
    Gaussian,
    Kernel,
    Linear,
    SymbolPair,
    abs,
    cos,
    exp,
    log,
    maximum,
    sin,
    sqrt,
    tanh,
)
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.symbolic.expression import LEAVES, constant
from mercer.kernels.symbolic.values import evaluate
from mercer.testing import assert_close
from mercer.validity import Domain, prove
from mercer.validity.arithmetic.exact import exactly
from mercer.validity.arithmetic.ranges import range_of
from mercer.validity.proofs.forms import diagonal, key, linear, mirror, product
from mercer.validity.proofs.rules import Prover

p = SymbolPair()
ATOMS = [p.dot, p.sqdist, p.l1, p.mismatches, p.xx, p.zz, p.xx * p.zz, p.sqdist + 0 * p.dot]
UNARY = [
    exp, sqrt, lambda e: log(1 + e), lambda e: -e, lambda e: 0.5 * e, lambda e: e**2, lambda e: e**0.5,
    lambda e: 1 / e, tanh, cos, lambda e: sin(e) ** 2, lambda e: e**-0.5, lambda e: 1 - e, lambda e: e + 2, abs,
    lambda e: maximum(0.0, 1 - e), lambda e: -log(2 - e), lambda e: 1 / (2 - e), lambda e: e**1.5, lambda e: e - 1,
    lambda e: 1 / (1 + e),
]  # fmt: skip


def random_expression(rng, depth):
    if depth == 0:
        return ATOMS[rng.integers(len(ATOMS))]
    if rng.random() < 0.6:
        return UNARY[rng.integers(len(UNARY))](random_expression(rng, depth - 1))
    a, b = random_expression(rng, depth - 1), random_expression(rng, rng.integers(depth))
    return [a + b, a * b, a - b, a / b, exp(-a) * b][rng.integers(5)]


def values(e, X):
    pair = ArrayPair(X, X)

    def leaf(one):
        kind, _ = one.value
        of = {"pairing": pair, "self_x": pair.x, "self_z": pair.z}[one.op]
        return getattr(of, kind)

    with np.errstate(all="ignore"):
        try:
            return np.broadcast_to(np.asarray(evaluate(in_floats(e), leaf), float), (len(X), len(X)))
        except ZeroDivisionError:  # of numbers alone
            return np.full((len(X), len(X)), np.nan)


def in_floats(e):
    """An exact formula with the floats next to its numbers."""
    if e.op in LEAVES:
        return constant(float(e.value)) if e.op == "const" else e
    return Expression(e.op, tuple(map(in_floats, e.args)), None if e.value is None else float(e.value))


def test_whatever_is_proved_holds_on_random_points():
    rng = np.random.default_rng(0)
    proved = {"psd": 0, "cnd": 0}
    for _ in range(1500):
        e = random_expression(rng, int(rng.integers(1, 5)))
        d = int(rng.integers(1, 4))
        prover = Prover(Domain(d=d))
        for what in proved:
            if getattr(prover, what)(exactly(e)) is None:
                continue
            for scale in (0.3, 1.0, 3.0):
                K = values(e, scale * rng.standard_normal((14, d)))
                if not np.all(np.isfinite(K)) or np.max(np.abs(K)) > 1e80:
                    continue
                proved[what] += 1
                np.testing.assert_allclose(K, K.T, rtol=1e-9, atol=1e-12)
                A = K
                if what == "cnd":
                    A = -(K - K.mean(axis=0))
                    A = A - A.mean(axis=1, keepdims=True)
                low = np.linalg.eigvalsh((A + A.T) / 2)[0]
                assert low > -1e-9 * max(np.max(np.abs(K)), 1e-300), f"{what} of {e!r}: {low}"
    assert min(proved.values()) > 100


def test_ranges_hold_on_random_points():
    rng = np.random.default_rng(1)
    for _ in range(800):
        e = random_expression(rng, int(rng.integers(1, 5)))
        K = values(e, rng.standard_normal((8, 2)))
        K = K[np.isfinite(K)]
        low, high = map(float, range_of(exactly(e), Domain(d=2)))
        assert low <= high  # neither is NaN
        if len(K):
            assert low - 1e-9 <= K.min()
            assert K.max() <= high + 1e-9


def test_forms_keep_the_value():
    rng = np.random.default_rng(2)
    # Quarters: their pairings are exact, so that a root of a difference of equal ones is no root of rounding.
    X = rng.integers(1, 8, size=(5, 2)) / 4
    for _ in range(500):
        e = exactly(random_expression(rng, int(rng.integers(1, 5))))
        K = values(e, X)
        if not np.all(np.isfinite(K)):
            continue
        np.testing.assert_allclose(values(linear(e).expression(), X), K, rtol=1e-8, atol=1e-10 * np.max(np.abs(K)))
        coefficient, factors = product(e, Domain())
        total = np.full(K.shape, float(coefficient))
        with np.errstate(all="ignore"):
            for base, power in factors:
                total = total * values(base, X) ** float(power)
        assert_close(total, K, rtol=1e-8)
        assert_close(values(mirror(e), X), K.T, rtol=1e-10)
        D = np.diagonal(values(diagonal(e), X))
        if np.all(np.isfinite(D)):  # 1/(1/0) is 0 in floats, and has no value in numbers
            np.testing.assert_allclose(D, np.diagonal(K), rtol=1e-6, atol=1e-7)


def test_keys_know_the_order_of_sums_and_products_only():
    one, other = map(exactly, (2 * p.dot * p.l1 + 1 - p.xx, 1 - p.xx + p.l1 * (2 * p.dot)))
    assert key(one) == key(other)
    assert key(exactly(p.dot - p.l1)) != key(exactly(p.l1 - p.dot))
    assert key(p.xx) != key(p.zz)


@pytest.mark.parametrize(
    "e",
    [
        tanh(p.dot), exp(p.sqdist), exp(-(p.sqdist**1.5)), -p.dot, p.dot - 1, p.xx, p.xx * p.dot, sqrt(p.dot**2),
        1 / (1 - p.sqdist), log(p.dot), 1 / (2 - exp(p.dot)), p.min_sum, exp(-p.chi2), sqrt(p.sqdist + 1), p.sqdist,
        exp(-p.dot), cos(sqrt(p.sqdist)), maximum(0.0, 1 - sqrt(p.sqdist)), p.xx + p.zz + p.sqdist, p.dot**0.5,
    ],
)  # fmt: skip
def test_no_proof_of_what_is_false(e):
    assert Prover(Domain()).psd(exactly(e)) is None


def test_few_columns_have_more_kernels():
    triangle, wave = maximum(0.0, 1 - sqrt(p.sqdist)), exp(-2 * sin(3 * sqrt(p.sqdist)) ** 2)
    for e in (triangle, wave, cos(2 * sqrt(p.sqdist))):
        assert Prover(Domain(d=1)).psd(exactly(e))
        assert Prover(Domain(d=2)).psd(exactly(e)) is None
    assert Prover(Domain(d=2)).psd(exactly(triangle**2))
    assert Prover(Domain(non_negative=True)).psd(exactly(p.min_sum * exp(-p.chi2)))


def test_names_of_rules_in_the_tree():
    proof = prove((Gaussian(gamma=1.0) * Linear() + 1.0).normalized().on([0])).psd
    names = " ".join(proof.rules())
    for word in ("columns", "normalisation", "sum", "product", "Schoenberg", "inner product", "constant"):
        assert word in names
    assert len(str(proof).splitlines()) == 8


def test_what_a_class_says_of_itself_is_told_apart():
    class Promised(Kernel):
        def block(self, X, Z):
            return X @ Z.T

        @property
        def properties(self):
            return Properties(Definiteness.POSITIVE_SEMIDEFINITE)

    proof = prove(Promised() + Linear())
    assert proof.declared
    assert "declared by its class" in " ".join(proof.psd.rules())
    assert not prove(Linear()).declared
