"""What has seen a data frame at the fit takes a data frame afterwards, in every method, without a warning."""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris

import mercer

METHODS = (
    "predict",
    "transform",
    "score",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "score_samples",
    "reconstruction_error",
    "hotelling_t2",
    "spe",
)
SETTINGS = {
    "KernelPCA": [{"n_components": 2}, {"n_components": 2, "fit_inverse_transform": True}],
    "KernelPerceptron": [{}, *({"method": one, "max_iter": 5} for one in ("plain", "voted", "averaged"))],
    "KernelRidge": [{}, {"solver": "nystroem"}],
    "KernelSearchCV": [{"estimator": mercer.SVC(), "param_grid": {"C": [1.0]}}],
    "NuSVC": [{"nu": 0.2}, {"nu": 0.2, "probability": True}],
    "SVC": [{}, {"probability": True}, {"solver": "nystroem"}, {"multi_class": "ovr"}, {"break_ties": True}],
}
"""Options by which an estimator's methods take several ways; all others are tried as they come."""


def estimators():
    for name in mercer.__all__:
        found = getattr(mercer, name)
        if inspect.isclass(found) and issubclass(found, BaseEstimator):
            for given in SETTINGS.get(name, [{}]):
                yield pytest.param(found, given, id=f"{name}-{'-'.join(map(str, given.values()))}")


def outputs(model, X, y):
    """What each method that the model has returns, without a warning."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in METHODS:
            if name == "reconstruction_error" and not getattr(model, "fit_inverse_transform", True):
                continue
            if hasattr(model, name):
                method = getattr(model, name)
                found[name] = np.asarray(method(X, y) if name == "score" else method(X))
    return found


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("estimator", "given"), list(estimators()))
def test_every_method_takes_the_frames_of_the_fit(estimator, given, classes):
    X, labels = load_iris(return_X_y=True)
    X, y = X[::2], np.minimum(labels[::2], classes - 1)
    second = X if estimator is mercer.KernelCCA else y
    names = ["a", "b", "c", "d"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, which is not what this asks
        expected = outputs(estimator(**given).fit(X, second), X, second)
        frames = pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)
        models = [estimator(**given).fit(frame, second) for frame in frames]
    assert expected
    for frame, model in zip(frames, models, strict=True):
        assert list(model.feature_names_in_) == names
        found = outputs(model, frame, second)
        assert found.keys() == expected.keys()
        for name, values in found.items():
            np.testing.assert_allclose(values, expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
