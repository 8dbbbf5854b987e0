"""Every estimator within scikit-learn's searches, ensembles, columns and inspections, and with its metadata."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, StackingClassifier, StackingRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import mercer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def scoring(model: Any) -> Any:
    return None if hasattr(model, "score") else lambda model, X, y=None: float(len(vars(model)))


def cross_validated(model: Any, X: Any, y: Any) -> Any:
    return cross_val_score(model, X, y, cv=2, scoring=scoring(model), error_score="raise")


def bagged(model: Any, X: Any, y: Any) -> Any:
    ensemble = BaggingClassifier if is_classifier(model) else BaggingRegressor
    return ensemble(model, 3, random_state=0).fit(X, y).predict(X)


def stacked(model: Any, X: Any, y: Any) -> Any:
    kind, other = (StackingClassifier, LogisticRegression()) if is_classifier(model) else (StackingRegressor, Ridge())
    return kind([("first", model), ("second", other)], cv=2).fit(X, y).predict(X)


def calibrated(model: Any, X: Any, y: Any) -> Any:
    probabilities = CalibratedClassifierCV(model, cv=2).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    return probabilities


def permuted(model: Any, X: Any, y: Any) -> Any:
    found = permutation_importance(model.fit(X, y), X, y, n_repeats=2, random_state=0).importances
    assert found.shape == (X.shape[1], 2)
    return found


def averaged(model: Any, X: Any, y: Any) -> Any:
    found = partial_dependence(model.fit(X, y), X, [0], grid_resolution=4)
    values, average = found["grid_values"][0], found["average"]
    if is_regressor(model):
        moved = np.column_stack([np.full(len(X), values[-1]), X[:, 1:]])
        np.testing.assert_allclose(average[0, -1], model.predict(moved).mean(), rtol=1e-9)
    return average


def by_columns(model: Any, X: Any, y: Any) -> Any:
    frame = pd.DataFrame(X, columns=list("abc"))
    parts = ColumnTransformer([("own", model, ["a", "b"]), ("other", StandardScaler(), ["c"])])
    table = parts.set_output(transform="pandas").fit_transform(frame, y)
    assert table.columns[0].startswith("own__")
    assert table.columns[-1] == "other__c"
    alone = clone(model).fit(frame[["a", "b"]], y)
    np.testing.assert_allclose(table.to_numpy()[:, :-1], alone.transform(frame[["a", "b"]]), atol=1e-6)
    return table.to_numpy(float)


TOOLS = [cross_validated, bagged, stacked, calibrated, permuted, averaged, by_columns]


def serves(tool: Any, example: Any) -> bool:
    model = example.estimator
    learner = (is_classifier(model) or is_regressor(model)) and np.ndim(example.first[1]) == 1
    if tool is cross_validated:
        return True
    if tool is calibrated:
        return is_classifier(model)
    return example.table and (hasattr(model, "transform") if tool is by_columns else learner)


def test_each_estimator_within_scikit_learn(of_each_class):
    for tool in TOOLS:
        if serves(tool, of_each_class):
            assert np.all(np.isfinite(tool(of_each_class.new, *of_each_class.first))), tool.__name__


def test_a_search_on_two_processes(each_class):
    """One test, because the processes take seconds to start."""
    for one in each_class:
        model, data = one.new, one.first
        grid = {"memory": [None, "1GB"]} if "memory" in model.get_params() else {}
        search = GridSearchCV(model, grid, cv=2, n_jobs=2, error_score="raise", scoring=scoring(model)).fit(*data)
        check_is_fitted(search.best_estimator_)
        assert len(search.cv_results_["params"]) == 2 ** len(grid)
    assert len(each_class) > 28


# ---- metadata --------------------------------------------------------------------------------------------------------


def test_sample_weights_are_routed(each_weighted):
    """A pipeline hands weights on to the estimator that requested them, which leave out the first rows."""
    model, (X, y) = each_weighted.new, each_weighted.first
    weights = np.r_[np.full(6, 1e-12), np.ones(len(X) - 6)]
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = clone(model).set_fit_request(sample_weight=True)
        if hasattr(asked, "set_score_request"):
            asked.set_score_request(sample_weight=False)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asked)
        routed = pipeline.fit(X, y, sample_weight=weights)[-1]
        rows = StandardScaler().fit_transform(X)
        direct, plain = clone(model).fit(rows, y, sample_weight=weights), clone(model).fit(rows, y)
    state = {name: value for name, value in vars(routed).items() if name.endswith("_") and np.ndim(value) in (1, 2)}
    assert state
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(direct, name), err_msg=name)
    assert any(not np.array_equal(value, getattr(plain, name, None)) for name, value in state.items())


@pytest.mark.parametrize("search", [GridSearchCV, mercer.KernelSearchCV])
def test_searches_route_weights(search):
    X = np.random.default_rng(0).standard_normal((40, 2))
    y, weights = np.sin(X[:, 0]), np.random.default_rng(1).uniform(0.1, 3.0, 40)
    with config_context(enable_metadata_routing=True):
        model = mercer.KernelRidge("gaussian(gamma=0.5)").set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        one = search(model, {"alpha": [0.01, 1.0]}, cv=2)
        scores = cross_validate(one, X, y, params={"sample_weight": weights}, cv=2, error_score="raise")
    found = []
    for train, test in ((range(20, 40), range(20)), (range(20), range(20, 40))):
        inner = GridSearchCV(mercer.KernelRidge("gaussian(gamma=0.5)"), {"alpha": [0.01, 1.0]}, cv=2)
        found.append(inner.fit(X[train], y[train], sample_weight=weights[train]).score(X[test], y[test]))
    np.testing.assert_allclose(scores["test_score"], found, rtol=1e-6)


# ---- names of columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_transformers_name_their_columns(each_transformer, library):
    model, (X, y) = each_transformer.new, each_transformer.first
    frame = pd.DataFrame(X, columns=list("abc"))
    table = model.set_output(transform=library).fit(frame, y).transform(frame)
    assert type(table).__module__.partition(".")[0] == library
    assert list(table.columns) == list(model.get_feature_names_out())
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"a": "z"}))
