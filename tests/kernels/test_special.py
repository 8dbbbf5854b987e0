"""Precomputed values, Python functions, constants."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels import Constant, Definiteness, Function, Gaussian, Linear, Precomputed

K = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 4.0]])


def test_precomputed_with_fewer_columns_than_rows():
    """Pitfall 20: landmarks are column indices, and nothing need be square."""
    k, rows = Precomputed(), np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(k(rows), rows)
    np.testing.assert_array_equal(k(rows, [2, 0]), rows[:, [2, 0]])
    np.testing.assert_array_equal(k.block(rows, None), rows)
    np.testing.assert_array_equal(k(sp.csr_array(rows), np.array([1])), rows[:, [1]])
    np.testing.assert_array_equal((2 * k + k)(rows, [1]), 3 * rows[:, [1]])
    np.testing.assert_array_equal((k * k)(rows), rows**2)
    assert k(rows.astype(np.float32)).dtype == np.float32


def test_precomputed_diagonal():
    np.testing.assert_array_equal(Precomputed().diagonal(K), [2.0, 3.0, 4.0])
    np.testing.assert_array_equal((0.5 * Precomputed()).diagonal(K), [1.0, 1.5, 2.0])
    with pytest.raises(InvalidInput, match="square"):
        Precomputed().diagonal(K[:2])


@pytest.mark.parametrize("Z", [[3], [-1], [0.5], [[0]], K.copy(), "0"])
def test_precomputed_wants_column_indices(Z):
    with pytest.raises(InvalidInput, match="training points"):
        Precomputed()(K, Z)


def test_precomputed_wants_finite_values():
    with pytest.raises(InvalidInput, match="Precomputed"):
        Precomputed()([[np.nan]])


def test_function_of_blocks(dtype):
    X, Z = np.ones((3, 2), dtype), np.full((2, 2), 2.0, dtype)
    k = Function(lambda X, Z: X @ Z.T)
    np.testing.assert_array_equal(k(X, Z), Linear()(X, Z))
    assert k(X, Z).dtype == dtype
    np.testing.assert_array_equal(k.diagonal(X), Linear().diagonal(X))
    np.testing.assert_allclose((k + Gaussian(gamma=1.0))(X, Z), Linear()(X, Z) + Gaussian(gamma=1.0)(X, Z))
    np.testing.assert_allclose(k.normalized()(X, Z), np.ones((3, 2)), rtol=1e-6)
    np.testing.assert_array_equal(k.on([1])(X, Z), Linear().on([1])(X, Z))


def test_function_of_pairs_of_any_objects():
    calls = []

    def shared(x, z):
        calls.append((x, z))
        return len(set(x) & set(z))

    words = ["kernel", "colonel", "ridge"]
    k = Function(shared, mode="pair")
    expected = np.array([[len(set(x) & set(z)) for z in words] for x in words], dtype=float)
    np.testing.assert_array_equal(k(words), expected)
    assert len(calls) == 6
    np.testing.assert_array_equal(k(words[:2], words[1:]), expected[:2, 1:])
    np.testing.assert_array_equal(k.diagonal(words), np.diag(expected))
    np.testing.assert_array_equal((2 * k + 1.0)(words), 2 * expected + 1)
    np.testing.assert_array_equal((2 * k + 1.0).diagonal(words), 2 * np.diag(expected) + 1)
    np.testing.assert_allclose(np.diag((k**2).normalized()(words)), np.ones(3))


def test_function_that_is_not_symmetric():
    k = Function(lambda x, z: x[0] - z[0], mode="pair", symmetric=False)
    np.testing.assert_array_equal(k([[1.0], [3.0]]), [[0, -2], [2, 0]])


@pytest.mark.parametrize(
    ("func", "mode", "advice"),
    [
        (lambda X, Z: np.ones(3), "block", "one number for each pair"),
        (lambda X, Z: (X @ Z.T)[:1], "block", "one number for each pair"),
        (lambda X, Z: X @ Z.T * np.nan, "block", "finite"),
        (lambda X, Z: X @ Z.T * 1j, "block", "real"),
        (lambda X, Z: [["a"] * 2] * 2, "block", "real"),
        (lambda x, z: np.inf, "pair", "finite"),
    ],
)
def test_what_a_function_returns_is_checked(func, mode, advice):
    with pytest.raises(InvalidInput, match=advice):
        Function(func, mode=mode)(np.ones((2, 2)))


def test_nothing_is_claimed_about_a_function():
    assert Function(min).properties.definiteness is Definiteness.UNKNOWN
    assert Precomputed().properties.definiteness is Definiteness.UNKNOWN


def test_constant(dtype):
    X = np.zeros((3, 1), dtype)
    np.testing.assert_array_equal(Constant(2)(X, X[:2]), np.full((3, 2), 2.0))
    assert Constant()(X).dtype == dtype
    np.testing.assert_array_equal(Constant(2).diagonal(X), np.full(3, 2.0))
