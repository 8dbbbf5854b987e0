"""What has seen a data frame at the fit takes a data frame afterwards, in every method, without a warning."""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.datasets import load_iris

import mercer
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Spectrum

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


def mixed_frame():
    rng = np.random.default_rng(0)
    text = ["ACGT", "CCGT", "ACCC", "GGTT"] * 3
    return pd.DataFrame({"s": text, "a": rng.normal(size=12), "b": rng.normal(size=12)})


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "model",
    [
        mercer.KernelRidge(),
        mercer.SVC(),
        mercer.KernelPCA(2),
        mercer.KernelLMS(),
        mercer.OnlineKernelRegressor(),
        mercer.KernelKMeans(2, random_state=0),
        mercer.KernelRidgeCV(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_columns_of_mixed_rows_have_names_and_an_order(model, library):
    frame = mixed_frame()
    target = frame["a"] if is_regressor(model) else [0, 1] * 6
    if library == "polars":
        frame = pl.from_pandas(frame)
    kernel = Spectrum(2).on(["s"]) + Gaussian(0.5).on(["a"])
    model = clone(model).set_params(kernel=kernel).fit(frame, target)
    output = model.transform if hasattr(model, "transform") else model.predict
    by_number = clone(model).set_params(kernel=Spectrum(2).on([0]) + Gaussian(0.5).on([1])).fit(frame, target)
    assert list(model.feature_names_in_) == ["s", "a", "b"]
    assert np.array_equal(output(frame), getattr(by_number, output.__name__)(frame))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        output(frame[["s", "b", "a"]])
    with pytest.raises(ValueError, match="now missing"):
        output(frame[["s", "a"]])
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            model.partial_fit(frame[["s", "b", "a"]], target)


def test_mixed_rows_of_other_orders_have_no_kernel_values():
    frame, kernel = mixed_frame(), Spectrum(2).on([0]) + Gaussian(0.5).on([1])
    assert np.array_equal(kernel(frame, frame[:3]), kernel(frame)[:, :3])
    for values in (kernel, lambda X, Z: mercer.KernelOperator(kernel, X, Z)):
        with pytest.raises(InvalidInput, match="order"):
            values(frame, frame[["s", "b", "a"]])


def test_the_second_view_has_an_order_too():
    frame, kernel = mixed_frame(), Spectrum(2).on(["s"]) + Gaussian(0.5).on(["a"])
    model = mercer.KernelCCA(1, kernel=kernel).fit(frame, frame)
    assert (model.n_features_y_, model.feature_names_y_) == (3, ["s", "a", "b"])
    with pytest.raises(InvalidInput, match="order"):
        model.score(frame, frame[["s", "b", "a"]])


def test_a_frame_of_several_columns_is_no_list_of_sequences():
    frame = pd.DataFrame({"id": ["s1", "s2"], "seq": ["ACGT", "AAGT"]})
    with pytest.raises(InvalidInput, match=r"Spectrum: a data frame with 2 columns; give .*df\['seq'\]"):
        mercer.SVC(kernel=Spectrum(2)).fit(frame, [0, 1])
    assert np.array_equal(Spectrum(2)(frame[["seq"]]), Spectrum(2)(list(frame.seq)))
