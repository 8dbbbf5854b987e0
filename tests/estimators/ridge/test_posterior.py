"""The Gaussian process's covariance against scikit-learn's, and against the bordered system of the intercept."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from mercer import KernelRidge, KernelRidgeCV
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import Gaussian, Linear, Precomputed

KERNEL = Gaussian(gamma=0.125)  # an RBF of length scale 2


@pytest.fixture
def data():
    X, y = load_diabetes(return_X_y=True)
    return X[:150] * 20, y[:150] / 50, X[150:200] * 20


@pytest.fixture
def weights():
    return np.random.default_rng(0).uniform(0.2, 3.0, 150)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-5])
def test_equals_scikit_learns_gaussian_process(data, alpha):
    X, y, new = data
    ours = KernelRidge(KERNEL, alpha).fit(X, y)
    theirs = GaussianProcessRegressor(RBF(2.0), alpha=alpha, optimizer=None).fit(X, y)
    for rows in (new, X[:20]):
        mean, std = ours.predict(rows, return_std=True)
        expected_mean, expected_std = theirs.predict(rows, return_std=True)
        np.testing.assert_allclose(mean, expected_mean, atol=1e-8)
        np.testing.assert_allclose(std, expected_std, atol=1e-8)
        covariance = ours.predict(rows, return_cov=True)[1]
        np.testing.assert_allclose(covariance, theirs.predict(rows, return_cov=True)[1], atol=1e-8)
        np.testing.assert_array_equal(covariance, covariance.T)


def test_weights_are_noises(data, weights):
    X, y, new = data
    std = KernelRidge(KERNEL, 0.1).fit(X, y, weights).predict(new, return_std=True)[1]
    theirs = GaussianProcessRegressor(RBF(2.0), alpha=0.1 / weights, optimizer=None).fit(X, y)
    np.testing.assert_allclose(std, theirs.predict(new, return_std=True)[1], atol=1e-8)


def test_an_intercept_has_a_flat_prior(data, weights):
    X, y, new = data
    model = KernelRidge(KERNEL, 0.1, fit_intercept=True).fit(X, y, weights)
    mean, covariance = model.predict(new, return_cov=True)
    bordered = np.block([[KERNEL(X) + np.diag(0.1 / weights), np.ones((150, 1))], [np.ones(150), 0.0]])
    C = np.hstack([KERNEL(new, X), np.ones((50, 1))])
    np.testing.assert_allclose(mean, C @ np.linalg.solve(bordered, np.append(y, 0.0)), atol=1e-8)
    np.testing.assert_allclose(covariance, KERNEL(new) - C @ np.linalg.solve(bordered, C.T), atol=1e-8)
    np.testing.assert_allclose(model.predict(new, return_std=True)[1] ** 2, np.diag(covariance), atol=1e-10)
    # A flat prior is the limit of a wide one.
    wide = GaussianProcessRegressor(RBF(2.0) + ConstantKernel(1e6), alpha=0.1 / weights, optimizer=None).fit(X, y)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), wide.predict(new, return_std=True)[1], atol=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_method_without_a_factor_leads_to_the_same_place(data, intercept):
    X, y, new = data
    ample = KernelRidge(KERNEL, 0.05, fit_intercept=intercept, solver="cg").fit(X, y)
    expected = ample.predict(new, return_cov=True)[1]
    ample.set_params(memory="440kB")  # a factor would take 180 kB of the 176 that one matrix may
    posterior = ample.posterior()
    assert posterior.factor is None
    assert "conjugate" in posterior.method
    np.testing.assert_allclose(posterior.covariance(new), expected, atol=1e-8)
    np.testing.assert_allclose(posterior.std(new) ** 2, np.diag(expected), atol=1e-8)


def test_many_targets_and_many_lambdas(data):
    X, y, new = data
    Y = np.column_stack([y, -y])
    same = KernelRidge(KERNEL, 0.1).fit(X, Y)
    one = KernelRidge(KERNEL, 0.1).fit(X, y)
    assert same.predict(new, return_std=True)[1].shape == (50, 2)
    np.testing.assert_array_equal(same.predict(new, return_std=True)[1][:, 1], one.predict(new, return_std=True)[1])
    apart = KernelRidge(KERNEL, [1.0, 0.1]).fit(X, Y)
    np.testing.assert_array_equal(apart.predict(new, return_std=True)[1][:, 1], one.predict(new, return_std=True)[1])
    assert apart.predict(new, return_cov=True)[1].shape == (50, 50, 2)
    with pytest.raises(InvalidInput, match="2 different α"):
        apart.posterior()


def test_rows_in_any_form_and_batches(data):
    X, y, new = data
    expected = KernelRidge(KERNEL, 0.1).fit(X, y).predict(new, return_std=True)[1]
    sparse = KernelRidge(KERNEL, 0.1).fit(sp.csr_array(X), y).posterior()
    np.testing.assert_allclose(sparse.std(sp.csr_array(new)), expected, atol=1e-10)
    narrow = KernelRidge(KERNEL, 0.1).fit(X.astype(np.float32), y).posterior()
    np.testing.assert_allclose(narrow.std(new.astype(np.float32)), expected, atol=1e-5)
    few = KernelRidge(KERNEL, 0.1, memory="500kB").fit(X, y).posterior()
    assert len(list(few._solved(new))) == 1
    np.testing.assert_allclose(few.std(np.tile(new, (5, 1))), np.tile(expected, 5), atol=1e-10)
    assert len(list(few._solved(np.tile(new, (5, 1))))) > 1
    with pytest.raises(MemoryExceeded, match="covariance"):
        few.covariance(np.tile(new, (5, 1)))


def test_a_posterior_stays_as_it_was(data):
    X, y, new = data
    model = KernelRidge(KERNEL, 0.1).fit(X, y)
    posterior, before = model.posterior(), model.predict(new, return_std=True)[1]
    model.set_params(alpha=10.0)
    np.testing.assert_array_equal(model.predict(new, return_std=True)[1], before)
    model.fit(X[:50], y[:50])
    np.testing.assert_array_equal(posterior.std(new), before)


def test_the_model_that_chose_its_lambda_has_it_too(data):
    X, y, new = data
    chosen = KernelRidgeCV(KERNEL, [0.1, 1.0]).fit(X, y)
    plain = KernelRidge(KERNEL, chosen.alpha_).fit(X, y)
    np.testing.assert_array_equal(chosen.predict(new, return_std=True), plain.predict(new, return_std=True))


def test_without_noise_nothing_is_left_at_the_training_rows():
    X = 3 * np.random.default_rng(0).standard_normal((40, 3))
    std = KernelRidge(Gaussian(gamma=1.0), 0.0).fit(X, X[:, 0]).predict(X, return_std=True)[1]
    assert np.all(std >= 0)
    np.testing.assert_allclose(std, 0.0, atol=1e-6)


def test_what_has_no_variance_is_refused(data):
    X, y, new = data
    with pytest.raises(InvalidInput, match="one"):
        KernelRidge(KERNEL).fit(X, y).predict(new, return_std=True, return_cov=True)
    with pytest.raises(InvalidInput, match="precomputed"):
        KernelRidge(Precomputed()).fit(KERNEL(X), y).predict(KERNEL(new, X), return_std=True)
    model = KernelRidge(Linear(), 0.1).fit(X, y)
    model.alpha_ = 0.0
    with pytest.raises(InvalidInput, match="positive definite"):
        model.posterior()


@pytest.mark.parametrize("intercept", [False, True])
def test_the_prior_variance_is_the_maximum_likelihood_estimate(data, weights, intercept):
    X, y, _ = data
    model = KernelRidge(KERNEL, 0.1, fit_intercept=intercept).fit(X, y, weights)
    left, C = y - model.intercept_, KERNEL(X) + 0.1 * np.diag(1 / weights)
    found = model.prior_variance()
    np.testing.assert_allclose(found, left @ np.linalg.solve(C, left) / 150, rtol=1e-9)
    sizes = np.array([0.9, 1.0, 1.1]) * found  # −2 log likelihood of N(0, σ²C) but for a constant: the least is there
    assert np.argmin(150 * np.log(sizes) + found * 150 / sizes) == 1
    both = KernelRidge(KERNEL, [0.1, 1.0]).fit(X, np.column_stack([y, 3 * y])).prior_variance()
    apart = [KernelRidge(KERNEL, alpha).fit(X, s * y).prior_variance() for alpha, s in ((0.1, 1), (1.0, 3))]
    np.testing.assert_allclose(both, apart, rtol=1e-9)


def test_a_model_on_landmarks_does_not_know_its_prior_variance(data):
    X, y, _ = data
    with pytest.raises(InvalidInput, match="does not know its targets"):
        KernelRidge(KERNEL, 0.1, solver="nystroem", n_landmarks=20).fit(X, y).prior_variance()
