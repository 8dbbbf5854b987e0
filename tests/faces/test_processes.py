"""Gaussian processes with scikit-learn's words give its likelihoods, gradients and predictions."""

import pickle

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn import gaussian_process
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from mercer import sklearn as faces
from mercer.errors import DelegatedWarning, InvalidInput
from mercer.select.covariance import Covariance
from mercer.sklearn import gaussian_process as processes
from mercer.sklearn.covariances import translated

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(40, 2)), RNG.normal(size=(9, 2))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]]) + 0.1 * RNG.normal(size=(40, 2))
LABELS = (Y[:, 0] > 0).astype(int)

KERNELS = [
    1.5 * RBF(0.7) + WhiteKernel(0.2),
    RBF([0.5, 2.0]) * ConstantKernel(3.0, "fixed") + WhiteKernel(0.1) + WhiteKernel(0.3, "fixed"),
    Matern([0.5, 2.0], nu=2.5) + Matern(1.5, nu=0.5),
    Matern(0.8, nu=np.inf) * Matern(2.0, nu=1.5),
    Matern(0.8, nu=1.2),
    RationalQuadratic(0.7, 1.3) + ConstantKernel(0.5),
    RationalQuadratic(0.7, 1.3, alpha_bounds="fixed"),
    DotProduct(0.6) * RBF(1.1) + WhiteKernel(0.1),
    DotProduct(0.0, "fixed") + WhiteKernel(0.1),
    Exponentiation(2.0 * DotProduct(0.6), 2) + WhiteKernel(0.1),
    WhiteKernel(0.1) + (WhiteKernel(0.2) + RBF(1.0)),
    ConstantKernel(2.0) * ConstantKernel(3.0) * RBF(1.0),
]
REFUSED = [
    PairwiseKernel(metric="rbf"),
    WhiteKernel(),
    RBF() * WhiteKernel(),
    DotProduct(0.0) + WhiteKernel(),
    RBF() + WhiteKernel(0.0),
    ExpSineSquared(),
    (RBF(0.6) + 0.5) ** 1.5,
    RBF() ** 0.0,
    RBF(1e200),
    RBF(1e-200),
    RationalQuadratic(1e160),
]
EXTREME = [RBF([1e-200, 1.0]), Matern(1e200, nu=np.inf), Matern(1e-200, nu=np.inf)]
"""Kernels that ours have, without values in float64 on rows like these."""


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_matrix_is_theirs(kernel):
    own = translated(kernel, 2)
    np.testing.assert_allclose(own(X), kernel(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own(X, NEW), kernel(X, NEW), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.diag(X), kernel.diag(X), rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("y", [Y[:, 0], Y])
def test_the_process_is_theirs(kernel, y):
    options = {"kernel": kernel, "alpha": np.linspace(0.01, 0.2, 40), "optimizer": None, "normalize_y": True}
    theirs, ours = (one.GaussianProcessRegressor(**options).fit(X, y) for one in (gaussian_process, faces))
    for theta in (kernel.theta, kernel.theta + 0.3):
        for mine, own in zip(*(one.log_marginal_likelihood(theta, True) for one in (ours, theirs)), strict=True):
            np.testing.assert_allclose(mine, own, rtol=1e-5 if "nu=1.2" in str(kernel) else 1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), rtol=1e-8, atol=1e-10)
    for asked in ("return_std", "return_cov"):
        for mine, own in zip(*(one.predict(NEW, **{asked: True}) for one in (ours, theirs)), strict=True):
            np.testing.assert_allclose(mine, own, rtol=1e-8, atol=1e-10)
    # of one covariance: the singular vectors of a degenerate one turn with the last bits of its entries
    drawn = gaussian_process.GaussianProcessRegressor.sample_y(ours, NEW, 3)
    np.testing.assert_allclose(ours.sample_y(NEW, 3), drawn, rtol=1e-12)
    assert vars(ours).keys() == vars(theirs).keys()


@pytest.mark.parametrize("kernel", [None, KERNELS[0], KERNELS[1], KERNELS[10]], ids=str)
def test_the_maximum_is_theirs(kernel):
    options = {"kernel": kernel, "n_restarts_optimizer": 1, "random_state": 0, "alpha": 1e-2}
    theirs, ours = (one.GaussianProcessRegressor(**options).fit(X, Y[:, 0]) for one in (gaussian_process, faces))
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=1e-3)
    np.testing.assert_allclose(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-8)


@pytest.mark.parametrize("name", ["GaussianProcessRegressor", "GaussianProcessClassifier"])
def test_a_fit_without_a_target_is_refused_as_by_scikit_learn(name):
    with pytest.raises(ValueError, match="requires y to be passed"):
        getattr(faces, name)().fit(X, None)


@pytest.mark.parametrize("name", ["GaussianProcessRegressor", "GaussianProcessClassifier"])
def test_a_search_translates_the_kernel_once(name, monkeypatch):
    """Most of a fit to few rows was that work, which is the same for each evaluation."""
    counts = {"translated": 0, "evaluated": 0}

    def counted(one, of):
        def call(*args, **options):
            counts[one] += 1
            return of(*args, **options)

        return call

    monkeypatch.setattr(processes, "translated", counted("translated", translated))
    monkeypatch.setattr(Covariance, "matrix", counted("evaluated", Covariance.matrix))
    getattr(faces, name)(2.0 * RBF([0.5, 1.0]) + WhiteKernel(0.1) + WhiteKernel(0.3, "fixed")).fit(X, LABELS)
    assert counts["translated"] <= 3 < 8 < counts["evaluated"]


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=str)
def test_the_machine_is_theirs(kernel):
    theirs, ours = (
        one.GaussianProcessClassifier(kernel, optimizer=None).fit(X, LABELS) for one in (gaussian_process, faces)
    )
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), rtol=1e-6)
    latent = [one.latent_mean_and_variance(NEW) for one in (ours, theirs)]
    np.testing.assert_allclose(*latent, rtol=1e-6, atol=1e-9)
    values = [one.log_marginal_likelihood_value_ for one in (ours, theirs)]
    np.testing.assert_allclose(*values, rtol=1e-8)


def test_a_machine_in_the_place_of_theirs(monkeypatch):
    monkeypatch.setattr(gaussian_process, "GaussianProcessClassifier", faces.GaussianProcessClassifier)
    model = faces.GaussianProcessClassifier(optimizer=None).fit(X, LABELS)
    np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0, rtol=1e-12)


def test_a_period_is_learned():
    x = np.linspace(0, 9, 60)[:, None]
    kernel = ExpSineSquared(1.0, 2.05) + WhiteKernel(0.1)
    theirs, ours = (
        one.GaussianProcessRegressor(kernel).fit(x, np.sin(3 * x[:, 0])) for one in (gaussian_process, faces)
    )
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=1e-3)
    np.testing.assert_allclose(ours.kernel_.k1.periodicity, 2 * np.pi / 3, rtol=1e-2)


@pytest.mark.parametrize("mode", ["one_vs_rest", "one_vs_one"])
def test_the_best_machines_are_theirs(mode):
    labels = LABELS + (Y[:, 1] > 0)
    theirs, ours = (
        one.GaussianProcessClassifier(1.0 * RBF() + WhiteKernel(), multi_class=mode).fit(X, labels)
        for one in (gaussian_process, faces)
    )
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=0.01)
    assert ours.log_marginal_likelihood_value_ > theirs.log_marginal_likelihood_value_ - 1e-6
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    if mode == "one_vs_rest":
        own = theirs.predict_proba(NEW)
        vars(ours).update(vars(theirs))
        np.testing.assert_allclose(ours.predict_proba(NEW), own, rtol=1e-9)
    assert b"mercer" not in pickle.dumps(ours.base_estimator_)


def test_the_slope_in_the_noise_of_a_machine():
    found = translated(KERNELS[1], 2)
    likelihood = faces.gaussian_process.LaplaceLikelihood(found.covariance(X), LABELS[:, None] * 1.0, True)
    at = np.append(likelihood.covariance.values, 0.4)
    slopes = approx_fprime(np.log(at), lambda u: likelihood(np.exp(u), False)[0], 1e-6)
    np.testing.assert_allclose(likelihood(at)[1], slopes, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kernel", REFUSED, ids=str)
def test_what_is_left_to_scikit_learn_is_said(kernel):
    with pytest.raises(InvalidInput):
        translated(kernel, 2)
    with pytest.warns(DelegatedWarning, match="GaussianProcessRegressor: scikit-learn's own code runs"):
        ours = faces.GaussianProcessRegressor(kernel, alpha=9.0, optimizer=None).fit(X, Y)
    theirs = gaussian_process.GaussianProcessRegressor(kernel, alpha=9.0, optimizer=None).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    with pytest.raises(ValueError, match="CompoundKernel"), pytest.warns(DelegatedWarning):
        faces.GaussianProcessClassifier(CompoundKernel([kernel])).fit(X, LABELS)


@pytest.mark.parametrize("kernel", EXTREME, ids=str)
@pytest.mark.parametrize(
    ("name", "output"), [("GaussianProcessRegressor", "predict"), ("GaussianProcessClassifier", "predict_proba")]
)
def test_values_beyond_float64_are_theirs(kernel, name, output):
    with pytest.warns(DelegatedWarning, match=f"{name}: scikit-learn's own code runs") as said:
        predicted = getattr(ours := getattr(faces, name)(kernel, optimizer=None).fit(X, LABELS), output)(NEW)
    assert any("float64" in str(one.message) for one in said)
    theirs = getattr(gaussian_process, name)(kernel, optimizer=None).fit(X, LABELS)
    np.testing.assert_allclose(predicted, getattr(theirs, output)(NEW), rtol=1e-9)
    np.testing.assert_allclose(ours.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-9)
    assert vars(ours).keys() == vars(theirs).keys()


@pytest.mark.parametrize("name", ["GaussianProcessRegressor", "GaussianProcessClassifier"])
def test_a_search_may_leave_float64(name):
    """Lengths whose squares, or the inverses of these, overflow have a likelihood there."""
    places, seen = [0.0, 400.0, -400.0, 0.5], {}

    def values(which):
        def search(objective, start, bounds):
            seen[which] = [objective(np.array([place])) for place in places]
            return start, seen[which][0][0]

        return search

    for which, module in (("ours", faces), ("theirs", gaussian_process)):
        options = {"alpha": 0.1} if name == "GaussianProcessRegressor" else {}
        model = getattr(module, name)(RBF(1.0, (1e-200, 1e200)), optimizer=values(which), **options)
        if module is faces:
            with pytest.warns(DelegatedWarning, match=f"{name}: scikit-learn's own code runs"):
                model.fit(X, LABELS)
        else:
            model.fit(X, LABELS)
    for mine, own in zip(seen["ours"], seen["theirs"], strict=True):
        np.testing.assert_allclose(mine[0], own[0], rtol=1e-8)
        np.testing.assert_allclose(mine[1], own[1], rtol=1e-6, atol=1e-8)


def test_the_likelihood_is_ours(monkeypatch):
    """The matrices of scikit-learn's kernels with their derivatives are not made."""
    monkeypatch.setattr(RBF, "__call__", None)
    model = faces.GaussianProcessRegressor(RBF(), optimizer=None)
    model.kernel_, model.X_train_, model.y_train_ = clone(model.kernel), X, Y
    assert np.isfinite(model.log_marginal_likelihood(np.zeros(1), True)[0])
