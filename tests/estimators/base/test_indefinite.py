"""A fit with what is no kernel warns once, with a witness, and says what the method still means."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mercer
from mercer.errors import IndefiniteKernelWarning, InvalidInput
from mercer.kernels import Function, Gaussian, Kernel, Precomputed, Sigmoid

X, y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)

ESTIMATORS = [
    mercer.KernelRidge(alpha=200.0),
    mercer.KernelRidgeCV(alphas=[100.0, 1000.0]),
    mercer.KernelRidgeClassifier(alpha=200.0),
    mercer.KernelPCA(2),
    mercer.KernelDiscriminantAnalysis(delta=200.0),
    mercer.KernelLMS(max_iter=5),
    mercer.KernelKMeans(3),
    mercer.KernelPLS(),
]


def heard(estimator, X=X, y=y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator.fit(X, y)
    return model, [str(one.message) for one in caught if one.category is IndefiniteKernelWarning]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_one_warning_with_the_witness_and_the_meaning(estimator):
    model, said = heard(estimator.set_params(kernel=Sigmoid(gamma=0.3, coef0=0.5)))
    assert len(said) == 1
    assert "zᵀKz = -" in said[0]
    assert type(estimator).indefinite_meaning in said[0]
    assert model.report_.definiteness == "indefinite"
    assert said[0] in model.report_.warnings


def test_kernels_do_not_warn():
    for kernel in (Gaussian(), lambda A, B: Gaussian(gamma=0.5)(A, B), Function(np.dot, mode="pair")):
        model, said = heard(mercer.KernelRidge(kernel))
        assert not said
    assert any("no witness" in note for note in model.report_.notes)
    for dtype in (np.float32, np.float64):
        K = Gaussian(gamma=0.1)(X.astype(np.float32)).astype(dtype)
        for matrix in (K, 2.5 * K + dtype(0.1)):
            assert not heard(mercer.KernelRidge(Precomputed()), matrix)[1]


def test_a_formula_of_ones_own_is_proved_at_the_fit():
    @dataclass(frozen=True, repr=False)
    class Mine(Kernel):
        def formula(self, pair):
            return 1 / (1 + pair.l1)

    model, said = heard(mercer.KernelRidge(Mine()))
    assert not said
    assert "proved" in model.report_.definiteness
    assert not model.report_.notes


@pytest.mark.parametrize("kernel", ["matrix", "function", "objects"])
def test_what_has_no_formula_is_looked_at_on_a_sample(kernel):
    crooked = Sigmoid(gamma=0.3, coef0=-0.5)
    if kernel == "matrix":
        model, said = heard(mercer.KernelRidge(Precomputed(), alpha=200.0), crooked(X))
    elif kernel == "function":
        model, said = heard(mercer.KernelRidge(lambda A, B: crooked(A, B), alpha=200.0))
    else:
        words = ["a" * (1 + i % 5) + "b" * (i % 3) for i in range(60)]
        model, said = heard(
            mercer.KernelRidge(Function(lambda s, t: -abs(len(s) - len(t)), mode="pair"), alpha=500.0),
            words,
            np.ones(60),
        )
    assert len(said) == 1
    assert "zᵀKz" in said[0]
    assert model.report_.definiteness == "indefinite"


def test_the_warning_comes_before_the_failure_that_it_explains():
    with (
        pytest.warns(IndefiniteKernelWarning, match="α > −λmin"),
        pytest.raises(InvalidInput, match="not positive definite"),
    ):
        mercer.KernelRidge(Sigmoid(gamma=0.3, coef0=-0.5), alpha=1e-3).fit(X, y)


def test_parameters_that_cannot_be_hashed():
    @dataclass(frozen=True, repr=False)
    class Weighted(Kernel):
        weights: list

        def formula(self, pair):
            return self.weights[0] * pair.dot - self.weights[1]

    assert len(heard(mercer.KernelRidge(Weighted([1.0, 5.0]), alpha=2000.0))[1]) == 1
