"""What cannot be a kernel is refused, by a message that says what to do."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import CannotTrace, InvalidInput, NotAKernel
from mercer.kernels import (
    AdditiveChi2,
    Cauchy,
    Chi2,
    Constant,
    Dice,
    Function,
    Gaussian,
    Hamming,
    Intersection,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Mismatch,
    MonomialSum,
    Periodic,
    Polynomial,
    Power,
    Precomputed,
    RationalQuadratic,
    Scaled,
    Sigmoid,
    Sum,
    Tanimoto,
)

G = Gaussian(gamma=1.0)
REFUSED = [
    *((cls, {"gamma": value}, NotAKernel, "positive number|finite number")
      for cls in (Gaussian, Laplace, Cauchy, RationalQuadratic, Chi2, Hamming, Polynomial, Sigmoid)
      for value in (0, -1.0, math.nan, math.inf)),
    *((cls, {"gamma": value}, InvalidInput, "give a")
      for cls in (Gaussian, Laplace, Cauchy, RationalQuadratic, Chi2, Hamming, Polynomial, Sigmoid)
      for value in ("wide", None, True, [1.0], 1j)),
    (Polynomial, {"degree": 0}, NotAKernel, "1, 2, 3"),
    (Polynomial, {"degree": 2.5}, NotAKernel, "1, 2, 3"),
    (Polynomial, {"degree": math.nan}, NotAKernel, "finite"),
    (Polynomial, {"degree": "3"}, InvalidInput, "give a number"),
    (Polynomial, {"coef0": -1.0}, NotAKernel, "≥ 0"),
    (MonomialSum, {"degree": -1}, NotAKernel, "1, 2, 3"),
    (Sigmoid, {"coef0": math.nan}, NotAKernel, "finite"),
    (Matern, {"nu": 0}, NotAKernel, "positive"),
    (Matern, {"nu": math.nan}, NotAKernel, "finite"),
    (Matern, {"length_scale": -2}, NotAKernel, "positive"),
    (Matern, {"length_scale": "wide"}, InvalidInput, "median"),
    *((cls, {name: 1e-200}, InvalidInput, "give 1e-150 or more") for cls, name in
      ((Matern, "length_scale"), (Periodic, "length_scale"), (Periodic, "period"), (RationalQuadratic, "alpha"))),
    (RationalQuadratic, {"alpha": 0}, NotAKernel, "positive"),
    (Periodic, {"period": 0}, NotAKernel, "positive"),
    (Periodic, {"length_scale": -1}, NotAKernel, "positive"),
    (Periodic, {"period": "scale"}, InvalidInput, "number"),
    (Laplace, {"norm": 3}, InvalidInput, r"\(1, 2\)"),
    (Laplace, {"norm": True}, InvalidInput, r"\(1, 2\)"),
    (Constant, {"value": -1}, NotAKernel, "≥ 0"),
    (Function, {"func": 3}, InvalidInput, "f"),
    (Function, {"func": min, "mode": "row"}, InvalidInput, "pair"),
    (Function, {"func": min, "symmetric": "no"}, InvalidInput, "True or False"),
    (Scaled, {"scale": -1, "kernel": G}, NotAKernel, "≥ 0"),
    (Sum, {"left": G, "right": 1}, InvalidInput, "as_kernel"),
    (Power, {"kernel": "rbf", "exponent": 1}, InvalidInput, "as_kernel"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "params", "error", "advice"), REFUSED, ids=lambda value: str(value)[:40])
def test_parameters(cls, params, error, advice):
    with pytest.raises(error, match=advice) as caught:
        cls(**params)
    text = str(caught.value)
    assert re.match(r"[\w .*+/-]+: .+; .+\.$", text), text
    assert cls.__name__ in text


@pytest.mark.parametrize(
    ("compose", "error", "advice"),
    [
        (lambda: -G, NotAKernel, "number ≥ 0"),
        (lambda: -0.5 * G, NotAKernel, "number ≥ 0"),
        (lambda: G * -2, NotAKernel, "number ≥ 0"),
        (lambda: math.nan * G, NotAKernel, "finite"),
        (lambda: G - Linear(), NotAKernel, "add kernels"),
        (lambda: G - 1, NotAKernel, "add kernels"),
        (lambda: 1 - G, NotAKernel, "add kernels"),
        (lambda: G + -1, NotAKernel, "number ≥ 0"),
        (lambda: G / 0, NotAKernel, "positive"),
        (lambda: G / -2, NotAKernel, "positive"),
        (lambda: G / Linear(), NotAKernel, "number"),
        (lambda: G**0, NotAKernel, "Constant"),
        (lambda: G**-1, NotAKernel, "positive exponent"),
        (lambda: Linear() ** 0.5, NotAKernel, "integer"),
        (lambda: (G + Linear()) ** 1.5, NotAKernel, "integer"),
        (lambda: (G + G) ** 0.5, NotAKernel, "integer"),
        (lambda: Polynomial() ** math.nan, NotAKernel, "finite"),
        (lambda: G ** "2", InvalidInput, "number"),
        (lambda: G.on(slice(0, 2)), InvalidInput, "range"),
        (lambda: G.on([]), InvalidInput, "once"),
        (lambda: G.on([0, 0]), InvalidInput, "once"),
        (lambda: G.on([-1]), InvalidInput, "from 0"),
        (lambda: G.on([0.5]), InvalidInput, r"\[0, 2\]"),
        (lambda: G.on([True, False]), InvalidInput, r"\[0, 2\]"),
        (lambda: G.on(np.array([True, False])), InvalidInput, r"\[0, 2\]"),
        (lambda: G.on(None), InvalidInput, r"\[0, 2\]"),
        (lambda: G.with_length_scales([1.0, 0.0]), NotAKernel, "positive"),
        (lambda: G.with_length_scales([1e-320]), NotAKernel, "rescale"),
        (lambda: G.with_length_scales("median"), InvalidInput, "each column"),
        (lambda: G.with_length_scales(2.0), InvalidInput, "each column"),
        (lambda: Precomputed() + G, InvalidInput, "compute both matrices"),
        (lambda: Precomputed() + 1, InvalidInput, "compute both matrices"),
        (lambda: Precomputed() * Function(min), InvalidInput, "compute both matrices"),
        (lambda: Precomputed() ** 2, InvalidInput, "transform the matrix"),
        (lambda: Precomputed().normalized(), InvalidInput, "transform the matrix"),
        (lambda: Precomputed().on([0]), InvalidInput, "transform the matrix"),
        (lambda: Precomputed().with_length_scales([1.0]), InvalidInput, "transform the matrix"),
    ],
)
def test_compositions(compose, error, advice):
    with pytest.raises(error, match=advice):
        compose()


@pytest.mark.parametrize(
    "k", [Gaussian(), Laplace(), Cauchy(), RationalQuadratic(), Chi2(), Hamming(), Matern(), Periodic()]
)
def test_infinitely_divisible_kernels_have_fractional_powers(k, rows):
    k = k.resolve(rows[0])
    root = k**0.5
    assert root.properties.definiteness.is_mercer
    np.testing.assert_allclose(root(*rows) ** 2, k(*rows), rtol=1e-12)
    assert np.linalg.eigvalsh((k**0.1)(rows[0])).min() > -1e-12
    assert isinstance((2 * k.on([0]) * k).normalized() ** 1.5, Kernel)


@pytest.mark.parametrize("k", [Chi2(), AdditiveChi2(), Intersection(), Tanimoto(), Dice()])
def test_negative_data(k):
    good, bad = np.ones((2, 2)), np.array([[1.0, -1e-9]])
    for kernel in (k, k + Linear(), 2 * k.normalized()):
        with pytest.raises(InvalidInput, match=r"negative.*counts"):
            kernel(bad)
        with pytest.raises(InvalidInput, match="negative"):
            kernel(good, bad)
    assert k.on([0])(bad).shape == (1, 1)


@pytest.mark.parametrize(
    "X",
    [[1.0, 2.0], [[np.nan]], [[np.inf]], np.ones((2, 2, 2)), [["a"]], [[1 + 2j]], np.empty((0, 3)), np.empty((3, 0)),
     np.array([[{}]], dtype=object)],
    ids=str,
)  # fmt: skip
def test_data_that_are_no_rows(X):
    with pytest.raises(InvalidInput, match="Gaussian"):
        Gaussian(gamma=1.0)(X)
    with pytest.raises(InvalidInput, match="Gaussian"):
        Gaussian().resolve(X)


@pytest.mark.parametrize(
    ("k", "X", "Z", "advice"),
    [
        (G, np.ones((2, 3)), np.ones((2, 2)), "same columns"),
        (G.on([3]), np.ones((2, 3)), None, "below the number of columns"),
        (G.with_length_scales([1, 2]), np.ones((2, 3)), None, "one number for each column"),
        (Gaussian(), np.ones((2, 3)), np.zeros((2, 3)), r"data, gamma='scale'; call .resolve\(X_train\)"),
        (Linear() + G.on(["a"]), np.ones((2, 3)), np.zeros((2, 3)), "the column 'a'; .* give its index"),
        (Mismatch(3, 1), ["abab"], ["baba"], 'alphabet=None; .* alphabet="ACGT"'),
        (Tanimoto(), [{1, 2}, {2, 3}], None, "MultiLabelBinarizer"),
        (G.on(["a"]), np.ones((2, 3)), None, "feature_names"),
    ],
)
def test_data_that_do_not_fit(k, X, Z, advice):
    with pytest.raises(InvalidInput, match=advice):
        k(X, Z)


def test_unresolved_kernels_have_no_block_and_no_diagonal(rows):
    X, Z = rows
    for k in (Gaussian(), 2 * Laplace(), Gaussian().on([0]), G.on(["a"]), Linear() + Gaussian()):
        for call in (lambda k=k: k.block(X, Z), lambda k=k: k.diagonal(X)):
            with pytest.raises(InvalidInput, match=r"resolve\(X_train\)"):
                call()


@pytest.mark.parametrize(
    "k", [Laplace(gamma=1.0, norm=1), Chi2(), AdditiveChi2(), Intersection(), Tanimoto(), Dice(), Hamming(), Periodic()]
)
def test_sparse_data_that_must_be_dense(k, no_engine):
    with pytest.raises(InvalidInput, match="toarray"):
        k(sp.csr_array(np.eye(3)))


@pytest.mark.parametrize("number", [round, math.floor, math.ceil, math.trunc, int, float], ids=lambda one: one.__name__)
def test_formulas_that_ask_for_one_number_are_answered(number):
    class OfValues(Kernel):
        def formula(self, pair):
            return number(pair.dot)

    class OfThePair(Kernel):
        def formula(self, pair):
            return number(pair)

    with pytest.raises(InvalidInput, match=r"fails on arrays of pairs.*; use NumPy's functions or those of mercer"):
        OfValues()(np.ones((3, 2)))
    with pytest.raises(CannotTrace, match=r"not with pair, pair\.x or pair\.z themselves; write pair\.dot"):
        OfThePair()(np.ones((3, 2)))
