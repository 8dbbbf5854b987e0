"""Pipelines of scikit-learn's transformers and our estimators as plain data."""

from __future__ import annotations

import json
import random
import re
import warnings
from contextlib import suppress

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

pd = pytest.importorskip("pandas")
safetensors = pytest.importorskip("safetensors")

from mercer import SVC, KernelRidge, explain, load, save  # noqa: E402
from mercer.errors import InvalidInput, ModelFileError  # noqa: E402
from mercer.io.models import _digest  # noqa: E402

rng = np.random.default_rng(0)
N = 60
X = rng.normal(size=(N, 4))
X[::7, 1] = np.nan
FULL = np.nan_to_num(X)
Y = 2 * FULL[:, 0] + FULL[:, 1]
FRAME = pd.DataFrame(X, columns=list("abcd"))
FRAME["kind"] = rng.choice(["u", "v", "w"], N)
FRAME["order"] = rng.choice(["low", "high"], N)
FRAME["text"] = [f"the {kind} cat {i}" for i, kind in enumerate(FRAME["kind"])]
NUMBERS = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
COLUMNS = ColumnTransformer(
    [
        ("numbers", NUMBERS, ["a", "b"]),
        ("kind", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
        ("order", OrdinalEncoder(), ["order"]),
        ("text", TfidfVectorizer(ngram_range=(1, 2)), "text"),
        ("counts", CountVectorizer(), "text"),
        ("quantiles", QuantileTransformer(n_quantiles=10), ["c"]),
        ("power", PowerTransformer(), slice(3, 4)),
    ]
)


def ridge(*steps):
    return make_pipeline(*steps, KernelRidge("gaussian", 0.1))


CASES = {
    **{
        type(step).__name__: (lambda step=step: ridge(SimpleImputer(), step), X)
        for step in (
            StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), Normalizer(), Binarizer(),
            PowerTransformer(), QuantileTransformer(n_quantiles=10), PolynomialFeatures(), PCA(2), TruncatedSVD(2),
            VarianceThreshold(), FunctionTransformer(), FeatureUnion([("a", StandardScaler()), ("b", PCA(2))]),
        )
    },
    "KNNImputer": (lambda: ridge(KNNImputer()), X),
    "logarithm": (lambda: ridge(SimpleImputer(), FunctionTransformer(np.exp)), X),
    "columns": (lambda: ridge(COLUMNS), FRAME),
    "the rest": (lambda: ridge(ColumnTransformer([("s", StandardScaler(), [0, 2])], remainder="passthrough"),
                               SimpleImputer()), X),
    "chosen by type": (lambda: ridge(ColumnTransformer(
        [("n", NUMBERS, make_column_selector(dtype_include=np.number))])), FRAME),
    "rare ones": (lambda: ridge(OneHotEncoder(min_frequency=5, sparse_output=False)), FRAME[["kind", "order"]]),
    "data frames": (lambda: ridge(SimpleImputer(), StandardScaler().set_output(transform="pandas")),
                    FRAME[list("abcd")]),
    "scaled target": (lambda: TransformedTargetRegressor(KernelRidge("gaussian"), transformer=StandardScaler()), FULL),
    "target by function": (lambda: TransformedTargetRegressor(
        KernelRidge("gaussian"), func=np.exp, inverse_func=np.log, check_inverse=False), FULL),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_round_trip_is_bit_identical(tmp_path, name):
    make, rows = CASES[name]
    model = make().fit(rows, np.abs(Y))
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is type(model)
    assert again.predict(rows).tobytes() == model.predict(rows).tobytes()
    assert re.sub("0x[0-9a-f]+", "", repr(again)) == re.sub("0x[0-9a-f]+", "", repr(model))
    save(again, tmp_path / "m")
    assert load(tmp_path / "m").predict(rows).tobytes() == model.predict(rows).tobytes()


def test_a_classifier_unfitted_ones_and_explanations(tmp_path):
    model = make_pipeline(StandardScaler(), SVC()).fit(FULL, Y > 0)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.decision_function(FULL).tobytes() == model.decision_function(FULL).tobytes()
    assert explain(again, FULL[:1]).prediction.shape == (1,)
    save(ridge(StandardScaler()), tmp_path / "m")
    assert load(tmp_path / "m").fit(FULL, Y).predict(FULL).shape == (N,)


class Derived(StandardScaler):
    """A class of the user's, by the name of none on the list."""


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (make_pipeline(StandardScaler(), Ridge()), "Ridge"),
        (ridge(Derived()), "Derived"),
        (ridge(FunctionTransformer(lambda X: X)), "function"),
        (Pipeline([("r", KernelRidge())], memory="cache"), "memory='cache'"),
        (ridge(TfidfVectorizer(input="filename")), "input='filename'"),
        (ridge(TfidfVectorizer(tokenizer=str.split)), "str.split|method_descriptor|only data"),
    ],
)
def test_what_is_not_on_the_list_is_refused(tmp_path, model, words):
    with pytest.raises(InvalidInput, match=words):
        save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def rewritten(path, change, **header_changes):
    """The file with its model changed, by someone who makes the digest anew."""
    with safetensors.safe_open(path, "numpy") as file:
        header, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    model = json.loads(header["model"])
    change(model)
    text = json.dumps(model)
    header = {**header, "model": text, "sha256": _digest(text, arrays), **header_changes}
    path.write_bytes(safetensors.numpy.save(arrays, header))


def steps_of(model):
    return model["params"]["steps"]["list"]


HOSTILE = {
    "a class that is not listed": lambda m: steps_of(m)[0]["tuple"][1].update(model="SVC_"),
    "a cache of pickles": lambda m: m["params"].update(memory="somewhere"),
    "a function by name": lambda m: steps_of(m)[0]["tuple"][1]["params"].update(copy={"function": "system"}),
    "a mean of another length": lambda m: steps_of(m)[0]["tuple"][1]["state"].update(n_features_in_=3),
    "a mean that is a number": lambda m: steps_of(m)[0]["tuple"][1]["state"].update(mean_=1.0),
    "a method": lambda m: steps_of(m)[0]["tuple"][1]["state"].update(transform=1),
    "a step that is none": lambda m: steps_of(m).append(3),
    "an object dtype of fields": lambda m: steps_of(m)[0]["tuple"][1]["state"].update(scale_={"dtype": "V8"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_changed_pipeline_is_refused(tmp_path, name):
    save(ridge(StandardScaler()).fit(FULL, Y), tmp_path / "m")
    rewritten(tmp_path / "m", HOSTILE[name])
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_words_beyond_the_vocabulary_are_refused(tmp_path):
    """Their columns would be written by native code beyond an array's end."""
    texts = FRAME["text"]
    save(ridge(CountVectorizer()).fit(texts, Y), tmp_path / "m")

    def far(model):
        steps_of(model)[0]["tuple"][1]["state"]["vocabulary_"]["dict"][0][1] = 10**9

    rewritten(tmp_path / "m", far)
    with pytest.raises(ModelFileError, match="does not number its words"):
        load(tmp_path / "m")


def places(value, found):
    """Every container of a JSON value."""
    if isinstance(value, dict | list):
        found.append(value)
        for one in value.values() if isinstance(value, dict) else value:
            places(one, found)
    return found


def mutate(model, draw):
    where = draw.choice([one for one in places(model, []) if one])
    key = draw.choice(list(where)) if isinstance(where, dict) else draw.randrange(len(where))
    others = [None, -1, 10**9, "text", [], {}, {"list": []}, {"array": "0"}, {"array": "1"}, {"float": "nan"}, True]
    if draw.random() < 0.25:
        del where[key]
    else:
        where[key] = draw.choice(others)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.soak)])
def test_mutated_pipelines_raise_errors_and_nothing_else(tmp_path, count):
    draw = random.Random(0)
    save(ridge(COLUMNS).fit(FRAME, Y), tmp_path / "m")
    original = (tmp_path / "m").read_bytes()
    refused = 0
    for _ in range(count):
        (tmp_path / "m").write_bytes(original)
        rewritten(tmp_path / "m", lambda model: mutate(model, draw))
        try:
            again = load(tmp_path / "m")
        except ModelFileError:
            refused += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(Exception):  # scikit-learn's own, of parameters that do not go together
                again.predict(FRAME[:3])
    assert refused > count / 4


def test_another_version_of_scikit_learn_is_told(tmp_path):
    save(ridge(StandardScaler()).fit(FULL, Y), tmp_path / "m")
    rewritten(tmp_path / "m", lambda _: None, **{"scikit-learn": "0.1"})
    with pytest.warns(UserWarning, match=r"saved with scikit-learn 0\.1"):
        load(tmp_path / "m")
    save(KernelRidge().fit(FULL, Y), tmp_path / "m")
    rewritten(tmp_path / "m", lambda _: None, **{"scikit-learn": "0.1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path / "m")
