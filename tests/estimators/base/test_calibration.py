"""Probabilities of support vector machines: Platt's sigmoids, their coupling, and that labels never contradict them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.metrics import log_loss
from sklearn.svm import SVC as TheirSVC

from mercer import SVC, NuSVC, load, save
from mercer.errors import InvalidInput
from mercer.estimators.base.calibration import AT_A_TIME, coupled, fit_sigmoid, fit_temperature, probabilities
from mercer.kernels import Gaussian, Precomputed
from mercer.testing import assert_close

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


# ---- the parts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_a_sigmoid_is_the_minimum_of_the_cross_entropy(shift):
    rng = np.random.default_rng(0)
    f, w = 5 * rng.standard_normal(200) + shift, rng.uniform(0.5, 2, 200)
    positive = f + 4 * rng.standard_normal(200) > 0
    up, down = w[positive].sum(), w[~positive].sum()
    t = np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))

    def loss(x):
        z = x[0] * f + x[1]
        return np.sum(w * (np.logaddexp(0, z) - t * z))

    best = scipy.optimize.minimize(loss, [0.0, 0.0], tol=1e-14)
    np.testing.assert_allclose(fit_sigmoid(f, positive, w), best.x, atol=1e-5)


def test_sigmoids_of_hard_decisions():
    separated = fit_sigmoid(np.r_[-np.ones(5), np.ones(5)], np.arange(10) > 4, np.ones(10))
    assert np.all(np.isfinite(separated))
    assert_close(1 / (1 + np.exp(-separated[0] - separated[1])), 6 / 7, rtol=1e-6)
    constant = fit_sigmoid(np.zeros(10), np.arange(10) > 6, np.ones(10))
    assert constant[0] == 0
    huge = fit_sigmoid(1e12 * np.r_[-1.0, -0.5, 0.5, 1.0], np.array([False, True, False, True]), np.ones(4))
    assert huge[0] > 0


@pytest.mark.parametrize("classes", [2, 3, 26])
def test_a_temperature_is_found_again(classes):
    rng = np.random.default_rng(2)
    scores = rng.standard_normal(4000) if classes == 2 else rng.standard_normal((4000, classes))
    P = probabilities(scores / 0.5)
    labels = (rng.random((4000, 1)) > P.cumsum(axis=1)).sum(axis=1)
    assert fit_temperature(10 * scores, labels) == pytest.approx(5.0, rel=0.1)


def test_a_temperature_needs_a_row():
    with pytest.raises(InvalidInput, match="no row of a known class"):
        fit_temperature(np.zeros((0, 3)), np.zeros(0, int))


def test_rows_without_an_error_have_the_confidence_of_one_error_among_two_more():
    scores = np.tile([-50.0, -49.0, 0.0, 1.0], (50, 1))
    P = probabilities(scores / fit_temperature(scores, np.full(50, 3)))
    assert P[0, 3] == pytest.approx(51 / 52, rel=1e-5)


def test_coupling_takes_few_rows_at_a_time():
    odds = np.random.default_rng(0).standard_normal((AT_A_TIME // 16 + 5, 3))
    assert_close(coupled(odds, 3)[-8:], coupled(odds[-8:], 3), rtol=1e-12)
    assert coupled(odds[:0], 3).shape == (0, 3)


def test_coupling_is_the_minimum_on_the_simplex():
    rng = np.random.default_rng(1)
    odds = 2 * rng.standard_normal((5, 6))
    P = coupled(odds, 4)
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    r = 1 / (1 + np.exp(-odds))
    for p, own in zip(P, r, strict=True):

        def loss(q, own=own):
            return sum(((1 - own[j]) * q[a] - own[j] * q[b]) ** 2 for j, (a, b) in enumerate(pairs))

        best = scipy.optimize.minimize(
            loss, np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            tol=1e-14,
        )  # fmt: skip
        np.testing.assert_allclose(p, best.x, atol=1e-6)
    assert_close(P.sum(axis=1), 1)
    assert np.all(coupled(np.full((1, 6), 1e3), 4) > 0)


def test_probabilities_of_scores_do_not_overflow():
    np.testing.assert_array_equal(probabilities(np.array([-1e9, 1e9])), [[1, 0], [0, 1]])
    np.testing.assert_array_equal(probabilities(np.array([[1e9, 0.0]])), [[1, 0]])


# ---- the machines ---------------------------------------------------------------------------------------------------


REST = SVC(10.0, probability=True, multi_class="ovr")
ON_LANDMARKS = SVC(10.0, probability=True, multi_class="ovr", solver="nystroem", n_landmarks=60)
MACHINES = {"c": SVC(10.0, probability=True), "nu": NuSVC(0.2, probability=True), "rest": REST, "few": ON_LANDMARKS}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("y", [Y, Y == 1, np.array(["a", "b", "c"])[Y]], ids=["three", "two", "words"])
def test_labels_scores_and_probabilities_agree(machine, y, tmp_path):
    model = machine.fit(X, y)
    rows = np.random.default_rng(0).uniform(-3, 3, (500, 4))
    P, scores = model.predict_proba(rows), model.decision_function(rows)
    assert_close(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(rows))
    order = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[order], model.predict(rows))
    np.testing.assert_allclose(probabilities(scores), P, rtol=1e-8, atol=1e-12)
    assert_close(np.exp(model.predict_log_proba(rows)), P)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_proba(rows), P)


def test_as_good_as_libsvm_and_as_calibrating_by_cross_validation():
    rows, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:900]
    rows, y = rows[order] / 16, y[order]
    train, test = slice(0, 500), slice(500, None)
    model = SVC(10.0, Gaussian(0.3), probability=True).fit(rows[train], y[train])
    ours = log_loss(y[test], model.predict_proba(rows[test]))
    theirs = CalibratedClassifierCV(TheirSVC(C=10, gamma=0.3), ensemble=False).fit(rows[train], y[train])
    assert ours <= 1.05 * log_loss(y[test], theirs.predict_proba(rows[test]))
    plain = SVC(10.0, Gaussian(0.3)).fit(rows[train], y[train])
    assert model.score(rows[test], y[test]) >= plain.score(rows[test], y[test]) - 0.01
    assert "log loss" in str(model.report_)


def test_as_calibrated_on_new_rows_as_scikit_learns_cross_fitting():
    rows, y = make_moons(3000, noise=0.4, random_state=0)
    p = SVC(1.0, Gaussian(1.0), probability=True).fit(rows[:600], y[:600]).predict_proba(rows[600:])[:, 1]
    theirs = CalibratedClassifierCV(TheirSVC(C=1.0, gamma=1.0), ensemble=False).fit(rows[:600], y[:600])
    np.testing.assert_allclose(p, theirs.predict_proba(rows[600:])[:, 1], atol=0.01)


def test_any_rows_and_paths():
    kernel = Gaussian(0.3)
    direct = SVC(kernel=kernel, probability=True).fit(X, Y).predict_proba(X)
    given = SVC(kernel=Precomputed(), probability=True).fit(kernel(X), Y).predict_proba(kernel(X))
    np.testing.assert_allclose(given, direct, atol=1e-4)
    sparse = SVC(kernel=kernel, probability=True).fit(sp.csr_array(X), Y).predict_proba(sp.csr_array(X))
    np.testing.assert_allclose(sparse, direct, atol=1e-4)
    first = SVC(kernel=kernel, probability=True).path(X, Y, [1.0, 10.0])[0]
    np.testing.assert_allclose(first.predict_proba(X), direct, atol=1e-4)
    small = SVC(kernel=kernel, probability=True).fit(X, Y).compress(20)
    np.testing.assert_allclose(small.predict_proba(X), direct, atol=0.1)


def test_a_row_of_weight_zero_is_absent():
    weights = np.r_[np.zeros(25), np.ones(125)]
    machine = SVC(kernel=Gaussian(0.3), probability=True)
    part = machine.fit(X[25:], Y[25:]).predict_proba(X)
    np.testing.assert_allclose(machine.fit(X, Y, weights).predict_proba(X), part, atol=1e-6)


def test_without_probability():
    model = SVC().fit(X, Y)
    assert not hasattr(model, "predict_proba")
    again = SVC(probability=True).fit(X, Y).set_params(probability=False).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_class_of_one_row():
    with pytest.raises(InvalidInput, match="class of one row"):
        SVC(probability=True).fit(X[:51], Y[:51])


@pytest.mark.parametrize(
    "machine", [SVC(kernel=Gaussian(1.0), probability=True), NuSVC(kernel=Gaussian(1.0), probability=True)]
)
@pytest.mark.parametrize("seed", range(4))
def test_sorted_rows_are_calibrated_as_well_as_shuffled_ones(machine, seed):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.uniform(-3, 3, (300, 1)), axis=0)
    y = (rng.random(300) < 1 / (1 + np.exp(-2 * np.sin(2 * rows[:, 0])))).astype(int)
    mixed = rng.permutation(300)
    shuffled = machine.fit(rows[mixed], y[mixed]).score(rows, y)
    assert machine.fit(rows, y).score(rows, y) == pytest.approx(shuffled, abs=0.03)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_that_fall_as_decisions_rise_are_told(classes, multi_class):
    rows = np.arange(60.0)[:, None]  # whose neighbours are of other classes
    machine = SVC(kernel=Gaussian(0.1), probability=True, multi_class=multi_class)
    with pytest.warns(UserWarning, match="SVC: probabilities of 0.* do not rise with the decisions.*give more rows"):
        model = machine.fit(rows, np.arange(60) % classes)
    assert np.any(model.calibration_[:, 0] <= 0)
    assert any("probability=False" in one for one in model.report_.warnings)
    assert not SVC(probability=True).fit(X, Y).report_.warnings


class OfC(SVC):
    def __init__(self, C=1.0):
        super().__init__(C, Gaussian(0.3), probability=True, solver="nystroem", n_landmarks=40)


class OfNu(NuSVC):
    def __init__(self, nu=0.3):
        super().__init__(nu, Gaussian(0.3), probability=True)


def test_a_subclass_with_parameters_of_its_own_has_probabilities():
    whole = SVC(10.0, Gaussian(0.3), probability=True, solver="nystroem", n_landmarks=40)
    assert_close(OfC(10.0).fit(X, Y).predict_proba(X), whole.fit(X, Y).predict_proba(X))
    nu = NuSVC(0.3, Gaussian(0.3), probability=True)
    assert_close(OfNu().fit(X, Y).predict_proba(X), nu.fit(X, Y).predict_proba(X))


def test_a_warm_start_does_not_reach_the_folds():
    machine = SVC(10.0, Gaussian(0.3), probability=True, warm_start=True)
    first = machine.fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(machine.fit(X, Y).predict_proba(X), first, atol=1e-6)
