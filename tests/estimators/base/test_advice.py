"""Warnings and notes of estimators name parameters that the estimator has, and columns of the rows."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from mercer import (
    SVC,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLMS,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelPLS,
    KernelRidge,
    KernelRidgeCV,
    NuSVC,
    OneClassSVM,
    OnlineKernelRegressor,
)
from mercer.errors import ConvergenceWarning, InvalidInput
from mercer.estimators.base.advice import advice, outweighing_column
from mercer.kernels import Gaussian
from mercer.points import DensePoints
from mercer.solvers import Status

SHORT = [
    (KernelPerceptron(max_iter=3), ["raise max_iter (now 3)", "loosen tol (now 0.001)", "tol=None"]),
    (KernelPerceptron(method="averaged", max_iter=2), ["raise max_iter (now 2)", "tol=None"]),
    (KernelLMS("gaussian", max_iter=3), ["raise max_iter (now 3)", "tol=None"]),
    (KernelLogisticRegression(max_iter=1), ["raise max_iter (now 1)", "loosen tol (now 1e-10)"]),
    (SVC(solver="nystroem", max_iter=1, C=1e3, tol=1e-9), ["raise max_iter (now 1)"]),
    (KernelPerceptron(step_size=50.0), ["lower step_size (now 50.0)"]),
    (KernelLMS("gaussian", step_size=50.0), ["lower step_size (now 50.0)"]),
    (OnlineKernelRegressor("gaussian", method="qklms", step_size=30.0), ["lower step_size (now 30.0)"]),
]


@pytest.mark.parametrize(("estimator", "says"), SHORT, ids=lambda x: repr(x) if hasattr(x, "fit") else "")
def test_a_warning_names_the_parameters_of_who_warns(estimator, says):
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X[:120]), y[:120]
    with pytest.warns(ConvergenceWarning) as caught:
        estimator.fit(X, y > 100 if hasattr(estimator, "class_weight") else y / 100)
    text = str(caught[-1].message)
    assert all(part in text for part in says), text
    assert "solution.state" not in text
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        if "tol=None" in says:  # the advice works
            estimator.set_params(tol=None).fit(X, y > 100 if hasattr(estimator, "class_weight") else y / 100)


def test_a_penalty_is_called_by_its_name():
    X = np.zeros((6, 1))
    with pytest.raises(InvalidInput, match=r"raise alpha \(now 0\)"):
        KernelRidge("linear", alpha=0).fit(X, np.arange(6.0))
    model = KernelDiscriminantAnalysis(delta=0.5)
    assert "raise delta (now 0.5)" in model._advice(Status.BREAKDOWN)


def test_only_what_is_there_and_helps_is_named():
    assert advice(Status.MAX_STEPS, {"max_iter": -1, "tol": 0.1}).endswith("tolerance; loosen tol (now 0.1)")
    assert advice(Status.MAX_STEPS, {"alpha": 2, "tol": None}).endswith("tolerance; raise alpha (now 2)")
    assert advice(Status.DIVERGED, {"step_size": "auto"}).endswith("; lower step_size")
    for status in Status:
        assert advice(status, {}) == status.advice
    assert advice(Status.NOT_FINITE, {"tol": 1, "alpha": 1}) == Status.NOT_FINITE.advice


def test_a_parameter_that_has_its_default_is_named_in_the_report():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    cases = [
        (SVC(), "C=1.0"),
        (NuSVC(), "nu=0.5"),
        (KernelRidge(), "alpha=1.0"),
        (KernelRidgeCV(), "kernel='gaussian'"),
        (KernelLogisticRegression(), "alpha=0.1"),
        (KernelPLS(), "n_components=2"),
        (OnlineKernelRegressor(), "alpha=0.1"),
    ]
    for model, named in cases:
        notes = [note for note in model.fit(X, y).report_.notes if "KernelSearchCV" in note]
        assert len(notes) == 1
        assert notes[0].startswith(named)
        assert "default" in notes[0]
    for model in (
        SVC(C=2.0),
        SVC(kernel="gaussian(gamma=0.5)"),
        KernelRidge(alpha=[1.0]),
        KernelRidgeCV(["gaussian", "linear"]),
    ):
        assert not any("KernelSearchCV" in note for note in model.fit(X, y).report_.notes)


def test_one_column_that_outweighs_most_others_is_named_in_the_report():
    X = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 200.0, 2.0]
    y, noted = np.arange(60) % 2, "column 1 is .* times that of most columns, .*; standardise"

    def said(model, rows=X):
        return [note for note in model.fit(rows, y).report_.notes if re.search("times that of most columns", note)]

    laplace = SVC(kernel="laplace(gamma='median')")
    for model in (SVC(), KernelRidge(), KernelPCA(2, "gaussian"), KernelKMeans(2), OneClassSVM(), laplace):
        assert [bool(re.search(noted, note)) for note in said(model)] == [True], model
    assert "'b'" in said(SVC(), pd.DataFrame(X, columns=["a", "b", "c"]))[0]
    rare = (np.arange(60) == 7) * 9e-3  # an indicator, which a constant and another unit do not make remarkable
    for rows in (X / X.std(axis=0), np.c_[X[:, 0], rare, rare[::-1], 0.1 + 0 * rare], X[:, 1:2]):
        assert not said(SVC(), rows)
    assert not outweighing_column(Gaussian(), DensePoints(X * 1e200))
    assert not said(SVC(kernel="gaussian(gamma=0.5)"))


def test_slow_gradient_descent_names_the_rule_that_is_quicker():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning, match='or choose method="averaged", max_iter=50'):
        KernelPerceptron(max_iter=3).fit(X, y)
    with pytest.warns(ConvergenceWarning) as caught:
        KernelPerceptron(method="averaged", max_iter=3).fit(X, y)
    assert 'averaged", max_iter' not in str(caught[0].message)
