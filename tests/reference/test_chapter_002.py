"""Chapter 002, kernel methods: feature maps, least mean squares, and what makes a kernel."""

from itertools import product
from math import comb

import numpy as np
import pytest

from mercer import KernelLMS, KernelRidge, MonomialFeatures
from mercer.kernels import Gaussian, MonomialSum, Polynomial, Spectrum
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
X, Z = RNG.uniform(-1, 1, size=(2, 12, 3))
Y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
PHI = MonomialFeatures(3)


def test_a_cubic_function_is_linear_in_its_features():
    """(5.1)."""
    theta = np.array([0.5, -1.0, 2.0, 3.0])
    x = np.linspace(-2, 2, 9)
    assert_close(PHI.fit_transform(x[:, None]) @ theta, 0.5 - x + 2 * x**2 + 3 * x**3, rtol=1e-12)


def test_the_inner_product_of_all_monomials_is_a_sum_of_powers():
    """(5.5), (5.9), (5.10)."""
    phi_x, phi_z = PHI.fit_transform(X), PHI.fit_transform(Z)
    assert phi_x.shape[1] == 1 + 3 + 9 + 27
    s = X @ Z.T
    assert_close(phi_x @ phi_z.T, 1 + s + s**2 + s**3, rtol=1e-11)
    assert_close(MonomialSum(3)(X, Z), 1 + s + s**2 + s**3, rtol=1e-11)


def test_squares_of_inner_products():
    """5.4: (xᵀz)² and (xᵀz + c)², entry by entry."""
    square = MonomialFeatures(2, kind="power").fit_transform(X)
    assert_close(square, [np.outer(x, x).ravel() for x in X])
    assert_close(square @ square.T, (X @ X.T) ** 2)
    c = 0.4
    shifted = MonomialFeatures(2, c, kind="all").fit_transform(X)
    assert_close(shifted, [np.r_[np.outer(x, x).ravel(), np.sqrt(2 * c) * x, c] for x in X])
    assert_close(shifted @ shifted.T, Polynomial(2, coef0=c)(X))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_power_of_a_shifted_product_has_so_many_monomials(k):
    """5.4: C(d + k, k)."""
    assert MonomialFeatures(k, kind="all", distinct=True).fit(X).n_output_features_ == comb(3 + k, k)


def test_theta_and_beta_take_the_same_batch_steps():
    """(5.3), (5.6) to (5.8), (5.11), (5.12)."""
    phi, theta, alpha = PHI.fit_transform(X), np.zeros(40), 0.02
    for t in range(1, 16):
        theta = theta + alpha * sum((Y[i] - theta @ phi[i]) * phi[i] for i in range(12))
        model = KernelLMS(MonomialSum(3), step_size=alpha, max_iter=t, tol=None).fit(X, Y)
        np.testing.assert_allclose(phi.T @ model.dual_coef_, theta, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.predict(Z), PHI.transform(Z) @ theta, rtol=1e-9, atol=1e-11)


def test_theta_and_beta_take_the_same_stochastic_steps():
    """(5.4)."""
    phi, theta, model = PHI.fit_transform(X), np.zeros(40), KernelLMS(MonomialSum(3), step_size=0.1)
    for i in range(12):
        theta = theta + 0.1 * (Y[i] - theta @ phi[i]) * phi[i]
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
        np.testing.assert_allclose(model.predict(Z), PHI.transform(Z) @ theta, rtol=1e-9, atol=1e-11)


def test_to_stop_early_is_a_regularisation_like_ridge():
    """Along an eigenvector of K the share 1 − (1 − αλ)ᵗ is fitted after t steps, and λ/(λ + μ) by ridge regression."""
    kernel, alpha = Gaussian(gamma=0.5), 0.1
    values, U = np.linalg.eigh(kernel(X))
    for t in (1, 10, 300):
        model = KernelLMS(kernel, step_size=alpha, max_iter=t, tol=None).fit(X, Y)
        np.testing.assert_allclose(model.predict(X), U @ ((1 - (1 - alpha * values) ** t) * (U.T @ Y)), atol=1e-10)
    ridge = KernelRidge(kernel, alpha=0.3).fit(X, Y)
    np.testing.assert_allclose(ridge.predict(X), U @ (values / (values + 0.3) * (U.T @ Y)), atol=1e-10)


def test_kernel_matrices_are_symmetric_and_positive_semi_definite():
    """5.4, Mercer's condition, for the chapter's kernels; the Gaussian with σ."""
    gaussian = Gaussian.from_sigma(0.7)
    assert_close(gaussian(X, Z), np.exp(-((X[:, None] - Z) ** 2).sum(axis=2) / (2 * 0.7**2)), rtol=1e-12)
    for kernel in (gaussian, MonomialSum(3), Polynomial(2, coef0=0.4), Polynomial(3, coef0=0.0)):
        K = kernel(X)
        np.testing.assert_array_equal(K, K.T)
        assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)


def test_the_spectrum_kernel_counts_substrings():
    """5.4: all 3ᵏ features of strings over three letters, written out."""
    strings, k = ["abcabc", "cab", "", "aaaa", "ca"], 3
    words = ["".join(word) for word in product("abc", repeat=k)]
    starts = [[x[i : i + k] for i in range(len(x) - k + 1)] for x in strings]
    phi = np.array([[found.count(word) for word in words] for found in starts])
    np.testing.assert_array_equal(Spectrum(k)(strings), phi @ phi.T)
