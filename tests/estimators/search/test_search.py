"""KernelSearchCV against scikit-learn's GridSearchCV, on every method."""

import json
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import FitFailedWarning
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, KernelPCA, KernelRidge, KernelRidgeClassifier, KernelSearchCV
from mercer.errors import Cancelled, InvalidInput
from mercer.estimators.search.results import as_table
from mercer.events import Cancel, StageDone, TilesDone
from mercer.kernels import Function, Gaussian, Kernel, Laplace, Precomputed
from mercer.select import held_out
from mercer.select.held_out import Split, held_out_predictions
from mercer.testing import assert_close

GRID = {"kernel__gamma": [0.01, 0.1, 1.0], "alpha": [1e-3, 0.1, 10.0]}


@pytest.fixture(scope="module")
def data():
    return make_friedman1(150, 6, noise=0.5, random_state=0)


def same(ours, peer, tolerance=1e-7):
    for name in (key for key in peer.cv_results_ if "_test_" in key and "rank" not in key):
        np.testing.assert_allclose(ours.cv_results_[name], peer.cv_results_[name], rtol=tolerance, atol=tolerance)
    assert ours.cv_results_["params"] == peer.cv_results_["params"]
    assert ours.best_params_ == peer.best_params_
    for name in (key for key in peer.cv_results_ if "rank" in key):
        np.testing.assert_array_equal(ours.cv_results_[name], peer.cv_results_[name])


def searched(estimator, grid, X, y, method="shared", **options):
    fit = {"groups": options.pop("groups")} if "groups" in options else {}
    ours = KernelSearchCV(estimator, grid, **options).fit(X, y, **fit)
    assert ours.method_.startswith(method), ours.method_
    options.pop("halving", None)
    same(ours, GridSearchCV(estimator, grid, **options).fit(X, y, **fit))
    return ours


def test_against_grid_search_of_the_peers_own_ridge(data):
    X, y = data
    ours = KernelSearchCV(KernelRidge("gaussian"), GRID).fit(X, y)
    grid = {"gamma": GRID["kernel__gamma"], "alpha": GRID["alpha"]}
    peer = GridSearchCV(PeerRidge(kernel="rbf"), grid).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], rtol=1e-8, atol=1e-9
    )
    assert ours.best_params_["alpha"] == peer.best_params_["alpha"]
    assert_close(ours.predict(X), peer.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cv": KFold(4, shuffle=True, random_state=0), "scoring": "neg_mean_absolute_error"},
        {"cv": ShuffleSplit(3, test_size=0.3, random_state=1)},
        {"cv": 3, "scoring": ["r2", "neg_max_error"], "refit": "r2"},
        {"cv": 3, "scoring": make_scorer(mean_absolute_error, greater_is_better=False)},
    ],
)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_folds_and_scorers(data, options, fit_intercept):
    searched(KernelRidge("gaussian", fit_intercept=fit_intercept), GRID, *data, **options)


def test_many_folds(data):
    X, y = data
    searched(KernelRidge("gaussian"), GRID, X[:30], y[:30], cv=LeaveOneOut(), scoring="neg_mean_squared_error")


def test_groups(data):
    X, y = data
    searched(KernelRidge("gaussian"), GRID, X, y, cv=GroupKFold(3), groups=np.arange(len(y)) % 7)


def test_kernels_themselves_and_bandwidths_that_depend_on_the_fold(data):
    grid = {"kernel": [Gaussian(), Laplace("median"), Gaussian(0.1)], "alpha": [0.1, 1.0]}
    searched(KernelRidge(), grid, *data)


@dataclass(frozen=True)
class Powers(Kernel):
    """Parameters of any kind."""

    coefficients: object
    inner: object = None

    def formula(self, pair):
        first, second = np.ravel(self.coefficients)
        return first * pair.dot + second * pair.dot**2 + (0.0 if self.inner is None else self.inner.formula(pair))


@pytest.mark.parametrize("kind", [tuple, list, np.array, lambda pair: np.array([pair], object)])
def test_parameters_without_a_hash(data, kind):
    """Equal ones are of one kernel, whose matrix all λ share; one element makes another."""

    def kernels():
        return [Powers(kind([1.0, 2.0])), Powers(kind([1.0, 3.0])), Powers(kind([1.0, 0.0]), Powers(kind([0.0, 4.0])))]

    grid = [{"kernel": kernels(), "alpha": [alpha]} for alpha in (0.1, 1.0)]
    search = searched(KernelRidge(), grid, *data)
    assert "2 α of each kernel" in search.method_
    heard = Heard()
    with mercer.observe(heard):
        KernelSearchCV(KernelRidge(), grid).fit(*data)
    assert (
        sum(isinstance(one, StageDone) and one.name.startswith("KernelSearchCV: Powers") for one in heard.events) == 3
    )
    assert len(np.unique(search.cv_results_["mean_test_score"])) == 6


def test_several_targets_and_float32(data):
    X, y = data
    searched(KernelRidge("gaussian"), GRID, X, np.column_stack([y, y**2]))
    ours = KernelSearchCV(KernelRidge("gaussian"), GRID).fit(X.astype(np.float32), y)
    wide = KernelSearchCV(KernelRidge("gaussian"), GRID).fit(X, y)
    difference = ours.cv_results_["mean_test_score"] - wide.cv_results_["mean_test_score"]
    assert np.abs(difference).max() < 1e-4


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes] + np.random.default_rng(0).normal(size=(len(X[y < classes]), 4)), y[y < classes]
    names = np.array(["a", "b", "c"])[y]
    searched(KernelRidgeClassifier("gaussian"), GRID, X, names, scoring="balanced_accuracy")
    if classes == 2:
        searched(KernelRidgeClassifier("gaussian"), GRID, X, y, scoring="roc_auc")


def test_a_class_that_a_fold_lacks_is_fitted_as_it_is():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searched(KernelRidgeClassifier("gaussian"), GRID, X, y, method="a fit for each", cv=KFold(3))


class Absolute(TransformerMixin, BaseEstimator):
    """A step that keeps nothing, so that it never says that it is fitted."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.abs(X)


def test_a_step_before_may_keep_nothing(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), Absolute(), "passthrough", KernelRidge("gaussian"))
    grid = {"kernelridge__alpha": [0.1, 1.0]}
    found, wanted = KernelSearchCV(pipeline, grid).fit(X, y), GridSearchCV(pipeline, grid).fit(X, y)
    assert_close(found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"], 1e-8)


def test_precomputed_and_pipelines(data):
    X, y = data
    searched(KernelRidge(Precomputed()), {"alpha": [0.1, 1.0]}, Gaussian(0.1)(X), y)
    frame = pd.DataFrame(X * 100, columns=list("abcdef"))
    grid = {f"kernelridge__{name}": values for name, values in GRID.items()}
    searched(make_pipeline(StandardScaler(), KernelRidge("gaussian")), grid, frame, y)
    named = make_pipeline(StandardScaler().set_output(transform="pandas"), KernelRidge(Gaussian().on(["b", "d"])))
    searched(named, {"kernelridge__alpha": [0.1, 1.0]}, frame, y)


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (KernelPCA(2, fit_inverse_transform=True), {"kernel__gamma": [0.1, 1.0]}),
        (KernelRidge("gaussian"), {"tol": [1e-8, 1e-10]}),
        (Ridge(), {"alpha": [0.1, 1.0]}),
    ],
)
def test_all_other_searches_are_plain_fits(data, estimator, grid):
    searched(estimator, grid, *data, method="a fit for each")


def test_sample_weights_are_plain_fits(data):
    X, y = data
    w = np.random.default_rng(0).uniform(size=len(y))
    ours = KernelSearchCV(KernelRidge("gaussian"), GRID).fit(X, y, sample_weight=w)
    same(ours, GridSearchCV(KernelRidge("gaussian"), GRID).fit(X, y, sample_weight=w))


@pytest.mark.parametrize(("sides", "pays"), [(2, False), (11, True)])
def test_one_decomposition_of_many_rows_is_for_many_targets(sides, pays):
    splits = [Split(np.delete(np.arange(2000), rows), rows) for rows in np.split(np.arange(2000), 5)]
    assert held_out._one_decomposition_pays(2000, splits, 13, sides) == pays


@pytest.mark.parametrize("cv", [5, ShuffleSplit(4, test_size=0.3, random_state=1)])
@pytest.mark.parametrize(
    ("steps", "sharing"),
    [(1 / 115, 4), (1.0, 4), (1e-9, 4), (1e-9, 99)],
    ids=["some by each method", "by iteration", "by inverses what is slow", "by factors what is slow"],
)
def test_many_rows_are_solved_together(monkeypatch, steps, sharing, cv):
    X, y = make_friedman1(450, 5, noise=0.5, random_state=1)
    monkeypatch.setattr(held_out, "LARGE", 300)
    monkeypatch.setattr(held_out, "MANY", np.inf)
    monkeypatch.setattr(held_out, "STEPS_A_ROW", steps)
    monkeypatch.setattr(held_out, "SHARING", sharing)
    searched(KernelRidge("gaussian", fit_intercept=True), GRID, X, y, cv=cv)


@pytest.mark.parametrize(
    ("gamma", "alpha", "tolerance"),
    [(3.0, 1e-2, 1e-6), (9.0, 0.0, 1e-6), (0.5, 1e-4, 1e-6), (1e-3, 1e-2, 1e-6), (1e-3, 1e-9, 1e-3)],
)
@pytest.mark.parametrize("method", ["by_approximation", "by_inverses", "neither"])
def test_each_method_by_brute_force(monkeypatch, method, gamma, alpha, tolerance):
    """K that is spread over all directions, that has a small rank, and that float32 has no factor of."""
    rng = np.random.default_rng(0)
    K, Y = Gaussian(gamma)(rng.normal(size=(200, 3))), rng.normal(size=(200, 2))
    splits = [Split(np.delete(np.arange(200), rows), rows) for rows in np.array_split(rng.permutation(200), 5)]
    monkeypatch.setattr(held_out, "LARGE", 100)
    monkeypatch.setattr(held_out, "MANY", np.inf)
    monkeypatch.setattr(held_out, "STEPS_A_ROW", 10.0)
    for other in {"by_approximation", "by_inverses"} - {method}:
        monkeypatch.setattr(held_out._Together, other, lambda self, out: None)
    alphas = np.array([8 * alpha, alpha])  # within a decade, which one inverse serves
    found = held_out_predictions(K, Y, splits, alphas, intercept=True)
    for (train, test), predicted in zip(splits, found, strict=True):
        border = np.ones((len(train), 1))
        for own, each in enumerate(alphas):
            system = np.block(
                [[K[np.ix_(train, train)] + each * np.eye(len(train)), border], [border.T, np.zeros((1, 1))]]
            )
            dual = np.linalg.solve(system, np.vstack([Y[train], np.zeros((1, 2))]))
            expected = K[np.ix_(test, train)] @ dual[:-1] + dual[-1]
            # A residual r moves the predictions by up to ‖r‖ or so, however small they are beside the targets.
            backward = held_out.TOL * np.linalg.norm(Y[train])
            atol = max(tolerance * np.abs(expected).max(), backward)
            np.testing.assert_allclose(predicted[:, own], expected, atol=atol)


@pytest.mark.parametrize(
    ("factors", "inverses"),
    [([8.0, 1.0], [8**0.5]), ([1.0, 10.0], [10**0.5]), ([1.0, 100.0], [1, 100]), ([50.0, 1.0, 6.0], [6**0.5, 50])],
)
@pytest.mark.parametrize("intercept", [False, True])
def test_one_inverse_serves_the_penalties_of_a_decade(monkeypatch, factors, inverses, intercept):
    """That of K + √(λ₁λ₂) I; and all predictions are those of dense systems."""
    made, made_of = [], []
    monkeypatch.setattr(held_out, "LARGE", 100)
    monkeypatch.setattr(held_out, "MANY", np.inf)
    monkeypatch.setattr(held_out._Together, "by_approximation", lambda self, out: None)
    monkeypatch.setattr(held_out, "_by_cholesky", lambda *args: pytest.fail("an inverse was not enough"))
    counted(monkeypatch, held_out.InverseWithout, lambda args: made.append(len(args[2])))
    counted(monkeypatch, held_out.CholeskyFactor, lambda args: made_of.extend(args[1:]))
    rng = np.random.default_rng(0)
    K, Y = Gaussian(3.0)(rng.normal(size=(200, 3))), rng.normal(size=(200, 2))
    splits = [Split(np.delete(np.arange(200), rows), rows) for rows in np.array_split(rng.permutation(200), 5)]
    alphas = 0.01 * np.array(factors)
    found = held_out_predictions(K, Y, splits, alphas, intercept=intercept)
    assert len(made) == len(inverses)
    assert_close(made_of, 0.01 * np.array(inverses), rtol=1e-12)
    for (train, test), predicted in zip(splits, found, strict=True):
        for own, alpha in enumerate(alphas):
            inverse = np.linalg.inv(K[np.ix_(train, train)] + alpha * np.eye(len(train)))
            b = inverse.sum(axis=0) @ Y[train] / inverse.sum() if intercept else 0.0
            expected = K[np.ix_(test, train)] @ inverse @ (Y[train] - b) + b
            np.testing.assert_allclose(predicted[:, own], expected, atol=1e-6 * np.abs(expected).max())


def counted(monkeypatch, kind, note):
    """Note the arguments of each `kind.of`; of factors the blocks within an inverse give no shift."""
    of = kind.of
    monkeypatch.setattr(kind, "of", lambda *args: note(args) or of(*args))


@pytest.mark.parametrize(
    ("alphas", "shared", "groups"),
    [
        ([1.0, 5.0, 20.0, 100.0], [True] * 4, [[0, 1], [2, 3]]),  # each from the least of its group on
        ([3.0, 0.0, 1.0, 30.0], [True] * 4, [[2, 0]]),
        ([1.0, 2.0, 4.0], [True, False, True], [[0, 2]]),
        ([1.0, 2.0], [False, True], []),
        ([1.0, 11.0], [True] * 2, []),
    ],
)
def test_decades(alphas, shared, groups):
    assert [group.tolist() for group in held_out._decades(np.array(alphas), np.array(shared))] == groups


def test_held_out_predictions_by_brute_force():
    rng = np.random.default_rng(0)
    K, Y = Gaussian(0.5)(rng.normal(size=(60, 2))), rng.normal(size=(60, 2))
    splits = [Split(rng.permutation(60)[:40], np.arange(7)), Split(np.arange(30), np.arange(30, 60))]
    found = held_out_predictions(K, Y, splits, np.array([0.1, 2.0]))
    for (train, test), predicted in zip(splits, found, strict=True):
        for j, alpha in enumerate((0.1, 2.0)):
            dual = np.linalg.solve(K[np.ix_(train, train)] + alpha * np.eye(len(train)), Y[train])
            np.testing.assert_allclose(predicted[:, j], K[np.ix_(test, train)] @ dual, atol=1e-8)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_that_a_split_repeats_count_as_often(monkeypatch, large, intercept):
    monkeypatch.setattr(held_out, "LARGE", 30 if large else 1500)
    rng = np.random.default_rng(0)
    K, Y = Gaussian(0.5)(rng.normal(size=(60, 2))), rng.normal(size=(60, 2))
    splits = [Split(rng.integers(0, 60, 60), np.r_[:9, :3]), Split(np.r_[:40, :10], np.arange(40, 60))]
    found = held_out_predictions(K, Y, splits, np.array([0.1]), intercept=intercept)
    for (train, test), predicted in zip(splits, found, strict=True):
        inverse = np.linalg.inv(K[np.ix_(train, train)] + 0.1 * np.eye(len(train)))
        b = inverse.sum(axis=0) @ Y[train] / inverse.sum() if intercept else 0.0
        expected = K[np.ix_(test, train)] @ inverse @ (Y[train] - b) + b
        np.testing.assert_allclose(predicted[:, 0], expected, atol=1e-6)


def test_splits_that_repeat_rows_against_the_peer(data):
    cv = [(np.r_[:100, :30], np.arange(100, 150)), (np.r_[50:150, 60:70], np.r_[:50, :9])]
    searched(KernelRidge("gaussian"), GRID, *data, cv=cv)


def test_a_singular_system_scores_error_score(data):
    X, y = data
    grid = {"alpha": [0.0, 1.0]}
    X = np.vstack([X, X])
    y = np.concatenate([y, y])
    with pytest.warns(FitFailedWarning, match="singular"):
        search = KernelSearchCV(KernelRidge("linear"), grid, cv=3).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"][0])
    assert search.best_params_ == {"alpha": 1.0}
    with pytest.raises(InvalidInput, match="singular"):
        KernelSearchCV(KernelRidge("linear"), grid, cv=3, error_score="raise").fit(X, y)


def test_kernels_that_are_none(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(held_out, "LARGE", 60)
    monkeypatch.setattr(held_out, "MANY", np.inf)
    grid = {"kernel": ["sigmoid(gamma=2.0, coef0=-1.0)", Gaussian(0.1)], "alpha": [0.01, 1e3]}
    with pytest.warns(FitFailedWarning):
        search = KernelSearchCV(KernelRidge(), grid, cv=3).fit(X, y)
    assert search.best_params_["kernel"] == Gaussian(0.1)
    bad = np.full((60, 60), np.inf)
    assert np.isnan(
        held_out_predictions(bad, np.ones((60, 1)), [Split(np.arange(30), np.arange(30, 60))], np.ones(1))[0]
    ).all()


def test_a_factor_that_float32_does_not_have(monkeypatch):
    monkeypatch.setattr(held_out, "LARGE", 30)
    monkeypatch.setattr(held_out, "MANY", np.inf)
    rng = np.random.default_rng(0)
    K, Y = Gaussian(1e-4)(rng.normal(size=(80, 2))), rng.normal(size=(80, 1))
    train, test = np.arange(40), np.arange(40, 80)
    found = held_out_predictions(K, Y, [Split(train, test)], np.array([1e-9]))[0][:, 0]
    expected = K[np.ix_(test, train)] @ np.linalg.solve(K[np.ix_(train, train)] + 1e-9 * np.eye(40), Y[train])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_a_candidate_of_which_all_fits_fail(data):
    X, y = data
    grid = {"solver": ["cholesky", "nonsense"]}
    with pytest.warns(FitFailedWarning):
        search = KernelSearchCV(KernelRidge("gaussian"), grid, cv=3).fit(X, y)
    assert search.best_params_ == {"solver": "cholesky"}
    assert np.isnan(search.cv_results_["mean_test_score"][1])


@pytest.mark.parametrize(
    ("means", "ranks"), [([np.nan] * 3, [1, 1, 1]), ([np.nan, 0.5, np.nan, 0.9, 0.5], [4, 2, 4, 1, 2])]
)
def test_candidates_without_a_score_share_the_last_rank(means, ranks):
    table = as_table([{"alpha": i} for i in range(len(means))], [{"test_score": [mean]} for mean in means])
    assert table["rank_test_score"].tolist() == ranks  # those of GridSearchCV


class Heard:
    def __init__(self):
        self.events = []

    def on_event(self, event):
        self.events.append(event)


def test_progress_and_resumption(data, tmp_path):
    X, y = data
    whole, file = KernelSearchCV(KernelRidge("gaussian"), GRID, cv=3).fit(X, y), tmp_path / "search.json"
    search = KernelSearchCV(KernelRidge("gaussian"), GRID, cv=3, resume=file)
    with pytest.raises(Cancelled), mercer.observe(Cancel(when=file.exists)):
        search.fit(X, y)
    assert 0 < len(json.loads(file.read_text())["found"]) < 9
    heard = Heard()
    with mercer.observe(heard):
        search.fit(X, y)
    done = [event for event in heard.events if isinstance(event, TilesDone) and event.what == "KernelSearchCV"]
    assert done[-1].done == done[-1].total < 9
    assert_close(search.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], rtol=1e-12)
    with pytest.raises(InvalidInput, match="other data"):
        search.fit(X + 1, y)
    file.write_text("nothing")
    with pytest.raises(InvalidInput, match="not the file of a search"):
        search.fit(X, y)


@pytest.mark.parametrize("halving", [None, 3])
def test_a_finished_search_is_read_again(data, tmp_path, halving):
    def search():
        options = {"cv": 3, "halving": halving, "min_rows": 20, "resume": tmp_path / "search.json"}
        return KernelSearchCV(KernelRidge("gaussian"), GRID, **options).fit(*data)

    first, second = search(), search()
    assert first.method_.startswith("shared")
    assert second.method_ == f"none: all scores were in {tmp_path / 'search.json'}"
    assert second.best_params_ == first.best_params_
    np.testing.assert_array_equal(second.predict(data[0]), first.predict(data[0]))


@pytest.mark.parametrize("halving", [None, 2])
@pytest.mark.parametrize("estimator", [SVC(), KernelRidgeClassifier(), KernelRidgeClassifier(tol=1e-9)])
def test_candidates_that_are_written_alike(tmp_path, estimator, halving):
    X, y = load_iris(return_X_y=True)
    bad, good = Function(lambda X, Z: 0 * X @ Z.T), Function(lambda X, Z: (1 + X @ Z.T) ** 2)
    assert repr(bad) == repr(good)
    file = tmp_path / "search.json"
    for _ in range(2):  # the second time from the file
        search = KernelSearchCV(estimator, {"kernel": [bad, good]}, cv=3, halving=halving, min_rows=60, resume=file)
        search.fit(X, y)
        assert search.best_params_["kernel"] is good
        own = search.cv_results_["mean_test_score"]
        assert own[1] > 0.9 > 0.5 > own[0]


@pytest.mark.parametrize("estimator", [KernelRidge("gaussian"), KernelRidge("gaussian", tol=1e-9)])
def test_a_race_finds_what_all_rows_find(estimator):
    X, y = make_friedman1(600, 5, noise=0.3, random_state=0)
    grid = {"kernel__gamma": np.logspace(-3, 1, 5), "alpha": np.logspace(-3, 1, 3)}
    search = KernelSearchCV(estimator, grid, cv=3, halving=3, min_rows=60).fit(X, y)
    full = KernelSearchCV(estimator, grid, cv=3).fit(X, y)
    assert search.best_params_ == full.best_params_
    assert search.best_score_ == pytest.approx(full.best_score_, abs=1e-9)
    table = search.cv_results_
    assert sorted(set(table["n_resources"])) == [66, 200, 600]
    assert table["rank_test_score"][table["iter"] == 2].max() <= (table["iter"] == 2).sum()
    assert table["rank_test_score"].max() == 15


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"halving": 1}, "halving"),
        ({"scoring": ["r2", "neg_max_error"]}, "name the one"),
    ],
)
def test_refusals(data, options, says):
    with pytest.raises(InvalidInput, match=says):
        KernelSearchCV(KernelRidge("gaussian"), GRID, **options).fit(*data)


def several(model, X, y):
    """A function that gives several scores."""
    return {"r2": model.score(X, y), "one": 1.0}


LOGARITHMIC = "neg_mean_squared_log_error"  # refuses predictions below −1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("scoring", "refit"),
    [(LOGARITHMIC, True), (["r2", LOGARITHMIC], "r2"), (several, "r2"), (several, False), (KernelRidge.score, True)],
    ids=["fails", "one of two fails", "a dict", "a dict, no refit", "a function"],
)
def test_a_scorer_that_fails_costs_its_candidate_only(scoring, refit):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, (80, 1))
    y = np.exp(rng.normal(size=80) + X[:, 0])
    grid = {"alpha": [1e-8, 1.0, 30.0], "kernel__gamma": [0.1, 30.0]}
    ours = KernelSearchCV(KernelRidge("gaussian"), grid, scoring=scoring, refit=refit).fit(X, y)
    peer = GridSearchCV(KernelRidge("gaussian"), grid, scoring=scoring, refit=refit).fit(X, y)
    assert set(ours.cv_results_) == set(peer.cv_results_)
    assert ours.multimetric_ == peer.multimetric_
    for name in (key for key in peer.cv_results_ if "_test_" in key):
        np.testing.assert_allclose(ours.cv_results_[name], peer.cv_results_[name], rtol=1e-6)
    if refit:
        assert ours.best_params_ == peer.best_params_


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_scorer_refuses_is_its_error_or_a_score(data):
    X, y = data
    labels = (y > y.mean()).astype(int)
    model = KernelSearchCV(KernelRidgeClassifier("gaussian"), GRID, scoring="roc_auc_ovr").fit(X, labels)
    assert np.isnan(model.cv_results_["mean_test_score"]).all()
    assert "a scorer failed" in model.method_
    with pytest.raises(ValueError, match="Logarithmic"):
        KernelSearchCV(KernelRidge(), GRID, scoring=LOGARITHMIC, error_score="raise").fit(X, -5 - y)
    race = KernelSearchCV(KernelRidge("gaussian"), GRID, scoring=several, refit="r2", halving=2, min_rows=20)
    assert race.fit(X, y).best_score_ == race.cv_results_["mean_test_r2"][race.best_index_]
    with pytest.raises(InvalidInput, match="refit=True with the scorers r2, one"):
        KernelSearchCV(KernelRidge("gaussian"), GRID, scoring=several).fit(X, y)
