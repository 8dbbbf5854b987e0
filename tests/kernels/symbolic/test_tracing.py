"""The traced formula is the formula: on every kernel, on random compositions, and nothing is traced wrongly."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import CannotTrace, InvalidInput
from mercer.kernels import (
    ArrayPair,
    Cauchy,
    Circle,
    Columns,
    Expression,
    Function,
    Gaussian,
    Intersection,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    Sigmoid,
    SymbolPair,
    evaluate,
    trace,
)
from mercer.kernels.base import full, trace_or_none
from mercer.kernels.symbolic import distances, functions
from mercer.kernels.symbolic.expression import BINARY, LEAVES, UNARY, constant, node

VOCABULARY = {*LEAVES, *UNARY, *BINARY, "pow", "where"}
SYMBOL = SymbolPair().sqdist
OTHER = SymbolPair().dot


def on_arrays(X, Z):
    """Leaves as an ArrayPair has them."""
    pair = ArrayPair(X, Z)

    def leaf(expression):
        kind, views = expression.value
        seen = pair
        for view in views:
            seen = seen.through(view)
        return getattr({"pairing": seen, "self_x": seen.x, "self_z": seen.z}[expression.op], kind)

    return leaf


def ops(expression):
    return {expression.op}.union(*map(ops, expression.args))


def run(kernel, X, Z):
    return full(evaluate(trace(kernel), on_arrays(X, Z)), (len(X), len(Z)), X)


def test_traced_equals_formula(kernel, dtype, draw_rows):
    X, Z = draw_rows(dtype)
    assert kernel.traceable
    assert ops(trace(kernel)) <= VOCABULARY
    values = run(kernel, X, Z)
    assert values.dtype == dtype
    np.testing.assert_allclose(values, kernel.block(X, Z), rtol=1e-12 if dtype == np.float64 else 1e-5, atol=1e-12)


LEAF_KERNELS = st.sampled_from(
    [Linear(), Gaussian(gamma=0.5), Cauchy(), Laplace(gamma=0.3), Polynomial(degree=2), Periodic(), Intersection()]
)
COMPOSITIONS = st.recursive(
    LEAF_KERNELS,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda c, k: c * k, st.floats(0, 3), inner),
        st.builds(lambda k: k.normalized(), inner),
        st.builds(lambda k: k**2, inner),
        st.builds(lambda k: k.on([1, 0]), inner),
        st.builds(lambda k: k + 0.5, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(COMPOSITIONS)
def test_random_compositions_trace_to_their_formula(k):
    X, Z = np.array([[0.0, 0.0], [1.0, 0.5], [0.25, 0.75]]), np.array([[1.0, 0.5], [0.5, 0.0]])
    block = k.block(X, Z)
    try:
        values = run(k, X, Z)
    except InvalidInput:
        raise AssertionError(k) from None
    np.testing.assert_allclose(values, block, rtol=1e-10, atol=1e-12 * max(1.0, np.abs(block).max()))


def test_self_pairs_and_views_are_in_the_leaves():
    assert SymbolPair().xx == SymbolPair().x.dot == Expression("self_x", (), ("dot", ()))
    assert SymbolPair().zz == Expression("self_z", (), ("dot", ()))
    assert SymbolPair().x.sqdist == SymbolPair().z.chi2 == constant(0.0)
    assert SymbolPair().x.z.dot == SymbolPair().x.x.dot == SymbolPair().x.dot
    leaf = trace(Periodic(period=2.0).on([3])).args[0].args[1]
    assert leaf.value == ("sqdist", (Columns((3,)), Circle(2.0)))


def test_normalized_stationary_kernel_costs_nothing():
    assert trace(Gaussian(gamma=0.5).normalized()) == trace(Gaussian(gamma=0.5))


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (SYMBOL * 1, SYMBOL),
        (SYMBOL + 0, SYMBOL),
        (0 + SYMBOL, SYMBOL),
        (SYMBOL - 0, SYMBOL),
        (0 - SYMBOL, -SYMBOL),
        (-abs(-SYMBOL), node("neg", node("abs", -SYMBOL))),
        (np.negative(-SYMBOL), SYMBOL),
        (2 * (3 * SYMBOL), 6 * SYMBOL),
        (-(2 * SYMBOL), -2 * SYMBOL),
        (SYMBOL * 3 / 2, 1.5 * SYMBOL),
        (SYMBOL / 4, 0.25 * SYMBOL),
        (SYMBOL**1, SYMBOL),
        (SYMBOL - (-OTHER), SYMBOL + OTHER),
        (constant(2) ** 3, constant(8)),
        (np.exp(constant(0)), constant(1)),
        (SYMBOL > 1, node("less", 1, SYMBOL)),
        (SYMBOL >= OTHER, node("less_equal", OTHER, SYMBOL)),
        (np.where(constant(1) > 0, SYMBOL, OTHER), SYMBOL),
        (np.float64(2.0) * SYMBOL, 2 * SYMBOL),
        (np.clip(SYMBOL, 0, 1), node("minimum", node("maximum", SYMBOL, 0), 1)),
        (np.square(SYMBOL), SYMBOL**2),
        (np.reciprocal(SYMBOL), 1 / SYMBOL),
        (abs(SYMBOL), node("abs", SYMBOL)),
        (2**SYMBOL, np.exp(math.log(2) * SYMBOL)),
    ],
)
def test_simplification_keeps_the_meaning(built, expected):
    assert built == expected


def test_zero_times_a_symbol_stays():
    assert (0 * SYMBOL).op == "mul"  # 0 · inf is NaN
    assert (1e-200 * (1e-200 * SYMBOL)).args[1].op == "mul"  # the product of the factors would be 0
    assert (SYMBOL / 0).op == "div"


@pytest.mark.parametrize(
    "use",
    [
        float,
        int,
        bool,
        list,
        len,
        math.exp,
        np.asarray,
        np.sum,
        np.linalg.norm,
        np.logaddexp.reduce,
        lambda e: np.frexp(e),
        lambda e: np.arctan2(e, 1.0),
        lambda e: np.exp(e, out=np.empty(1)),
        lambda e: e**e,
        lambda e: e[0],
        lambda e: e + 1j,
        lambda e: e + np.ones(3),
        lambda e: e == 0,
        lambda e: np.where(e),
    ],
)
def test_what_needs_numbers_cannot_be_traced(use):
    with pytest.raises(CannotTrace, match="Expression"):
        use(SYMBOL)


def traced(formula):
    @dataclass(frozen=True, repr=False)
    class Own(Kernel):
        def formula(self, pair):
            return formula(pair)

    return Own()


@pytest.mark.parametrize(
    "formula",
    [
        lambda pair: pair.dot if pair.sqdist > 0 else 0,
        lambda pair: np.where(pair.xx == pair.zz, 1.0, 0.0),
        lambda pair: pair.dot.astype(float),
        lambda pair: pair.unknown,
        lambda pair: "text",
    ],
)
def test_a_formula_is_traced_truly_or_not_at_all(formula):
    kernel = traced(formula)
    with pytest.raises(CannotTrace):
        trace(kernel)
    assert not kernel.traceable


def test_an_untraceable_formula_still_has_its_values(rows):
    X, Z = rows
    own = traced(lambda pair: np.where(pair.xx == pair.zz, 1.0, 0.0))
    assert np.array_equal(own.block(X, Z), (X**2).sum(1)[:, None] == (Z**2).sum(1))
    mixed = own + Gaussian(gamma=1.0)
    assert not mixed.traceable
    np.testing.assert_allclose(mixed.block(X, Z), own.block(X, Z) + Gaussian(gamma=1.0).block(X, Z))


def test_a_number_is_a_formula(rows):
    X, Z = rows
    assert trace(traced(lambda pair: 2)) == constant(2.0)
    assert np.array_equal(traced(lambda pair: 2).block(X, Z), np.full((6, 4), 2.0))
    assert traced(lambda pair: pair.xx).block(X, Z).flags.writeable


def test_traceable_without_numbers():
    assert Gaussian().traceable
    assert (Gaussian().on(["a", "b"]) + Laplace(gamma="median")).traceable
    assert not Function(min).traceable
    assert not Precomputed().traceable
    assert not (Matern(nu=1.2) + Gaussian()).traceable
    with pytest.raises(InvalidInput, match="resolve"):
        trace(Gaussian())


def test_traceable_follows_set_params():
    kernel = Matern(nu=1.5)
    assert kernel.traceable
    assert not kernel.set_params(nu=1.3).traceable


def test_what_is_traced_follows_set_params():
    """hash(-1.0) == hash(-2.0): a kernel changed in place would be its own key."""
    kernel = Sigmoid(gamma=0.5, coef0=-1.0)
    assert trace_or_none(kernel) == trace(Sigmoid(gamma=0.5, coef0=-1.0))
    assert trace_or_none(kernel.set_params(coef0=-2.0)) == trace(Sigmoid(gamma=0.5, coef0=-2.0))


def test_expressions_are_values():
    e = trace(0.5 * Gaussian(gamma=2.0) + Linear())
    for same in (pickle.loads(pickle.dumps(e)), copy.deepcopy(e), trace(0.5 * Gaussian(gamma=2.0) + Linear())):
        assert same == e
        assert hash(same) == hash(e)
    assert trace(Linear()) != trace(Polynomial())
    with pytest.raises(AttributeError):
        e.op = "sub"


def test_shared_parts_are_computed_once():
    calls = []
    deep = OTHER
    for _ in range(200):
        deep = 0.5 * (deep + deep)
    value = evaluate(deep, lambda leaf: calls.append(leaf) or np.array([1.0]))
    assert np.array_equal(value, [1.0])
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "sin", "cos", "abs"])
def test_functions_of_numbers_arrays_and_symbols(name):
    ours, theirs = getattr(functions, name), getattr(np, name)
    x = np.array([0.5, 2.0], dtype=np.float32)
    assert np.array_equal(ours(x), theirs(x))
    assert type(ours(0.5)) is float
    assert ours(0.5) == theirs(0.5)
    assert ours(SYMBOL) == theirs(SYMBOL) == Expression(name, (SYMBOL,))


def test_functions_of_two():
    x = np.array([0.5, 2.0], dtype=np.float32)
    assert functions.minimum(x, 1.0).dtype == np.float32
    assert np.array_equal(functions.maximum(x, 1.0), [1.0, 2.0])
    assert functions.where(x > 1, x, 0.0).dtype == np.float32
    assert functions.minimum(SYMBOL, OTHER).op == "minimum"


@pytest.mark.parametrize("pair", [ArrayPair(np.eye(2), np.eye(2)), ArrayPair(np.eye(2), np.eye(2)).x, SymbolPair()])
def test_a_pairing_that_is_not_there_is_refused_with_those_that_are(pair):
    with pytest.raises(AttributeError, match="'sqdistt'; did you mean 'sqdist'") as caught:
        _ = pair.sqdistt
    assert "dot, sqdist, l1, min_sum, chi2, mismatches, xx and zz" in str(caught.value)
    assert not hasattr(pair, "foo")
    assert hasattr(pair, "l1")
    assert type(copy.deepcopy(pair)) is type(pair)


def test_a_formula_with_a_wrong_pairing_says_which():
    class Misspelt(Kernel):
        def formula(self, pair):
            return 1 / (1 + pair.sqdistt)

    with pytest.raises(AttributeError, match="did you mean 'sqdist'"):
        Misspelt()(np.eye(2))
    with pytest.raises(CannotTrace, match="did you mean 'sqdist'"):
        trace(Misspelt())


def test_an_attribute_error_within_a_pairing_is_told_as_it_is(monkeypatch):
    def failing(X, Z):
        raise AttributeError("what went wrong within")

    monkeypatch.setattr(distances, "sqdist", failing)
    with pytest.raises(AttributeError, match="what went wrong within"):
        _ = ArrayPair(np.eye(2), np.eye(2)).sqdist
