"""A fit that is cut off, or refuses its data, changes nothing: the former model to the bit, or an unfitted one."""

import copy
import gc
import inspect
import pickle
import threading
import warnings
import weakref
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import mercer
import mercer.io
from mercer import KernelLMS, KernelPCA, KernelRidge, Nystroem, OnlineKernelClassifier, OnlineKernelRegressor
from mercer.atomic import METHODS, Atomic
from mercer.schemas import Array, Schema
from mercer.testing import check_atomic

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FEW = 3
"""Cuts of each kind in the suite; the long tests make all."""


def calls(example):
    """What changes a fitted state: (name, how)."""
    X, *y = example.second
    found = [("fit", lambda one: one.fit(X, *y))]
    for name in ("fit_transform", "fit_predict"):
        if hasattr(example.estimator, name):
            found.append((name, lambda one, name=name: getattr(one, name)(X, *y)))
    if hasattr(example.estimator, "partial_fit"):
        more = example.data(2, 3)
        found.append(("partial_fit", lambda one: one.partial_fit(*more)))
    return found


def fitted(example):
    return example.new.fit(*example.first)


def test_the_table_has_every_estimator(request):
    # The table is in conftest.py, which tests do not import.
    tables = [getattr(one, "EXAMPLES", {}) for one in request.config.pluginmanager.get_plugins()]
    known = {type(row[0]) for table in tables for row in table.values()}
    public = [getattr(module, name) for module in (mercer, mercer.io) for name in module.__all__]
    assert known >= {one for one in public if inspect.isclass(one) and hasattr(one, "fit")}


def test_every_estimator_is_atomic():
    owners = {}
    todo = [BaseEstimator]
    while todo:
        todo += (kind := todo.pop()).__subclasses__()
        theirs = kind.__module__.startswith(
            ("mercer.sklearn", "mercer.accelerate")
        )  # they keep scikit-learn's contract
        if not theirs and kind.__module__.startswith("mercer.") and kind.__name__ not in ("GivenValues", "GivenLabels"):
            owners[kind] = [name for name in METHODS if hasattr(kind, name)]
    assert len(owners) > 40
    for kind, names in owners.items():
        assert not names or issubclass(kind, Atomic), kind
        for name in names:
            assert inspect.unwrap(getattr(kind, name)) is not getattr(kind, name), (kind, name)


def test_cuts_of_a_first_fit_leave_it_unfitted(example):
    model = example.new
    assert check_atomic(model, dict(calls(example))["fit"], FEW) > 1
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_cuts_of_a_second_fit_leave_the_first_model(example):
    model = fitted(example)
    for name, call in calls(example):
        if name in ("fit", "partial_fit"):
            assert check_atomic(model, call, FEW) > 1


@pytest.mark.bench
def test_all_cuts(example):
    for model in (example.new, fitted(example)):
        for _, call in calls(example):
            check_atomic(model, call)


def refusals(example):
    """Rows that are refused at some stage of a fit."""
    X, *y = example.second
    if example.data.__name__ in ("words", "frames", "sequences"):
        yield X[:0], *y
        yield X, *([one[:-1] for one in y] or [None])
        return
    spoilt = X.copy()
    if hasattr(spoilt, "indptr"):
        spoilt.data[-1] = np.nan
    else:
        spoilt[-1, -1] = np.nan
    yield spoilt, *y
    yield X[:0], *y
    if y:
        yield X, y[0][:-1]
        yield X, np.where(np.arange(len(y[0])) == 3, np.nan, y[0].astype(float).T).T
        yield X, np.zeros(len(y[0]))
    if not hasattr(spoilt, "indptr"):
        yield np.full(X.shape, 1e200), *y


def test_a_fit_that_refuses_its_data_leaves_the_model(example):
    refused = 0
    for model in (example.new, fitted(example)):
        before = pickle.dumps(model)
        for data in refusals(example):
            for name in ("fit", "partial_fit"):
                if not hasattr(model, name):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    copied = copy.deepcopy(model)
                    with suppress(ValueError, TypeError, KeyError):
                        getattr(copied, name)(*data)
                        continue
                    with pytest.raises((ValueError, TypeError, KeyError)):
                        getattr(model, name)(*data)
                refused += 1
                assert pickle.dumps(model) == before
    assert refused > 1


def test_a_fit_beyond_the_memory_leaves_the_model(example):
    model = fitted(example)
    # A search beyond its budget fits one by one, and the features of a map are what takes memory, not its fit.
    budget = "memory" in model.get_params() and not example.name.startswith(("search", "empirical map"))
    before = pickle.dumps(model.set_params(memory=1) if budget else model)
    with pytest.raises(mercer.errors.MemoryExceeded) if budget else nullcontext():
        model.fit(*example.second)
    assert (pickle.dumps(model) == before) == budget


@pytest.mark.parametrize(
    "make",
    [
        lambda: OnlineKernelRegressor(budget=8, alpha=0.1),
        lambda: OnlineKernelRegressor(method="qklms", budget=8),
        lambda: OnlineKernelClassifier(budget=8),
        lambda: OnlineKernelClassifier(budget=8, strategy="project"),
        lambda: KernelLMS(),
        lambda: KernelPCA(2, n_landmarks=6),
    ],
)
def test_what_goes_on_changes_no_array_of_the_former_model(make):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    model = make().partial_fit(X[:30], y[:30])
    before = copy.copy(model)
    kept = pickle.dumps(before)
    model.partial_fit(X[30:], y[30:])
    assert pickle.dumps(before) == kept
    assert pickle.dumps(model) != kept


def test_a_cut_leaves_the_generator_where_it_was():
    X = np.random.default_rng(0).standard_normal((30, 3))
    generator = np.random.RandomState(0)
    model = Nystroem(n_components=5, random_state=generator)
    check_atomic(model, lambda one: one.fit(X), 5)
    model.fit(X)
    assert model.random_state is generator
    expected = np.random.RandomState(0)
    expected.randint(np.iinfo(np.int32).max)
    assert generator.randint(100) == expected.randint(100)


def test_the_signature_and_the_docstring_stay():
    assert list(inspect.signature(KernelRidge.fit).parameters) == ["self", "X", "y", "sample_weight"]
    assert KernelRidge.fit.__name__ == "fit"
    assert KernelRidge.fit.__doc__.startswith("Solve")


class Mine(KernelRidge):
    """A user's estimator on top of ours."""

    def __init__(self, fails=False, **options):
        super().__init__(**options)
        self.fails = fails

    def fit(self, X, y):
        self.rows_ = len(X)
        super().fit(X, y)
        if self.fails:
            raise RuntimeError
        self.inner_ = id(self)
        return self


def test_a_subclass_is_atomic_as_a_whole():
    model = Mine().fit([[0.0], [1.0]], [0.0, 1.0])
    before = pickle.dumps(model.set_params(fails=True))
    with pytest.raises(RuntimeError):
        model.fit([[0.0, 1.0]], [2.0])
    assert pickle.dumps(model) == before
    with pytest.raises(RuntimeError):
        (unfitted := Mine(True)).fit([[0.0]], [0.0])
    assert "rows_" not in vars(unfitted)
    with pytest.raises(NotFittedError):
        unfitted.predict([[0.0]])


class Inherited(TransformerMixin, Atomic, BaseEstimator):
    """Its fit_transform is scikit-learn's."""

    def fit(self, X, y=None):
        self.size_ = len(X)
        return self

    def transform(self, X):
        raise KeyboardInterrupt


def test_methods_inherited_from_elsewhere_are_atomic():
    model = Inherited().fit([1])
    with pytest.raises(KeyboardInterrupt):
        model.fit_transform([1, 2])
    assert model.size_ == 1


class InPlace(Atomic, BaseEstimator):
    """A planted fault: an array of the former fit that is changed in place."""

    warm_start = True

    def fit(self, X):
        if not hasattr(self, "sums_"):
            self.sums_ = np.zeros(1)
        self.sums_ += 1
        mercer.events.emit(mercer.events.StageDone("sums", 0.0))
        return self


class Torn(BaseEstimator):
    """A planted fault: an estimator that is not atomic."""

    def fit(self, X):
        self.first_ = 1
        mercer.events.emit(mercer.events.StageDone("half", 0.0))
        self.second_ = 2
        return self


@pytest.mark.parametrize("model", [InPlace().fit(None), Torn()])
def test_the_check_catches_planted_faults(model):
    with pytest.raises(AssertionError, match="not as it was"):
        check_atomic(model, lambda one: one.fit(None))


def test_the_estimator_stays_the_same_object_and_its_draft_goes():
    model = KernelRidge()
    assert model.fit([[0.0], [1.0]], [0.0, 1.0]) is model
    drafts = []

    class Spy(KernelRidge):
        def fit(self, X, y):
            drafts.append(weakref.ref(self))
            return super().fit(X, y)

    spy = Spy()
    assert spy.fit([[0.0], [1.0]], [0.0, 1.0]) is spy
    gc.collect()
    assert drafts[0]() is None


def test_clones_and_copies_within_a_fit_are_estimators_of_their_own():
    class Twice(KernelRidge):
        def fit(self, X, y):
            super().fit(X, y)
            self.half_ = clone(self).set_params(alpha=2.0)
            KernelRidge.fit(self.half_, X[:1], y[:1])
            twin = copy.copy(self)
            with pytest.raises(ValueError):
                KernelRidge.fit(twin, X, y[:-1])
            return self

    model = Twice().fit([[0.0], [1.0]], [0.0, 1.0])
    assert len(model.X_fit_) == 2
    assert len(model.half_.X_fit_) == 1


def test_other_threads_see_a_whole_model_while_it_is_fitted_anew():
    X = np.random.default_rng(0).standard_normal((200, 3))
    model, torn, stop = KernelRidge(alpha=0.1).fit(X, X[:, 0]), [], threading.Event()

    def look():
        while not stop.is_set():
            state = vars(model)
            if len(state["X_fit_"]) != len(state["dual_coef_"]):
                torn.append(1)

    thread = threading.Thread(target=look)
    thread.start()
    for n in range(20):
        model.fit(X[: 100 + n], X[: 100 + n, 0])
    stop.set()
    thread.join()
    assert not torn


@pytest.mark.parametrize("how", ["plain", "pipeline", "search"])
def test_warnings_point_to_the_line_of_the_user(how):
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    X = np.random.default_rng(0).standard_normal((40, 3))
    model = KernelLMS(max_iter=1)
    if how == "pipeline":
        model = make_pipeline(model)
    if how == "search":
        model = GridSearchCV(model, {"max_iter": [1]}, cv=2)
    with pytest.warns(mercer.errors.ConvergenceWarning) as caught:
        model.fit(X, X[:, 0])
    assert {one.filename for one in caught} == {__file__}


def test_all_warnings_of_a_fit_point_to_the_line_of_the_user(example):
    """Where a fit is made to fall short: few steps, few landmarks, an indefinite kernel."""
    short = {"max_iter": 1, "tol": 1e-14, "n_init": 1}
    model = example.new
    own = model.get_params(deep=False)
    model.set_params(**{name: value for name, value in short.items() if name in own})
    if own.get("kernel") == "gaussian":
        model.set_params(kernel="sigmoid(gamma=3.0, coef0=-1.0)")
    X, *y = example.first
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(mercer.errors.InvalidInput):  # of an indefinite kernel some have no solution
            model.fit(X, *y)
    assert {one.filename for one in caught} <= {__file__}


class Rooted(Atomic, BaseEstimator):
    """Keeps a private array if `root` is true."""

    fitted = Schema(Array("mean_", "d"), Array("_root", "d", optional=True))

    def __init__(self, root=True):
        self.root = root

    def fit(self, X):
        self.mean_ = X.mean(axis=0)
        if self.root:
            self._root = np.sqrt(self.mean_)
        return self


def test_a_fit_starts_without_what_the_former_one_has_declared():
    model = Rooted().fit(np.ones((3, 2)))
    assert "_root" in vars(model)
    assert "_root" not in vars(model.set_params(root=False).fit(np.ones((3, 3))))
