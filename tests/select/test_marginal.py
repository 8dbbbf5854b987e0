"""The marginal likelihood against SciPy's normal law and scikit-learn, its gradient against differences."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.select import log_marginal_likelihood, maximise_marginal_likelihood
from mercer.select.covariance import Covariance
from mercer.select.marginal import ExactLikelihood
from mercer.testing import assert_close


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 18))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=90)


def test_is_the_log_density_of_the_normal_law(data):
    X, y = data
    kernel = 2.0 * Gaussian(0.05) + 0.3
    value, slopes = log_marginal_likelihood(kernel, X, y, 0.2)
    law = multivariate_normal(np.zeros(90), kernel(X) + 0.2 * np.eye(90))
    assert value == pytest.approx(law.logpdf(y), rel=1e-10)
    both, sums = log_marginal_likelihood(kernel, X, np.column_stack([y, -2 * y]), 0.2)
    assert both == pytest.approx(law.logpdf(y) + law.logpdf(-2 * y), rel=1e-10)
    _, others = log_marginal_likelihood(kernel, X, -2 * y, 0.2)
    assert sums == pytest.approx({name: slopes[name] + others[name] for name in slopes}, rel=1e-9)


@pytest.mark.parametrize("n", [30, 400])
def test_the_matrix_of_a_covariance_moves_with_its_parameters(n):
    """For few rows it is the forward sweep of the formula, which keeps pairings that do not depend on θ."""
    X = np.random.default_rng(2).normal(size=(n, 2))
    kernel = 1.5 * Gaussian(0.3).with_length_scales([1.0, 2.0]) + Gaussian(2.0)
    covariance = Covariance.of("test", kernel, X)
    for move in (0.0, 0.4, -0.2, 0.0):
        theta = covariance.values * np.exp(move * np.arange(1, 1 + len(covariance.names)))
        expected = covariance.kernel_at(theta)(X)
        np.testing.assert_allclose(covariance.matrix(theta), expected, rtol=1e-12, atol=1e-14)
        G = np.outer(np.sin(X[:, 0]), np.sin(X[:, 0]))
        found = covariance.contracted(theta, lambda rows, columns, G=G: G[rows, columns])
        again = Covariance(kernel, covariance.names, X).contracted(theta, lambda rows, columns, G=G: G[rows, columns])
        np.testing.assert_array_equal(found, again)


def test_gradient_in_twenty_one_parameters_against_differences(data):
    X, y = data
    kernel = 1.3 * Gaussian(0.05).with_length_scales(np.random.default_rng(1).uniform(0.5, 2, 18))
    _, gradient = log_marginal_likelihood(kernel, X, y, 0.3)
    own = Covariance.of("test", kernel, X)
    assert len(gradient) == 21
    largest = max(map(abs, gradient.values()))
    for i, name in enumerate(gradient):
        at = []
        for step in (-2, -1, 1, 2):
            theta = np.append(own.values, 0.3) * np.exp(step * 1e-3 * (np.arange(21) == i))
            at.append(log_marginal_likelihood(own.kernel_at(theta[:-1]), X, y, theta[-1])[0])
        difference = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / 12e-3
        assert gradient[name] == pytest.approx(difference, abs=1e-9 * largest, rel=1e-6)


def test_finds_what_scikit_learn_finds(data):
    X, y = data[0][:, :2], data[1]
    found = maximise_marginal_likelihood("gaussian(gamma=0.5)", X, y, per_column=True)
    peer = GaussianProcessRegressor(
        ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel(0.1), n_restarts_optimizer=2, random_state=0
    )
    peer.fit(X, y - y.mean())
    assert found.value == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-3)
    assert_close(found.kernel.get_params()["kernel__scales"], peer.kernel_.k1.k2.length_scale, rtol=0.02)
    assert found.noise == pytest.approx(peer.kernel_.k2.noise_level, rel=0.02)
    assert max(map(abs, found.gradient.values())) < 0.1


def test_what_is_held_stays_and_bounds_are_said(data):
    X, y = data
    found = maximise_marginal_likelihood("1.5*gaussian(gamma=0.3)", X[:, :2], y, fixed=["scale", "noise"], noise=0.05)
    assert (found.kernel.scale, found.noise) == (1.5, 0.05)
    assert set(found.gradient) == {"kernel__gamma"}
    tight = maximise_marginal_likelihood("gaussian(gamma=30.0)", X[:, :2], y, bounds=(0.5, 2.0))
    assert any("lower bound" in note for note in tight.notes)


def test_restarts_never_lose_and_seeds_repeat(data):
    X, y = data[0][:, :3], data[1]
    one = maximise_marginal_likelihood("gaussian(gamma=50.0)", X, y)
    three = maximise_marginal_likelihood("gaussian(gamma=50.0)", X, y, restarts=2)
    assert three.value >= one.value
    assert len(three.starts) == 3
    again = maximise_marginal_likelihood("gaussian(gamma=50.0)", X, y, restarts=2)
    assert again.value == three.value
    assert maximise_marginal_likelihood("gaussian", X, y, sample=40).sample_size == 40


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y": np.ones(90)}, "all the same"),
        ({"y": np.full(90, np.nan)}, "finite"),
        ({"y": np.linspace(0, 1e170, 90)}, "give y in another unit"),
        ({"kernel": "linear", "amplitude": False}, "no tunable parameter"),
        ({"fixed": ["nu"]}, "no parameter 'nu'"),
        ({"bounds": (2.0, 3.0)}, "bounds"),
    ],
)
def test_refusals(data, change, says):
    with pytest.raises(InvalidInput, match=says):
        maximise_marginal_likelihood(**{"kernel": "gaussian", "X": data[0], "y": data[1], **change})
    with pytest.raises(InvalidInput, match="noise"):
        log_marginal_likelihood("gaussian", *data, noise=0.0)


@pytest.mark.parametrize("value", [3.0, 0.1])
def test_targets_that_are_all_equal_are_refused(data, value):
    X, _ = data
    with pytest.raises(InvalidInput, match="all the same; give targets that vary"):
        maximise_marginal_likelihood("gaussian", X, np.full(90, value))


@pytest.mark.parametrize(("n", "parts"), [(999, []), (1000, [250, 500]), (2000, [222, 666])])
def test_a_search_of_many_rows_begins_with_some_of_them(n, parts):
    """Shares in geometric progression, as the curvature at the end of the second says that with all rows."""
    X = np.arange(float(n))[:, None]
    likelihood = ExactLikelihood(Covariance(Gaussian(1.0), ("gamma",), X), X)
    assert [len(part.Y) for part in likelihood.coarse(0)] == parts
