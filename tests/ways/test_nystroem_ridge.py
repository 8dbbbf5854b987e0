"""Kernel ridge regression in the span of landmarks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

import mercer
from mercer import KernelRidge, KernelRidgeClassifier
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.kernels import Gaussian, Linear
from mercer.ways import nystroem_ridge as module

GAUSS = Gaussian(0.2)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    return X, np.column_stack([np.sin(X[:, 0]) + 3.0, X[:, 1] * X[:, 2]]), rng.uniform(0.5, 2.0, 600)


def least_squares(X, Y, landmarks, alpha, weights, intercept):
    """min Σ wᵢ(yᵢ − (K_nm β)ᵢ − b)² + α βᵀ K_mm β, written as one least-squares problem for LAPACK."""
    K_nm, K_mm = GAUSS(X, landmarks), GAUSS(landmarks)
    e, U = np.linalg.eigh(K_mm)
    root = np.sqrt(np.maximum(e, 0))[:, None] * U.T
    w, ones = np.sqrt(weights)[:, None], np.ones((len(X), int(intercept)))
    A = np.vstack(
        [w * np.hstack([K_nm, ones]), np.sqrt(alpha) * np.hstack([root, np.zeros((len(root), ones.shape[1]))])]
    )
    found = np.linalg.lstsq(A, np.vstack([w * Y, np.zeros((len(root), Y.shape[1]))]), rcond=1e-15)[0]
    return np.hstack([K_nm, ones]) @ found


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("landmarks", ["pivoted", "uniform", "kmeans"])
def test_equals_the_least_squares_problem(data, intercept, weighted, landmarks):
    X, Y, w = data
    weights = w if weighted else None
    model = KernelRidge(
        GAUSS, 0.3, fit_intercept=intercept, solver="nystroem", n_landmarks=40, landmarks=landmarks, tol=1e-11
    ).fit(X, Y, weights)
    expected = least_squares(X, Y, model.X_fit_, 0.3, w if weighted else np.ones(600), intercept)
    assert np.abs(model.predict(X) - expected).max() < 1e-8
    assert model.restricted_
    assert model.dual_coef_.shape == (40, 2) == (len(model.X_fit_), 2)
    assert model.report_.residual <= 1e-11
    assert model.report_.status == "converged"
    assert (model.intercept_ != 0).all() == intercept


def test_sampled_rows_precondition_and_do_not_change_the_answer(data, monkeypatch):
    X, Y, _ = data
    exact = KernelRidge(GAUSS, 0.1, solver="nystroem", n_landmarks=30, tol=1e-11).fit(X, Y)
    monkeypatch.setattr("mercer.approx.nystroem_ridge.OVERSAMPLING", 4)  # 120 of the 600 rows
    sampled = KernelRidge(GAUSS, 0.1, solver="nystroem", n_landmarks=30, tol=1e-11).fit(X, Y)
    assert np.abs(exact.predict(X) - sampled.predict(X)).max() < 1e-9
    assert exact.report_.steps < sampled.report_.steps < 60


def test_all_rows_as_landmarks_are_the_exact_model(data):
    X, Y, w = data
    X, Y, w = X[:150], Y[:150], w[:150]
    near = KernelRidge(GAUSS, 0.5, fit_intercept=True, solver="nystroem", landmarks=X, tol=1e-9).fit(X, Y, w)
    exact = KernelRidge(GAUSS, 0.5, fit_intercept=True).fit(X, Y, w)
    assert np.abs(near.predict(X) - exact.predict(X)).max() < 1e-7


def test_weight_two_is_a_row_twice_and_weight_zero_none(data):
    X, Y, _ = data
    w = np.ones(600)
    w[:50], w[50:80] = 2.0, 0.0
    B = X[100:140]
    rows = np.r_[0:50, 0:50, 80:600]
    options = {"solver": "nystroem", "landmarks": B, "tol": 1e-12, "fit_intercept": True}
    weighted = KernelRidge(GAUSS, 0.1, **options).fit(X, Y, w)
    repeated = KernelRidge(GAUSS, 0.1, **options).fit(X[rows], Y[rows])
    assert np.abs(weighted.predict(X) - repeated.predict(X)).max() < 1e-9


def test_one_penalty_for_each_target(data):
    X, Y, _ = data
    options = {"solver": "nystroem", "n_landmarks": 30, "tol": 1e-11}
    both = KernelRidge(GAUSS, [0.01, 10.0], **options).fit(X, Y)
    one = [KernelRidge(GAUSS, a, **options).fit(X, Y[:, j]) for j, a in enumerate([0.01, 10.0])]
    assert np.abs(both.predict(X) - np.column_stack([m.predict(X) for m in one])).max() < 1e-10


def test_duplicate_landmarks_are_no_trouble(data):
    X, Y, _ = data
    B = X[:20]
    once, twice = (
        KernelRidge(GAUSS, 0.1, solver="nystroem", landmarks=rows, tol=1e-10).fit(X, Y)
        for rows in (B, np.vstack([B, B]))
    )
    assert np.abs(once.predict(X) - twice.predict(X)).max() < 1e-6
    assert any("jittered" in note for note in twice.report_.notes)


@pytest.mark.filterwarnings("error")
def test_no_penalty_is_plain_least_squares(data):
    X, Y, _ = data
    model = KernelRidge(GAUSS, 0.0, solver="nystroem", n_landmarks=12, tol=1e-10).fit(X, Y)
    K_nm = GAUSS(X, model.X_fit_)
    expected = K_nm @ np.linalg.lstsq(K_nm, Y, rcond=None)[0]
    assert np.abs(model.predict(X) - expected).max() < 1e-6


def test_float32_rows_give_the_same_predictions(data):
    X, Y, _ = data
    a, b = (
        KernelRidge(GAUSS, 0.1, solver="nystroem", landmarks="uniform", n_landmarks=50).fit(rows, Y).predict(rows)
        for rows in (X, X.astype(np.float32))
    )
    assert np.abs(a - b).max() < 1e-3 * np.abs(a).max()


def test_sparse_precomputed_and_named_rows(data):
    X, Y, _ = data
    index = np.arange(0, 600, 20)
    options = {"solver": "nystroem", "landmarks": index, "tol": 1e-10}
    dense = KernelRidge(GAUSS, 0.1, **options).fit(X, Y)
    sparse = KernelRidge(GAUSS, 0.1, **options).fit(sp.csr_matrix(X), Y)
    given = KernelRidge("precomputed", 0.1, **options).fit(GAUSS(X), Y)
    assert np.abs(dense.predict(X) - sparse.predict(sp.csr_matrix(X))).max() < 1e-8
    assert np.abs(dense.predict(X[:7]) - given.predict(GAUSS(X[:7], X))).max() < 1e-8


def test_classifier_on_digits():
    X, y = load_digits(return_X_y=True)
    model = KernelRidgeClassifier(Gaussian(0.0005), 0.1, solver="nystroem", n_landmarks=300).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.94
    assert model.dual_coef_.shape == (300, 10)


def test_report_and_files(data, tmp_path):
    X, Y, _ = data
    model = KernelRidge(GAUSS, 0.1, solver="nystroem", n_landmarks=25).fit(X, Y)
    text = str(model.report_)
    assert "25 landmarks (pivoted)" in text
    assert "leave out" in text
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.restricted_


def test_what_the_landmarks_leave_out_is_measured(data):
    X, Y, _ = data
    model = KernelRidge(GAUSS, 0.1, solver="nystroem", n_landmarks=25).fit(X[:500], Y[:500])
    K, B = GAUSS(X[:500], model.X_fit_), GAUSS(model.X_fit_)
    share = float(np.mean(1 - np.einsum("ij,ij->i", K, np.linalg.solve(B, K.T).T)))
    assert any(f"leave out {share:.1e}" in note for note in model.report_.notes)


def test_auto_takes_landmarks_only_where_exact_products_are_too_dear(data, monkeypatch):
    X, Y, _ = data
    assert not KernelRidge(GAUSS).fit(X, Y).restricted_
    monkeypatch.setattr(module, "DEAREST", 1e3)
    with pytest.warns(ConvergenceWarning, match="approximation"):
        model = KernelRidge(GAUSS).fit(X, Y)
    assert model.restricted_
    assert "multiply-adds" in model.report_.reason


def test_refusals(data):
    X, Y, _ = data
    model = KernelRidge(GAUSS, solver="nystroem", n_landmarks=10).fit(X, Y)
    with pytest.raises(InvalidInput, match="landmarks"):
        model.predict(X, return_std=True)
    for bad in ({"n_landmarks": 0}, {"n_landmarks": 2.5}, {"landmarks": "best"}, {"landmarks": [1000]}):
        with pytest.raises(InvalidInput, match="landmarks"):
            KernelRidge(GAUSS, solver="nystroem", **bad).fit(X, Y)
    with pytest.raises(MemoryExceeded, match="n_landmarks"):
        KernelRidge(GAUSS, solver="nystroem", n_landmarks=500, memory="1MB").fit(X, Y)
    with pytest.raises(InvalidInput, match="landmarks"):
        KernelRidge(Linear(), solver="nystroem", landmarks=np.zeros((3, 3))).fit(X, Y)


def test_memory_lowers_the_default(data):
    X, Y, _ = data
    model = KernelRidge(GAUSS, solver="nystroem", memory=1_500_000).fit(X, Y)
    assert 10 <= len(model.X_fit_) < module.default_landmarks(600)
    assert any("allows" in note for note in model.report_.notes)
