"""Kernels that visit each pair, against their definitions."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest

from mercer import KernelOperator, KernelRidge, check_kernel, errors, load, save
from mercer.kernels import AllSubstrings, Subsequence, parse

spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

X = reference.random_strings(0)
Z = reference.random_strings(1, longest=9)


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("decay", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("exact", [False, True])
def test_subsequences_equal_the_definition(length, decay, exact):
    kernel = Subsequence(length, decay, exact=exact)
    definition = lambda x, z: reference.subsequences(x, z, length, decay, exact)  # noqa: E731
    few = X[:6]
    np.testing.assert_allclose(kernel(few), reference.gram(definition, few), rtol=1e-12, atol=0)
    np.testing.assert_allclose(kernel(few, Z), reference.gram(definition, few, Z), rtol=1e-12, atol=0)
    np.testing.assert_array_equal(kernel.diagonal(few), np.diagonal(kernel(few)))


@pytest.mark.parametrize("decay", [0.5, 0.8])
def test_the_table_of_cat_car_bat_and_bar(decay):
    """Shawe-Taylor & Cristianini (2004), examples 11.16 and 11.17: λ⁴ for cat and car, 2λ⁴ + λ⁶ for cat itself."""
    K = Subsequence(2, decay, exact=True)(["cat", "car", "bat", "bar"])
    one, own = decay**4, 2 * decay**4 + decay**6
    expected = [[own, one, one, 0], [one, own, 0, one], [one, 0, own, one], [0, one, one, own]]
    np.testing.assert_allclose(K, expected, rtol=1e-15)
    normalised = Subsequence(2, decay, exact=True).normalized()(["cat", "car"])[0, 1]
    assert normalised == pytest.approx(1 / (2 + decay**2), rel=1e-14)


def test_levels_add_up_to_all_lengths():
    levels = sum(Subsequence(q, 0.6, exact=True)(X, Z) for q in range(1, 5))
    np.testing.assert_allclose(levels, Subsequence(4, 0.6)(X, Z), rtol=1e-13)
    np.testing.assert_array_equal(Subsequence(1, 0.6, exact=True)(X, Z), Subsequence(1, 0.6)(X, Z))


def test_exact_subsequences_keep_their_form(tmp_path):
    kernel = Subsequence(2, 0.7, exact=True)
    assert repr(kernel) == "Subsequence(length=2, decay=0.7, exact=True)"
    assert parse("subsequence(length=2, decay=0.7, exact=True)") == parse(repr(kernel)) == kernel
    assert kernel != Subsequence(2, 0.7)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert check_kernel(kernel, X).verdict == "proved"
    assert np.linalg.eigvalsh(kernel(X)).min() > -1e-12 * np.linalg.eigvalsh(kernel(X)).max()
    model = KernelRidge(kernel + 1, alpha=0.1).fit(X, np.arange(len(X)))
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))
    short = kernel.normalized()(["", "a", "ab"])
    np.testing.assert_allclose(short, Subsequence(2, 0.7).normalized()(["", "", "ab"]), rtol=1e-15)
    with pytest.raises(errors.NotAKernel, match="exact='yes'; give True or False"):
        Subsequence(exact="yes")


def test_operators_and_forms():
    kernel = Subsequence(3, 0.6)
    K = kernel(X, Z)
    v = np.random.default_rng(0).normal(size=(len(Z), 2))
    np.testing.assert_allclose(KernelOperator(kernel, X, Z) @ v, K @ v)
    square = KernelOperator(kernel, X)
    np.testing.assert_array_equal(square.rows([2, 0]), kernel(X)[[2, 0]])
    np.testing.assert_array_equal(square.toarray(), square.toarray().T)
    words = [x.replace("", " ").split() for x in X]
    np.testing.assert_array_equal(kernel(words), kernel(X))
    np.testing.assert_array_equal(Subsequence(3, 0.6, unit="word")([" ".join(word) for word in words]), kernel(X))
    assert parse(repr(kernel)) == kernel
    assert np.linalg.eigvalsh(kernel.normalized()(X)).min() > -1e-12


@pytest.mark.parametrize(
    "make", [lambda: Subsequence(0), lambda: Subsequence(9), lambda: Subsequence(2, 0.0), lambda: Subsequence(2, 1.5)]
)
def test_refused_parameters(make):
    with pytest.raises(errors.NotAKernel, match="; "):
        make()


@pytest.mark.parametrize("decay", [0.3, 1.0])
def test_all_substrings_equal_the_definition(decay):
    kernel = AllSubstrings(decay)
    repeated = [*X, "aaaaaaaa", "abababab", "ababababab"]
    for rows, columns in ((repeated, None), (repeated, Z)):
        expected = reference.gram(lambda x, z: reference.substrings(x, z, decay), rows, columns)
        found = kernel(rows) if columns is None else kernel(rows, columns)
        np.testing.assert_allclose(found, expected, rtol=0 if decay == 1 else 1e-13)
    np.testing.assert_array_equal(kernel.diagonal(repeated), np.diagonal(kernel(repeated)))


@pytest.mark.parametrize("columns", [1, 3])
def test_one_automaton_of_all_substrings(columns):
    rng = np.random.default_rng(3)
    many = ["".join(rng.choice(list("ab"), rng.integers(0, 30))) for _ in range(60)]
    v = rng.integers(-3, 4, (60, columns)).astype(float)
    kernel = AllSubstrings(1.0)
    np.testing.assert_array_equal(KernelOperator(kernel, X, many) @ v, kernel(X, many) @ v)
    np.testing.assert_array_equal(KernelOperator(kernel, many) @ v, kernel(many) @ v)
    words = [" ".join(text) for text in many]
    np.testing.assert_array_equal(AllSubstrings(1.0, unit="word")(words), kernel(many))
