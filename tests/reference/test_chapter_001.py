"""Chapter 001, kernel PCA in four steps."""

import numpy as np

from mercer import KernelPCA
from mercer.kernels import Gaussian
from mercer.operators import Centered, Dense
from mercer.testing import assert_close

X = np.random.default_rng(0).normal(size=(30, 3))
NEW = np.random.default_rng(1).normal(size=(7, 3))
KERNEL = Gaussian(gamma=0.3)


def test_step_2_centres_the_kernel_matrix():
    K, ones = KERNEL(X), np.ones((30, 30))
    expected = K - ones @ K / 30 - K @ ones / 30 + ones @ K @ ones / 30**2
    np.testing.assert_allclose(Centered(Dense(K)).toarray(), expected, atol=1e-14)


def test_step_3_solves_the_eigenproblem_with_its_normalisation():
    model = KernelPCA(4, KERNEL).fit(X)
    K, a, lam = Centered(Dense(KERNEL(X))).toarray(), model.dual_coef_, model.explained_variance_
    np.testing.assert_allclose(K @ a, 30 * lam * a, atol=1e-12)
    assert_close(30 * lam * np.sum(a**2, axis=0), 1.0, rtol=1e-10)


def test_step_4_scores_a_new_point_by_the_centred_kernel():
    model, K = KernelPCA(4, KERNEL).fit(X), KERNEL(X)
    k = KERNEL(NEW, X)
    centred = k - k.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    np.testing.assert_allclose(model.transform(NEW), centred @ model.dual_coef_, atol=1e-12)


def test_the_variance_of_the_scores_is_the_eigenvalue():
    model = KernelPCA(4, KERNEL).fit(X)
    assert_close(model.transform(X).var(axis=0), model.explained_variance_, rtol=1e-10)
