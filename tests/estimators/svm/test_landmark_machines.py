"""Support vector machines on landmarks: the machines on explicit features, and how near the exact ones they are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.svm import LinearSVC

from mercer import SVC, SVR, Nystroem, load, save
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.kernels import Gaussian, GlobalAlignment, Precomputed, SetKernel, Spectrum

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
KERNEL = Gaussian(0.3)
TARGET = X[:, 0] * X[:, 1]


def landmark_svc(**options):
    return SVC(10.0, KERNEL, **({"solver": "nystroem", "n_landmarks": 40} | options))


def test_the_machine_is_linear_on_nystroem_features():
    y = np.where(Y == 1, 1.0, -1.0)
    landmarks = X[::5]
    model = SVC(2.0, KERNEL, solver="nystroem", landmarks=landmarks, tol=1e-9).fit(X, y)
    features = Nystroem(KERNEL, landmarks=landmarks).fit(X).transform(X)
    scale = np.sqrt(np.mean(np.sum(features**2, axis=1)))
    theirs = LinearSVC(loss="hinge", C=2.0, intercept_scaling=scale, tol=1e-8, max_iter=1_000_000, random_state=0).fit(
        features, y
    )
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(features), atol=1e-3)


@pytest.mark.parametrize("y", [Y, Y == 1, np.array(["a", "b", "c"])[Y]], ids=["three", "two", "words"])
def test_near_the_exact_machine(y, tmp_path):
    exact = SVC(10.0, KERNEL, decision_function_shape="ovo").fit(X, y)
    near = landmark_svc(decision_function_shape="ovo", tol=1e-5).fit(X, y)
    assert near.restricted_
    assert len(near.X_fit_) == 40
    assert np.mean(near.predict(X) == exact.predict(X)) >= 0.97
    apart = near.decision_function(X) - exact.decision_function(X)
    assert np.sqrt(np.mean(apart**2)) < 0.2 * np.std(exact.decision_function(X))
    save(near, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").decision_function(X), near.decision_function(X))
    small = near.compress(15)
    assert np.mean(small.predict(X) == y) > 0.9


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_the_intercept_is_nearly_free_whatever_the_kernels_size(scale):
    rng = np.random.default_rng(0)
    rows, y = rng.standard_normal((200, 2)), rng.random(200) < 0.2
    near = SVC(1.0, scale * Gaussian(0.5), solver="nystroem", landmarks=rows).fit(rows, y)
    exact = SVC(1.0, scale * Gaussian(0.5)).fit(rows, y)
    np.testing.assert_allclose(near.decision_function(rows), exact.decision_function(rows), atol=0.1)


@pytest.mark.parametrize("machine", [SVC, SVR])
@pytest.mark.parametrize("kernel", [Spectrum(2), SetKernel(Gaussian(0.5)), GlobalAlignment()], ids=repr)
def test_landmarks_are_any_objects(machine, kernel):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(40)]
    rows = words if isinstance(kernel, Spectrum) else [rng.standard_normal((5, 2)) + i % 2 for i in range(40)]
    y = np.arange(40) % 2
    near, exact = (machine(kernel=kernel, solver=way).fit(rows, y) for way in ("nystroem", "exact"))
    assert near.restricted_
    scores = [getattr(model, "decision_function", model.predict)(rows) for model in (near, exact)]
    np.testing.assert_allclose(*scores, atol=0.2)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_regression_far_from_zero(epsilon):
    exact = SVR(10.0, epsilon, KERNEL).fit(X, TARGET + 1000)
    near = SVR(10.0, epsilon, KERNEL, solver="nystroem", n_landmarks=80, tol=1e-2).fit(X, TARGET + 1000)
    np.testing.assert_allclose(near.predict(X), exact.predict(X), atol=0.25)
    assert near.score(X, TARGET + 1000) > 0.95
    assert isinstance(near.n_iter_, int)


def test_digits_and_their_report():
    rows, y = load_digits(return_X_y=True)
    rows = rows.astype(np.float32) / 16
    model = SVC(10.0, Gaussian(0.1), solver="nystroem", n_landmarks=200, probability=True).fit(rows[:900], y[:900])
    assert model.score(rows[900:], y[900:]) > 0.93
    report = str(model.report_)
    assert "200 landmarks" in report
    assert "leave out" in report
    assert model.report_.residual <= 0.01
    np.testing.assert_array_equal(model.predict_proba(rows).argmax(axis=1), model.predict(rows))


def test_memory_decides_and_says_so():
    rows, y = make_moons(6000, noise=0.2, random_state=0)
    rows = rows.astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="landmarks, an approximation"):
        model = SVC(1.0, Gaussian(2.0), memory="20MB").fit(rows, y)
    assert model.restricted_
    assert model.report_.memory_planned <= 20_000_000
    assert "144 MB" in model.report_.reason
    assert model.score(rows, y) > 0.95
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not SVC(1.0, Gaussian(2.0)).fit(rows[:200], y[:200]).restricted_
    few, labels = rows[:1500].astype(float), y[:1500]
    exact, auto = (SVC(1.0, Gaussian(2.0), solver=one, memory="1.7MB").fit(few, labels) for one in ("exact", "auto"))
    assert not auto.restricted_, "working sets take less room than landmarks"
    assert auto.report_.memory_planned == exact.report_.memory_planned
    np.testing.assert_array_equal(auto.decision_function(few), exact.decision_function(few))
    with pytest.raises(MemoryExceeded, match="memory="):
        SVC(1.0, Gaussian(2.0), n_landmarks=500, memory="1MB").fit(rows, y)


def test_any_rows():
    direct = landmark_svc(landmarks=np.arange(0, 150, 4)).fit(X, Y)
    sparse = landmark_svc(landmarks=np.arange(0, 150, 4)).fit(sp.csr_array(X), Y)
    given = landmark_svc(landmarks=np.arange(0, 150, 4)).set_params(kernel=Precomputed()).fit(KERNEL(X), Y)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), direct.predict(X))
    np.testing.assert_array_equal(given.predict(KERNEL(X)), direct.predict(X))
    for how in ("uniform", "kmeans"):
        assert landmark_svc(landmarks=how).fit(X, Y).score(X, Y) > 0.9


@pytest.mark.parametrize("machine", [SVC, SVR])
@pytest.mark.parametrize("landmarks", ["pivoted", np.arange(0, 150, 4)[::-1]])
def test_precomputed_rows_in_any_order(machine, landmarks):
    """Machines sort rows by class, and leave out those of no weight."""
    shuffled = np.random.default_rng(0).permutation(150)
    rows, y, weights = X[shuffled], Y[shuffled], np.where(np.arange(150) % 8 == 1, 0.0, 1.0)
    options = {"solver": "nystroem", "n_landmarks": 40, "tol": 1e-6}
    direct = machine(kernel=KERNEL, landmarks=landmarks, **options)
    if not isinstance(landmarks, str):
        direct.set_params(landmarks=rows[landmarks])
    stored = machine(kernel=Precomputed(), landmarks=landmarks, **options).fit(KERNEL(rows), y, weights)
    new = X + 0.1
    np.testing.assert_allclose(
        stored.predict(KERNEL(new, rows)), direct.fit(rows, y, weights).predict(new), atol=1e-4, rtol=0
    )
    if not isinstance(landmarks, str):
        numbered = machine(kernel=KERNEL, landmarks=landmarks, **options).fit(rows, y, weights)
        np.testing.assert_array_equal(numbered.X_fit_, rows[landmarks])
    with pytest.raises(InvalidInput, match="the number 1, whose row has no positive weight"):
        stored.set_params(landmarks=[0, 1]).fit(KERNEL(rows), y, weights)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_a_row_of_weight_2_is_two_rows_also_for_the_intercept(C):
    """Its penalty was of the number of rows, and of ‖φ‖² without weights: decisions were 0.02 off."""
    weights = np.arange(150) % 3
    one = landmark_svc(landmarks=X[::4], tol=1e-7).set_params(C=C)
    weighted = one.fit(X, Y == 1, weights).decision_function(X)
    repeated = one.fit(np.repeat(X, weights, axis=0), np.repeat(Y == 1, weights)).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-3)
    scaled = one.set_params(C=C * 1e-4).fit(X, Y == 1, weights * 1e4).decision_function(X)
    np.testing.assert_allclose(scaled, weighted, atol=1e-3)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0), 1.5, "a", -1])
@pytest.mark.parametrize("solver", ["nystroem", "exact"])
def test_the_seed_is_that_of_all_estimators(random_state, solver):
    machine = SVC(solver=solver, n_landmarks=10, random_state=random_state)
    if random_state is None or isinstance(random_state, np.random.RandomState):
        assert machine.fit(X, Y).score(X, Y) > 0.8
        return
    with pytest.raises(InvalidInput, match="random_state"):
        machine.fit(X, Y)


@pytest.mark.parametrize("C", [1e-75, 1e-78, 1e-300])
def test_a_tiny_c_has_the_answer_of_a_small_one(C):
    """The constant feature overflowed float32, and predictions were NaN."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] - 0.3
    for machine, target in ((SVC, y > 0), (SVR, y)):
        # f is of the size of C, and b is free of it.
        small, tiny = (machine(C=one, solver="nystroem", n_landmarks=20).fit(X, target) for one in (1e-15, C))
        np.testing.assert_allclose(tiny.intercept_, small.intercept_, rtol=1e-6)
    weighted = SVR(solver="nystroem", n_landmarks=20).fit(X, y, np.full(60, C))
    np.testing.assert_allclose(weighted.predict(X), tiny.predict(X), rtol=1e-6)


def test_a_c_that_overflows_is_named():
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(InvalidInput, match="C=5e-324 times the weights, which lets numbers overflow"):
        SVC(C=5e-324, solver="nystroem", n_landmarks=20).fit(X, X[:, 0] > 0)


def test_paths():
    models = landmark_svc().path(X, Y, [1.0, 10.0])
    assert [model.C for model in models] == [1.0, 10.0]
    assert all(model.restricted_ for model in models)


def test_too_few_landmarks_are_told():
    with pytest.warns(ConvergenceWarning, match="leave out"):
        SVC(kernel=Gaussian(100.0), solver="nystroem", n_landmarks=5).fit(X, Y)


@pytest.mark.parametrize(
    "options", [{"solver": "fast"}, {"n_landmarks": 0}, {"n_landmarks": 2.5}, {"landmarks": "all"}]
)
def test_bad_parameters(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        landmark_svc(**options).fit(X, Y)
