"""What users do around an estimator: frames, searches, kernels in all forms, bad rows, and other precisions."""

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import compute_class_weight

import mercer
from mercer import (
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLMS,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelPLS,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Nystroem,
    OnlineKernelClassifier,
)
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.estimators.base import KernelEstimator
from mercer.kernels import Function, Gaussian, Linear, Polynomial, Precomputed
from mercer.testing import assert_close
from mercer.ways import Report

ALL = (
    KernelRidge,
    KernelRidgeCV,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelPCA,
    KernelDiscriminantAnalysis,
    KernelLogisticRegression,
    KernelPLS,
)


@pytest.fixture
def data():
    X, y = load_iris(return_X_y=True)
    return X, y


def fitted(estimator, data):
    return estimator().fit(*data)


def outputs(model, X):
    return model.transform(X) if isinstance(model, KernelPCA) else model.predict(X)


@pytest.mark.parametrize("estimator", ALL)
def test_data_frames_in_any_library_give_the_same_answers(estimator, data):
    X, y = data
    names = ["a", "b", "c", "d"]
    expected = outputs(estimator().fit(X, y), X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = estimator().fit(frame, y)
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(outputs(model, frame), expected)


def test_named_columns_reach_the_kernel(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    by_name = KernelRidge(Gaussian().on(["c", "a"])).fit(frame, y)
    by_index = KernelRidge(Gaussian().on([2, 0])).fit(X, y)
    assert_close(by_name.predict(frame), by_index.predict(X), rtol=1e-12)


def test_set_output_gives_frames(data):
    scores = KernelPCA(2).set_output(transform="pandas").fit_transform(data[0])
    assert list(scores.columns) == ["kernelpca0", "kernelpca1"]


def test_grid_search_reaches_into_the_kernel(data):
    X, y = data
    kernel = Gaussian(gamma=100.0)
    pipeline = make_pipeline(StandardScaler(), KernelRidgeClassifier(kernel))
    search = GridSearchCV(pipeline, {"kernelridgeclassifier__kernel__gamma": [100.0, 0.1]}, cv=3).fit(X, y)
    assert search.best_params_["kernelridgeclassifier__kernel__gamma"] == 0.1
    assert kernel == Gaussian(gamma=100.0), "a search must not change the kernel that it was given"


def test_setting_a_kernel_parameter_leaves_other_estimators_alone():
    kernel = Gaussian(gamma=1.0)
    first, second = KernelRidge(kernel), KernelRidge(kernel)
    first.set_params(kernel__gamma=2.0)
    assert (first.kernel.gamma, second.kernel.gamma) == (2.0, 1.0)
    named = KernelRidge("gaussian").set_params(kernel__gamma=3.0)
    assert named.kernel == Gaussian(gamma=3.0)


@pytest.mark.parametrize("estimator", ALL)
def test_clone_and_repr(estimator):
    model = estimator(kernel=0.5 * Gaussian(gamma=0.1) + Linear())
    assert repr(clone(model)) == repr(model)
    assert clone(model).kernel == model.kernel


@pytest.mark.parametrize("estimator", ALL)
def test_kernels_by_name_text_object_and_callable(estimator, data):
    X, y = data
    text = outputs(estimator(kernel="2*gaussian(gamma=0.5)").fit(X, y), X)
    kernel = outputs(estimator(kernel=2 * Gaussian(gamma=0.5)).fit(X, y), X)
    function = outputs(estimator(kernel=lambda A, B: 2 * Gaussian(gamma=0.5)(A, B)).fit(X, y), X)
    np.testing.assert_array_equal(text, kernel)
    np.testing.assert_allclose(function, kernel, atol=1e-6)


@pytest.mark.parametrize("estimator", ALL)
def test_precomputed_equals_the_kernel(estimator, data):
    X, y = data
    kernel = Gaussian(gamma=0.5)
    new = X[::3] + 0.1
    direct = estimator(kernel=kernel).fit(X, y)
    model = estimator(kernel=Precomputed()).fit(kernel(X), y)
    np.testing.assert_allclose(outputs(model, kernel(new, X)), outputs(direct, new), atol=1e-7)


@pytest.mark.parametrize("estimator", [*ALL, KernelKMeans])
def test_sparse_precomputed_matrices(estimator, data):
    X, y = data
    K = Gaussian(gamma=0.5)(X)
    some = {"random_state": 0} if estimator is KernelKMeans else {}
    dense = estimator(kernel=Precomputed(), **some).fit(K, y)
    sparse = estimator(kernel=Precomputed(), **some).fit(sp.csc_array(K), y)
    np.testing.assert_allclose(outputs(sparse, sp.csr_array(K[::3])), outputs(dense, K[::3]), atol=1e-9)
    K[0, 3] += 0.5
    with pytest.raises(InvalidInput, match="symmetrise"):
        estimator(kernel=Precomputed()).fit(sp.csr_array(K), y)


@pytest.mark.parametrize("estimator", ALL)
def test_precomputed_matrices_that_are_none_are_refused(estimator, data):
    y = data[1][:4]
    with pytest.raises(InvalidInput, match="square"):
        estimator(kernel=Precomputed()).fit(np.ones((4, 3)), y)
    lopsided = np.eye(4)
    lopsided[0, 3] = 0.5
    with pytest.raises(InvalidInput, match="symmetrise"):
        estimator(kernel=Precomputed()).fit(lopsided, y)


def test_numbers_of_landmarks_are_those_of_all_rows(data, monkeypatch):
    X, y = data
    weights = np.where(np.arange(len(y)) < 10, 0.0, 1.0)
    for estimator in (KernelRidge, KernelRidgeCV, KernelLogisticRegression):
        with pytest.raises(InvalidInput, match="count the others"):
            estimator(Gaussian(), solver="nystroem", landmarks=[0, 20, 70, 140]).fit(X, y, weights)
        model, plain = (estimator(Gaussian(), landmarks=how).fit(X, y, weights) for how in ([0, 20], "pivoted"))
        np.testing.assert_array_equal(model.predict(X[:9]), plain.predict(X[:9]))  # neither has landmarks
    monkeypatch.setattr("mercer.ways.nystroem_ridge.DEAREST", 1e3)
    for estimator in (KernelRidge, KernelRidgeClassifier, KernelLogisticRegression):
        with pytest.raises(InvalidInput, match="count the others"):
            estimator(Gaussian(), landmarks=[0, 20, 70, 140]).fit(X, y, weights)


def test_objects_through_a_function():
    words = ["ab", "abc", "xyz", "xy", "abz", "yz"]
    common = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    model = KernelRidgeClassifier(common, alpha=0.1).fit(words, [0, 0, 1, 1, 0, 1])
    assert model.predict(["abab", "zy"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "shared",
    [
        lambda x, z: float(len(x & z)),  # lists have no &
        lambda x, z: len(x.intersection(z)),  # and no such method
        lambda x, z: float(len(set(x) & set(z))),  # of lists one number
        lambda X, Z: np.array([[len(x & z) for z in Z] for x in X]),  # of lists all pairs
    ],
)
def test_a_plain_function_of_two_objects_is_called_for_each_pair(shared):
    rows = [frozenset(word) for word in ("ab", "abc", "xyz", "xy", "abz", "yz")]
    model = KernelRidgeClassifier(shared, alpha=0.1).fit(rows, [0, 0, 1, 1, 0, 1])
    assert model.predict([frozenset("ab"), frozenset("zy")]).tolist() == [0, 1]
    np.testing.assert_array_equal(model.kernel_(rows), [[len(x & z) for z in rows] for x in rows])
    np.testing.assert_array_equal(model.kernel_.diagonal(rows), [len(x) for x in rows])


def test_a_function_that_fails_on_pairs_too_says_what_python_said():
    with pytest.raises(InvalidInput, match=r"'list' object has no attribute 'edges'.*'frozenset' object has no"):
        KernelRidge(lambda x, z: x.edges).fit([frozenset("a"), frozenset("b")], [0.0, 1.0])
    with pytest.raises(InvalidInput, match=r"no attribute 'edges'.*mode='pair'"):
        KernelRidge(lambda x, z: x.edges).fit(np.array([[1.0], [2.0]]), [0.0, 1.0])


@pytest.mark.parametrize("estimator", ALL)
def test_sparse_rows_equal_dense_rows(estimator, data):
    X, y = data
    X = np.where(X > 3, X, 0.0)
    dense, sparse = estimator().fit(X, y), estimator().fit(sp.csr_array(X), y)
    np.testing.assert_allclose(outputs(sparse, sp.csr_array(X)), outputs(dense, X), atol=1e-7)


@pytest.mark.parametrize("estimator", ALL)
def test_float32_method_against_float64(estimator, data):
    X, y = data
    X = StandardScaler().fit_transform(X)
    wide = outputs(estimator().fit(X, y), X)[:, :2] if estimator is KernelPCA else outputs(estimator().fit(X, y), X)
    narrow = outputs(estimator().fit(X.astype(np.float32), y), X.astype(np.float32))
    narrow = narrow[:, :2] if estimator is KernelPCA else narrow
    np.testing.assert_allclose(narrow, wide, rtol=1e-3, atol=1e-3)


def test_reports_with_nan_are_equal():
    first, second = Report(residual=float("nan")), Report(residual=float("nan"))
    assert first == pickle.loads(pickle.dumps(first)) == second
    assert first != Report(residual=0.0)
    assert first != Report(residual=float("nan"), n=1)


@pytest.mark.parametrize("estimator", ALL)
def test_reports_tell_what_was_done(estimator, data):
    report = fitted(estimator, data).report_
    text = str(report)
    assert "Gaussian(gamma=" in text
    assert "150 rows × 4 columns" in text
    assert "positive definite" in text
    assert report.residual <= report.tolerance
    assert report.status == "converged"
    assert report.memory_planned < report.memory_budget
    assert report.jitter == 0.0
    assert sum(report.seconds.values()) > 0
    assert ">kernel</th>" in report._repr_html_()


@pytest.mark.parametrize("estimator", ALL)
def test_a_budget_that_is_too_small_is_refused_before_allocation(estimator, data):
    with pytest.raises(MemoryExceeded, match="memory="):
        estimator(memory=1000).fit(*data)


@pytest.mark.parametrize("estimator", ALL)
def test_unfitted_use(estimator):
    model = estimator()
    with pytest.raises(NotFittedError):
        outputs(model, np.ones((2, 2)))


BAD_ROWS = {
    "nan": (np.array([[1.0, np.nan], [1.0, 2.0], [3.0, 4.0]]), "NaN"),
    "infinity": (np.array([[1.0, np.inf], [1.0, 2.0], [3.0, 4.0]]), "infinity"),
    "empty": (np.empty((0, 2)), "0 sample"),
    "no columns": (np.empty((3, 0)), "0 feature"),
    "one dimension": (np.array([1.0, 2.0, 3.0]), "2D"),
    "complex": (np.array([[1j, 2.0], [1.0, 2.0], [3.0, 4.0]]), "[Cc]omplex"),
    "text": (np.array([["a", "b"], ["c", "d"], ["e", "f"]], dtype=object), "spectrum"),
    "huge": (np.array([[1e200, 1.0], [1.0, 2.0], [3.0, 4.0]]), "overflow"),
}


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_refused_clearly(estimator, case):
    X, words = BAD_ROWS[case]
    with pytest.raises(ValueError, match=words):
        estimator().fit(X, [0, 1, 0][: len(X)] if len(X) else [])


@pytest.mark.parametrize("estimator", ALL)
def test_other_columns_than_in_fit_are_refused(estimator, data):
    with pytest.raises(ValueError, match="features"):
        outputs(fitted(estimator, data), np.ones((2, 3)))


@pytest.mark.parametrize("estimator", [KernelRidge, KernelRidgeClassifier])
@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "much"])
def test_bad_alpha(estimator, alpha, data):
    with pytest.raises((InvalidInput, TypeError), match="alpha"):
        estimator(alpha=alpha).fit(*data)


@pytest.mark.parametrize("estimator", ALL)
def test_integer_rows_and_constant_columns(estimator):
    X, y = np.array([[1, 7], [2, 7], [3, 7], [4, 7]]), [0, 0, 1, 1]
    found, kernel = outputs(estimator().fit(X, y), X), Gaussian(gamma=0.5)
    assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(found, outputs(estimator().fit(X.astype(float), y), X.astype(float)))
    both, one = estimator(kernel=kernel).fit(X, y), estimator(kernel=kernel).fit(X[:, :1], y)
    np.testing.assert_allclose(outputs(both, X), outputs(one, X[:, :1]), atol=1e-9)


@pytest.mark.parametrize("estimator", ALL)
def test_same_bits_every_time(estimator, data):
    np.testing.assert_array_equal(outputs(fitted(estimator, data), data[0]), outputs(fitted(estimator, data), data[0]))


def test_an_unproved_kernel_is_noted(data):
    report = KernelRidge("sigmoid(gamma=0.01)", alpha=100.0).fit(*data).report_
    assert any("not proved" in note for note in report.notes)


def test_observers_see_the_stages(data):
    seen = []

    class Watch:
        def on_event(self, event):
            seen.append(type(event).__name__)

    with mercer.observe(Watch()):
        KernelRidge().fit(*data)
    assert {"SolverStep", "StageDone", "TilesDone"} <= set(seen)


FLAGS = [
    pytest.param(one, name, id=f"{one.__name__}-{name}")
    for one in (getattr(mercer, name) for name in mercer.__all__)
    if isinstance(one, type) and issubclass(one, KernelEstimator)
    for name, parameter in inspect.signature(one).parameters.items()
    if isinstance(parameter.default, bool)
]


@pytest.mark.parametrize(("estimator", "flag"), FLAGS)
def test_a_text_is_neither_true_nor_false(estimator, flag):
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match=f"{flag}='False'; give"):
        estimator(**{flag: "False"}).fit(rng.normal(size=(20, 2)), np.arange(20) % 2)


def test_polynomial_of_data_that_overflow_is_refused():
    X = np.array([[1e150], [2e150], [3e150]])
    with pytest.raises(InvalidInput, match=r"finite|overflow"):
        KernelRidge(Polynomial(degree=3)).fit(X, [1.0, 2.0, 3.0])


DRAWING = {
    "descent": lambda state: KernelPerceptron(max_iter=5, tol=None, random_state=state),
    "mistakes": lambda state: KernelPerceptron(method="plain", max_iter=2, tol=None, random_state=state),
    "least mean squares": lambda state: KernelLMS(mode="stochastic", max_iter=2, tol=None, random_state=state),
    "online": lambda state: OnlineKernelClassifier(random_state=state),
    "landmarks": lambda state: KernelRidge(solver="nystroem", n_landmarks=9, landmarks="uniform", random_state=state),
    "discriminants": lambda state: KernelDiscriminantAnalysis(solver="nystroem", n_landmarks=9, random_state=state),
    "components": lambda state: KernelPCA(2, solver="nystroem", n_landmarks=9, random_state=state),
    "clusters": lambda state: KernelKMeans(3, random_state=state),
    "features": lambda state: Nystroem(n_components=9, random_state=state),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", DRAWING)
def test_random_state_is_a_number_a_generator_or_none(name, data):
    def fit(state):
        model = DRAWING[name](state).fit(*data)
        return model.transform(data[0]) if hasattr(model, "transform") else model.predict(data[0])

    assert len(fit(None)) == 150
    np.testing.assert_array_equal(fit(np.random.RandomState(3)), fit(np.random.RandomState(3)))
    for wrong in (-1, "x", np.random.default_rng(0)):
        with pytest.raises(InvalidInput, match="random_state="):
            fit(wrong)


@pytest.mark.parametrize("kind", [KernelRidge, KernelRidgeCV, KernelPCA, mercer.SVC, KernelKMeans])
def test_text_for_a_kernel_of_numbers_names_those_of_text(kind):
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"]})
    for rows in (frame, np.array([["ACGT"], ["GGTA"], ["ACCA"], ["TTTT"]])):
        with pytest.raises(
            InvalidInput, match=r"1 column holds no numbers: 'colour'.*table_kernel|spectrum.*table_kernel"
        ):
            kind().fit(rows, [0, 1, 0, 1])


@pytest.mark.parametrize("kind", [KernelRidge, KernelPCA, mercer.SVC])
def test_columns_without_numbers_are_named_whatever_stands_beside_them(kind):
    """What NumPy, pandas or scikit-learn says of them depends on the mix, and names no column."""
    numbers, days = [1.0, 2.0, 3.0, 4.0], pd.date_range("2026-01-01", periods=4)
    colours = pd.Categorical(["red", "blue", "red", "blue"])
    for odd in ({"day": days}, {"day": days, "text": list("abcd")}, {"colour": colours, "yes": [True, False] * 2}):
        with pytest.raises(InvalidInput, match=rf"no numbers: '{next(iter(odd))}'.*table_kernel"):
            kind().fit(pd.DataFrame({"size": numbers, **odd}), [0, 1, 0, 1])


def test_a_kernel_in_the_place_of_a_number_is_sent_to_its_own():
    X, y = np.arange(4.0)[:, None], [0, 1, 0, 1]
    with pytest.raises(InvalidInput, match="SVC: C='gaussian'; write kernel='gaussian'; C is a number"):
        mercer.SVC("gaussian").fit(X, y)
    with pytest.raises(InvalidInput, match=r"KernelPCA: n_components=Linear\(\); write kernel=Linear\(\)"):
        KernelPCA(Linear()).fit(X)
    for no_kernel in ("1", "mle"):
        with pytest.raises(InvalidInput, match="give a positive integer"):
            KernelPCA(no_kernel).fit(X)


@pytest.mark.parametrize("form", [np.asarray, pd.Series, lambda days: pd.DataFrame({"day": days})])
def test_dates_are_no_targets_of_a_regression(form):
    days = pd.date_range("2026-01-01", periods=4)
    for model in (KernelRidge(), mercer.SVR(), mercer.GaussianProcessRegressor()):
        with pytest.raises(InvalidInput, match="y has dates; give numbers, such as days"):
            model.fit(np.arange(4.0)[:, None], form(days))


WEIGHING = [KernelRidgeClassifier, KernelRidgeClassifierCV, KernelLogisticRegression, KernelPerceptron, mercer.SVC]


@pytest.mark.parametrize("kind", [*WEIGHING, mercer.NuSVC])
@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ({0: 0}, "has 0 for the class 0; give a finite number > 0"),
        ({0: -1.0}, "has -1.0"),
        ({0: np.inf}, "has inf"),
        ({0: np.nan}, "has nan"),
        ({0: "2"}, "has '2'"),
        ({0: True}, "has True"),
        ({"setosa": 2.0}, "names 'setosa', which is not a class, and leaves out the class 0"),
        ("even", "class_weight='even'; give {class: factor} of the classes 0, 1, 2"),
        ([1.0, 2.0, 3.0], "give {class: factor}"),
        (2.0, "give {class: factor}"),
    ],
)
def test_class_weights_that_are_none_are_refused_alike(kind, weight, said, data):
    with pytest.raises(InvalidInput, match=re.escape(said)) as raised:
        kind(class_weight=weight).fit(*data)
    assert str(raised.value).startswith(f"{kind.__name__}: ")


@pytest.mark.parametrize(
    "weight", [{0: 2.0, 2: np.float32(0.5)}, {0: 2, 1: 1, 2: 0.5, "none of them": 9.0}, "balanced"]
)
def test_class_weights_are_scikit_learns(weight, data):
    X, y = data[0][30:], data[1][30:]
    expected = compute_class_weight(weight, classes=np.unique(y), y=y)
    assert_close(mercer.SVC(class_weight=weight).fit(X, y).class_weight_, expected)
    one = KernelLogisticRegression(class_weight=weight).fit(X, y)
    two = KernelLogisticRegression().fit(X, y, sample_weight=expected[y])
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-6)


def test_a_class_without_weight_is_left_out_of_the_balance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 8 // 3  # 15, 15 and 10 of the classes
    K, weights = Gaussian(gamma=0.5)(X), np.where(y == 1, 0.0, 1.0)
    there = np.flatnonzero(weights)
    whole = mercer.SVC(kernel="precomputed", class_weight="balanced").fit(K, y, weights)
    part = mercer.SVC(kernel="precomputed", class_weight="balanced").fit(K[np.ix_(there, there)], y[there])
    np.testing.assert_allclose(
        whole.decision_function(K), part.decision_function(np.ascontiguousarray(K[:, there])), atol=1e-6
    )
    for kind in (KernelRidgeClassifier, KernelLogisticRegression):  # and no division by zero comes before it
        with pytest.raises(InvalidInput, match="zero sample weights"):
            kind(kernel="precomputed", class_weight="balanced").fit(K, y, weights)
