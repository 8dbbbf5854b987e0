"""Compressed models: fewer vectors, the loss that they state, and what they still can do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris

from mercer import (
    SVC,
    SVR,
    KernelDiscriminantAnalysis,
    KernelLMS,
    KernelLogisticRegression,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load,
    save,
)
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import Function, Gaussian, Precomputed, Spectrum
from mercer.testing import assert_close

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
KERNEL = Gaussian(0.3)

MODELS = {
    "svc": lambda: SVC(10.0, KERNEL).fit(X, Y),
    "svc, two": lambda: SVC(10.0, KERNEL).fit(X, Y == 1),
    "nu-svc": lambda: NuSVC(0.2, KERNEL).fit(X, Y),
    "svr": lambda: SVR(1.0, 0.05, KERNEL).fit(X, X[:, 0] * X[:, 1]),
    "nu-svr": lambda: NuSVR(kernel=KERNEL).fit(X, X[:, 0] * X[:, 1]),
    "one class": lambda: OneClassSVM(KERNEL, nu=0.3).fit(X),
    "ridge": lambda: KernelRidge(KERNEL, 0.1).fit(X, X[:, 0] * X[:, 1]),
    "ridge, two targets": lambda: KernelRidge(KERNEL, 0.1, fit_intercept=True).fit(X, X[:, :2] ** 2),
    "classifier": lambda: KernelRidgeClassifier(KERNEL, 0.1).fit(X, Y),
    "logistic": lambda: KernelLogisticRegression(KERNEL, 0.1).fit(X, Y),
    "logistic, two": lambda: KernelLogisticRegression(KERNEL, 0.1).fit(X, Y == 1),
    "lms": lambda: KernelLMS(KERNEL, tol=1e-2).fit(X, X[:, 0] * X[:, 1]),
    "discriminant": lambda: KernelDiscriminantAnalysis(KERNEL, delta=0.1).fit(X, Y),
}


def outputs(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


@pytest.mark.parametrize("name", MODELS)
def test_all_vectors_lose_nothing_and_some_little(name, tmp_path):
    model = MODELS[name]()
    same = model.compress(1.0)
    np.testing.assert_allclose(outputs(same, X), outputs(model, X), atol=1e-5 * np.abs(outputs(model, X)).max())
    vectors = len(model.X_fit_)
    small = model.compress(0.8)
    assert len(small.X_fit_) <= 0.8 * vectors
    assert len(model.X_fit_) == vectors
    assert small.compression_loss_ < 0.05
    apart = np.abs(outputs(small, X) - outputs(model, X)).max()
    assert apart < 0.1 * np.abs(outputs(model, X)).max() + 0.05
    save(small, tmp_path / "m")
    np.testing.assert_array_equal(outputs(load(tmp_path / "m"), X), outputs(small, X))
    again = small.compress(0.5)
    assert len(again.X_fit_) <= 0.5 * len(small.X_fit_)
    numbers = name in ("svr", "nu-svr", "lms") or name.startswith("ridge")
    fresh = small.fit(X, X[:, 0] * X[:, 1] if numbers else Y)
    assert not getattr(fresh, "restricted_", False)
    assert not hasattr(fresh, "compression_loss_")


@pytest.mark.parametrize("move", [False, True])
def test_the_loss_is_the_distance_in_feature_space(move):
    model = KernelRidge(KERNEL, 0.1).fit(X, X[:, :2] ** 2)
    small = model.compress(8, move=move)
    rows, coefficients = np.vstack([X, small.X_fit_]), np.vstack([model.dual_coef_, -small.dual_coef_])
    apart = np.sum(coefficients * (KERNEL(rows) @ coefficients))
    whole = np.sum(model.dual_coef_ * (KERNEL(X) @ model.dual_coef_))
    assert_close(small.compression_loss_, np.sqrt(apart / whole), rtol=1e-6)
    report = str(small.report_)
    assert "8 of 150 vectors" in report
    assert f"{small.compression_loss_:.2e}" in report
    among = (small.X_fit_[:, None] == X).all(axis=2).any(axis=1)
    assert np.all(among) != move


def test_moving_helps_and_a_tolerance_is_kept():
    rows, y = load_digits(return_X_y=True)
    rows, y = rows[:400] / 16, y[:400]
    model = SVC(10.0, Gaussian(0.3)).fit(rows, y)
    chosen, moved = model.compress(0.1, move=False), model.compress(0.1)
    assert moved.compression_loss_ < 0.9 * chosen.compression_loss_
    assert moved.score(rows, y) > 0.97
    assert model.compress(tolerance=0.1, move=False).compression_loss_ <= 0.1 + 1e-9
    stated = model.compress(20, X=rows).report_.notes[0]
    assert "400 rows" in stated


def test_rows_that_cannot_move_are_chosen():
    sparse = SVC(1.0, KERNEL).fit(sp.csr_array(X), Y).compress(10)
    assert sp.issparse(sparse.X_fit_)
    assert sparse.X_fit_.shape == (10, 4)
    assert sparse.score(sp.csr_array(X), Y) > 0.9
    words = ["ab", "abc", "xyz", "xy", "abz", "yz"]
    common = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    small = KernelRidgeClassifier(common, alpha=0.1).fit(words, [0, 0, 1, 1, 0, 1]).compress(4)
    assert len(small.X_fit_) <= 4
    assert set(small.X_fit_) <= set(words)


def test_float32_rows_stay_so():
    small = SVR(kernel=KERNEL).fit(X.astype(np.float32), X[:, 0]).compress(10)
    assert small.X_fit_.dtype == np.float32


def test_what_a_compressed_model_has_no_more():
    small = KernelRidge(KERNEL, 0.1).fit(X, X[:, 0]).compress(20)
    with pytest.raises(InvalidInput):
        small.predict(X, return_std=True)
    machine = SVC(10.0, KERNEL, warm_start=True).fit(X, Y).compress(10)
    np.testing.assert_allclose(
        machine.fit(X, Y).decision_function(X), SVC(10.0, KERNEL).fit(X, Y).decision_function(X), atol=1e-6
    )


@pytest.mark.parametrize(
    "arguments",
    [{}, {"n_vectors": 0}, {"n_vectors": 1.5}, {"n_vectors": True}, {"n_vectors": "a"}, {"tolerance": -1.0}],
)
def test_bad_arguments(arguments):
    with pytest.raises(InvalidInput, match="compress"):
        SVC().fit(X, Y).compress(**arguments)


def test_where_it_is_refused():
    with pytest.raises(InvalidInput, match="precomputed"):
        SVC(kernel=Precomputed()).fit(KERNEL(X), Y).compress(10)
    with pytest.raises(InvalidInput, match="votes"):
        KernelPerceptron(KERNEL, method="voted").fit(X, Y).compress(10)
    model = KernelRidge(KERNEL).fit(X, X[:, 0])
    model.report_.memory_budget = 1000
    with pytest.raises(MemoryExceeded):
        model.compress(10)


def test_sequences_are_chosen_and_stay_as_they_are():
    rng = np.random.default_rng(0)
    rows = ["".join(rng.choice(list(letters), 20)) for letters in ["AACT", "GGCT"] * 20]
    model = SVC(kernel=Spectrum(k=2).normalized()).fit(rows, [0, 1] * 20)
    small = model.compress(5)
    assert set(small.X_fit_) <= set(rows)
    assert small.score(rows, [0, 1] * 20) > 0.9
    whole = model.compress(len(model.X_fit_))
    np.testing.assert_allclose(whole.decision_function(rows), model.decision_function(rows), atol=1e-8)


def test_a_history_is_of_the_vectors_that_were():
    model = KernelPerceptron(KERNEL, keep_history=True, max_iter=5, tol=None).fit(X, Y)
    assert not hasattr(model.compress(10), "history_")
    assert len(list(model.staged_decision_function(X))) == 6
