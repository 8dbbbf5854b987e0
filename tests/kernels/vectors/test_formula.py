"""Formulas as text are those of the kernels, and read nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.errors import InvalidInput, MercerError
from mercer.kernels import (
    Cauchy,
    Cosine,
    Formula,
    Gaussian,
    Intersection,
    Kernel,
    Polynomial,
    Sigmoid,
    as_kernel,
    parse,
)

X = np.random.default_rng(0).uniform(0, 1, size=(6, 3))


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("exp(-0.5 * sqdist)", Gaussian(gamma=0.5)),
        ("1 / (1 + 2*sqdist)", Cauchy(gamma=2.0)),
        ("(0.5*dot + 1)**3", Polynomial(degree=3, gamma=0.5)),
        ("tanh(dot - 1)", Sigmoid(coef0=-1.0)),
        ("min_sum", Intersection()),
        ("dot / sqrt(xx * zz)", Cosine()),
        ("where(sqdist <= 0, 1, exp(-0.5*sqdist))", Gaussian(gamma=0.5)),
        ("exp(-abs(minimum(sqdist, 1000)) / 2) * cos(0) + sin(pi) * 0", Gaussian(gamma=0.5)),
    ],
)
def test_equals_the_kernel(text, kernel):
    formula = as_kernel(text)
    assert isinstance(formula, Formula)
    assert formula.traceable
    np.testing.assert_allclose(formula(X), kernel(X), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(formula.diagonal(X), kernel.diagonal(X), rtol=1e-12)
    assert parse(repr(formula)) == formula


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "dot.real", "dot if 1 else 2", "[dot]", "dot @ dot", "exp", "exp(dot", "open('x')",
        "lambda: dot",
        "exp(x=dot)", "'a' + dot", "dot == 1", "", "(" * 80 + "dot" + ")" * 80 + "+" * 3, "-" * 70 + "dot",
        "dot ** zz", "exp(1, dot)",
        "True * dot", "1j * dot", "x" * 20_000, 7,
    ],
)  # fmt: skip
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(MercerError):
        Formula(text)


def test_in_an_estimator_and_in_a_file(tmp_path):
    model = mercer.KernelRidge("exp(-0.5 * sqdist)").fit(X, X[:, 0])
    expected = mercer.KernelRidge(Gaussian(gamma=0.5)).fit(X, X[:, 0]).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict(X), model.predict(X))


def test_a_subclass_of_kernel_is_what_as_kernel_makes():
    assert isinstance(as_kernel("dot + 1"), Kernel)
    with pytest.raises(InvalidInput, match="unknown kernel"):
        as_kernel("gausian(gamma=1)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("exp(-foo)", ["unknown name 'foo'", "dot, sqdist, l1, min_sum, chi2, mismatches"]),
        ("exp(-sqdst)", ["unknown name 'sqdst'", "did you mean 'sqdist'"]),
        ("exp(-gaussian)", ["unknown name 'gaussian'", "sqdist"]),
        ("expp(-sqdist)", ["unknown function 'expp'", "did you mean 'exp'"]),
        ("1 / (1 + foo)", ["'foo'", "gaussian", "dot, sqdist, l1, min_sum, chi2, mismatches"]),
        ("1 / (1 + sqdst)", ["'sqdst'", "did you mean 'sqdist'"]),
        ("gaussian(gama=1)", ["gama", "did you mean 'gamma'", "the parameters of gaussian are gamma"]),
        ("gaussian(sigma=1)", ["'sigma'", "γ = 1/(2σ²)", "the parameters of gaussian are gamma"]),
        ("RBF(length_scale=1)", ["'length_scale'", "γ = 1/(2σ²)"]),
        ("polynomial(deg=2)", ["'deg'", "did you mean 'degree'"]),
        ("gaussian(1, 2)", ["too many positional arguments"]),
        ("max(0, 1 - sqdist)", ["unknown function 'max'", "did you mean 'maximum'"]),
        ("min(dot, 1)", ["did you mean 'minimum'"]),
        ("np.maximum(dot, 1)", ["write maximum alone"]),
        ("np.max(dot, 1)", ["did you mean 'maximum'"]),
        ("ln(1 + dot)", ["did you mean 'log'"]),
        ("fabs(dot)", ["did you mean 'abs'"]),
        ("pow(dot, 2)", ["write ** for a power"]),
        ("(1+dot)^2", ["'(1+dot)^2' cannot", "write ** for a power"]),
        ("gaussian()^2", ["'gaussian()^2'", "write ** for a power"]),
        ("gaussian().on(clumns=[0])", ["the parameters of on are columns"]),
    ],
)
def test_the_wrong_name_is_the_one_that_is_named(text, says):
    with pytest.raises(InvalidInput) as caught:
        as_kernel(text)
    assert all(part in str(caught.value) for part in says), caught.value
    assert "unknown kernel 'exp'" not in str(caught.value)
    assert "__init__" not in str(caught.value)
