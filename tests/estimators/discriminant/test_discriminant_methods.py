"""Discriminant analysis on landmarks against the exact method, and its classifier against leaving rows out by hand."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from mercer import KernelDiscriminantAnalysis, KernelOperator, load, save
from mercer.approx import pivoted_cholesky
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.estimators.discriminant import analysis as discriminant
from mercer.estimators.discriminant import gaussian_classes
from mercer.estimators.discriminant.fisher import class_targets, leave_one_out_scores, leverages
from mercer.kernels import Gaussian, Precomputed
from mercer.testing import assert_close

KERNEL = Gaussian(gamma=0.1)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 200)
    X = rng.normal(size=(200, 4))
    X[:, 0] += y
    X[:, 1] += y == 2
    return X, y


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    order = np.random.default_rng(1).permutation(len(found.data))  # they stand by writer
    X = (found.data / 16 + 0.35 * np.random.default_rng(0).normal(size=found.data.shape))[order]
    y = found.target[order]
    return X[:500], y[:500], X[500:1100], y[500:1100]


# ---- landmarks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_all_rows_as_landmarks_are_the_exact_method(weighted, data):
    X, y = data
    w = np.random.default_rng(1).integers(1, 4, 200).astype(float) if weighted else None
    exact = KernelDiscriminantAnalysis(KERNEL).fit(X, y, w)
    model = KernelDiscriminantAnalysis(KERNEL, solver="nystroem", n_landmarks=200).fit(X, y, w)
    assert_close(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    new = X + 0.3
    means = exact.transform(new) - model.transform(new)
    np.testing.assert_allclose(means, 0.0, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(new), exact.predict_proba(new), atol=1e-5)
    np.testing.assert_allclose(model.means_, exact.means_, atol=1e-5)


def test_few_landmarks_are_close_and_carry_the_transform(digits):
    X, y, new, truth = digits
    exact = KernelDiscriminantAnalysis(Gaussian(0.02), delta=0.1).fit(X, y)
    model = KernelDiscriminantAnalysis(Gaussian(0.02), delta=0.1, solver="nystroem", n_landmarks=200).fit(X, y)
    assert len(model.X_fit_) == len(model.dual_coef_) == 200
    assert model.score(new, truth) > exact.score(new, truth) - 0.03
    angles = []
    for m in (100, 300, 450):
        found = KernelDiscriminantAnalysis(Gaussian(0.02), delta=0.1, solver="nystroem", n_landmarks=m).fit(X, y)
        angles.append(scipy.linalg.subspace_angles(exact.transform(new), found.transform(new)).mean())
    assert 0 < angles[2] < angles[1] < angles[0]
    assert_close(np.diag(model.dual_coef_.T @ Gaussian(0.02)(model.X_fit_) @ model.dual_coef_), 1.0, rtol=1e-6)
    assert "200 landmarks" in model.report_.method
    assert any("leave out" in note for note in model.report_.notes)


def test_large_data_take_landmarks_and_say_why(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(discriminant, "MOST_EXACT_UNSTORED", 150)
    assert "regression in" not in KernelDiscriminantAnalysis(KERNEL).fit(X, y).report_.method
    small = KernelDiscriminantAnalysis(KERNEL, memory=300_000).fit(X, y)
    assert "landmarks" in small.report_.method
    assert "n = 200" in small.report_.reason
    assert small.report_.memory_planned <= 300_000
    assert (
        "conjugate" in KernelDiscriminantAnalysis(KERNEL, solver="regression", memory=300_000).fit(X, y).report_.method
    )
    monkeypatch.setattr(discriminant, "MOST_EXACT", 199)
    assert "landmarks" in KernelDiscriminantAnalysis(KERNEL).fit(X, y).report_.method
    with pytest.raises(MemoryExceeded, match="fewer landmarks"):
        KernelDiscriminantAnalysis(KERNEL, solver="nystroem", n_landmarks=200, memory=300_000).fit(X, y)


def test_landmarks_of_sparse_precomputed_and_float32_rows(data, tmp_path):
    X, y = data
    options = {"solver": "nystroem", "n_landmarks": 60}
    model = KernelDiscriminantAnalysis(KERNEL, **options).fit(X, y)
    expected = model.transform(X)
    given = KernelDiscriminantAnalysis(Precomputed(), **options).fit(KERNEL(X), y)
    np.testing.assert_allclose(given.transform(KERNEL(X)), expected, atol=1e-6)
    sparse = KernelDiscriminantAnalysis(KERNEL, **options).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), expected, atol=1e-6)
    narrow = KernelDiscriminantAnalysis(KERNEL, solver="nystroem").fit(X.astype(np.float32), y)
    wide = KernelDiscriminantAnalysis(KERNEL, solver="nystroem").fit(X, y)
    np.testing.assert_allclose(narrow.transform(X.astype(np.float32)), wide.transform(X), atol=1e-3)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


# ---- leaving one out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("delta", [1e-3, 0.3])
def test_leave_one_out_scores_are_those_of_the_regression_without_the_row(weighted, delta, data):
    X, y, n = data[0][:60], data[1][:60], 60
    w = np.random.default_rng(3).integers(1, 4, n).astype(float) if weighted else np.ones(n)
    model = KernelDiscriminantAnalysis(KERNEL, delta=delta).fit(X, y, w)
    K, Y = KERNEL(X), class_targets(np.bincount(y, weights=w))[y]

    def regression(w):
        rows = w > 0
        m = rows.sum()
        A = np.zeros((m + 1, m + 1))
        A[:m, :m] = K[np.ix_(rows, rows)] + np.diag(delta / w[rows])
        A[:m, m] = A[m, :m] = 1.0
        x = np.linalg.solve(A, np.vstack([Y[rows], np.zeros((1, Y.shape[1]))]))
        return K[:, rows] @ x[:m] + x[m]

    f, Z = regression(w), model.transform(X)
    T = np.linalg.lstsq(f - f.mean(axis=0), Z - Z.mean(axis=0), rcond=None)[0]
    without = np.array([regression(w - (np.arange(n) == i))[i] for i in range(n)])
    h = leverages(np.linalg.cholesky(K + 1e-13 * np.eye(n)), np.zeros(n), w, delta)
    found = leave_one_out_scores(Z, y, w, model.eigenvalues_, h)
    np.testing.assert_allclose(found, Z + (without - f) @ T, atol=2e-6)


@pytest.mark.parametrize("run", [1 << 30, 20_011])
def test_leverages_are_the_diagonal_of_the_hat_matrix_and_near_it_from_fewer_pivots(digits, monkeypatch, run):
    monkeypatch.setattr("mercer.estimators.discriminant.fisher.RUN", run)  # all rows at once, or some and then fewer
    X = digits[0]
    K, n = Gaussian(0.02)(X), len(X)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    for delta in (1e-4, 1e-2, 1.0):
        exact = 1 / n + np.diag(np.linalg.solve(centred + delta * np.eye(n), centred).T)
        for rank, most in ((n, 1e-7), (200, 0.03)):  # on average, which is what a covariance is made of
            F = pivoted_cholesky(KernelOperator(Gaussian(0.02), X), rank).F
            h = leverages(F, np.maximum(np.diag(K) - np.sum(F**2, axis=1), 0), np.ones(n), delta)
            assert np.abs(h - exact).mean() < most, (delta, rank)


def oracle(model, new, truth):
    """The log loss of the same model with the means and the covariance of the new rows themselves."""
    Z = model.transform(new)
    M = np.array([Z[truth == c].mean(axis=0) for c in range(10)])
    away = Z - M[truth]
    slopes = np.linalg.solve(away.T @ away / (len(Z) - 10), M.T)
    return log_loss(truth, softmax(Z @ slopes - np.sum(M * slopes.T, axis=1) / 2, axis=1))


@pytest.mark.parametrize("solver", ["regression", "eigen", "nystroem"])
@pytest.mark.parametrize("delta", [1e-6, 1e-2, 1.0])
def test_probabilities_are_calibrated_whatever_delta(solver, delta, digits):
    X, y, new, truth = digits
    options = {"kernel": Gaussian(0.02), "delta": delta, "solver": solver}
    model = KernelDiscriminantAnalysis(**options).fit(X, y)
    P = model.predict_proba(new)
    tight = KernelDiscriminantAnalysis(calibration="training", **options).fit(X, y)
    loss, before = log_loss(truth, P), log_loss(truth, tight.predict_proba(new))
    assert loss < before
    assert delta > 0.1 or loss < before / 4
    assert loss < 1.2 * oracle(model, new, truth), "no Gaussian classes of one covariance do much better"
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(new))
    assert model.score(new, truth) > tight.score(new, truth) - 0.01
    np.testing.assert_array_equal(tight.score_covariance_, tight.covariance_)


def test_as_good_as_calibration_by_cross_validation(digits):
    X, y, new, truth = digits
    for delta in (1e-3, 0.3):
        model = KernelDiscriminantAnalysis(Gaussian(0.02), delta=delta)
        fitted = CalibratedClassifierCV(model, cv=5).fit(X, y)
        assert log_loss(truth, model.fit(X, y).predict_proba(new)) < 1.25 * log_loss(truth, fitted.predict_proba(new))


def test_fewer_pivots_than_rows_calibrate_as_well(digits, monkeypatch):
    X, y, new, truth = digits
    losses = []
    for rank in (500, 150):
        monkeypatch.setattr(gaussian_classes, "LEVERAGE_RANK", rank)
        model = KernelDiscriminantAnalysis(Gaussian(0.02), delta=1e-3).fit(X, y)
        losses.append(log_loss(truth, model.predict_proba(new)))
    assert_close(losses[1], losses[0], rtol=0.05)


def test_priors_move_the_calibrated_boundary_too(data):
    X, y = data
    model = KernelDiscriminantAnalysis(KERNEL, priors=[0.96, 0.01, 0.01, 0.01, 0.01]).fit(X, y)
    P = model.predict_proba(X)
    assert np.mean(P[:, 0] > 0.5) > np.mean(y == 0)
    np.testing.assert_array_equal(P.argmax(axis=1), model.predict(X))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"calibration": "none"}, "calibration"),
        ({"n_landmarks": 0}, "n_landmarks"),
        ({"n_landmarks": 2.5}, "n_landmarks"),
        ({"random_state": "x"}, "random_state"),
    ],
    ids=str,
)
def test_bad_parameters(options, words, data):
    with pytest.raises(InvalidInput, match=words):
        KernelDiscriminantAnalysis(KERNEL, **options).fit(*data)
