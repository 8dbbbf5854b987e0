"""`mercer compare`: its intervals, its calibration error, that choices see training rows only, and resuming."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from scipy.stats import ttest_rel  # noqa: E402
from sklearn.datasets import load_diabetes, load_iris  # noqa: E402

from mercer.cli import app as commands  # noqa: E402
from mercer.cli import fitting  # noqa: E402
from mercer.cli.compare import trials  # noqa: E402
from mercer.cli.compare.leaderboard import calibration_error, corrected_interval, leaderboard  # noqa: E402
from mercer.cli.compare.trials import GUESSING, LINEAR, Candidate, Trials  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.io import load  # noqa: E402

QUICK = ["--kernel", "gaussian(gamma=0.2)", "--folds", 3, "--repeats", 1, "--json"]


def mercer(*args):
    return testing.CliRunner().invoke(commands.app, [str(arg) for arg in args])


def result(*args):
    done = mercer(*args)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    load_iris(as_frame=True).frame.to_csv(folder / "iris.csv", index=False)
    load_diabetes(as_frame=True).frame.iloc[:200].to_csv(folder / "diabetes.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def compared(folder):
    out = folder / "winner.mercer"
    return result("compare", folder / "iris.csv", "--target", "target", *QUICK, "--methods", "ridge,svm,discriminant",
                  "--out", out)  # fmt: skip


def test_the_leaderboard_has_intervals_costs_and_calibration(compared, folder):
    rows = compared["leaderboard"]
    assert {row["method"] for row in rows} == {"ridge", "svm", "discriminant", "guessing"}
    assert [row["mean"] for row in rows] == sorted((row["mean"] for row in rows), reverse=True)
    assert rows[0]["behind"] is None
    assert rows[0]["name"] == compared["winner"]
    for row in rows:
        assert row["low"] <= row["mean"] <= row["high"]
        assert np.mean(row["scores"]) == pytest.approx(row["mean"])
        assert len(row["scores"]) == 3
        if row["method"] != GUESSING:
            assert 0 <= row["calibration_error"] < 0.5
            assert 0 <= row["brier"] < 0.5
            assert row["fit_seconds"] > 0 < row["predict_seconds"]
    assert rows[-1]["mean"] == pytest.approx(1 / 3, abs=0.02)
    assert rows[0]["mean"] > 0.9
    assert compared["winner"] in compared["recommendation"]
    model = load(folder / "winner.mercer")
    assert model.score(load_iris(as_frame=True).frame) > 0.9
    assert "nested cross-validation" in model.notes[-1]


def test_a_regression_has_no_calibration_and_shows_a_table(folder):
    done = mercer("compare", folder / "diabetes.csv", "--target", "target", *QUICK[:-1])
    assert done.exit_code == 0, done.output
    assert "R² (95% interval)" in done.stdout
    assert "calibration" not in done.stdout
    assert "ridge, linear" in done.stdout
    assert "3 folds, drawn once, on 200 rows" in done.stdout


def test_the_interval_is_the_corrected_one_of_the_paired_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 10))
    plain = ttest_rel(a, b).confidence_interval(0.95)
    found = corrected_interval(a - b, ratio=0.0)  # without overlap it is the paired t-test
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    wider = corrected_interval(a - b, ratio=1 / 4)
    assert (wider.high - wider.low) / (found.high - found.low) == pytest.approx(np.sqrt((1 / 10 + 1 / 4) * 10))


def test_a_difference_that_is_rounding_is_0():
    a, b = np.array([0.1, 0.2, 0.3, 0.7]), np.array([0.2, 0.7, 0.1, 0.3])
    assert (a - b).mean() != 0
    trial = [Trials(Candidate(name), scores, kernels=("k",) * 4) for name, scores in (("svm", a), ("ridge", b))]
    board = leaderboard([*trial, Trials(Candidate(GUESSING), np.zeros(4))], 100, 4, 1, "regression")
    behind = next(row.behind for row in board.rows if row.behind is not None)
    assert behind.mean == 0
    assert behind.low < -0.1 < 0.1 < behind.high


def test_folds_without_an_error_have_an_interval_all_the_same():
    perfect = Trials(Candidate("svm"), np.ones(10), kernels=("k",) * 10)
    board = leaderboard([perfect, Trials(Candidate(GUESSING), np.full(10, 0.5))], 100, 5, 2, "classification")
    assert 0.93 < board.winner.score.low < 0.99
    assert board.winner.score.high == 1.0


def test_folds_with_the_same_difference_have_an_interval_all_the_same():
    """One row of 15 in both folds: it may be chance."""
    hits = {"svm": 13, "ridge": 12, GUESSING: 8}
    found = [Trials(Candidate(name), np.full(2, count / 15), kernels=("k",) * 2) for name, count in hits.items()]
    board = leaderboard(found, 30, 2, 1, "classification")
    behind = board.rows[1].behind
    assert behind.low < 0 < behind.high
    spread = np.sqrt((1 / 2 + 1) * ((2 + 1) / 32 - (2 / 32) ** 2) / 15)
    assert behind.high - behind.mean == pytest.approx(12.706 * spread, rel=1e-4)


def test_a_kernel_that_every_fold_chose_to_be_linear_is_a_linear_model():
    found = [Trials(Candidate("svm"), np.array([0.8, 0.9, 0.85, 0.85]), kernels=("Linear()",) * 4),
             Trials(Candidate("ridge", LINEAR), np.array([0.79, 0.9, 0.85, 0.85]), kernels=("Linear()",) * 4),
             Trials(Candidate(GUESSING), np.full(4, 0.4))]  # fmt: skip
    board = leaderboard(found, 1000, 4, 1, "classification")
    assert board.advice.endswith("no kernel does better than a linear model")


def test_the_calibration_error_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=200)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]
    found = trials._calibration(P, np.array(["a", "b", "c"]), y)
    confidence, hits = P.max(axis=1), np.array(["a", "b", "c"])[P.argmax(axis=1)] == y
    edges = np.digitize(confidence, np.linspace(0, 1, 11)[1:-1])
    expected = sum(
        abs(confidence[edges == b].mean() - hits[edges == b].mean()) * np.mean(edges == b) for b in np.unique(edges)
    )
    assert calibration_error(found["bins"].reshape(3, -1)) == pytest.approx(expected)
    indicators = (y[:, None] == ["a", "b", "c"]).astype(float)
    assert found["brier"][0] == pytest.approx(np.mean(np.sum((P - indicators) ** 2, axis=1)))


def test_the_choices_of_a_fold_see_its_training_rows_only(folder, monkeypatch):
    data = fitting.prepare(_table(folder / "diabetes.csv"), "target", "auto", 0, False)
    seen = []
    monkeypatch.setattr(trials, "choose", lambda part, *rest: seen.append(part) or fitting.choose(part, *rest))
    trials.trials(data, [Candidate("ridge", "gaussian(gamma=0.2)")], 4, 1, None, 0, None)
    assert len(seen) == 4
    assert sum(part.held.sum() for part in seen) == len(data.y)
    for part in seen:
        frame = part.training_frame
        again = part.encoder.transform(frame)
        np.testing.assert_allclose(again.mean(axis=0), 0, atol=1e-9)  # standardised by these rows, not by all
        assert len(frame) == (~part.held).sum()


def _table(path):
    from mercer.io import read_table

    return read_table(path)


def test_it_goes_on_from_the_scores_in_a_file(folder, tmp_path, monkeypatch):
    given = ["compare", folder / "diabetes.csv", "--target", "target", *QUICK, "--resume", tmp_path / "scores.json"]
    first = result(*given, "--methods", "ridge")
    tried = []
    monkeypatch.setattr(trials, "_trial", lambda *args: tried.append(args[2].name) or _own(*args))
    again = result(*given, "--methods", "ridge,svm")
    assert set(tried) == {"svm"}
    scores = {row["name"]: row["scores"] for row in again["leaderboard"]}
    assert all(scores[row["name"]] == row["scores"] for row in first["leaderboard"])
    monkeypatch.setattr(trials, "_encoded_anew", None)  # of folds that are done
    assert result(*given, "--methods", "ridge,svm")["leaderboard"] == again["leaderboard"]
    other = mercer(*given, "--seed", 1)
    assert other.exit_code == 2
    assert "is of other data" in other.stderr


_own = trials._trial


def test_scores_of_columns_that_are_read_otherwise_are_of_other_data(tmp_path):
    words = ["red shoes", "blue hats", "red hats", "blue shoes"]
    frame = pd.DataFrame({"a": np.arange(40.0), "t": np.resize(words, 40), "y": np.resize(["p", "q", "q"], 40)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = ["compare", tmp_path / "t.csv", "--target", "y", *QUICK, "--methods", "ridge", "--resume", tmp_path / "s"]
    assert mercer(*given).exit_code == 0
    refused = mercer(*given, "--text", "t")
    assert refused.exit_code == 2
    assert "is of other data" in refused.stderr


def test_scores_that_were_changed_by_hand_are_refused(folder, tmp_path):
    file = tmp_path / "scores.json"
    given = ["compare", folder / "diabetes.csv", "--target", "target", *QUICK, "--methods", "ridge", "--resume", file]
    assert mercer(*given).exit_code == 0
    changed = json.loads(file.read_text())
    next(iter(changed["found"].values()))["test_score"] = [7.5]
    file.write_text(json.dumps(changed))
    refused = mercer(*given)
    assert refused.exit_code == 2
    assert "its checksum does not fit" in refused.stderr


@pytest.mark.parametrize(
    ("difference", "line", "words"),
    [
        (0.0, 0.895, "a linear model (0.8950) is not measurably worse"),
        (0.0, 0.5, "logistic (0.9000) is not measurably worse and 10 times as fast"),
        (0.2, 0.5, "take svm: accuracy"),
    ],
)
def test_the_advice_names_what_does_as_well(difference, line, words):
    noise = np.tile([0.01, -0.01], 5)

    def trial(name, kernel, mean, seconds, sign):
        return Trials(Candidate(name, kernel), mean + sign * noise, seconds, kernels=("k",) * 10)

    found = [trial("svm", None, 0.901, 10, 1), trial("logistic", None, 0.9 - difference, 1, -1),
             trial("ridge", LINEAR, line, 1, -1), Trials(Candidate(GUESSING), np.full(10, 0.4))]  # fmt: skip
    assert words in leaderboard(found, 1000, 5, 2, "classification").advice


def test_noise_is_not_sold(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "y"]).to_csv(tmp_path / "noise.csv", index=False)
    found = result("compare", tmp_path / "noise.csv", "--target", "y", *QUICK, "--methods", "ridge")
    assert "better than guessing" in found["recommendation"]
    assert "the columns say little about the target" in found["recommendation"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--methods", "svm,forest"], "'forest' is not a method"),
        (["--methods", "logistic"], "logistic is not for a regression; for a regression choose ridge, svm or gp"),
        (["--methods", ","], "name some"),
        (["--kernel", "nonsense"], "nonsense"),
        (["--folds", "20", "--rows", "40"], "40 rows for 20 folds"),
    ],
)
def test_what_is_wrong_is_one_line(folder, options, words):
    done = mercer("compare", folder / "diabetes.csv", "--target", "target", *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_key_of_kept_scores_is_of_all_of_a_table(tmp_path):
    frame, path = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), tmp_path / "scores"

    def ledger(frame):
        how = {"texts": [], "table": SimpleNamespace(marks={}), "encoder": SimpleNamespace(get_params=dict)}
        table = SimpleNamespace(frame=frame, y=np.arange(2.0), task="regression", **how)
        return trials._ledger(table, [], [(None, np.arange(2))], path, 0)

    first = ledger(frame)
    first.put("0 ridge", {"score": [1.0]})
    first.save()
    assert ledger(frame.copy()).get("0 ridge") == {"score": [1.0]}
    swapped = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    for other in (frame.assign(a=[1.0, 3.0]), frame.assign(b=["x", "z"]), frame.rename(columns={"a": "c"}), swapped):
        with pytest.raises(InvalidInput, match="other data"):
            ledger(other)
