"""Gaussian process regression against scikit-learn's, normal laws in SciPy, and finite differences."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import mercer
from mercer import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.symbolic import functions
from mercer.select import marginal
from mercer.testing import assert_close


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=80), rng.normal(size=(9, 2))


@pytest.fixture(scope="module")
def variances():
    return np.random.default_rng(1).uniform(0.01, 0.3, 80)


def test_finds_scikit_learns_parameters_and_posterior(data):
    X, y, new = data
    ours = GaussianProcessRegressor("gaussian(gamma=0.5)", noise=0.1, per_column=True).fit(X, y)
    theirs = Peer(ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel(0.1)).fit(X, y)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)
    assert ours.noise_ == pytest.approx(theirs.kernel_.k2.noise_level, rel=1e-2)
    mean, covariance = ours.predict(new, return_cov=True, include_noise=True)
    expected_mean, expected = theirs.predict(new, return_cov=True)  # with the noise that is in its kernel
    np.testing.assert_allclose(mean, expected_mean, atol=1e-3)
    np.testing.assert_allclose(covariance, expected, atol=1e-3)
    assert "log marginal likelihood" in str(ours.report_)


@pytest.mark.parametrize("normalize", [False, True])
def test_given_parameters_and_a_noise_for_each_row(data, variances, normalize):
    X, y, new = data
    Y = np.column_stack([y, 3 * y**2 + 5])
    kernel = {"amplitude": False, "noise": 0.0, "optimize": False}
    ours = GaussianProcessRegressor("matern(nu=1.5)", alpha=variances, normalize_y=normalize, **kernel).fit(X, Y)
    theirs = Peer(Matern(nu=1.5), alpha=variances, normalize_y=normalize, optimizer=None).fit(X, Y)
    assert ours.log_marginal_likelihood() == pytest.approx(theirs.log_marginal_likelihood(), rel=1e-9)
    for asked in ("return_std", "return_cov"):
        for found, expected in zip(
            ours.predict(new, **{asked: True}), theirs.predict(new, **{asked: True}), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-8)
    assert ours.sample_y(new, 3).shape == theirs.sample_y(new, 3).shape == (9, 2, 3)


def test_is_the_conditional_of_the_joint_normal_law(data, variances):
    X, y, new = data
    model = GaussianProcessRegressor(2.0 * Gaussian(0.7), noise=0.2, alpha=variances, optimize=False).fit(X, y)
    C = (2.0 * Gaussian(0.7))(X) + np.diag(0.2 + variances)
    cross, own = (2.0 * Gaussian(0.7))(new, X), (2.0 * Gaussian(0.7))(new)
    law = multivariate_normal(np.zeros(80), C)
    assert model.log_marginal_likelihood_value_ == pytest.approx(law.logpdf(y), rel=1e-10)
    mean, covariance = model.predict(new, return_cov=True)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(C, y), atol=1e-9)
    np.testing.assert_allclose(covariance, own - cross @ np.linalg.solve(C, cross.T), atol=1e-9)
    observed = model.predict(new, return_std=True, include_noise=True)[1] ** 2
    np.testing.assert_allclose(observed, np.diag(covariance) + 0.2, atol=1e-9)  # new rows have no αᵢ


class Damped(Kernel):
    """k(x, z) = exp(−‖x − z‖²)(1 + ⟨x, z⟩/10): a formula without parameters of its own."""

    def formula(self, pair):
        return functions.exp(-pair.sqdist) * (1 + pair.dot / 10)


@pytest.mark.parametrize(
    "kernel",
    [
        "gaussian(gamma=0.5)",
        "0.7*matern(nu=2.5) + 0.2*linear()",
        "periodic(period=2.0) * gaussian(gamma=0.1)",
        0.4 * Damped() + 0.1,
        "exp(-0.5 * sqdist)",
    ],
    ids=str,
)
def test_gradient_in_every_parameter_against_differences(data, variances, kernel):
    X, y, _ = data
    model = GaussianProcessRegressor(kernel, alpha=variances, optimize=False).fit(X, y)
    value, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-12)
    for i, name in enumerate(model.parameter_names_):
        step = 1e-5 * (np.arange(len(gradient)) == i)
        up, down = (model.log_marginal_likelihood(model.theta_ + sign * step) for sign in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-6), name


def test_a_kernel_of_sequences_is_differentiated_by_differences():
    words = ["abba", "abab", "bbaa", "aaab", "babb", "bbbb"]
    model = GaussianProcessRegressor("subsequence(length=2, decay=0.6)", optimize=False).fit(words, [1, 2, 0, 1, 2, 3])
    assert model.parameter_names_ == ["scale", "kernel__decay", "noise"]
    gradient = model.log_marginal_likelihood(eval_gradient=True)[1]
    for i in range(3):
        step = 1e-4 * (np.arange(3) == i)
        up, down = (model.log_marginal_likelihood(model.theta_ + sign * step) for sign in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-4, rel=1e-5)


@pytest.mark.parametrize("low", [1e-5, 0.9, 2.0])
def test_a_decay_stays_at_most_one(low):
    words = ["bbba", "abaa", "bbab", "aabb", "abab", "baba"]
    bounds = {"kernel__decay": (low, 1e5)}
    model = GaussianProcessRegressor("subsequence(length=2)", bounds=bounds).fit(words, [0, 1, 0, 1, 0, 1])
    assert min(low, 0.99) <= np.exp(model.theta_[1]) <= 1


def test_the_optimum_is_one_and_lies_within_bounds(data):
    X, y, _ = data
    model = GaussianProcessRegressor(restarts=1).fit(X, y)
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert np.abs(gradient).max() < 0.05
    for direction in np.random.default_rng(0).normal(size=(5, 3)):
        assert model.log_marginal_likelihood(model.theta_ + 0.1 * direction) < value
    bounds = {"kernel__gamma": (2.0, 3.0), "noise": (1e-3, 0.02)}
    tight = GaussianProcessRegressor("gaussian(gamma=2.5)", noise=0.01, bounds=bounds).fit(X, y)
    assert 2 <= tight.kernel_.kernel.gamma <= 3
    assert 1e-3 <= tight.noise_ <= 0.02
    assert any("bound" in note for note in tight.report_.notes)
    held = GaussianProcessRegressor(1.5 * Gaussian(0.3), noise=0.05, fixed=["scale", "noise"]).fit(X, y)
    assert (held.kernel_.scale, held.noise_, held.parameter_names_) == (1.5, 0.05, ["kernel__gamma"])


def test_a_quarter_of_the_rows_comes_first_and_changes_no_optimum(monkeypatch):
    monkeypatch.setattr(marginal, "COARSE", 300)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    model = GaussianProcessRegressor("gaussian(gamma=0.1)").fit(X, y)
    assert np.abs(model.log_marginal_likelihood(eval_gradient=True)[1]).max() < 0.1
    assert model.theta_ == pytest.approx(GaussianProcessRegressor("gaussian(gamma=1.0)").fit(X, y).theta_, abs=1e-2)


@pytest.mark.parametrize("exact", [[0], [0, 3, 5], range(6)])
def test_rows_without_noise_are_interpolated(exact):
    X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, -1.0, 0.5, 2.0, 1.0])
    alpha = np.full(6, 0.1)
    alpha[list(exact)] = 0.0
    model = GaussianProcessRegressor("gaussian(gamma=0.5)", noise=0.0, alpha=alpha, optimize=False, amplitude=False)
    K = np.exp(-0.5 * (X - X.T) ** 2)
    np.testing.assert_allclose(model.fit(X, y).predict(X), K @ np.linalg.solve(K + np.diag(alpha), y), atol=1e-10)
    np.testing.assert_allclose(model.predict(X)[list(exact)], y[list(exact)], atol=1e-10)


def test_samples_have_the_posterior_law(data):
    X, y, new = data
    model = GaussianProcessRegressor(noise=0.1, normalize_y=True).fit(X, y)
    mean, covariance = model.predict(new, return_cov=True)
    draws = model.sample_y(new, 40_000, random_state=1)
    assert_close(draws.mean(axis=1), mean, rtol=0.02)
    assert_close(np.cov(draws), covariance, rtol=0.05)
    noisy = model.sample_y(new, 40_000, random_state=1, include_noise=True)
    assert_close(np.cov(noisy), model.predict(new, return_cov=True, include_noise=True)[1], rtol=0.05)


def test_normalised_targets_are_those_of_a_scaled_process(data):
    X, y, new = data
    raw = GaussianProcessRegressor("gaussian(gamma=0.5)", normalize_y=True).fit(X, y)
    moved = GaussianProcessRegressor("gaussian(gamma=0.5)", normalize_y=True).fit(X, 1000 * y + 7)
    assert_close(moved.theta_, raw.theta_, rtol=1e-6)
    mean, std = raw.predict(new, return_std=True)
    found = moved.predict(new, return_std=True)
    assert_close(found[0], 1000 * mean + 7, rtol=1e-6)
    assert_close(found[1], 1000 * std, rtol=1e-6)


def test_files_and_pickles_keep_the_posterior(data, tmp_path):
    X, y, new = data
    model = GaussianProcessRegressor().fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    for copy in (mercer.load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(model))):
        for one, other in zip(copy.predict(new, return_std=True), model.predict(new, return_std=True), strict=True):
            np.testing.assert_array_equal(one, other)
        assert copy.log_marginal_likelihood(model.theta_) == model.log_marginal_likelihood(model.theta_)


def test_a_new_fit_has_a_new_posterior(data):
    X, y, new = data
    model = GaussianProcessRegressor(optimize=False).fit(X, y)
    first = model.posterior()
    assert model.posterior() is first
    assert not np.allclose(model.predict(new, return_std=True)[1], model.fit(X[:9], y[:9]).predict(new, True)[1])
    small = model.compress(4)
    with pytest.raises(InvalidInput, match="compressed"):
        small.log_marginal_likelihood(eval_gradient=True)


@pytest.mark.parametrize("huge", [1e6, 1e16, 1e30, 1e99])
@pytest.mark.parametrize("rest", [1e-6, 1e-2])
def test_one_row_of_huge_variance_is_as_good_as_absent(huge, rest):
    """The least variance was a share of the mean, which one row lifted above all others: f was 0."""
    x = np.linspace(0, 6, 30)[:, None]
    alpha, kept = np.full(30, rest), np.arange(30) != 10
    alpha[10] = huge
    options = {"noise": 0.0, "optimize": False, "amplitude": False}
    model = GaussianProcessRegressor(Gaussian(0.5), alpha=alpha, **options).fit(x, np.sin(x[:, 0]))
    without = GaussianProcessRegressor(Gaussian(0.5), alpha=rest, **options).fit(x[kept], np.sin(x[kept, 0]))
    for found, expected in zip(model.predict(x, return_std=True), without.predict(x, return_std=True), strict=True):
        np.testing.assert_allclose(found, expected, atol=3e-5)
    assert model.log_marginal_likelihood() == pytest.approx(model.log_marginal_likelihood(model.theta_), rel=1e-9)


@dataclass(frozen=True, repr=False)
class Named(Kernel):
    """A kernel of which a parameter has the name of σ²."""

    noise: float = 1.0

    def formula(self, pair):
        return self.noise / (1 + pair.sqdist)


def test_a_parameter_with_the_name_of_the_noise_is_refused(data):
    X, y, _ = data
    for options in ({}, {"fixed": ["noise"]}, {"noise": 0.0}):
        with pytest.raises(InvalidInput, match=r"'noise' has the name of σ².*multiply the kernel"):
            GaussianProcessRegressor(Named(), amplitude=False, **options).fit(X, y)
    model = GaussianProcessRegressor(1.0 * Named(), amplitude=False).fit(X, y)
    assert model.parameter_names_ == ["scale", "kernel__noise", "noise"]


def test_length_scales_that_cannot_be_found_are_refused(data):
    """One periodic part kept all length-scales at 1, without a word."""
    X, y, _ = data
    with pytest.raises(InvalidInput, match=r"per_column=True: .*give per_column=False"):
        GaussianProcessRegressor("matern(nu=2.5) + 3.0*periodic()", per_column=True).fit(X, y)
    with pytest.raises(InvalidInput, match="per_column=True"):
        GaussianProcessClassifier("gaussian(gamma=1.0)*periodic()", per_column=True).fit(X, y > 0)
    kernel = mercer.kernels.as_kernel("matern(nu=2.5)").with_length_scales([1.0, 1.0]) + mercer.kernels.Periodic()
    assert "left__scales[1]" in GaussianProcessRegressor(kernel, amplitude=False).fit(X, y).parameter_names_


def test_parameters_beyond_the_kernels_range_have_no_likelihood(data):
    X, y, _ = data
    model = GaussianProcessRegressor(Gaussian(0.5), optimize=False).fit(X, y)
    assert model.log_marginal_likelihood([800.0, 0.0, 0.0]) == -np.inf


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"noise": -1.0}, "noise"),
        ({"alpha": np.ones(3)}, "alpha"),
        ({"restarts": -1}, "restarts"),
        ({"bounds": (2.0, 3.0)}, "bounds"),
        ({"bounds": {"nu": (1.0, 2.0)}}, "nu"),
        ({"fixed": ["nu"]}, "no parameter 'nu'"),
        ({"kernel": "linear", "noise": 0.0, "optimize": False}, "not positive definite"),
        ({"kernel": "linear", "noise": 0.0}, "not positive definite"),
    ],
)
def test_refusals(data, options, says):
    X, y, _ = data
    with pytest.raises(InvalidInput, match=says):
        GaussianProcessRegressor(**options).fit(X, y)


def test_refusals_of_methods(data):
    X, y, new = data
    with pytest.raises(InvalidInput, match="give y in another unit"):
        GaussianProcessRegressor().fit(X, 1e170 * y)
    with pytest.raises(MemoryExceeded):
        GaussianProcessRegressor(memory=1000).fit(X, y)
    model = GaussianProcessRegressor(optimize=False).fit(X, y)
    with pytest.raises(InvalidInput, match="3 finite numbers"):
        model.log_marginal_likelihood([0.0])
    with pytest.raises(InvalidInput, match="return_cov"):
        model.predict(new, True, True)
    given = GaussianProcessRegressor("precomputed", optimize=False).fit(model.kernel_(X), y)
    with pytest.raises(InvalidInput, match="does not keep"):
        given.log_marginal_likelihood(given.theta_)
    assert np.isfinite(given.log_marginal_likelihood())


def test_equal_targets_whose_mean_is_rounded_are_constant(data):
    X, _, new = data
    y = np.column_stack([np.full(80, 3.0), np.full(80, 0.1)])
    for t in (y[:, 0], y[:, 1], y):
        model = GaussianProcessRegressor(normalize_y=True).fit(X, t)
        mean, deviation = model.predict(new, return_std=True)
        np.testing.assert_array_equal(mean, np.broadcast_to(t[0], mean.shape))
        exact = GaussianProcessRegressor().fit(X, np.zeros_like(t)).predict(new, return_std=True)[1]
        assert_close(deviation, exact, rtol=1e-9)


def stationary(model):
    return np.abs(model.log_marginal_likelihood(model.theta_, eval_gradient=True)[1]).max()


@pytest.mark.parametrize("options", [{"noise": 0}, {"noise": 0, "alpha": 1e-10}, {"noise": 0, "alpha": 1e-8}])
def test_nearly_singular_starts_reach_the_maximum(options):
    """log p is −1.6e6 at the first parameters, or −115, and was called converged there."""
    X = np.random.default_rng(7).normal(size=(100, 2))
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(8).normal(size=100)
    model = GaussianProcessRegressor(**options).fit(X, y)
    other = GaussianProcessRegressor("gaussian(gamma=5.0)", noise=0, alpha=1e-8).fit(X, y)
    assert stationary(model) < 0.01
    assert model.log_marginal_likelihood_value_ == pytest.approx(other.log_marginal_likelihood_value_, rel=1e-6)


def test_a_search_from_a_small_noise_ends_at_a_maximum(data):
    X, y, _ = data  # at another one than from a larger noise
    assert stationary(GaussianProcessRegressor(noise=1e-8, bounds={"noise": (1e-12, 10.0)}).fit(X, y)) < 0.01


@pytest.mark.parametrize("huge", [1e2, 1e10, 1e20, 1e90])
def test_a_row_of_huge_noise_leaves_the_exact_ones_exact(huge):
    X = np.linspace(0, 6, 20)[:, None]
    y, alpha, keep = np.sin(X[:, 0]), np.zeros(20), np.arange(20) != 5
    y[5], alpha[5] = 50.0, huge
    options = {"noise": 0, "optimize": False, "amplitude": False}
    model = GaussianProcessRegressor("gaussian(gamma=1.0)", alpha=alpha, **options).fit(X, y)
    without = GaussianProcessRegressor("gaussian(gamma=1.0)", **options).fit(X[keep], y[keep])
    for found, expected in zip(model.predict([[1.1]], True), without.predict([[1.1]], True), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)
    again = model.log_marginal_likelihood(model.theta_)
    assert again == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-6)


def test_conjugate_gradients_need_noise_in_each_row(data):
    X, y, _ = data
    for alpha in (0.0, np.arange(80) * 1.0):
        with pytest.raises(InvalidInput, match=r"rows without noise; give noise= or alpha="):
            GaussianProcessRegressor(noise=0, alpha=alpha, solver="cg").fit(X, y)
    with pytest.raises(InvalidInput, match="raise noise= or alpha="):
        GaussianProcessRegressor("linear", noise=0).fit(X, y)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_conjugate_gradients_for_few_rows(data, n):
    X, y, _ = data
    model = GaussianProcessRegressor(solver="cg").fit(X[:n], y[:n])
    assert np.all(np.isfinite(model.predict(X)))


def test_targets_that_change_after_the_fit_change_nothing(data):
    X, y, _ = data
    target = y.copy()
    model = GaussianProcessRegressor(optimize=False).fit(X, target)
    before = model.log_marginal_likelihood(model.theta_)
    target *= 0
    assert model.log_marginal_likelihood(model.theta_) == before


@pytest.mark.parametrize("n_samples", [-1, 0, None, 2.5, "3", True])
def test_a_number_of_draws_is_a_whole_number(data, n_samples):
    X, y, _ = data
    with pytest.raises(InvalidInput, match="give a whole number"):
        GaussianProcessRegressor(optimize=False).fit(X, y).sample_y(X, n_samples)


@dataclass(frozen=True, repr=False)
class Declared(Kernel):
    """exp(−γ‖x − z‖²), whose γ is an integer by default."""

    gamma: float = 1

    def formula(self, pair):
        return functions.exp(-self.gamma * pair.sqdist)


def test_an_integer_for_a_declared_float_is_optimised(data):
    X, y, _ = data
    model, ours = (GaussianProcessRegressor(kernel).fit(X, y) for kernel in (Declared(), Gaussian(1.0)))
    assert model.parameter_names_ == ours.parameter_names_ == ["scale", "kernel__gamma", "noise"]
    assert model.log_marginal_likelihood_value_ == pytest.approx(ours.log_marginal_likelihood_value_, rel=1e-6)
