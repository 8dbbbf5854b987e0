"""Online regression: both methods against their definitions written out, their limits, chunks of all sizes."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes

import mercer
from mercer import KernelLMS, KernelRidge, OnlineKernelRegressor
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.estimators.online.online_estimator import OnlineEstimator
from mercer.kernels import Function, Gaussian, Polynomial, Precomputed
from mercer.testing import assert_close

METHODS = ["krls", "qklms"]


def rows(n=120, d=2, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    Y = np.column_stack([np.sin(X[:, 0] + t) * X[:, -1] for t in range(targets)]) + 0.1 * rng.normal(size=(n, targets))
    return X, Y[:, 0] if targets == 1 else Y


# ---- the definitions -------------------------------------------------------------------------------------------------


def recursive(X, y, kernel, nu):
    """Engel, Mannor and Meir's table 1: the inverse of the dictionary's matrix, P, and α̃, updated row by row."""
    k0 = kernel(X[:1])[0, 0]
    S, inverse, P, a = [X[0]], np.array([[1 / k0]]), np.array([[1.0]]), np.array([y[0] / k0])
    for x, target in zip(X[1:], y[1:], strict=True):
        k, kxx = kernel(x[None], np.array(S))[0], kernel(x[None])[0, 0]
        c = inverse @ k
        delta = kxx - k @ c
        if delta > nu * kxx:
            S.append(x)
            inverse = np.block([[delta * inverse + np.outer(c, c), -c[:, None]], [-c[None], np.ones((1, 1))]]) / delta
            P = np.block([[P, np.zeros((len(P), 1))], [np.zeros((1, len(P))), np.ones((1, 1))]])
            step = (target - k @ a) / delta
            a = np.append(a - c * step, step)
        else:
            q = P @ c / (1 + c @ P @ c)
            P = P - np.outer(q, c @ P)
            a = a + inverse @ q * (target - k @ a)
    return np.array(S), a


def quantised(X, Y, kernel, epsilon, eta, budget):
    S, B, squares, errors = [], [], [], []
    for x, y in zip(X, Y, strict=True):
        kxx = kernel.diagonal(x[None])[0]
        k = kernel(x[None], np.array(S))[0] if S else np.zeros(0)
        e = y - (k @ np.array(B) if S else 0 * y)
        apart = kxx + np.array(squares) - 2 * k
        if S and (min(apart) <= epsilon**2 or len(S) == budget):
            B[int(np.argmin(apart))] = B[int(np.argmin(apart))] + eta * e
        else:
            S.append(x)
            squares.append(kxx)
            B.append(eta * e)
        errors.append(e)
    return np.array(S), np.array(B), np.array(errors)


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Polynomial(3, gamma=0.5)], ids=repr)
@pytest.mark.parametrize("nu", [1e-1, 1e-2, 1e-3])
def test_recursive_least_squares_is_the_recursion_of_the_paper(kernel, nu):
    X, y = rows()
    S, a = recursive(X, y, kernel, nu)
    model = OnlineKernelRegressor(kernel, nu=nu, alpha=0.0)
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_array_equal(model.X_fit_, S)
    np.testing.assert_allclose(model.predict(X), kernel(X, S) @ a, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model.dual_coef_, a, rtol=1e-4, atol=1e-4 * np.abs(a).max())


@pytest.mark.parametrize("budget", [1, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("targets", [1, 2])
def test_quantised_lms_is_its_definition_row_by_row(epsilon, budget, targets):
    X, Y = rows(targets=targets)
    kernel = Gaussian(0.5)
    S, B, errors = quantised(X, Y.reshape(len(X), -1), kernel, epsilon, 0.4, budget)
    model = OnlineKernelRegressor(kernel, method="qklms", epsilon=epsilon, step_size=0.4, budget=budget)
    for i in range(len(X)):
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    np.testing.assert_array_equal(model.X_fit_, S)
    np.testing.assert_allclose(model.dual_coef_.reshape(B.shape), B, rtol=1e-9, atol=1e-11)
    ratio = np.sqrt((errors**2).sum(axis=0) / (Y.reshape(len(X), -1) ** 2).sum(axis=0)).max()
    assert model.report_.residual == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [4, 500])
def test_the_size_of_the_chunks_does_not_matter(method, budget, averaged, monkeypatch):
    X, Y = rows(200, targets=2)
    found = []
    for size in (1, 7, 64, 256):
        monkeypatch.setattr(OnlineEstimator, "_rows_at_once", size)
        model = OnlineKernelRegressor(Gaussian(0.5), method=method, budget=budget, averaged=averaged, epsilon=0.3)
        for cut in (slice(0, 90), slice(90, 200)):
            model.partial_fit(X[cut], Y[cut])
        found.append(model)
    for other in found[1:]:
        np.testing.assert_array_equal(other.X_fit_, found[0].X_fit_)
        np.testing.assert_allclose(other.predict(X), found[0].predict(X), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_with_all_rows_kept_it_is_kernel_ridge_regression(alpha):
    X, Y = rows(targets=2)
    kernel = Gaussian(2.0)
    ridge = KernelRidge(kernel, alpha=alpha).fit(X, Y)
    distance = []
    for nu in (1e-2, 1e-4, 1e-6, 0.0):
        model = OnlineKernelRegressor(kernel, nu=nu, alpha=alpha, shuffle=False).fit(X, Y)
        distance.append(np.abs(model.predict(X) - ridge.predict(X)).max())
    assert len(model.X_fit_) == len(X)
    np.testing.assert_allclose(model.dual_coef_, ridge.dual_coef_, rtol=1e-6, atol=1e-7)
    assert distance[0] > distance[2]
    assert distance[3] < 1e-8


def test_without_quantisation_it_is_least_mean_squares():
    X, y = rows()
    lms = KernelLMS(Gaussian(0.5), step_size=0.3).partial_fit(X, y)
    model = OnlineKernelRegressor(Gaussian(0.5), method="qklms", epsilon=0.0, step_size=0.3).partial_fit(X, y)
    assert_close(model.dual_coef_, lms.dual_coef_, rtol=1e-10)
    np.testing.assert_array_equal(model.X_fit_, lms.X_fit_)


def test_the_average_is_the_mean_over_all_rows():
    X, y = rows(50)
    model, every = OnlineKernelRegressor(Gaussian(0.5), method="qklms"), []
    for i in range(50):
        every.append(model.partial_fit(X[i : i + 1], y[i : i + 1]).predict(X))
    mean = OnlineKernelRegressor(Gaussian(0.5), method="qklms", averaged=True).partial_fit(X, y)
    np.testing.assert_allclose(mean.predict(X), np.mean(every, axis=0), rtol=1e-9, atol=1e-11)


def test_the_misfit_is_that_of_the_projected_rows():
    X, y = rows()
    model = OnlineKernelRegressor(Gaussian(0.5), nu=1e-8).fit(X, y)
    assert model.report_.residual == pytest.approx(np.linalg.norm(y - model.predict(X)) / np.linalg.norm(y), rel=1e-3)
    small = OnlineKernelRegressor(Gaussian(0.5), budget=5).fit(X, y)
    assert len(small.X_fit_) == 5
    assert "after the dictionary was full" in str(small.report_)


def test_real_rows_with_few_of_them_kept():
    X, y = load_diabetes(return_X_y=True)
    X, y = X * 20, (y - y.mean()) / y.std()
    full = KernelRidge(Gaussian(0.02), alpha=1.0).fit(X[:300], y[:300]).score(X[300:], y[300:])
    krls = OnlineKernelRegressor(Gaussian(0.02), alpha=1.0, nu=0.02).fit(X[:300], y[:300])
    assert len(krls.X_fit_) < 200
    assert krls.score(X[300:], y[300:]) > full - 0.03
    lms = OnlineKernelRegressor(Gaussian(0.02), method="qklms", epsilon=0.5, n_passes=3, step_size=0.1).fit(
        X[:300], y[:300]
    )
    assert lms.score(X[300:], y[300:]) > full - 0.1


@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_float32_and_objects(method):
    X, y = rows()
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    model = OnlineKernelRegressor(Gaussian(0.5), method=method).fit(X, y)
    sparse = OnlineKernelRegressor(Gaussian(0.5), method=method).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), model.predict(X), rtol=1e-6, atol=1e-7)
    narrow = OnlineKernelRegressor(Gaussian(0.5), method=method).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(narrow.predict(X.astype(np.float32)), model.predict(X), atol=0.05)
    words = ["ab", "abc", "xyz", "xy"] * 3
    common = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    model = OnlineKernelRegressor(common, method=method, n_passes=20).fit(words, [1.0, 1.0, 0.0, 0.0] * 3)
    assert model.predict(["ab"])[0] > 0.8


def test_degenerate_rows():
    for method in METHODS:
        model = OnlineKernelRegressor("linear", method=method).fit(np.zeros((5, 2)), np.ones(5))
        np.testing.assert_array_equal(model.predict(np.ones((2, 2))), 0)
        model = OnlineKernelRegressor(Gaussian(1.0), method=method).fit(np.ones((9, 2)), np.arange(9.0))
        assert len(model.X_fit_) == 1
        assert np.all(np.isfinite(model.predict(np.ones((2, 2)))))
    flat = OnlineKernelRegressor(Gaussian(1.0), nu=0.0, alpha=0.0).fit(np.repeat(np.eye(3), 4, axis=0), np.ones(12))
    assert_close(flat.predict(np.eye(3)), 1.0, rtol=1e-9)


def test_too_large_a_step_is_told_and_changes_nothing():
    X, y = rows(2000)
    model = OnlineKernelRegressor(Gaussian(0.5), method="qklms", step_size=50.0).partial_fit(X[:2], y[:2])
    before, seen = model.predict(X), model.n_seen_
    with pytest.warns(ConvergenceWarning, match="step size"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.n_seen_ == seen
    assert "as before" in str(model.report_)


@pytest.mark.parametrize("step", [50.0, 1e200])
def test_divergence_is_told_once(step):
    """By our warning, and by none of NumPy's overflows."""
    X, y = rows(2000)
    for model in (
        OnlineKernelRegressor(Gaussian(0.5), method="qklms", step_size=step, epsilon=0.0),
        OnlineKernelRegressor(Gaussian(0.5), method="qklms", step_size=step, averaged=True),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.partial_fit(X, y)
        assert [one.category for one in said] == [ConvergenceWarning]
        np.testing.assert_array_equal(model.predict(X), 0.0)


def test_the_step_size_may_fall_between_calls():
    X, y = rows()
    kernel, S, b = Gaussian(0.5), [], []
    model = OnlineKernelRegressor(kernel, method="qklms", epsilon=0.0)
    for i, step in enumerate(np.linspace(0.5, 0.1, 20).tolist()):
        b.append(step * (y[i] - (kernel(X[i : i + 1], np.array(S))[0] @ b if S else 0.0)))
        S.append(X[i])
        model.set_params(step_size=step).partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_allclose(model.dual_coef_, b, rtol=1e-9, atol=1e-12)
    assert model.set_params(step_size="auto").partial_fit(X[:1], y[:1]).step_size_ == pytest.approx(0.1)


@pytest.mark.parametrize("method", METHODS)
def test_another_kernel_is_refused_later(method, tmp_path):
    X, y = rows()
    for kernel in ("gaussian", Gaussian("median"), Gaussian(0.5), Function(lambda A, B: A @ B.T)):
        model = OnlineKernelRegressor(kernel, method=method).partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
        before = model.predict(X)
        with pytest.raises(InvalidInput, match=r"kernel=Polynomial.*; set it back, or start again with fit"):
            model.set_params(kernel=Polynomial(2)).partial_fit(X, y)
        np.testing.assert_array_equal(model.predict(X), before)
        model.set_params(kernel=model.kernel_).partial_fit(X, y)
    mercer.save(OnlineKernelRegressor(method=method).fit(X, y), tmp_path / "model")
    loaded = mercer.load(tmp_path / "model").partial_fit(X, y)
    with pytest.raises(InvalidInput, match="kernel="):
        loaded.set_params(kernel="gaussian(gamma='median')").partial_fit(X, y)


def test_a_radius_whose_square_overflows_holds_all_rows():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = OnlineKernelRegressor("gaussian", method="qklms", epsilon=1e300).fit(X, X[:, 0])
    assert len(model.X_fit_) == 1
    far, farther = (
        mercer.OnlineKernelClassifier("gaussian", strategy="project", eta=eta).fit(X, X[:, 0] > 0)
        for eta in (1e3, 1e300)
    )
    np.testing.assert_array_equal(far.decision_function(X), farther.decision_function(X))


def test_messages_have_plain_numbers():
    X, y = rows()
    model = OnlineKernelRegressor(alpha=np.float64(0.25)).partial_fit(X, y).set_params(method="qklms")
    with pytest.raises(InvalidInput, match=r"alpha=0\.25, method='qklms'"):
        model.partial_fit(X, y)


BAD = {
    "method": "rls",
    "budget": 2.5,
    "nu": -1.0,
    "alpha": np.nan,
    "epsilon": "small",
    "step_size": 0.0,
    "n_passes": True,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused(name):
    with pytest.raises(InvalidInput, match=name):
        OnlineKernelRegressor(**{name: BAD[name]}).fit(*rows())


def test_what_cannot_be_is_refused():
    X, y = rows()
    with pytest.raises(InvalidInput, match="precomputed"):
        OnlineKernelRegressor(Precomputed()).fit(X @ X.T, y)
    with pytest.raises(InvalidInput, match="as many targets"):
        OnlineKernelRegressor().partial_fit(X, y).partial_fit(X, np.column_stack([y, y]))
    with pytest.raises(InvalidInput, match="changed"):
        OnlineKernelRegressor().partial_fit(X, y).set_params(method="qklms").partial_fit(X, y)
    with pytest.raises(MemoryExceeded, match="budget"):
        OnlineKernelRegressor(memory=10_000).fit(X, y)
    for method in METHODS:
        with pytest.raises(InvalidInput, match=r"finite|overflow"):
            OnlineKernelRegressor(method=method).fit(X * 1e200, y)
        with pytest.raises(InvalidInput, match="another unit"):
            OnlineKernelRegressor(method=method).fit(X, y * 1e200)
        with pytest.raises(InvalidInput, match="another unit"):
            OnlineKernelRegressor(method=method).partial_fit(X, y * 1e200)
