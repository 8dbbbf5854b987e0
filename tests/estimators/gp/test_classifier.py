"""Gaussian process classification against scikit-learn's, quadrature in mpmath, and finite differences."""

import pickle

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process.kernels import RBF

import mercer
from mercer import GaussianProcessClassifier
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.estimators.gp.classifier import averaged
from mercer.kernels import Gaussian, Precomputed
from mercer.select import covariance, laplace
from mercer.testing import assert_close


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 2))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=70) > 0).astype(int), rng.normal(size=(30, 2))


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_the_mode_by_factors_is_that_by_conjugate_gradients(scale, data, monkeypatch):
    X, y, _ = data
    K, Y = scale * Gaussian(0.5)(X), np.column_stack([y, 1 - y]).astype(float)
    calls = []
    with monkeypatch.context() as patch:
        patch.setattr(laplace, "solve", lambda *_: calls.append(1))
        alpha, f, gap = laplace.modes(K, Y)
    assert not calls
    assert gap <= laplace.TOLERANCE
    assert_close(K @ alpha, f, rtol=1e-9)
    monkeypatch.setattr(laplace, "FEW", 0)
    assert_close(f, laplace.modes(K, Y)[1], rtol=1e-5)


def test_newtons_steps_have_the_exact_matrix_and_leave_an_indefinite_one(data, monkeypatch):
    X, y, _ = data
    K, factored = 1e3 * Gaussian(0.5)(X), []
    dposv = laplace.lapack.dposv
    monkeypatch.setattr(laplace.lapack, "dposv", lambda *a, **k: factored.append(1) or dposv(*a, **k))
    assert laplace._by_factors(K, y.astype(float)) is not None
    exact = len(factored)
    assert exact <= 12  # quadratic: 0.1 % of error in the matrix would make it linear
    assert laplace._by_factors(-10 * np.eye(len(y)), y.astype(float)) is None
    assert len(factored) == exact + 1


def test_equals_scikit_learns_at_given_parameters(data):
    X, y, new = data
    ours = GaussianProcessClassifier(2.0 * Gaussian(0.5), optimize=False).fit(X, y)
    theirs = Peer(2.0 * RBF(1.0), optimizer=None, max_iter_predict=100).fit(X, y)
    value, gradient = ours.log_marginal_likelihood(eval_gradient=True)
    expected, slopes = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(expected, rel=1e-8)
    # γ = 1/(2ℓ²), so ∂/∂ log γ = −½ ∂/∂ log ℓ
    np.testing.assert_allclose(gradient, slopes * [1.0, -0.5], rtol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=2e-3)  # its integral is rough
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))


def test_finds_scikit_learns_parameters(data):
    X, y, _ = data
    ours, theirs = GaussianProcessClassifier("gaussian(gamma=0.5)").fit(X, y), Peer(1.0 * RBF(1.0)).fit(X, y)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-5)
    assert ours.log_marginal_likelihood_value_ >= theirs.log_marginal_likelihood_value_ - 1e-6


def test_mode_and_variance_by_brute_force(data):
    X, y, new = data
    model = GaussianProcessClassifier(2.0 * Gaussian(0.5), optimize=False).fit(X, y)
    K, C, own = (2.0 * Gaussian(0.5))(X), (2.0 * Gaussian(0.5))(new, X), 2.0
    # Over a root of K, so that no inverse of it is needed.
    L = np.linalg.cholesky(K + 1e-12 * np.eye(70))
    loss = lambda v: 0.5 * v @ v + np.sum(np.logaddexp(0, (1 - 2 * y) * (L @ v)))  # noqa: E731
    f = L @ minimize(loss, np.zeros(70), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(model.latent_[:, 0], f, atol=1e-4)
    p = 1 / (1 + np.exp(-model.latent_[:, 0]))
    mean, std = model.latent(new)
    np.testing.assert_allclose(mean, C @ (y - p), atol=1e-6)
    variance = own - np.einsum("ij,ji->i", C, np.linalg.solve(K + np.diag(1 / (p * (1 - p))), C.T))
    np.testing.assert_allclose(std**2, variance, atol=1e-7)


@pytest.mark.parametrize("kernel", ["gaussian(gamma=0.5)", "matern(nu=1.5) + 0.3*linear()", "exp(-sqdist)"])
@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_against_differences(data, kernel, classes):
    X, y, _ = data
    labels = y if classes == 2 else y + (X[:, 0] > 0.5)
    model = GaussianProcessClassifier(kernel, optimize=False).fit(X, labels)
    gradient = model.log_marginal_likelihood(eval_gradient=True)[1]
    for i, name in enumerate(model.parameter_names_):
        step = 1e-4 * (np.arange(len(gradient)) == i)
        up, down = (model.log_marginal_likelihood(model.theta_ + sign * step) for sign in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-4, rel=1e-5, abs=1e-6), name


@pytest.mark.parametrize(("m", "s"), [(0.3, 0.0), (1.5, 0.4), (-2.0, 0.99), (-2.0, 1.0), (0.7, 5.0), (3.0, 60.0)])
def test_probabilities_are_the_integral(m, s):
    found = averaged(np.array([m]), np.array([s]))[0]
    density = lambda z: mpmath.npdf(z, m, s) / (1 + mpmath.exp(-z))  # noqa: E731
    parts = [m - 12 * s, m - 3 * s, min(m, 0), max(m, 0) + 1e-9, m + 3 * s, m + 12 * s]
    expected = mpmath.quad(density, sorted(parts)) if s else 1 / (1 + mpmath.exp(-m))
    assert found == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_likelihood_at_the_fits_parameters_is_the_fits(kernel, classes, tmp_path):
    """Of rows far from the border σ(f) is the label but for rounding, and α has either sign."""
    rng = np.random.default_rng(1)
    X = rng.standard_t(1.5, size=(60, 2)) * 3
    model = GaussianProcessClassifier(kernel).fit(X, (X[:, 0] > 0) * 1 + (X[:, 0] > 3) * (classes - 2))
    mercer.save(model, tmp_path / "m")
    assert np.abs(model.dual_coef_).min() < 1e-15
    for one in (model, mercer.load(tmp_path / "m")):
        assert one.log_marginal_likelihood(one.theta_) == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-9)


def test_many_classes_are_each_set_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = GaussianProcessClassifier(3.0 * Gaussian(0.3), optimize=False).fit(X, y)
    alone = [GaussianProcessClassifier(3.0 * Gaussian(0.3), optimize=False).fit(X, y == c) for c in range(3)]
    chances = np.column_stack([one.predict_proba(X)[:, 1] for one in alone])
    np.testing.assert_allclose(model.predict_proba(X), chances / chances.sum(axis=1, keepdims=True), atol=1e-9)
    total = sum(one.log_marginal_likelihood_value_ for one in alone)
    assert model.log_marginal_likelihood_value_ == pytest.approx(total, rel=1e-10)
    theirs = Peer(3.0 * RBF(np.sqrt(1 / 0.6)), optimizer=None).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=3e-3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


def test_a_quarter_of_the_rows_comes_first_and_changes_no_optimum(data, monkeypatch):
    X, y, _ = data
    alone = GaussianProcessClassifier().fit(X, y).theta_
    monkeypatch.setattr(laplace, "COARSE", 50)
    assert_close(GaussianProcessClassifier().fit(X, y).theta_, alone, rtol=0.02)
    assert covariance.COARSE > 50


def test_files_and_pickles_keep_probabilities(data, tmp_path):
    X, y, new = data
    model = GaussianProcessClassifier().fit(X, np.where(y, "yes", "no"))
    mercer.save(model, tmp_path / "model.mercer")
    for copy in (mercer.load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict_proba(new), model.predict_proba(new))
        assert copy.log_marginal_likelihood(model.theta_) == model.log_marginal_likelihood(model.theta_)


def test_refusals(data):
    X, y, _ = data
    with pytest.raises(InvalidInput, match="one class"):
        GaussianProcessClassifier().fit(X, np.ones(70))
    with pytest.raises(InvalidInput, match="restarts"):
        GaussianProcessClassifier(restarts=0.5).fit(X, y)
    with pytest.raises(MemoryExceeded):
        GaussianProcessClassifier(memory=1000).fit(X, y)
    with pytest.raises(InvalidInput, match="KernelLogisticRegression"):
        GaussianProcessClassifier(optimize=False).fit(X, y).compress(3)


def test_a_precomputed_matrix_has_the_mean_only(data):
    X, y, new = data
    kernel = Gaussian(gamma=0.5)
    model = GaussianProcessClassifier(Precomputed(), optimize=False).fit(kernel(X), y)
    direct = GaussianProcessClassifier(kernel, optimize=False).fit(X, y)
    means = (one.latent(rows, return_std=False) for one, rows in ((model, kernel(new, X)), (direct, new)))
    np.testing.assert_allclose(*means, atol=1e-8)
    np.testing.assert_array_equal(model.predict(kernel(new, X)), direct.predict(new))  # the side of the mean
    with pytest.raises(InvalidInput, match="variance for a precomputed kernel"):
        model.predict_proba(kernel(new, X))
