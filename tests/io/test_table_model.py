"""A table model: encoder and estimator together, through a file too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from mercer import SVC, KernelRidge, KernelRidgeClassifier, explain
from mercer.errors import InvalidInput, ModelFileError

pd = pytest.importorskip("pandas")
pytest.importorskip("safetensors")

from mercer.io import SequenceEncoder, Table, TableEncoder, TableModel, load, save  # noqa: E402
from mercer.kernels import Gaussian, Spectrum  # noqa: E402


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "k": rng.choice(["a", "b", "c"], 80)})
    frame.loc[::9, "x"] = np.nan
    return frame


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_round_trip(tmp_path, frame, task):
    if task == "regression":
        model = TableModel(TableEncoder(), KernelRidge("laplace", 0.1), "y").fit(frame, np.arange(80.0))
    else:
        model = TableModel(TableEncoder(), KernelRidgeClassifier("gaussian", 0.1), "y").fit(frame, frame["k"])
    assert model.task == task
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.task == task
    assert again.predict(frame[["k", "x"]]).tolist() == model.predict(frame).tolist()
    assert again.encoder.summary_ == model.encoder.summary_


def test_probabilities_of_a_machine_are_those_of_when_it_was_saved(tmp_path, frame):
    frame["y"] = np.where(frame["k"] == "a", "a", np.where(frame["x"] > 0, "b", "c"))
    fitted = TableModel(TableEncoder(), SVC(1.0, "gaussian"), "y").fit(frame[["x", "k"]], frame["y"])
    model = fitted.with_temperature(0.5)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    P = again.predict_proba(frame)
    assert np.array_equal(P, model.predict_proba(frame))
    assert np.array_equal(again.predict(frame), again.classes_[P.argmax(axis=1)])
    assert np.array_equal(P, model.chances(model.confidences(frame) / 0.5))
    fitted.temperature_ = 0.5  # as models had it before decisions on pairs were coupled
    save(fitted, tmp_path / "earlier")
    earlier, votes = load(tmp_path / "earlier"), fitted.decision_function(frame)
    assert np.array_equal(earlier.predict_proba(frame), softmax(votes / 0.5, axis=1))
    assert np.array_equal(earlier.predict(frame), fitted.estimator.predict(fitted.encoder.transform(frame)))


def test_classes_that_are_numbers_are_scored_as_such(frame):
    labels = np.where(frame["k"] == "a", "1.0", np.where(frame["k"] == "b", "1.5", "2.0"))
    model = TableModel(TableEncoder(), KernelRidgeClassifier("gaussian", 0.1), "y").fit(frame, labels)
    rows = frame["k"] != "b"
    assert model.score(frame[rows], pd.Series(labels[rows]).astype(float)) == 1


def test_an_svmlight_table_may_lack_features_that_are_zero():
    frame = pd.DataFrame({"f1": [0.0, 1.0, 2.0, 0.0], "f2": [1.0, 0.0, 0.0, 3.0]})
    model = TableModel(target="label").fit(frame, [0.0, 1.0, 2.0, 3.0])
    short = Table(pd.DataFrame({"f1": [1.0]}), "a.svm", "svmlight")
    full = pd.DataFrame({"f1": [1.0], "f2": [0.0]})
    assert model.predict(short) == model.predict(full)
    with pytest.raises(InvalidInput, match="f2"):
        model.predict(Table(short.frame, "a.csv"))
    named = TableModel().fit(frame.rename(columns={"f2": "b"}), [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="named columns"):
        named.predict(short)


def test_the_names_of_a_wide_table_are_read_once(monkeypatch):
    """Reading them for each column took minutes for 10 000 columns, and hours for 100 000."""
    wide, reads, names = pd.DataFrame(np.eye(20, 30)).add_prefix("c"), [], Table.columns.fget
    model = TableModel(TableEncoder(), KernelRidge("linear", 0.1), "y").fit(wide, np.arange(20.0))
    monkeypatch.setattr(Table, "columns", property(lambda table: reads.append(table) or names(table)))
    model.predict(Table(wide, "a.csv"))
    assert len(reads) == 1


def test_parts_that_do_not_fit_are_refused(tmp_path, frame):
    model = TableModel(TableEncoder(), KernelRidge(), "y").fit(frame, np.arange(80.0))
    model.encoder = TableEncoder().fit(frame[["x"]])
    with pytest.raises(InvalidInput, match="the encoder makes 2 columns"):
        save(model, tmp_path / "m")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.io.models._refuse_inconsistent", lambda _: None)
        save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="the encoder makes 2 columns and the estimator takes"):
        load(tmp_path / "m")


def test_rows_of_the_fit_are_found_by_those_that_are_kept(frame):
    others = frame.assign(x=frame["x"].fillna(9) + 0.125)
    ways = ({}, {"solver": "nystroem", "n_landmarks": 20, "landmarks": "uniform"})
    for model in (TableModel(TableEncoder(), KernelRidge("laplace", 0.1, **way), "y") for way in ways):
        model.fit(frame, np.arange(80.0))
        assert model.share_of_the_fit(frame) == 1
        assert model.share_of_the_fit(others) == 0
        assert model.share_of_the_fit(pd.concat([frame, others])) >= 0.5


def test_sequences_of_the_fit_are_found_too():
    rng = np.random.default_rng(0)
    sequences = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(60)]
    frame = pd.DataFrame({"sequence": sequences, "x": rng.normal(size=60)})
    names = TableEncoder(keep_text=True).fit(frame).feature_names_out_
    kernel = Spectrum(2).on([names.index("sequence")]) + Gaussian(1.0).on([names.index("x")])
    alone = TableModel(SequenceEncoder(), SVC(kernel=Spectrum(2)), "y").fit(frame[["sequence"]][:40], [0, 1] * 20)
    mixed = TableModel(TableEncoder(keep_text=True), SVC(kernel=kernel), "y").fit(frame[:40], [0, 1] * 20)
    for model in (alone, mixed):
        assert model.share_of_the_fit(frame[:40]) == 1
        assert model.share_of_the_fit(frame[40:]) == 0


def test_scores_and_explanations(frame):
    y = np.arange(80.0)
    model = TableModel(TableEncoder(), KernelRidge("laplace", 0.1, fit_intercept=True), "y").fit(frame, y)
    expected = 1 - np.sum((y - model.predict(frame)) ** 2) / np.sum((y - y.mean()) ** 2)
    assert model.score(frame, y) == pytest.approx(expected)
    assert model.score(frame.assign(y=y)) == pytest.approx(expected)
    assert model.score(Table(frame.assign(y=y), "a.csv")) == pytest.approx(expected)
    dates = pd.to_datetime(y, unit="D")
    for one in (dates, dates.astype("datetime64[ms]"), dates.strftime("%Y-%m-%d")):
        assert model.score(frame, one) == pytest.approx(expected), "dates are days since 1970"
    with pytest.raises(InvalidInput, match="no column 'y'"):
        model.score(frame)
    found = explain(model, frame[:3])
    np.testing.assert_allclose(found.prediction, model.predict(frame[:3]), rtol=1e-9)
    with pytest.raises(AttributeError, match="no attribute 'decision_function'"):
        model.decision_function(frame)


def test_classes_are_compared_by_their_names(frame):
    y = (frame["k"] == "a").astype(int)
    model = TableModel(TableEncoder(), KernelRidgeClassifier("gaussian", 0.1), "y").fit(frame, y)
    assert model.score(frame, y) == model.score(frame, y.astype(float)) == model.score(frame, y.astype(str)) == 1.0
    assert model.decision_function(frame).shape == (80,)
    assert model.classes_.tolist() == [0, 1]
    assert explain(model, frame[:2]).prediction.shape == (2,)


# ---- within scikit-learn's inspections -------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_inspections_of_a_saved_model(tmp_path, task):
    """Frames with numbers, categories and missing values go in, as on the command line."""
    pytest.importorskip("matplotlib")
    from sklearn.base import is_classifier, is_regressor
    from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "noise": rng.normal(size=60), "k": rng.choice(["a", "b", "c"], 60)})
    y = 2 * frame["x"] + (frame["k"] == "a")
    frame.loc[::9, "noise"] = np.nan
    regression = task == "regression"
    estimator = KernelRidge("gaussian", 0.1) if regression else KernelRidgeClassifier("gaussian", 0.1)
    save(TableModel(TableEncoder(), estimator, "y").fit(frame, y if regression else y > 0.5), tmp_path / "m")
    model = load(tmp_path / "m")
    assert (is_regressor(model), is_classifier(model)) == (regression, not regression)

    found = permutation_importance(model, frame, y if regression else y > 0.5, n_repeats=3, random_state=0)
    assert found.importances_mean[0] == max(found.importances_mean) > 0.1
    of_k = partial_dependence(model, frame, ["k"], categorical_features=["k"], kind="average")
    if regression:
        means = [model.predict(frame.assign(k=value)).mean() for value in of_k["grid_values"][0]]
        np.testing.assert_allclose(of_k["average"][0], means, rtol=1e-9)
    display = PartialDependenceDisplay.from_estimator(
        model, frame, ["x", "k", ("x", "noise")], categorical_features=["k"], grid_resolution=4
    )
    assert display.axes_.size >= 3
    assert PartialDependenceDisplay.from_estimator(model, frame, ["x"], kind="both", grid_resolution=4).lines_.size > 60


def test_tags_are_those_of_the_estimator():
    from sklearn.base import is_clusterer, is_outlier_detector

    from mercer import KernelKMeans, KernelPCA, OneClassSVM

    assert is_clusterer(TableModel(estimator=KernelKMeans(2)))
    assert is_outlier_detector(TableModel(estimator=OneClassSVM()))
    assert TableModel(estimator=KernelPCA()).__sklearn_tags__().estimator_type is None
    assert TableModel().__sklearn_tags__().input_tags.string
