"""The estimated likelihood against the exact one."""

import numpy as np
import pytest

from mercer import GaussianProcessRegressor
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import Gaussian, Matern
from mercer.select.covariance import Covariance
from mercer.select.marginal import ExactLikelihood
from mercer.select.stochastic import StochasticLikelihood


def problem(kernel, n=700, targets=1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    Y = np.sin(X[:, :1] * np.arange(1, targets + 1)) + 0.3 * rng.normal(size=(n, targets))
    return Covariance.of("test", kernel, X), Y, rng.uniform(0.05, 0.2, n)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize(
    "kernel", [1.5 * Gaussian(0.3), Matern(1.5).with_length_scales([1.0, 2.0, 0.5]) + 0.1], ids=repr
)
def test_values_lie_within_their_errors(kernel, targets):
    own, Y, variances = problem(kernel, targets=targets)
    theta = np.append(own.values, 0.1)
    value, _ = ExactLikelihood(own, Y, variances)(theta)
    found = StochasticLikelihood(own, Y, variances, rank=100).estimate(theta)
    assert abs(found.value - value) < 3 * found.standard_error
    assert found.standard_error < 0.01 * abs(value)


def test_gradients_have_the_right_mean():
    own, Y, variances = problem(Matern(1.5).with_length_scales([1.0, 2.0, 0.5]) + 0.1, n=200, targets=2)
    theta = np.append(own.values, 0.1)
    draws = [
        StochasticLikelihood(own, Y, variances, rank=20, probes=20, tol=1e-6, seed=seed)(theta)[1] for seed in range(30)
    ]
    error = np.std(draws, axis=0, ddof=1) / np.sqrt(30)
    expected = ExactLikelihood(own, Y, variances)(theta)[1]
    assert np.abs((np.mean(draws, axis=0) - expected) / error).max() < 3.5
    assert error.max() < 0.02 * np.abs(expected).max()


def test_an_exact_preconditioner_leaves_no_error():
    own, Y, _ = problem(Gaussian(0.01), n=300)
    theta = np.append(own.values, 0.1)
    found = StochasticLikelihood(own, Y, rank=300).estimate(theta)
    value, gradient = ExactLikelihood(own, Y)(theta)
    assert found.value == pytest.approx(value, abs=0.02)
    assert found.standard_error < 0.02
    np.testing.assert_allclose(StochasticLikelihood(own, Y, rank=300)(theta)[1], gradient, rtol=1e-3, atol=0.01)


def test_where_all_rows_are_pivots_the_value_is_exact():
    """With entries in float32 it was 1e-3 off, three times its standard error."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    Y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(300, 1))
    own = Covariance.of("test", Matern(0.5), X)
    theta = np.append(own.values, 0.01)
    value, _ = ExactLikelihood(own, Y)(theta)
    for seed in range(3):
        assert StochasticLikelihood(own, Y, seed=seed).estimate(theta).value == pytest.approx(value, abs=1e-6)


def test_small_noise_needs_float64():
    own, Y, _ = problem(10.0 * Gaussian(0.3))
    assert StochasticLikelihood(own, Y, rank=200).estimate(np.append(own.values, 1.0)).precision == "float32"
    assert StochasticLikelihood(own, Y, rank=200).estimate(np.append(own.values, 1e-4)).precision == "float64"
    assert StochasticLikelihood(own, Y).estimate(np.append(own.values, 0.0)) is None


def test_the_regressor_finds_the_exact_optimum_within_the_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=600)
    exact = GaussianProcessRegressor(solver="cholesky").fit(X, y)
    found = GaussianProcessRegressor(solver="cg").fit(X, y)
    error = found.log_marginal_likelihood_error_
    assert 0 < error < 0.02 * abs(exact.log_marginal_likelihood_value_)
    assert abs(found.log_marginal_likelihood_value_ - exact.log_marginal_likelihood_value_) < 3 * error + 0.1
    assert exact.log_marginal_likelihood(found.theta_) > exact.log_marginal_likelihood_value_ - 0.1
    assert found.log_marginal_likelihood(found.theta_) == pytest.approx(found.log_marginal_likelihood_value_, rel=1e-3)
    np.testing.assert_allclose(found.predict(X[:5]), exact.predict(X[:5]), atol=0.02)
    assert "standard error" in str(found.report_)


def test_a_sample_chooses_the_parameters_and_all_rows_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=500)
    model = GaussianProcessRegressor(sample=100).fit(X, y)
    assert len(model.dual_coef_) == 500
    assert any("of 100 rows" in note for note in model.report_.notes)
    whole = GaussianProcessRegressor().fit(X, y)
    best = whole.log_marginal_likelihood_value_
    assert best > model.log_marginal_likelihood_value_ > best - 20


def test_large_problems_are_estimated_unless_exact_is_asked_for():
    X = np.random.default_rng(0).normal(size=(1100, 2))
    with pytest.raises(MemoryExceeded, match='solver="cg"'):
        GaussianProcessRegressor(solver="cholesky", memory="4MB").fit(X, X[:, 0])
    model = GaussianProcessRegressor(memory="20MB", optimize=False).fit(X, X[:, 0])
    assert model.log_marginal_likelihood_error_ > 0
    with pytest.raises(InvalidInput, match="n_probes"):
        GaussianProcessRegressor(n_probes=1).fit(X, X[:, 0])
