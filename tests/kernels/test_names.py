"""Kernels as text, read and never evaluated."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer.errors import InvalidInput, MercerError, NotAKernel
from mercer.kernels import (
    Cauchy,
    Constant,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    MonomialSum,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    as_kernel,
    inf,
    kernel_names,
    parse,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gaussian", Gaussian()),
        ("rbf(0.5)", Gaussian(gamma=0.5)),
        ("RBF()", Gaussian("auto")),
        ("poly(2)", Polynomial(2, "auto")),
        ("laplacian", Laplace("auto", 1)),
        ("rational_quadratic(alpha=2)", RationalQuadratic(alpha=2.0)),
        ("RationalQuadratic()", RationalQuadratic()),
        ("monomial_sum(degree=4)", MonomialSum(degree=4)),
        ("precomputed", Precomputed()),
        ("0.5*gaussian(gamma=0.1)+linear()", 0.5 * Gaussian(gamma=0.1) + Linear()),
        ("0.5*gaussian(gamma=0.1)+linear()*polynomial(degree=2)", 0.5 * Gaussian(gamma=0.1) + Linear() * Polynomial(2)),
        ("gaussian(gamma='median').on([0, 2])", Gaussian(gamma="median").on([0, 2])),
        ("gaussian().on('age') + 1", Gaussian().on("age") + 1),
        ("(linear() + cauchy(2)).normalized()**2 / 4", (Linear() + Cauchy(2)).normalized() ** 2 / 4),
        ("linear().with_length_scales((1, 2.5))", Linear().with_length_scales([1, 2.5])),
        ("matern(nu=inf, length_scale=+2e-1)", Matern(nu=inf, length_scale=0.2)),
        ("  linear \n", Linear()),
        ("constant(2)", Constant(2.0)),
    ],
)
def test_parse(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize("name", kernel_names())
def test_every_name_is_a_kernel_in_either_case(name):
    kernel = parse(name)
    assert parse(f"{name.upper()}()") == kernel
    assert parse(repr(kernel)) == kernel


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("gausian()", "did you mean 'gaussian'"),
        ("Matérn()", "did you mean 'matern'"),
        ("zzz", "the names are"),
        ("gaussian().normalised()", "did you mean 'normalized'"),
        ("gaussian().resolve([[1]])", "methods are"),
        ("gaussian().__class__", "use kernels"),
        ("gaussian.__init__()", "methods are"),
        ("__import__('os').system('true')", "methods are"),
        ("open('x')", "names are|did you mean"),
        ("function(min)", "in Python"),
        ("gaussian(sigma=2)", "parameters of gaussian are gamma"),
        ("gaussian(1, 2)", "parameters of gaussian are gamma"),
        ("gaussian(**{'gamma': 1})", "name each parameter"),
        ("gaussian(gamma=1+1)", "number, a string or a list"),
        ("gaussian(gamma=[x for x in y])", "number, a string or a list"),
        ("gaussian(gamma=linear())", "number, a string or a list"),
        ("gaussian(gamma='wide')", "scale"),
        ("2", "at least one kernel"),
        ("2 + 3", "write the number out"),
        ("9**9**9**9 * linear()", "write the number out"),
        ("linear() ** linear()", "give a number"),
        ("2 ** linear()", "kernel"),
        ("linear() + 'a'", "use kernels"),
        ("linear() + True", "real number"),
        ("linear() @ linear()", "use kernels"),
        ("linear() if 1 else 2", "use kernels"),
        ("lambda: 0", "use kernels"),
        ("", "as in Python"),
        ("linear(", "as in Python"),
        ("a; b", "as in Python"),
        ("\x00", "as in Python"),
        ("x" * 20_000, "at most"),
        ("(" * 3000 + ")" * 3000, "as in Python"),
        ("-" * 5000 + "linear()", "as in Python|nested"),
        ("linear()" + ".normalized()" * 200, "nested"),
        ("gaussian(gamma=" + "[" * 80 + "]" * 80 + ")", "nested|as in Python"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_refused(text, advice):
    with pytest.raises(InvalidInput, match=advice) as caught:
        parse(text)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text", ["-linear()", "linear() - linear()", "linear()**0.5", "gaussian(gamma=-inf)", "linear()*-1"]
)
def test_what_is_no_kernel_is_refused_as_such(text):
    with pytest.raises(MercerError) as caught:
        parse(text)
    assert isinstance(caught.value, NotAKernel)


@pytest.mark.parametrize("given", [None, 3, b"linear", ["linear"]])
def test_only_text_is_parsed(given):
    with pytest.raises(InvalidInput, match="string"):
        parse(given)


@pytest.mark.parametrize("text", ["1/(1+sqdist)", "gaussian() + xx"])
def test_a_pairing_among_kernels_is_named_as_such(text):
    with pytest.raises(InvalidInput, match=r"pairing of a formula.*Formula\(") as caught:
        parse(text)
    assert "did you mean" not in str(caught.value)


def test_a_name_is_the_kernel_where_a_pairing_is_called_so_too():
    X = np.abs(np.random.default_rng(0).normal(size=(5, 3)))
    wanted = np.exp(-((X[:, None] - X) ** 2 / (X[:, None] + X)).sum(axis=2))
    for text in ("chi2", " CHI2 ", "chi2()", "exp(-chi2)", "0.5*chi2() + 0.5*chi2(gamma=1.0)"):
        np.testing.assert_allclose(as_kernel(text)(X), wanted, rtol=1e-12)


def test_many_columns_in_a_row_are_a_range():
    kernel = Gaussian(gamma=0.5).on(range(2, 5000)) + Linear().on([0, 1])
    assert repr(kernel) == "Gaussian(gamma=0.5).on(range(2, 5000)) + Linear().on([0, 1])"
    assert parse(repr(kernel)) == kernel
    for columns in ([0, 1, 2, 3, 4, 5, 6, 7, 9], [*range(9)][::-1], ["a", *range(1, 9)]):
        spelled = Linear().on(columns)
        assert repr(spelled) == f"Linear().on({columns!r})"
        assert parse(repr(spelled)) == spelled


@pytest.mark.parametrize("text", ["linear().on(range(0, 10**12))", "linear().on(range(0, 999999999))", "range(0, 3)"])
def test_a_range_is_of_columns_and_of_not_too_many(text):
    with pytest.raises(InvalidInput):
        parse(text)


def test_a_range_is_no_number():
    with pytest.raises(InvalidInput):
        parse("gaussian(gamma=range(0, 3))")


@pytest.mark.parametrize(("text", "why"), [("exp(-0.5*sqdist", "never closed"), ("", "invalid syntax")])
def test_what_is_no_expression_is_told_without_the_parsers_places(text, why):
    with pytest.raises(InvalidInput, match=why) as found:
        parse(text)
    assert "unknown" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("rbfdot(sigma=0.1)", r"kernlab's rbfdot is gaussian\(gamma=sigma\)"),
        ("vanilladot()", r"linear\(\)"),
        ("tanhdot", "sigmoid"),
    ],
)
def test_kernels_of_kernlab_are_told_by_our_names(text, meant):
    with pytest.raises(InvalidInput, match=meant):
        as_kernel(text)
    sigma, X = 0.1, np.array([[0.0, 1.0], [2.0, 0.0]])
    np.testing.assert_allclose(as_kernel(f"gaussian(gamma={sigma})")(X)[0, 1], np.exp(-sigma * 5.0))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ksvm", "SVC, SVR or OneClassSVM"), ("KernelKmeans", "KernelKMeans"), ("svc", "SVC"), ("specc", "Spectral")],
)
def test_a_name_that_mercer_does_not_have_is_sent_to_one_that_it_has(name, meant):
    with pytest.raises(AttributeError, match=f"no attribute {name!r}; did you mean .*{meant}"):
        getattr(mercer, name)
    assert not hasattr(mercer, "_of_nothing")


def test_each_text_is_a_kernel_of_its_own():
    """`set_params` changes a kernel in place, as scikit-learn's protocol demands: no other may change with it."""
    first = as_kernel("2*gaussian(gamma=1.0)")
    first.kernel.set_params(gamma=5.0)
    assert as_kernel("2*gaussian(gamma=1.0)").kernel.gamma == 1.0
    model = mercer.KernelRidge("gaussian(gamma=1.0)").fit([[0.0], [1.0]], [0.0, 1.0])
    model.kernel_.set_params(gamma=5.0)
    assert as_kernel("gaussian(gamma=1.0)").gamma == 1.0
