"""Forty functions, half of them kernels: each is classified rightly, and no refutation rests on rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import product as words_of
from typing import Any

import mpmath
import numpy as np
import pytest

import mercer
from mercer.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Function,
    Gaussian,
    Hamming,
    Intersection,
    Kernel,
    Laplace,
    Linear,
    Matern,
    MonomialSum,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    evaluate,
)  # fmt: skip
from mercer.kernels.base import trace_or_none


@dataclass(frozen=True, repr=False)
class Formula(Kernel):
    """A formula that a user would write, of which nothing is declared."""

    name: str
    f: Callable[[Any], Any]

    def formula(self, pair):
        return self.f(pair)

    def __repr__(self):
        return self.name


def dist(pair):
    return np.sqrt(pair.sqdist)


def edit_distance(s: str, t: str) -> int:
    """Levenshtein's."""
    row = list(range(len(t) + 1))
    for i, a in enumerate(s, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(t, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


WORDS = ["".join(letters) for length in (1, 2, 3, 4) for letters in words_of("ab", repeat=length)]


def spectrum_matrix(smallest: float, n: int = 120) -> np.ndarray:
    """A matrix of eigenvalues from 1 down to nearly 0, and one more."""
    Q, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((n, n)))
    values = np.append(np.geomspace(1.0, 1e-3, n - 1), smallest)
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


NONE: dict[str, tuple[Any, dict[str, Any]]] = {
    "sigmoid": (Sigmoid(gamma=1.0), {}),
    "sigmoid, negative offset": (Sigmoid(gamma=1.0, coef0=-1.0), {}),
    "sigmoid, nearly linear": (Sigmoid(gamma=0.001, coef0=0.5), {}),
    "periodic through the Euclidean distance": (
        Formula("perE", lambda p: np.exp(-2 * np.sin(np.pi * dist(p)) ** 2)),
        {"n_features": 2},
    ),
    "minus a squared distance": (Formula("negsq", lambda p: -p.sqdist), {}),
    "Gaussian of a cubed distance": (Formula("cubed", lambda p: np.exp(-(p.sqdist**1.5))), {}),
    "Gaussian of a distance to the 2.02": (Formula("2.02", lambda p: np.exp(-(p.sqdist**1.01))), {}),
    "Gaussian of a squared city-block distance": (Formula("l1sq", lambda p: np.exp(-(p.l1**2))), {}),
    "difference of Gaussians": (Formula("dog", lambda p: np.exp(-p.sqdist) - 0.5 * np.exp(-0.1 * p.sqdist)), {}),
    "difference of Gaussians, one a millionth": (
        Formula("dog6", lambda p: np.exp(-p.sqdist) - 1e-6 * np.exp(-4 * p.sqdist)),
        {},
    ),
    "polynomial with a negative coefficient": (Formula("poly", lambda p: 1 + p.dot - 0.01 * p.dot**2), {}),
    "triangle in the plane": (Formula("tri", lambda p: np.maximum(0.0, 1 - dist(p))), {"n_features": 2}),
    "parabola": (Formula("epanechnikov", lambda p: np.maximum(0.0, 1 - p.sqdist)), {}),
    "box": (Formula("box", lambda p: np.where(dist(p) < 1, 1.0, 0.0)), {}),
    "cosine of a distance in space": (Formula("cos", lambda p: np.cos(dist(p))), {"n_features": 3}),
    "log": (Formula("log", lambda p: -np.log(1 + p.sqdist)), {}),
    "absolute inner product": (Formula("abs", lambda p: np.abs(p.dot)), {}),
    "not symmetric": (Formula("lopsided", lambda p: np.exp(-p.xx) * p.dot), {}),
    "exponential of an edit distance": (
        Function(lambda s, t: np.exp(-0.5 * edit_distance(s, t)), mode="pair"),
        {"X": WORDS},
    ),
    "matrix with λmin = −1e-6·λmax": (Precomputed(), {"X": spectrum_matrix(-1e-6)}),
}

KERNELS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "Gaussian": (Gaussian(gamma=1.0), {}, "proved"),
    "Laplace": (Laplace(gamma=1.0), {}, "proved"),
    "Laplace of the city-block distance, on columns": (Laplace(gamma=1.0, norm=1).on([0, 2]), {}, "proved"),
    "Matérn": (Matern(nu=2.5), {}, "proved"),
    "rational quadratic": (RationalQuadratic(alpha=0.5, gamma=1.0), {}, "proved"),
    "periodic": (Periodic(), {}, "proved"),
    "polynomial, normalised": (Polynomial(degree=3).normalized(), {}, "proved"),
    "sum of monomials": (MonomialSum(degree=4), {}, "proved"),
    "cosine": (Cosine(), {}, "proved"),
    "χ²": (Chi2() + AdditiveChi2(), {}, "proved"),
    "intersection": (Intersection(), {}, "proved"),
    "Hamming": (Hamming(gamma=0.3), {}, "proved"),
    "composition": (
        (2.0 * Gaussian(gamma=0.5) * Linear() + Polynomial(degree=2) ** 2 + 0.1).with_length_scales([1.0, 2.0, 4.0]),
        {},
        "proved",
    ),
    "exponential of a kernel": (Formula("exp", lambda p: np.exp(0.5 * p.dot)), {}, "proved"),
    "geometric series": (Formula("geometric", lambda p: 1 / (1 - 0.5 * np.exp(-p.sqdist))), {}, "proved"),
    "inverse multiquadric": (Formula("imq", lambda p: 1 / np.sqrt(p.sqdist + 1)), {}, "proved"),
    "fractional Brownian motion": (
        Formula("fbm", lambda p: p.xx**0.7 + p.zz**0.7 - p.sqdist**0.7),
        {},
        "proved",
    ),
    "compact support in space": (
        Formula("askey", lambda p: np.maximum(0.0, 1 - dist(p)) ** 2),
        {"n_features": 3},
        "proved",
    ),
    "letters in common": (
        Function(lambda s, t: float(len(set(s) & set(t))), mode="pair"),
        {"X": WORDS},
        "supported",
    ),
    "matrix with λmin = +1e-6·λmax": (Precomputed(), {"X": spectrum_matrix(1e-6)}, "measured"),
}


def test_there_are_forty():
    assert (len(NONE), len(KERNELS)) == (20, 20)


def in_mpmath(kernel, points):
    """K by the formula in mpmath, an implementation of its own, with 50 digits."""
    ufuncs = {name: np.frompyfunc(getattr(mpmath, name), 1, 1) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos")}

    def leaf(x, z):
        def value(e):
            kind, views = e.value
            assert not views
            a, b = {"pairing": (x, z), "self_x": (x, x), "self_z": (z, z)}[e.op]
            return {
                "dot": lambda: mpmath.fdot(a, b),
                "sqdist": lambda: mpmath.fsum((p - q) ** 2 for p, q in zip(a, b, strict=True)),
                "l1": lambda: mpmath.fsum(abs(p - q) for p, q in zip(a, b, strict=True)),
            }[kind]()

        return value

    def walk(e, value):
        args = [walk(arg, value) for arg in e.args]
        match e.op:
            case "const":
                return mpmath.mpf(e.value)
            case "pairing" | "self_x" | "self_z":
                return value(e)
            case "pow":
                return args[0] ** mpmath.mpf(e.value)
            case "neg" | "abs":
                return -args[0] if e.op == "neg" else abs(args[0])
            case "where":
                return args[1] if args[0] else args[2]
            case "less" | "maximum":
                return args[0] < args[1] if e.op == "less" else max(args)
            case "add" | "sub" | "mul" | "div":
                return {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
                        "div": lambda a, b: a / b}[e.op](*args)  # fmt: skip
        return ufuncs[e.op](args[0])

    e = trace_or_none(kernel)
    rows = [[mpmath.mpf(str(one)) for one in point] for point in points]
    return [[walk(e, leaf(x, z)) for z in rows] for x in rows]


def quadratic(K, z):
    """zᵀKz."""
    return mpmath.fsum(p * q * K[i][j] for i, p in enumerate(z) for j, q in enumerate(z))


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_kernel_is_refuted_and_the_witness_holds(name):
    kernel, options = NONE[name]
    report = mercer.check_kernel(kernel, **options)
    witness = report.witness
    assert report.verdict == "refuted", report
    assert report.is_mercer is False
    assert witness.upper_bound < 0
    with mpmath.workdps(50):
        if name == "not symmetric":
            K = in_mpmath(kernel, witness.points)
            assert abs(K[0][1] - K[1][0]) > 1e-6
            return
        z = [mpmath.mpf(str(one)) for one in witness.z]
        if isinstance(kernel, Precomputed):
            matrix = options["X"]
            K = [[mpmath.mpf(float(matrix[i, j])) for j in witness.points] for i in witness.points]
        elif name == "exponential of an edit distance":
            K = [[mpmath.exp(-edit_distance(s, t) / mpmath.mpf(2)) for t in witness.points] for s in witness.points]
        else:
            K = in_mpmath(kernel, witness.points)
        assert quadratic(K, z) < 0
        assert float(quadratic(K, z)) == pytest.approx(witness.value, rel=1e-6)
    assert "zᵀKz" in str(report) or "≠" in str(report)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_not_refuted_and_are_proved_where_there_is_a_formula(name):
    kernel, options, verdict = KERNELS[name]
    report = mercer.check_kernel(kernel, **options)
    assert report.witness is None, report
    assert report.verdict == verdict, report


def rows_for(name, n, seed=0):
    """Rows that are hard on float32: far from the origin, in clusters, repeated, at three scales."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * rng.choice([0.01, 1.0, 30.0], size=(n, 1)) + rng.choice([0.0, 100.0], size=(n, 1))
    X[n // 2 : n // 2 + n // 10] = X[: n // 10]
    if name in ("χ²", "intersection"):
        X = np.abs(X)
    if name == "Hamming":
        X = np.rint(X / 30)
    return (X / 40 if name == "exponential of a kernel" else X).astype(np.float32)


def no_false_alarm(name, n):
    kernel, _, verdict = KERNELS[name]
    report = mercer.check_kernel(kernel, rows_for(name, n))
    assert report.witness is None, report
    assert report.verdict == verdict
    assert report.spectrum.n == n
    # Its values are differences of larger ones, which float32 does not hold to what is asked: entries are in float64.
    assert report.spectrum.dtype == ("float64" if name == "fractional Brownian motion" else "float32")
    assert not report.spectrum.is_indefinite, report


OF_ROWS = [name for name, (_, options, _) in KERNELS.items() if "X" not in options]


@pytest.mark.parametrize("name", OF_ROWS)
def test_no_false_alarm_in_float32(name):
    no_false_alarm(name, 300)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_ROWS)
def test_no_false_alarm_in_float32_on_5000_rows(name):
    no_false_alarm(name, 5000)


def test_a_gram_matrix_in_float32_is_no_false_alarm_either():
    kernel, _, _ = KERNELS["Gaussian"]
    X = rows_for("Gaussian", 400)
    for K in (kernel(X), kernel(X).astype(np.float64)):
        report = mercer.check_kernel(Precomputed(), K)
        assert report.verdict == "measured", report


def test_the_mpmath_reference_is_the_formula():
    kernel, _ = NONE["box"]
    points = [(Decimal("0.5"),), (Decimal(2),), (Decimal("1.2"),)]
    K = np.array(in_mpmath(kernel, points), float)
    np.testing.assert_array_equal(K, kernel(np.array([[0.5], [2.0], [1.2]])))
    assert evaluate(trace_or_none(kernel), lambda leaf: np.array(0.25)) == 1.0
