"""Kernel logistic regression: scikit-learn's on explicit features, weights, calibration, and hard cases."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from mercer import KernelLogisticRegression, MonomialFeatures
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.estimators import logistic
from mercer.kernels import Gaussian, Polynomial, Precomputed
from mercer.points import DiskPoints
from mercer.points.disk import ChunkSource
from mercer.points.disk import points as disk_points
from mercer.testing import assert_close

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("classes", [2, 3])
def test_equals_scikit_learn_on_the_features_of_the_kernel(classes):
    rows, y = X[classes + (classes == 2) > Y], np.minimum(Y, 1)[Y < 3] if classes == 2 else Y
    features = MonomialFeatures(2, coef0=1.0, kind="all").fit_transform(rows)
    weights = np.linspace(0.5, 2, len(y))
    ours = KernelLogisticRegression(Polynomial(2, coef0=1.0, gamma=1.0), 0.5, class_weight={0: 3.0, 1: 1.0, 2: 2.0})
    theirs = LogisticRegression(
        C=2.0, class_weight={c: [3.0, 1.0, 2.0][c] for c in np.unique(y)}, tol=1e-10, max_iter=10_000
    )
    ours.set_params(tol=1e-14).fit(rows, y, weights)
    theirs.fit(features, y, weights)
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(features), atol=1e-5)


@pytest.mark.parametrize("y", [Y, Y == 1], ids=["three", "two"])
def test_landmarks_give_scikit_learns_answer_on_their_features(y):
    weights, kernel = np.linspace(0.5, 2, len(Y)), Gaussian(0.3)
    ours = KernelLogisticRegression(kernel, 0.1, solver="nystroem", n_landmarks=12).fit(X, y, weights)
    values, V = np.linalg.eigh(kernel(ours.X_fit_))
    features = kernel(X, ours.X_fit_) @ (V / np.sqrt(values))
    theirs = LogisticRegression(C=10, solver="newton-cg", tol=1e-12, max_iter=1000).fit(features, y, weights)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(features), atol=1e-6)
    assert ours.report_.rank == 12
    assert ours.report_.status == "converged"


def test_all_rows_as_landmarks_give_the_exact_answer():
    model = KernelLogisticRegression(Gaussian(0.3), 0.1, class_weight="balanced")
    few = clone(model).set_params(solver="nystroem", landmarks=np.arange(len(Y)))
    np.testing.assert_allclose(few.fit(X, Y).predict_proba(X), model.fit(X, Y).predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    ("alpha", "weight", "scale"), [(1e-8, 1.0, 1.0), (0.1, 1e12, 1.0), (0.1, 1.0, 1e3), (1e-4, 1.0, 1.0)]
)
@pytest.mark.parametrize("most", [4e9, 0.0])
def test_many_classes_on_few_landmarks_are_exact_whatever_the_penalty(rng, monkeypatch, most, alpha, weight, scale):
    """Conjugate gradients stall there, after many steps; where they were tried first, the factor comes after them."""
    monkeypatch.setattr(logistic, "AT_ONCE", most)
    X = rng.standard_normal((300, 3)) * [scale, 1, 1]
    y = (X @ rng.standard_normal((3, 6)) + scale * rng.gumbel(size=(300, 6))).argmax(axis=1)
    model = KernelLogisticRegression("linear", alpha, solver="nystroem", n_landmarks=20)
    model.fit(X, y, np.full(300, weight))
    assert model.report_.status in ("converged", "converged to rounding")
    assert most == 0.0 or "conjugate gradients" not in f"{model.report_.method} {model.report_.notes}"
    theirs = LogisticRegression(C=weight / alpha, tol=1e-10, max_iter=500, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_many_classes_have_as_many_landmarks_as_few(monkeypatch):
    """Unless their features are in a file, where a step is one pass over them, with a curvature of (c m)² numbers."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 30)
    rows = 3 * rng.standard_normal((20, 4))[y] + rng.standard_normal((600, 4))
    model = KernelLogisticRegression(Gaussian(0.1), 0.1, solver="nystroem")
    many = clone(model).fit(rows, y)
    assert many.report_.rank == int(5 * np.sqrt(600))
    assert "conjugate gradients" in many.report_.method  # for 20 · 122 coefficients; of fewer, equations are factored
    monkeypatch.setattr(disk_points, "LOADED_SHARE", 10**6)
    chunks = DiskPoints(ChunkSource(lambda: iter(np.array_split(rows, 4))))
    passes = clone(model).fit(chunks, y)
    assert passes.report_.rank == 1000 // 20
    assert "conjugate gradients" not in passes.report_.method
    few = model.set_params(n_landmarks=50)
    np.testing.assert_allclose(few.fit(rows, y).predict_proba(rows), passes.predict_proba(rows), atol=1e-4)
    assert many.score(rows, y) > few.score(rows, y)


@pytest.mark.parametrize("y", [Y, Y == 1], ids=["three", "two"])
def test_labels_scores_and_probabilities_agree(y):
    model = KernelLogisticRegression(alpha=0.01).fit(X, y)
    P = model.predict_proba(X)
    assert_close(P.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert_close(np.exp(model.predict_log_proba(X)), P, rtol=1e-10)
    assert np.all(np.isfinite(model.predict_log_proba(1000 * X)))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_weight_2_is_a_repeated_row_and_weight_0_an_absent_one(class_weight):
    weights = (np.arange(len(Y)) + Y) % 3
    weights[:20] = 0
    model = KernelLogisticRegression(Gaussian(0.3), 0.1, class_weight=class_weight)
    weighted = clone(model).fit(X, Y, weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


def test_class_weights_multiply_sample_weights():
    factor = np.array([1.0, 5.0, 2.0])
    by_class = KernelLogisticRegression(Gaussian(0.3), class_weight=dict(enumerate(factor))).fit(X, Y)
    by_row = KernelLogisticRegression(Gaussian(0.3)).fit(X, Y, factor[Y])
    np.testing.assert_allclose(by_class.dual_coef_, by_row.dual_coef_, atol=1e-8)


def test_mean_probabilities_are_the_shares_of_the_classes():
    model = KernelLogisticRegression(Gaussian(0.3), 0.1, tol=1e-16).fit(X[:120], Y[:120])
    np.testing.assert_allclose(model.predict_proba(X[:120]).mean(axis=0), np.bincount(Y[:120]) / 120, atol=1e-8)


def test_calibrated_on_new_rows():
    rows, y = make_moons(3000, noise=0.4, random_state=0)
    model = KernelLogisticRegression(Gaussian(1.0), 1.0).fit(rows[:600], y[:600])
    p = model.predict_proba(rows[600:])[:, 1]
    for low in np.arange(0, 1, 0.2):
        bin_ = (p >= low) & (p < low + 0.2)
        assert abs(y[600:][bin_].mean() - p[bin_].mean()) < 4 * np.sqrt(0.25 / bin_.sum())
    assert log_loss(y[600:], p) < 0.4


def test_digits_without_a_stored_matrix():
    rows, y = load_digits(return_X_y=True)
    rows, y = rows[:500] / 16, y[:500]
    stored = KernelLogisticRegression(Gaussian(0.3)).fit(rows, y)
    lean = KernelLogisticRegression(Gaussian(0.3), memory="4.6MB").fit(rows, y)
    assert "stored" in stored.report_.method
    assert "matrix-free" in lean.report_.method
    np.testing.assert_allclose(lean.predict_proba(rows), stored.predict_proba(rows), atol=1e-6)


def test_report_has_the_objective_and_the_gap():
    report = KernelLogisticRegression(alpha=0.1).fit(X, Y).report_
    assert report.residual <= 1e-10
    assert any("objective" in note and "gradient" in note for note in report.notes)
    with pytest.warns(ConvergenceWarning, match="step limit"):
        KernelLogisticRegression(alpha=1e-4, max_iter=1).fit(X, Y)


HARD = {
    "the same row twice, two labels": (np.r_[X, X], np.r_[Y, (Y + 1) % 3], {}),
    "two rows": (X[[0, -1]], [0, 1], {}),
    "two equal rows": (X[[0, 0]], [0, 1], {}),
    "constant columns": (np.ones((10, 2)), [0, 1] * 5, {}),
    "a kernel that is the identity": (X, Y, {"kernel": Gaussian(1e6)}),
    "a kernel that is constant": (X, Y, {"kernel": Gaussian(1e-12)}),
    "a huge penalty": (X, Y, {"alpha": 1e8}),
    "a tiny penalty": (X, Y == 1, {"alpha": 1e-6}),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_cases_converge(case):
    rows, y, options = HARD[case]
    model = KernelLogisticRegression(**options).fit(rows, y)
    assert model.report_.status == "converged"
    assert np.all(np.isfinite(model.predict_proba(rows)))


def test_equal_rows_with_opposite_labels_have_the_share_as_probability():
    model = KernelLogisticRegression(alpha=1e-3).fit(np.ones((4, 1)), [0, 1, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[1.0]]), [[0.25, 0.75]], atol=1e-7)


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": "a"}, {"tol": -1.0}, {"max_iter": 0}])
def test_bad_parameters(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        KernelLogisticRegression(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "weights"),
    [({}, 1e300), ({"class_weight": {0: 1e300, 1: 1.0, 2: 1.0}}, None), ({"alpha": 5e-324}, None)],
)
def test_weights_that_overflow_are_named_and_not_the_kernel(options, weights):
    X, y = load_iris(return_X_y=True)
    given = None if weights is None else np.full(150, weights)
    with pytest.raises(InvalidInput, match=r"weights up to 1(e\+300)? over alpha=.*lets numbers overflow"):
        KernelLogisticRegression(**options).fit(X, y, given)


def test_bad_data():
    A = np.random.default_rng(0).standard_normal((150, 150))
    with pytest.raises(InvalidInput, match="positive semi-definite"):
        KernelLogisticRegression(Precomputed()).fit(A + A.T, Y)
    with pytest.raises(InvalidInput, match="one class"):
        KernelLogisticRegression().fit(X, np.zeros(150))
    with pytest.raises(InvalidInput, match="class_weight"):
        KernelLogisticRegression(class_weight={0: 0.0, 1: 1.0, 2: 1.0}).fit(X, Y)
    with pytest.raises(MemoryExceeded, match="memory="):
        KernelLogisticRegression(memory=1000).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("alpha", [1e-8, 1e-10, 1e-12])
def test_what_a_small_penalty_loses_to_rounding_is_a_warning(alpha):
    rows, labels = load_iris(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    model = KernelLogisticRegression(alpha=alpha).fit(rows[::2], labels[::2])
    assert model.score(rows, labels) > 0.9
    assert model.report_.warnings or model.report_.residual <= 1e-7  # where rounding ends the run, it has converged
