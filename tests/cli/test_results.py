"""Results for programs and for people: JSON, probabilities, AUC, confusions, digits, and the task by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from sklearn.metrics import log_loss, roc_auc_score  # noqa: E402

from mercer.cli import app as commands  # noqa: E402
from mercer.cli.output.show import _left_behind  # noqa: E402
from mercer.io import load, save  # noqa: E402
from mercer.kernels import Gaussian, Laplace, Linear  # noqa: E402
from mercer.numerals import digits, ratio  # noqa: E402
from mercer.select import cross_validate_ridge  # noqa: E402

QUICK = ["--kernel", "gaussian(gamma=0.5)", "--alpha", "0.1"]


def mercer(*args):
    return testing.CliRunner().invoke(commands.app, [str(arg) for arg in args])


def result(*args, status=0):
    """The one JSON object on standard output."""
    done = mercer(*args, "--json")
    assert done.exit_code == status, done.output
    assert done.stdout.count("\n") == 1, done.stdout
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose columns are targets of each kind, and models of two of them."""
    folder = tmp_path_factory.mktemp("results")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 2))
    z = x[:, 0] + 0.4 * rng.normal(size=240)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "price": 10 * z})
    frame["kind"] = np.where(z > 0, "pos", "neg")
    frame["three"] = np.digitize(z, [-0.6, 0.6]) - 1  # as texts, -1 and 0 and 1 are in another order than as numbers
    frame["count"] = np.clip((3 * z + 9).astype(int), 0, 30)
    frame["many"] = [f"c{i % 20:02d}" for i in range(240)]
    frame.to_csv(folder / "t.csv", index=False)
    for target in ("price", "kind"):
        done = fit(folder, target, "--out", folder / target)
        assert done.exit_code == 0, done.output
    return folder


def fit(folder, target, *options, command="fit"):
    return mercer(command, folder / "t.csv", "--target", target, "--columns", "a,b", *QUICK, *options)


def test_the_result_of_a_fit_is_json(folder):
    found = result("fit", folder / "t.csv", "--target", "kind", "--columns", "a,b", *QUICK, "--out", folder / "m")
    assert (found["task"], found["rows"], found["held_out"], found["columns"]) == (
        "classification",
        240,
        60,
        ["a", "b"],
    )
    assert (found["kernel"], found["alpha"], found["search"]) == ("Gaussian(gamma=0.5)", 0.1, None)
    assert found["score"]["accuracy"] > 0.8 > found["guessing"]["accuracy"]
    assert np.sum(found["confusion"]["counts"]) == 60
    assert found["model"] == str(folder / "m")
    assert load(folder / "m").task == "classification"
    chosen = result("fit", folder / "t.csv", "--target", "price", "--kernel", "gaussian(gamma=0.5)", "--columns", "a")
    means = [one["mean"] for one in chosen["search"]["candidates"]]
    assert len(means) == 13
    assert means[0] == max(means)
    assert chosen["confusion"] is None


def test_the_result_of_tuning_is_json(folder):
    found = result("tune", folder / "t.csv", "--target", "price", "--columns", "a", "--kernel", "gaussian(gamma=0.5)")
    assert found["search"]["candidates"][0]["alpha"] == found["alpha"]
    assert found["score"]["R²"] > 0.5
    assert found["option"].startswith("--kernel ")


def test_the_result_of_predicting_and_of_evaluating_is_json(folder, tmp_path):
    found = result("predict", folder / "kind", folder / "t.csv", "--proba")
    columns = found["predictions"]
    assert list(columns) == ["kind", "P(neg)", "P(pos)"]
    assert found["rows"] == len(columns["kind"]) == 240
    assert any("does not use" in note for note in found["notes"])
    saved = result("predict", folder / "kind", folder / "t.csv", "--out", tmp_path / "p.csv")
    assert saved["predictions"] == {}
    assert saved["out"] == str(tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 240
    scored = result("evaluate", folder / "price", folder / "t.csv")
    assert set(scored["score"]) == {"R²", "MAE", "RMSE"}


def test_columns_of_the_table_are_copied_before_the_predictions(folder, tmp_path):
    table = pd.read_csv(folder / "t.csv")
    table.insert(0, "house, number", [f"n{row}" if row % 7 else None for row in range(len(table))])
    table.to_csv(tmp_path / "named.csv", index=False)
    keep = 'a, "house, number"'
    found = result("predict", folder / "price", tmp_path / "named.csv", "--keep", keep)
    columns = found["predictions"]
    assert list(columns) == ["a", "house, number", "price"]
    assert columns["a"] == pytest.approx(table["a"])
    assert columns["house, number"] == table["house, number"].fillna("").tolist()
    assert columns["price"] == result("predict", folder / "price", folder / "t.csv")["predictions"]["price"]
    beside = result("predict", folder / "price", folder / "t.csv", "--keep", "price")["predictions"]
    assert list(beside) == ["price", "price_predicted"]
    assert beside["price"] == pytest.approx(pd.read_csv(folder / "t.csv")["price"])
    assert beside["price_predicted"] == columns["price"]
    for keep, why in (("aa", "did you mean 'a'"), (",", "name columns")):
        done = mercer("predict", folder / "price", tmp_path / "named.csv", "--keep", keep)
        assert (done.exit_code, why in " ".join(done.stderr.split())) == (2, True), done.stderr


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_identifiers_are_copied_as_they_are_written(folder, tmp_path, delimiter, ending):
    """Numbers of them would be 123 and 12345678901234567000; a column of plain numbers stays one."""
    table = pd.read_csv(folder / "t.csv").head(4)
    zips, longs = ["00123", "123", "", "00000"], ["12345678901234567890", "1", "2", "3"]
    table = table.assign(gap=["1000000", "", "2", "3"])
    table.assign(zip=zips, long=longs, count=[1, 2, 3, 4]).to_csv(tmp_path / "z.csv", index=False, sep=delimiter)
    out = tmp_path / f"p.{ending}"
    result("predict", folder / "price", tmp_path / "z.csv", "--keep", "zip,long,gap,count", "--out", out)
    found = pd.read_parquet(out) if ending == "parquet" else pd.read_csv(out, dtype=str, keep_default_na=False)
    assert found["zip"].tolist() == zips
    assert found["long"].tolist() == longs
    assert found["gap"].tolist() == ["1000000", "", "2", "3"]
    assert found["count"].astype(int).tolist() == [1, 2, 3, 4]
    assert ending == "csv" or found["count"].dtype == np.int64


def test_the_result_of_a_check_is_json(folder):
    assert result("check", "gaussian(gamma=1.0)", folder / "t.csv", "--columns", "a")["verdict"] == "proved"
    refuted = result("check", "exp(-sqdist**1.5)", status=1)
    assert refuted["is_mercer"] is False
    assert refuted["report"][0].startswith("Formula")
    varied = result("check", "sigmoid(coef0=0.5)", "--vary", "gamma=0.1,1", status=1)["by_parameters"]
    assert [one["parameters"]["gamma"] for one in varied] == [0.1, 1]


def test_an_error_leaves_standard_output_empty(folder):
    done = mercer("fit", folder / "t.csv", "--target", "prize", "--json")
    assert (done.exit_code, done.stdout) == (2, "")


@pytest.mark.parametrize("target", ["kind", "three"])
def test_probabilities_agree_with_classes_and_are_calibrated(folder, tmp_path, target):
    done = fit(folder, target, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    done = mercer("predict", tmp_path / "m", folder / "t.csv", "--proba", "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    told = pd.read_csv(tmp_path / "p.csv")
    classes = load(tmp_path / "m").classes_
    P = told[[f"P({one})" for one in classes]].to_numpy()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    assert np.array_equal(classes[P.argmax(axis=1)], told[target])
    truth = pd.read_csv(folder / "t.csv")[target]
    assert log_loss(truth, P) < 0.6 * log_loss(truth, np.full(P.shape, 1 / len(classes)))
    again = mercer("predict", tmp_path / "m", folder / "t.csv", "--proba", "--out", tmp_path / "p.csv")
    assert again.exit_code == 0, again.output


def test_where_there_are_no_probabilities_it_is_said(folder, tmp_path):
    done = mercer("predict", folder / "price", folder / "t.csv", "--proba")
    assert done.exit_code == 2
    assert "numbers have no class probabilities" in done.stderr
    assert fit(folder, "kind", "--no-holdout", "--out", tmp_path / "m").exit_code == 0
    done = mercer("predict", tmp_path / "m", folder / "t.csv", "--proba")
    assert done.exit_code == 2
    assert "without --no-holdout" in done.stderr
    with pytest.raises(AttributeError, match="predict_proba"):
        load(tmp_path / "m").predict_proba(pd.read_csv(folder / "t.csv"))


def test_the_temperature_is_part_of_the_model(folder, tmp_path):
    frame = pd.read_csv(folder / "t.csv")
    model = load(folder / "kind")
    flat = model.with_temperature(1e9)
    np.testing.assert_allclose(flat.predict_proba(frame), 0.5, atol=1e-6)
    save(flat, tmp_path / "flat")
    assert load(tmp_path / "flat").temperature_ == 1e9
    with pytest.raises(ValueError, match="positive"):
        model.with_temperature(0.0)


def test_two_classes_have_an_auc_and_few_a_matrix(folder):
    done = fit(folder, "kind")
    assert "AUC 0.9" in done.output
    block = done.output.split("Rows by class")[1].splitlines()
    assert block[1].split() == ["neg", "pos"]
    assert [line.split()[0] for line in block[2:4]] == ["neg", "pos"]
    three = fit(folder, "three").output
    assert "AUC" not in three
    assert "Rows by class" in three
    many = fit(folder, "many").output
    assert "taken for" in many.split("Classes that are most often confused")[1]


def test_the_auc_of_an_evaluation_is_that_of_the_scores(folder, tmp_path):
    frame = pd.read_csv(folder / "t.csv")
    frame["sign"] = np.where(frame["three"] == 1, 10, 9)  # as texts "10" comes before "9"
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = mercer("fit", tmp_path / "t.csv", "--target", "sign", "--columns", "a,b", *QUICK, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    found = result("evaluate", tmp_path / "m", tmp_path / "t.csv")["score"]["AUC"]
    assert found == pytest.approx(roc_auc_score(frame["sign"] == 10, load(tmp_path / "m").decision_function(frame)))


def test_figures_have_four_digits(folder):
    text = fit(folder, "price").output
    score = text.split("mercer    ")[1].splitlines()[0]
    figures = [one.split()[-1] for one in score.split(", ")]
    assert all(len(one.lstrip("-0.").replace(".", "")) == 4 for one in figures), score
    assert [digits(x) for x in (0.0, -0.00012345, 9999.6, 5.3791e4)] == ["0", "-0.0001234", "10000", "53790"]


def test_the_other_task_is_named(folder):
    whole = fit(folder, "three").output
    assert "3 values, taken as classes; --task regression takes them as numbers" in whole
    counts = fit(folder, "count", "--task", "auto").output
    task = "classes" if "taken as classes" in counts else "numbers"
    other = {"classes": "regression", "numbers": "classification"}[task]
    assert f"taken as {task}; --task {other}" in counts
    assert f"\n  {other}, as requested" in fit(folder, "count", "--task", other).output
    assert "--task" not in fit(folder, "price").output
    assert "--task" not in fit(folder, "kind").output


def test_a_prediction_keeps_to_its_budget(folder):
    done = mercer("predict", folder / "price", folder / "t.csv", "--memory", "3XB")
    assert done.exit_code == 2
    assert "'3XB' is not an amount of memory" in done.stderr
    small = mercer("predict", folder / "price", folder / "t.csv", "--memory", "2kB")
    assert small.exit_code == 1
    assert "memory" in small.stderr
    assert mercer("predict", folder / "price", folder / "t.csv", "--memory", "50MB").exit_code == 0
    assert mercer("evaluate", folder / "price", folder / "t.csv", "--memory", "2kB").exit_code == 1


def test_kernels_that_were_left_behind_stand_beside_the_best_on_the_same_rows():
    X = np.random.default_rng(0).standard_normal((90, 2))
    kernels = [
        Linear(),
        *(Gaussian(gamma=g) for g in (0.01, 0.3, 100.0)),
        Laplace(gamma=0.2),
        Laplace(gamma=0.2, norm=1),
    ]
    search = cross_validate_ridge(X, np.sin(X[:, 0]), kernels, [1e-3, 1.0], screen=45)
    own = next(row.mean for row in search.screened if row.kernel == repr(search.best_kernel))
    (line,) = _left_behind(search)
    assert line.startswith(f"on 45 rows this kernel had {ratio(own)}, and left behind were ")
