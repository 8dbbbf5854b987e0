"""Hard cases: each ends with the optimum, a clear error, or a warning of what was reached."""

import os
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.errors import Cancelled, ConvergenceWarning, InvalidInput
from mercer.estimators.svm import support_vectors
from mercer.events import Cancel, observe
from mercer.kernels import Function, Gaussian, Linear, Polynomial, Precomputed
from mercer.solvers import solve

RNG = np.random.default_rng(7)
X = RNG.standard_normal((60, 4))
Y = (X[:, 0] + 0.7 * RNG.standard_normal(60) > 0).astype(int)


def optimal(model):
    """m − M ≤ tol in float64, as the model tells."""
    complaints = [one for one in model.report_.warnings if "not a Mercer kernel" not in one]
    return model.fit_status_ == 0 and model.report_.residual <= model.tol and not complaints


def told(model, X, y):
    """Fitted with the optimum, or with a warning that says what was reached."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    words = [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]
    assert optimal(model) or any("m − M is" in one or "no margin" in one for one in words)
    decisions = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    assert np.all(np.isfinite(decisions))
    return model


# ---- labels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SVC, NuSVC])
def test_01_one_class_only(estimator):
    with pytest.raises(InvalidInput, match="one class"):
        estimator().fit(X, np.ones(60))


def test_02_duplicates_with_opposite_labels():
    """Every row stands for both classes: no function tells them apart, and f = 0, all of the β at their bounds."""
    twice, labels = np.vstack([X, X]), np.repeat([0, 1], 60)
    model = SVC(1.0, Gaussian(0.5)).fit(twice, labels)
    assert optimal(model)
    np.testing.assert_allclose(model.decision_function(X), 0.0, atol=1e-9)
    for estimator in (NuSVC(0.5), NuSVC(0.5, "linear")):
        told(estimator, twice, labels)


def test_03_two_points():
    model = SVC(10.0, "linear").fit([[-1.0], [1.0]], [0, 1])
    assert optimal(model)
    np.testing.assert_allclose(model.decision_function([[0.0], [2.0]]), [0.0, 2.0], atol=1e-9)
    assert NuSVC(0.5, "linear").fit([[-1.0], [1.0]], [0, 1]).predict([[-3.0], [3.0]]).tolist() == [0, 1]
    for regressor in (SVR(C=10.0), NuSVR(C=10.0)):
        assert np.all(np.isfinite(regressor.fit([[-1.0], [1.0]], [0.0, 1.0]).predict([[0.0]])))


def test_04_one_row():
    with pytest.raises(InvalidInput, match="one class"):
        SVC().fit([[1.0]], [0])
    assert SVR().fit([[1.0]], [3.0]).predict([[9.0]]) == pytest.approx(3.0)
    assert NuSVR().fit([[1.0]], [3.0]).predict([[1.0]]) == pytest.approx(3.0)
    assert OneClassSVM(Gaussian(1.0)).fit([[1.0]]).predict([[1.0], [9.0]]).tolist() == [1, -1]


def test_05_constant_target():
    for model in (SVR(), SVR(epsilon=0.0), NuSVR()):
        np.testing.assert_allclose(model.fit(X, np.full(60, 7.0)).predict(X), 7.0, atol=1e-6)


# ---- parameters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Linear(), Polynomial(degree=3)], ids=repr)
def test_06_enormous_C(kernel):
    """Margins that nothing may violate, on rows that need some violation with the linear kernel."""
    model = told(SVC(1e10, kernel, max_iter=200_000), X, Y)
    if kernel == Gaussian(0.5):
        assert optimal(model)
        assert model.score(X, Y) == 1.0


def test_07_tiny_C():
    """All β at their bounds, of which the sums cancel."""
    model = SVC(1e-10).fit(X, Y)
    assert optimal(model)
    fewer = min(np.sum(Y), np.sum(1 - Y))
    assert np.abs(model.dual_coef_).sum() == pytest.approx(2e-10 * fewer)


@pytest.mark.parametrize("gamma", [1e6, 1e-12])
def test_08_gamma_far_out(gamma):
    """K = I: every row is its own support vector. K = 1 up to rounding: the classes cannot be told apart."""
    model, reference = SVC(1.0, Gaussian(gamma)).fit(X, Y), svm.SVC(C=1.0, gamma=gamma).fit(X, Y)
    assert optimal(model)
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=2e-3)
    for other in (NuSVC(0.3, Gaussian(gamma)), SVR(kernel=Gaussian(gamma)), OneClassSVM(Gaussian(gamma))):
        told(other, X, Y)


def test_09_epsilon_wider_than_the_targets():
    model = SVR(epsilon=100.0).fit(X, Y)
    assert len(model.support_) == 0
    assert np.ptp(model.predict(X)) == 0.0


def test_10_extreme_nu():
    for model in (NuSVC(1e-6), NuSVR(1e-6), NuSVR(1.0), OneClassSVM(nu=1e-6), OneClassSVM(nu=1.0)):
        told(model, X, Y)
    with pytest.raises(InvalidInput, match="nu=1 is infeasible: two classes allow up to"):
        NuSVC(1.0).fit(X, Y)
    least = np.bincount(Y).min()
    half = np.concatenate([np.flatnonzero(Y == 0)[:least], np.flatnonzero(Y == 1)[:least]])
    told(NuSVC(1.0), X[half], Y[half])


# ---- columns --------------------------------------------------------------------------------------------------------


def test_11_constant_columns():
    constant = np.full((60, 3), 5.0)
    model = SVC().fit(constant, Y)
    assert optimal(model)
    assert len(np.unique(model.predict(constant))) == 1
    both = np.hstack([X, constant])
    np.testing.assert_array_equal(
        SVC(1, Gaussian(0.3)).fit(both, Y).predict(both), SVC(1, Gaussian(0.3)).fit(X, Y).predict(X)
    )


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
def test_12_unscaled_columns(kernel):
    wild = X * np.array([1e6, 1.0, 1e-6, 1e3])
    told(SVC(1.0, kernel, max_iter=200_000), wild, Y)
    told(SVR(1.0, kernel=kernel, max_iter=200_000), wild, X[:, 1])


def test_13_huge_and_missing_entries():
    for value in (np.nan, np.inf, 1e200):
        bad = X.copy()
        bad[3, 1] = value
        with pytest.raises(ValueError, match=r"NaN|infinity|overflow"):
            SVC().fit(bad, Y)
    with pytest.raises(InvalidInput, match="finite"):
        SVC(1.0, Polynomial(degree=9)).fit(X * 1e60, Y)


def test_14_duplicate_rows():
    copies = np.repeat(X[:6], 30, axis=0)
    labels = np.repeat(Y[:6], 30)
    labels[0] = 1 - labels[0]
    assert optimal(told(SVC(100.0, Gaussian(1.0)), copies, labels))
    assert optimal(told(SVR(100.0, kernel=Gaussian(1.0)), copies, labels))
    assert optimal(told(OneClassSVM(Gaussian(1.0), 0.3), copies, labels))


# ---- weights --------------------------------------------------------------------------------------------------------


def test_15_weights_of_zero():
    weights = np.zeros(60)
    with pytest.raises(ValueError, match="zero"):
        SVC().fit(X, Y, sample_weight=weights)
    weights[[0, np.flatnonzero(Y[0] != Y)[0]]] = 1.0
    assert len(SVC().fit(X, Y, sample_weight=weights).support_) == 2
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        SVC().fit(X, Y, sample_weight=-np.ones(60))


def test_16_weights_of_all_sizes():
    weights = 10.0 ** np.linspace(-12, 6, 60)
    model = told(SVC(1.0, Gaussian(0.5), max_iter=200_000), X, Y)
    weighted = told(SVC(1.0, Gaussian(0.5), max_iter=200_000), X, Y)
    weighted.fit(X, Y, sample_weight=weights)
    assert weighted.report_.residual <= 1e-3
    assert not np.array_equal(weighted.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("size", [1e-5, 1e-2, 1e3])
@pytest.mark.parametrize("machine", [OneClassSVM(nu=0.2), NuSVC(nu=0.4), NuSVC(nu=0.4, class_weight={0: 0.5, 1: 0.5})])
def test_the_size_of_all_weights_does_not_matter_where_no_loss_has_a_cost(machine, size):
    """m − M is as large as the weights, so that with small ones the start met the tolerance: 18 % of wrong labels."""
    rows, new = (np.random.default_rng(seed).normal(size=(n, 3)) for seed, n in ((0, 800), (1, 1000)))
    y = None if isinstance(machine, OneClassSVM) else rows[:, 0] + rows[:, 1] ** 2 > 1
    exact = clone(machine).set_params(tol=1e-9).fit(rows, y)
    machine = clone(machine).fit(rows, y, sample_weight=np.full(800, size))
    assert machine.fit_status_ == 0
    assert np.mean(machine.predict(new) != exact.predict(new)) < 0.005


def test_a_small_margin_is_found():
    """ν is small and so is ρ, which m − M hid: "no margin", and decisions that were not divided by it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 4))
    y = np.sin(2 * rows[:, 0]) + 0.4 * rng.normal(size=900) > 0
    for nu in (0.02, 0.05):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = NuSVC(nu=nu, kernel=Gaussian(0.3)).fit(rows, y).decision_function(rows)
        exact = svm.NuSVC(nu=nu, gamma=0.3, tol=1e-8).fit(rows, y).decision_function(rows)
        np.testing.assert_allclose(found, exact, atol=0.01 * np.abs(exact).max())


def test_where_there_is_no_margin_the_fit_ends_and_says_so():
    rows, y = np.random.default_rng(0).normal(size=(300, 4)), np.arange(300) % 2
    model = NuSVC(nu=0.3)
    with pytest.warns(ConvergenceWarning, match="finds no margin between two classes; raise nu"):
        model.fit(np.vstack([rows, rows]), np.r_[y, 1 - y])
    assert model.report_.residual <= model.report_.tolerance
    assert model.n_iter_.sum() <= support_vectors.VISITED // 600 + 2 * support_vectors.PATIENT * 600


# ---- probabilities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [SVC(probability=True), NuSVC(nu=0.4, probability=True)])
def test_probabilities_do_not_depend_on_the_size_of_all_weights(machine):
    """Platt's targets counted weights of 1/n as n-ths of rows, and all probabilities went to one half."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 2))
    y = (rows[:, 0] + 0.5 * rng.normal(size=300) > 0.5).astype(int)
    whole = clone(machine).fit(rows, y).predict_proba(rows)
    if isinstance(machine, SVC):
        machine = machine.set_params(C=300.0)
    part = clone(machine).fit(rows, y, sample_weight=np.full(300, 1 / 300)).predict_proba(rows)
    np.testing.assert_allclose(part, whole, atol=2e-3)


# ---- matrices -------------------------------------------------------------------------------------------------------


def test_17_precomputed_and_not_symmetric(rng):
    for bad in (rng.standard_normal((60, 60)), np.triu(Gaussian(0.5)(X))):
        with pytest.raises(InvalidInput, match="symmetrise"):
            SVC(kernel=Precomputed()).fit(bad, Y)


def test_18_precomputed_and_not_finite():
    for value in (np.nan, np.inf):
        bad = Gaussian(0.5)(X)
        bad[2, 5] = bad[5, 2] = value
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            SVC(kernel=Precomputed()).fit(bad, Y)
    with pytest.raises(InvalidInput, match="finite"):
        SVC(kernel=Function(lambda A, B: np.where(A @ B.T > 2, np.nan, 1.0) * Gaussian(0.5)(A, B))).fit(X, Y)


@pytest.mark.parametrize("shift", [0.0, 0.9, 5.0])
def test_19_indefinite_matrices(shift):
    """Also one with a negative diagonal: a stationary point, or how far it came."""
    K = Gaussian(0.5)(X) - shift * np.eye(60)
    for model in (SVC(10.0, Precomputed()), SVR(10.0, kernel=Precomputed()), OneClassSVM(Precomputed(), 0.3)):
        told(model.set_params(max_iter=100_000), K, Y)
    assert np.linalg.eigvalsh(Gaussian(0.5)(X) - 5.0 * np.eye(60))[0] < -1


def test_20_zero_and_low_rank_matrices():
    zero = SVC(kernel=Precomputed()).fit(np.zeros((60, 60)), Y)
    assert optimal(zero)
    assert len(np.unique(zero.predict(np.zeros((5, 60))))) == 1
    v = X[:, :1]
    assert optimal(told(SVC(1.0, Precomputed()), v @ v.T, Y))


def test_few_rows_are_solved_to_rounding():
    """Of six rows, two of them equal: 600 pairs came to an intercept that was off by 1e-4."""
    rows = np.array([[1.0, 1, 1], [0, -1, -1], [1, -1, 1], [-1, -1, -2], [-1, 0, -1], [0, -1, -1]])
    for order in (np.arange(6), np.arange(6)[::-1], np.array([3, 1, 4, 0, 5, 2])):
        model = SVC(1e4, "linear").fit(rows[order], np.array([1, 0, 0, 1, 0, 0])[order])
        assert model.report_.residual < 1e-10
        np.testing.assert_allclose(model.decision_function(rows), [1, -1, -11, 1, -1, -1], rtol=0, atol=1e-9)


def test_few_rows_that_take_long_are_solved_to_the_tolerance(monkeypatch):
    """If a solution to rounding takes too many steps, m − M above `tol` is not accepted in its place."""
    X, y = make_classification(400, 10, n_informative=5, flip_y=0.1, random_state=0)
    steps, sharp = iter(range(50, 1000, 50)), []

    def stopped(solver, family):
        first = solver.tol < 1e-6
        found = solve(replace(solver, max_iter=next(steps)) if first else solver, family)
        if first:
            sharp.append(found.residual)
        return found

    monkeypatch.setattr(support_vectors, "solve", stopped)
    for _ in range(19):
        model = SVC(kernel=Gaussian(0.1), tol=1e-3).fit(X, y)
        assert model.report_.residual <= 1e-3
        assert model.fit_status_ == 0
    assert any(1e-3 < residual <= 1e-2 for residual in sharp)


@pytest.mark.parametrize("rows", [10, 20, 40, 80])
@pytest.mark.parametrize("nu", [0.3, 0.5, 0.9])
def test_a_margin_of_rounding_is_no_margin(rows, nu):
    """Labels that say nothing: ρ is 0, and whether rounding makes it positive depends on the order of the rows."""
    rng = np.random.default_rng(rows)
    points, labels = rng.standard_normal((rows, 2)), np.arange(rows) % 2
    points[1::2] = points[::2]  # both classes have the same rows
    for order in (np.arange(rows), rng.permutation(rows), rng.permutation(rows)):
        with pytest.warns(ConvergenceWarning, match="no margin"):
            NuSVC(nu, "linear").fit(points[order], labels[order])


@pytest.mark.parametrize("rows", [60, 700])
@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-8])
def test_small_rows_have_the_margin_of_large_ones(rows, size):
    """Kernel values are all that m − M is made of; with an absolute `tol` the start was the answer."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((rows, 3))
    labels = points[:, 0] + 0.3 * rng.standard_normal(rows) > 0
    wanted = NuSVC(0.4, "linear").fit(points, labels).decision_function(points)
    model = NuSVC(0.4, "linear").fit(size * points, labels)
    assert optimal(model)
    np.testing.assert_allclose(model.decision_function(size * points), wanted, rtol=0, atol=2e-2)


def test_targets_below_the_tolerance_are_said():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((600, 2))
    for model in (NuSVR(kernel=Gaussian(0.3)), SVR(kernel=Gaussian(0.3), epsilon=0.0)):
        with pytest.warns(ConvergenceWarning, match="standardise the targets"):
            model.fit(points, 1e-4 * points[:, 0])
        few = model.fit(points[:200], 1e-4 * points[:200, 0])
        assert optimal(few)
        assert few.score(points[:200], 1e-4 * points[:200, 0]) > 0.9


# ---- it can be stopped ----------------------------------------------------------------------------------------------


def test_21_observers_can_cancel_and_steps_are_short(rng):
    hard, labels = rng.standard_normal((1500, 3)), rng.integers(0, 2, 1500)
    with observe(Cancel(after_seconds=0.2)), pytest.raises(Cancelled):
        SVC(1e8, "linear", tol=1e-12).fit(hard, labels)


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX system")
def test_22_the_keyboard_interrupts(rng):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            SVC(1e8, "linear", tol=1e-12).fit(rng.standard_normal((1500, 3)), rng.integers(0, 2, 1500))
    finally:
        signal.signal(signal.SIGINT, before)
