"""Sums and products of many kernels, such as one for each column of a table, are not nested too deeply for anything."""

from __future__ import annotations

import math
import operator
from functools import reduce

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian, Linear, Sum, parse

X = np.random.default_rng(0).standard_normal((30, 4))
TERMS = [Gaussian(gamma=0.1 + i / 300) for i in range(300)]


def from_the_right(join, terms):
    return reduce(lambda right, left: join(left, right), reversed(terms))


def terms_of(kernel, kind):
    return [*terms_of(kernel.left, kind), *terms_of(kernel.right, kind)] if isinstance(kernel, kind) else [kernel]


def depth(kernel, kind):
    return 1 + max(depth(kernel.left, kind), depth(kernel.right, kind)) if isinstance(kernel, kind) else 0


@pytest.mark.parametrize("fold", [reduce, from_the_right])
@pytest.mark.parametrize(("join", "whole"), [(operator.add, np.sum), (operator.mul, np.prod)])
def test_a_long_chain_is_a_balanced_tree_of_the_same_terms(join, whole, fold):
    kernel = fold(join, TERMS)
    assert terms_of(kernel, type(kernel)) == TERMS
    assert depth(kernel, type(kernel)) < 30
    expected = whole([one(X) for one in TERMS], axis=0)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(kernel.block(X, X), expected, rtol=1e-12, atol=1e-300)


def test_a_short_chain_is_nested_as_it_was_written():
    kernel = reduce(operator.add, TERMS[:16])
    assert depth(kernel, Sum) == 15
    assert kernel.left.left.right == TERMS[13]


def test_a_sum_over_columns_is_fitted_saved_and_read(tmp_path):
    kernel = sum(Gaussian(gamma=1.0).on([i % 4]) for i in range(120)) + Linear()
    model = mercer.KernelRidge(kernel).fit(X, X[:, 0])
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert again.kernel_ == kernel
    assert np.array_equal(again.predict(X), model.predict(X))
    assert mercer.check_kernel(kernel, X).verdict == "proved"


@pytest.mark.parametrize(("join", "sign"), [(operator.add, " + "), (operator.mul, " * ")])
def test_a_long_chain_is_read_from_its_text(join, sign):
    for number in (2, 16, 17, 18, 40, 100):
        kernel = reduce(join, TERMS[:number])
        assert parse(repr(kernel)) == kernel
        flat = parse(sign.join(map(repr, TERMS[:number])))  # without the brackets of the tree
        assert terms_of(flat, type(kernel)) == TERMS[:number]
        assert depth(flat, type(kernel)) <= 16


def test_numbers_are_added_one_after_the_other():
    assert parse("(" * 60 + "linear()" + " + 1)" * 60)(X)[0, 0] == pytest.approx(60 + X[0] @ X[0], rel=1e-12)


def test_mixed_chains_are_read_as_they_are_written():
    kernel = parse("2 * linear() * gaussian(gamma=1) + linear() / 2 / 2 + linear() ** 2 * 3")
    x = np.array([[0.7, 0.1]])
    square = float(x[0] @ x[0])
    assert math.isclose(float(kernel(x)[0, 0]), 2 * square + square / 4 + 3 * square**2)
