"""Least mean squares with the kernel trick: against the explicit feature map, step by step, and at the limits."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import mercer
from mercer import KernelLMS, MonomialFeatures
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.kernels import Gaussian, Linear, MonomialSum, Polynomial, Precomputed
from mercer.testing import assert_close

MAPS = [
    (MonomialSum(3), MonomialFeatures(3)),
    (Polynomial(2, coef0=0.7), MonomialFeatures(2, 0.7, kind="all")),
    (Polynomial(2, coef0=0.0), MonomialFeatures(2, kind="power")),
]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(30, 3))
    return X, X[:, 0] - X[:, 1] ** 2 + X[:, 0] * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=30)


@pytest.mark.parametrize(("kernel", "features"), MAPS, ids=lambda value: repr(value)[:20])
def test_batch_predictions_are_those_of_the_explicit_features_at_every_step(kernel, features, data):
    """(5.3) on θ and (5.11) on β."""
    X, y = data
    Phi, new = features.fit_transform(X), np.random.default_rng(1).uniform(-1, 1, size=(20, 3))
    theta, alpha = np.zeros(Phi.shape[1]), 0.01
    for t in range(1, 25):
        theta = theta + alpha * Phi.T @ (y - Phi @ theta)
        model = KernelLMS(kernel, step_size=alpha, max_iter=t, tol=None).fit(X, y)
        np.testing.assert_allclose(model.predict(new), features.transform(new) @ theta, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(Phi.T @ model.dual_coef_, theta, rtol=1e-8, atol=1e-11)  # (5.6)
    assert model.n_iter_ == 24
    assert model.report_.status == "all steps made, as asked"


@pytest.mark.parametrize(("kernel", "features"), MAPS, ids=lambda value: repr(value)[:20])
def test_stochastic_predictions_are_those_of_the_explicit_features_at_every_update(kernel, features, data):
    """(5.4) on θ, and the same on β: one row joins f with each update."""
    X, y = data
    Phi, new = features.fit_transform(X), np.random.default_rng(1).uniform(-1, 1, size=(20, 3))
    theta, alpha, model = np.zeros(Phi.shape[1]), 0.2, KernelLMS(kernel, step_size=0.2)
    for i in range(30):
        theta = theta + alpha * (y[i] - theta @ Phi[i]) * Phi[i]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        np.testing.assert_allclose(model.predict(new), features.transform(new) @ theta, rtol=1e-9, atol=1e-11)
    assert len(model.X_fit_) == len(model.dual_coef_) == 30
    one_pass = KernelLMS(kernel, mode="stochastic", step_size=0.2, shuffle=False, max_iter=1, tol=None).fit(X, y)
    np.testing.assert_allclose(one_pass.dual_coef_, model.dual_coef_, rtol=1e-9, atol=1e-12)
    at_once = KernelLMS(kernel, step_size=0.2).partial_fit(X, y)
    np.testing.assert_allclose(at_once.dual_coef_, model.dual_coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["batch", "stochastic"])
def test_passes_over_the_rows_are_those_of_the_explicit_features(mode, data):
    X, y = data
    features = MonomialFeatures(3)
    Phi, alpha = features.fit_transform(X), 0.02
    theta = np.zeros(Phi.shape[1])
    for t in range(5):
        for i in np.random.default_rng([7, t]).permutation(30) if mode == "stochastic" else ():
            theta = theta + alpha * (y[i] - theta @ Phi[i]) * Phi[i]
        if mode == "batch":
            theta = theta + alpha * Phi.T @ (y - Phi @ theta)
        model = KernelLMS(MonomialSum(3), mode=mode, step_size=alpha, max_iter=t + 1, tol=None, random_state=7)
        assert_close(model.fit(X, y).predict(X), Phi @ theta, rtol=1e-9)


def test_it_converges_to_least_squares():
    X, y = load_diabetes(return_X_y=True)
    X, y = X * 20, y - y.mean()
    model = KernelLMS(tol=1e-7, max_iter=20_000).fit(X, y)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), atol=0.05)
    assert model.report_.residual <= 1e-7
    assert model.report_.status == "converged"
    assert "matrix-free" in model.report_.method  # products by the rows, of 10 columns
    assert "fewer numbers" in model.report_.reason


def test_the_default_step_is_the_largest_safe_one(data):
    X, y = data
    kernel = Gaussian(gamma=0.5)
    top = np.linalg.eigvalsh(kernel(X))[-1]
    assert KernelLMS(kernel).fit(X, y).step_size_ == pytest.approx(1.9 / top, rel=1e-10)
    assert KernelLMS(kernel, mode="stochastic", max_iter=2, tol=None).fit(X, y).step_size_ == 1.0
    many = np.random.default_rng(0).normal(size=(700, 3))  # beyond LAPACK's share
    top = np.linalg.eigvalsh(kernel(many))[-1]
    assert KernelLMS(kernel, tol=0.5).fit(many, many[:, 0]).step_size_ == pytest.approx(1.9 / top, rel=1e-3)


def test_errors_fall_in_every_step_below_the_limit_and_divergence_is_explained_above(data):
    X, y = data
    limit = 2 / np.linalg.eigvalsh(MonomialSum(3)(X))[-1]
    errors = []
    for t in range(1, 12):
        model = KernelLMS(MonomialSum(3), step_size=0.999 * limit, max_iter=t, tol=None).fit(X, y)
        errors.append(np.linalg.norm(y - model.predict(X)))
    assert np.all(np.diff(errors) < 0)
    with pytest.warns(ConvergenceWarning, match=f"2/λmax = {limit:.3g}"):
        model = KernelLMS(MonomialSum(3), step_size=1.2 * limit).fit(X, y)
    assert model.report_.status == "diverged"
    assert np.linalg.norm(y - model.predict(X)) <= np.linalg.norm(y)


@pytest.mark.parametrize("mode", ["batch", "stochastic"])
def test_no_nan_comes_out_of_divergence(mode, data):
    X, y = data
    for step in (50.0, 1e100):
        with pytest.warns(ConvergenceWarning, match="step size"):
            model = KernelLMS(MonomialSum(3), mode=mode, step_size=step).fit(X, y)
        assert np.all(np.isfinite(model.predict(X)))
        model = KernelLMS(MonomialSum(3), step_size=step)
        with pytest.warns(ConvergenceWarning, match="step size"):
            model.partial_fit(X, y)
        np.testing.assert_array_equal(model.predict(X), 0.0)


def test_the_stochastic_rule_does_not_settle_on_noise_and_says_so(data):
    with pytest.warns(ConvergenceWarning, match="relative residual"):
        model = KernelLMS(mode="stochastic", max_iter=30).fit(*data)
    assert any("settles only if" in note for note in model.report_.notes)


def test_too_few_steps_warn(data):
    with pytest.warns(ConvergenceWarning, match="relative residual"):
        KernelLMS(MonomialSum(3), max_iter=2, tol=1e-6).fit(*data)


@pytest.mark.parametrize("mode", ["batch", "stochastic"])
def test_weight_two_is_a_repeated_row_and_weight_zero_an_absent_one(mode, data):
    X, y = data
    w = np.ones(30)
    w[:10], w[10:14] = 2.0, 0.0
    rows = np.concatenate([np.repeat(np.arange(10), 2), np.arange(14, 30)])
    model = KernelLMS(Gaussian(gamma=0.3), mode=mode, max_iter=40, tol=None, shuffle=False)
    expected = model.fit(X[rows], y[rows]).predict(X)
    np.testing.assert_allclose(model.fit(X, y, w).predict(X), expected, rtol=1e-7, atol=1e-9)
    expected = clone(model).partial_fit(X[rows], y[rows]).predict(X)
    np.testing.assert_allclose(clone(model).partial_fit(X, y, w).predict(X), expected, rtol=1e-9, atol=1e-12)


def by_weight(K, y, weights, step):
    """One row after the other: whole visits, and the rest of the weight as a part of one."""
    beta = np.zeros(len(y))
    for i, weight in enumerate(weights):
        for part in [1.0] * int(weight) + [weight % 1]:
            beta[i] += step * part * (y[i] - K[i] @ beta)
    return beta


WEIGHTS = {
    "forgetting": np.exp(-2.0 * np.arange(30)[::-1]),
    "tiny": np.full(30, 1e-200),
    "parts": np.linspace(0.1, 2.9, 30),
}


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("step", ["auto", 0.3])
def test_weights_are_parts_of_updates(weights, step, data):
    """Also those below the rounding of 1, and with the default step, which meets the target of a whole row."""
    X, y = data
    K = Gaussian(gamma=0.3)(X)
    beta = by_weight(K, y, weights, 1.0 if step == "auto" else step)
    model = KernelLMS(Gaussian(gamma=0.3), step_size=step).partial_fit(X, y, weights)
    np.testing.assert_allclose(model.dual_coef_, beta, rtol=1e-7)
    assert "one pass" in model.report_.status
    first = KernelLMS(Gaussian(gamma=0.3), step_size=step, mode="stochastic", shuffle=False, max_iter=1, tol=None)
    np.testing.assert_allclose(first.fit(X, y, weights).dual_coef_, beta, rtol=1e-7)


@pytest.mark.parametrize("target", [0.0, 1e-6])
def test_a_small_target_is_learned_where_f_is_large(target, data):
    """It is no scale of the error, which is that of f."""
    X, y = data
    model = KernelLMS(Gaussian(gamma=0.3)).partial_fit(X, y)
    before = model.predict(X[:1])[0]
    model.partial_fit(X[:1], [target])
    assert model.dual_coef_[-1] == pytest.approx(target - before, rel=1e-9)
    assert model.report_.residual == pytest.approx(1.0)
    assert model.predict(X[:1])[0] == pytest.approx(target, abs=1e-12)


def test_a_row_whose_visits_cancel_is_no_divergence(data):
    X, y = data
    model = KernelLMS(Gaussian(gamma=0.3), step_size=2.0).partial_fit(X[:1], y[:1], [2.0])
    assert model.dual_coef_.tolist() == [0.0]
    assert "one pass" in model.report_.status


def test_another_kernel_is_refused_later(data, tmp_path):
    X, y = data
    for first in ("fit", "partial_fit"):
        model = getattr(KernelLMS("gaussian"), first)(X, y)
        model.set_params(kernel="gaussian()").partial_fit(X, y)
        model.set_params(kernel=model.kernel_).partial_fit(X, y)
        mercer.save(model, tmp_path / first)
        for one in (model, mercer.load(tmp_path / first)):
            one.set_params(kernel="laplace")
            with pytest.raises(InvalidInput, match=r"kernel=Laplace.* after Gaussian.*; set it back, or start again"):
                one.partial_fit(X, y)
            one.set_params(kernel="gaussian").partial_fit(X, y)
            assert type(one.set_params(kernel="laplace").fit(X, y).kernel_).__name__ == "Laplace"
            one.partial_fit(X, y)
    with pytest.raises(InvalidInput, match="kernel="):
        KernelLMS(Gaussian(1.0)).partial_fit(X, y).set_params(kernel__gamma=2.0).partial_fit(X, y)
    of_blocks = KernelLMS(lambda A, B: A @ B.T).partial_fit(X, y).partial_fit(X, y)
    with pytest.raises(InvalidInput, match="kernel="):
        of_blocks.set_params(kernel=lambda A, B: A @ B.T + 1).partial_fit(X, y)


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_targets_beyond_float64_are_refused(first, data):
    with pytest.raises(InvalidInput, match="another unit"):
        getattr(KernelLMS(), first)(data[0], 1e200 * data[1])


@pytest.mark.parametrize("mode", ["batch", "stochastic"])
def test_many_targets_equal_one_at_a_time(mode, data):
    X, y = data
    Y = np.column_stack([y, -2 * y, X[:, 0]])
    model = KernelLMS(MonomialSum(2), mode=mode, max_iter=30, tol=None)
    found = model.fit(X, Y).predict(X)
    for j in range(3):
        np.testing.assert_allclose(found[:, j], model.fit(X, Y[:, j]).predict(X), rtol=1e-8, atol=1e-10)
    several = clone(model).partial_fit(X, Y)
    assert several.dual_coef_.shape == (30, 3)
    with pytest.raises(InvalidInput, match="as many targets"):
        several.partial_fit(X, y)


def test_partial_fit_goes_on_from_fit(data):
    X, y = data
    model = KernelLMS(MonomialSum(3)).fit(X[:20], y[:20])
    before = model.predict(X)
    model.partial_fit(X[20:], y[20:])
    assert len(model.X_fit_) == 30
    first_error = y[20] - before[20]
    largest = np.diag(MonomialSum(3)(X)).max()
    assert_close(model.dual_coef_[20], first_error / largest, rtol=1e-9)
    assert "one pass" in str(model.report_)
    assert model.report_.n == 30


def test_rows_of_many_kinds_join(data):
    X, y = data
    dense = KernelLMS().partial_fit(X[:15], y[:15]).partial_fit(X[15:], y[15:])
    thin = KernelLMS().partial_fit(sp.csr_array(X[:15]), y[:15]).partial_fit(sp.csr_array(X[15:]), y[15:])
    np.testing.assert_allclose(thin.predict(X), dense.predict(X), rtol=1e-9, atol=1e-12)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    framed = KernelLMS().partial_fit(frame[:15], y[:15]).partial_fit(frame[15:], y[15:])
    assert_close(framed.predict(frame), dense.predict(X), rtol=1e-12)
    called = KernelLMS(lambda A, B: Linear()(A, B)).partial_fit(X[:15], y[:15]).partial_fit(X[15:], y[15:])
    np.testing.assert_allclose(called.predict(X), dense.predict(X), rtol=1e-6, atol=1e-8)
    with pytest.raises(InvalidInput, match="precomputed"):
        KernelLMS(Precomputed()).partial_fit(np.eye(3), [1.0, 2.0, 3.0])


def test_precomputed_sparse_and_float32_equal_the_kernel(data):
    X, y = data
    kernel = Gaussian(gamma=0.5)
    expected = KernelLMS(kernel).fit(X, y).predict(X)
    np.testing.assert_allclose(KernelLMS(Precomputed()).fit(kernel(X), y).predict(kernel(X)), expected, atol=1e-9)
    np.testing.assert_allclose(KernelLMS(kernel).fit(sp.csr_array(X), y).predict(X), expected, atol=1e-8)
    narrow = X.astype(np.float32)
    np.testing.assert_allclose(KernelLMS(kernel).fit(narrow, y).predict(narrow), expected, rtol=1e-3, atol=1e-4)


def test_degenerate_data():
    X = np.repeat([[1.0, 2.0], [3.0, -1.0]], 10, axis=0)
    model = KernelLMS(tol=1e-8).fit(X, np.repeat([1.0, 5.0], 10))  # duplicates
    np.testing.assert_allclose(model.predict(X[[0, 10]]), [1.0, 5.0], atol=1e-5)
    assert not KernelLMS().fit(X, np.zeros(20)).predict(X).any()
    assert not KernelLMS().fit(np.zeros((4, 2)), np.ones(4)).predict(X).any()  # K = 0: nothing can be learned
    assert np.isfinite(KernelLMS().fit([[2.0]], [3.0]).predict([[2.0]]))


def test_it_keeps_its_budget(data):
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.random.default_rng(1).normal(size=400)
    free = KernelLMS(tol=None, max_iter=5, memory="2.2MB").fit(X, y)
    assert "matrix-free" in free.report_.method
    assert_close(free.predict(X), KernelLMS(tol=None, max_iter=5).fit(X, y).predict(X), rtol=1e-6)
    with pytest.raises(MemoryExceeded, match="memory="):
        KernelLMS(memory=1000).fit(*data)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "online"},
        {"step_size": 0.0},
        {"step_size": "small"},
        {"step_size": np.nan},
        {"tol": -1.0},
        {"max_iter": 0},
        {"max_iter": 1.5},
        {"random_state": "x"},
    ],
    ids=str,
)
def test_bad_parameters(options, data):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        KernelLMS(**options).fit(*data)


@pytest.mark.parametrize("mode", ["batch", "stochastic"])
@pytest.mark.parametrize("targets", [(), (2,)])
def test_staged_predictions_are_those_of_shorter_runs(mode, targets, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal((30, *targets))
    options = {"mode": mode, "step_size": 0.05, "tol": None}
    model = KernelLMS("gaussian", max_iter=6, keep_history=2, **options).fit(X, y)
    stages = list(model.staged_predict(X))
    assert np.array_equal(stages, list(model.staged_decision_function(X)))
    assert model.history_.shape == (4, 30, *targets)
    assert not np.any(stages[0])
    for stage, steps in zip(stages[1:], (2, 4, 6), strict=True):
        shorter = KernelLMS("gaussian", max_iter=steps, **options).fit(X, y)
        np.testing.assert_allclose(stage, shorter.predict(X), atol=1e-12)
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    mercer.save(model, tmp_path / "model")
    np.testing.assert_array_equal(list(mercer.load(tmp_path / "model").staged_predict(X)), stages)
    for without in (KernelLMS(max_iter=1, tol=None).fit(X, y), model.partial_fit(X, y)):
        with pytest.raises(InvalidInput, match="without a history"):
            next(without.staged_predict(X))
    assert not hasattr(model.set_params(keep_history=False).fit(X, y), "history_")
