"""Every kernel against a definition written down independently: loops, mpmath, scikit-learn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise

from mercer import KernelOperator
from mercer.errors import InvalidInput
from mercer.kernels import (
    AdditiveChi2,
    ArrayPair,
    Chi2,
    Columns,
    Cosine,
    Formula,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)


def disagrees(K, expected, dtype):
    tolerance = 2e-6 if dtype == np.float32 else 2e-13
    return K.dtype != dtype or not np.allclose(K, expected, rtol=tolerance, atol=tolerance)


def test_block_is_the_definition(plain, dtype, draw_rows, by_definition):
    X, Z = draw_rows(dtype)
    assert not disagrees(plain.block(X, Z), by_definition(plain, X, Z), dtype)
    assert not disagrees(plain.block(X, X), by_definition(plain, X, X), dtype)


def test_call_is_the_definition(plain, dtype, draw_rows, by_definition):
    X, Z = draw_rows(dtype)
    assert not disagrees(plain(X, Z), by_definition(plain, X, Z), dtype)
    assert not disagrees(plain(X), by_definition(plain, X, X), dtype)


def test_diagonal_is_the_definition(plain, dtype, draw_rows, by_definition):
    X, _ = draw_rows(dtype)
    assert not disagrees(plain.diagonal(X), np.diag(by_definition(plain, X, X)), dtype)


def test_the_comparison_sees_a_planted_error(plain, draw_rows, by_definition):
    X, Z = draw_rows()
    expected = by_definition(plain, X, Z)
    assert disagrees(expected * (1 + 1e-9) + 1e-9, expected, np.float64)
    assert disagrees(expected.astype(np.float32), expected, np.float64)


def test_composed_kernels_are_composed_values(draw_rows, by_definition):
    X, Z = draw_rows()
    G, L, P = Gaussian(gamma=0.3), Linear(), Polynomial(degree=2)
    g, s, p = (by_definition(k, X, Z) for k in (G, L, P))
    for k, expected in [
        (0.5 * G + L * P, 0.5 * g + s * p),
        ((G + L) ** 3, (g + s) ** 3),
        (G / 4 + 2, g / 4 + 2),
        (1 + P, 1 + p),
        (G**0.5, np.sqrt(g)),
        (G.on([2, 0]), by_definition(G, X[:, [2, 0]], Z[:, [2, 0]])),
        (L.with_length_scales([1, 2, 4]), by_definition(L, X / [1, 2, 4], Z / [1, 2, 4])),
        (L.normalized(), by_definition(Cosine(), X, Z)),
    ]:
        assert not disagrees(k.block(X, Z), expected, np.float64), k
        assert not disagrees(k(X, Z), expected, np.float64), k


def test_diagonal_is_the_matrix_diagonal(kernel, rows, no_engine):
    X, _ = rows
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(kernel(X)), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        (Linear(), pairwise.linear_kernel),
        (Polynomial(degree=3, gamma=0.5), lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=3, gamma=0.5)),
        (Gaussian(gamma=0.5), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.5)),
        (Laplace(gamma=0.5, norm=1), lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.5)),
        (Sigmoid(gamma=0.5), lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.5, coef0=0.0)),
        (Cosine(), pairwise.cosine_similarity),
        (Chi2(gamma=0.5), lambda X, Z: pairwise.chi2_kernel(X, Z, gamma=0.5)),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_same_as_scikit_learn(kernel, theirs, rows):
    X, Z = rows
    np.testing.assert_allclose(kernel(X, Z), theirs(X, Z), rtol=1e-12, atol=1e-14)


def test_additive_chi2_and_that_of_scikit_learn(rows):
    X, Z = rows
    sums = (X.sum(axis=1)[:, None] + Z.sum(axis=1)) / 2
    np.testing.assert_allclose(AdditiveChi2()(X, Z), sums + pairwise.additive_chi2_kernel(X, Z) / 2, atol=1e-14)


@pytest.mark.parametrize("nu", [0.3, 1.0, 1.2, 3.0, 7.7, 12.5, 40.0, 120.0])
def test_matern_of_any_order(nu, by_definition):
    k, r = Matern(nu=nu, length_scale=1.3), np.array([0.0, 1e-200, 1e-8, 1e-3, 0.1, 1.0, 3.0, 30.0, 500.0])
    K = k.block(np.zeros((1, 1)), r[:, None])[0]
    expected = by_definition(k, np.zeros((1, 1)), r[:, None])[0]
    # K_ν itself is SciPy's, good to a relative error that grows with ν.
    np.testing.assert_allclose(K, expected, rtol=1e-11 if nu < 50 else 1e-8, atol=1e-200)
    assert not k.traceable


def test_matern_of_far_points_is_zero():
    far = np.array([[0.0], [1e4], [1e9], [1e15]], dtype=np.float32)
    for nu in (0.5, 1.5, 4.5, 9.5):
        assert np.array_equal(Matern(nu=nu).block(far, far), np.eye(4))
    assert np.array_equal(Matern(nu=1.2).block(far, far), np.eye(4))


def test_rational_quadratic_tends_to_the_gaussian(rows):
    X, Z = rows
    limit = RationalQuadratic(alpha=1e9, gamma=0.3)(X, Z)
    np.testing.assert_allclose(limit, Gaussian(gamma=0.3)(X, Z), rtol=1e-6)


def test_gaussian_from_sigma():
    assert Gaussian.from_sigma(2.0) == Gaussian(gamma=0.125)


@pytest.mark.parametrize("d", [3, 40])
def test_pairings_of_many_columns(d, dtype):
    rng = np.random.default_rng(d)
    X, Z = (rng.integers(0, 4, (n, d)).astype(dtype) for n in (7, 5))
    pair = ArrayPair(X, Z)
    for kind, one in {
        "dot": np.dot,
        "sqdist": lambda x, z: sum(np.subtract(x, z) ** 2),
        "l1": lambda x, z: sum(map(abs, np.subtract(x, z))),
        "min_sum": lambda x, z: sum(map(min, x, z)),
        "chi2": lambda x, z: sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b),
        "mismatches": lambda x, z: sum(np.not_equal(x, z)),
    }.items():
        expected = [[one(x, z) for z in Z.tolist()] for x in X.tolist()]
        value = getattr(pair, kind)
        assert value.dtype == dtype
        np.testing.assert_allclose(value, expected, rtol=1e-6 if dtype == np.float32 else 1e-13)
        column, row = getattr(pair.x, kind), getattr(pair.z, kind)
        assert (column.shape, row.shape) == ((7, 1), (1, 5))
        np.testing.assert_allclose(column[:, 0], [one(x, x) for x in X.tolist()], rtol=1e-6)
        np.testing.assert_allclose(row[0], [one(z, z) for z in Z.tolist()], rtol=1e-6)
    np.testing.assert_array_equal(pair.xx, pair.x.dot)
    np.testing.assert_array_equal(pair.zz, pair.z.dot)


@dataclass(frozen=True, repr=False)
class Histograms(Kernel):
    """χ² in a formula of a class of its own."""

    def formula(self, pair):
        return np.exp(-pair.through(Columns((1,))).chi2)


@pytest.mark.parametrize("kernel", [Formula("exp(-0.1*chi2)"), Formula("1 + dot - chi2") + Gaussian(1.0), Histograms()])
def test_chi2_of_negative_rows_has_no_value_on_any_path(kernel):
    X, Z = np.array([[2.0, -1.0], [1.0, 3.0]]), np.array([[1.0, 2.0], [0.5, 1.0]])
    for value in (lambda: kernel(X), lambda: kernel(Z, X), lambda: kernel.block(Z, X), lambda: kernel.check_data(X),
                  lambda: KernelOperator(kernel, X), lambda: kernel.normalized()(X)):  # fmt: skip
        with pytest.raises(InvalidInput, match="negative entries"):
            value()
    swapped = kernel.on([1, 0]) if isinstance(kernel, Histograms) else kernel.on([0])
    np.testing.assert_allclose(swapped(X, Z), swapped.block(X, Z))  # of columns without negative entries


def test_cosine_neither_overflows_nor_divides_by_zero():
    X = np.array([[1e150, 0.0], [0.0, 0.0], [1e-150, 1e-150], [3.0, 4.0]])
    half = math.sqrt(0.5)
    expected = [[1, 0, half, 0.6], [0, 0, 0, 0], [half, 0, 1, 1.4 * half], [0.6, 0, 1.4 * half, 1]]
    np.testing.assert_allclose(Cosine().block(X, X), expected, atol=1e-15)


def test_cosines_of_small_rows_in_float32_are_those_in_float64():
    X = (np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]]) * 1e-25).astype(np.float32)
    wanted = Cosine().block(X.astype(np.float64), X.astype(np.float64))
    for rows in (X, sp.csr_array(X)):
        assert Cosine().block(rows, X).dtype == Cosine().diagonal(rows).dtype == np.float32
        np.testing.assert_allclose(Cosine().block(rows, rows), wanted, rtol=1e-6)
        np.testing.assert_allclose(Cosine().diagonal(rows), [1, 1, 0], rtol=1e-6)
