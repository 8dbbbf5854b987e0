"""Targets that a regressor cannot take are refused in its own words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.errors import InvalidInput

X = np.random.default_rng(0).normal(size=(20, 2))
TEXTS = np.array(["a", "b"])[np.arange(20) % 2]

INSTEAD = {
    "KernelRidge": "KernelRidgeClassifier",
    "KernelRidgeCV": "KernelRidgeClassifierCV",
    "KernelLMS": "KernelPerceptron",
    "SVR": "SVC",
    "NuSVR": "NuSVC",
    "GaussianProcessRegressor": "GaussianProcessClassifier",
    "OnlineKernelRegressor": "OnlineKernelClassifier",
}


@pytest.mark.parametrize(
    "as_given", [np.asarray, list, lambda y: y.astype(object), pd.Series, lambda y: pd.Series(y, dtype="category")]
)
@pytest.mark.parametrize("name", INSTEAD)
def test_texts_are_refused_with_the_classifier_to_fit(name, as_given):
    assert hasattr(mercer, INSTEAD[name])
    with pytest.raises(InvalidInput, match=rf"^{name}: y has the text 'a'.*or fit {INSTEAD[name]} to classes\.$"):
        getattr(mercer, name)().fit(X, as_given(TEXTS))


def test_the_first_text_that_is_no_number_is_named():
    with pytest.raises(InvalidInput, match="the text 'high'"):
        mercer.KernelRidge().fit(X, ["1.5", "high"] * 10)
    with pytest.raises(InvalidInput, match="KernelPLS: y has the text 'a', which is no number; give numbers"):
        mercer.KernelPLS().fit(X, TEXTS)


@pytest.mark.parametrize("kind", ["S1", object])
def test_bytes_are_texts(kind):
    with pytest.raises(InvalidInput, match="y has the text b'a', which is no number"):
        mercer.KernelRidge().fit(X, np.array([b"a"] * 20, kind))


def test_texts_beside_rows_that_are_no_vectors_are_refused_too():
    with pytest.raises(InvalidInput, match="KernelRidge: y has the text 'a'"):
        mercer.KernelRidge("spectrum(k=1)").fit(list("abab"), list("abab"))


@pytest.mark.parametrize("name", [*INSTEAD, "KernelPLS"])
@pytest.mark.parametrize("as_given", [list, lambda y: np.array(y, object), lambda y: pd.Series(y, dtype=object)])
def test_none_is_no_number(name, as_given):
    y = [None if i == 2 else one for i, one in enumerate(X[:, 0].tolist())]
    with pytest.raises(InvalidInput, match=f"^{name}: Input y contains NaN: it has None; leave such rows out"):
        getattr(mercer, name)().fit(X, as_given(y))


@pytest.mark.parametrize("name", ["KernelRidge", "KernelRidgeCV", "KernelPLS", "GaussianProcessRegressor", "KernelLMS"])
@pytest.mark.parametrize(("scale", "words"), [(1e-165, "targets of .*e-165"), (1e165, r"a target of .*e\+165")])
def test_targets_whose_squares_float64_loses_are_refused(name, scale, words):
    with pytest.raises(InvalidInput, match=f"^{name}: {words}, whose square.* give y in another unit"):
        getattr(mercer, name)().fit(X, X[:, 0] * scale)


def test_none_beside_rows_that_are_no_vectors_is_refused_too():
    with pytest.raises(InvalidInput, match="it has None"):
        mercer.KernelRidge("spectrum(k=1)").fit(list("abab"), [1.0, None, 2.0, 3.0])


def test_numbers_as_texts_are_numbers():
    texts = [str(number) for number in X[:, 0]]
    found = mercer.KernelRidge().fit(X, texts).predict(X)
    np.testing.assert_array_equal(found, mercer.KernelRidge().fit(X, X[:, 0]).predict(X))


CLASSIFIERS = [
    "SVC",
    "NuSVC",
    "KernelLogisticRegression",
    "KernelPerceptron",
    "OnlineKernelClassifier",
    "KernelDiscriminantAnalysis",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "GaussianProcessClassifier",
]


@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_pandas_own_types_are_those_of_numpy(name):
    """scikit-learn makes them float64, in which neighbours above 2⁵³ are one class."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    places = np.digitize(X[:, 0], [-0.4, 0.4])
    model = getattr(mercer, name)(**({"nu": 0.1} if name == "NuSVC" else {}))
    ids = np.array([2**60, 2**60 + 1, 7])[places]
    assert model.fit(X, pd.Series(ids, dtype="Int64")).classes_.tolist() == [7, 2**60, 2**60 + 1]
    assert model.predict(X).dtype == np.int64
    truth = places > 0
    for given in (pd.Series(truth, dtype="boolean"), pd.Series(truth, dtype=object), truth.astype(object)):
        assert model.fit(X, given).classes_.dtype == bool


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    ("y", "words"),
    [
        (pd.Series([1, 2, None] * 20, dtype="Int64"), "20 of 60 labels are missing; leave such rows out"),
        (pd.Series(["a", "b", None] * 20), "20 of 60 labels are missing"),
        (pd.Series(["a", "b", None] * 20, dtype="string"), "20 of 60 labels are missing"),
        (np.array(["a", float("nan"), None] * 20, dtype=object), "40 of 60 labels are missing"),
        (np.array([1, "a", 2.5] * 20, dtype=object), "labels of the types float, int, str; make them of one type"),
        (np.array([True, 1, 0] * 20, dtype=object), "Unknown label type: labels of the types bool, int; give whole"),
    ],
)
def test_what_is_no_label_is_named(name, y, words):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(InvalidInput, match=f"^{name}: .*{words}"):
        getattr(mercer, name)().fit(X, y)


def test_masked_entries_are_refused_in_rows_and_targets():
    """Their values are there, under the mask, and would be fitted."""
    rows = np.ma.masked_array(np.random.default_rng(0).normal(size=(30, 2)), mask=False)
    rows[3, 1] = np.ma.masked
    for X, y in ((rows, np.arange(30.0)), (rows.data, rows[:, 1])):
        with pytest.raises(InvalidInput, match="has masked entries; fill them in"):
            mercer.KernelRidge().fit(X, y)
    with pytest.raises(InvalidInput, match="has masked entries"):
        mercer.KernelPCA(2).fit(rows.data).transform(rows)
