"""Which columns a model is made of, and what is said of those that are left out."""

from __future__ import annotations

import re

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402
from mercer.io import load  # noqa: E402
from mercer.tables.targets import as_target, holdout_rows  # noqa: E402

QUICK = ["--target", "y", "--kernel", "gaussian(gamma=0.5)", "--alpha", "0.1"]


def mercer(*args):
    return testing.CliRunner().invoke(commands.app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """Rows with a counter, an identifier, a leak of the target and two columns to predict from."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b, c": x[:, 1], "y": x[:, 0] + np.sin(x[:, 1]), "leak": x[:, 0] ** 3})
    frame.insert(0, "CustomerId", rng.permutation(5000)[:80])
    frame.loc[3, "y"] = np.nan  # the counter is complete in the whole table only
    path = tmp_path_factory.mktemp("columns") / "numbered.csv"
    frame.to_csv(path)
    return path


def test_counters_and_identifiers_are_left_out_and_said(numbered, tmp_path):
    done = mercer("fit", numbered, *QUICK, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert "column 1 is left out: a counter of the rows, 0 to 79; name it by --columns to use it" in done.output
    assert "CustomerId is left out: an identifier, by its name" in done.output
    assert load(tmp_path / "m").encoder.columns_ == ["a", "b, c", "leak"]
    assert "CustomerId is left out" in mercer("inspect", tmp_path / "m").output


def test_a_word_that_only_held_out_rows_have_is_missing(tmp_path):
    n = 40
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    days = pd.Series(pd.date_range("2020-01-01", periods=n)).dt.strftime("%d.%m.%Y")
    table = pd.DataFrame({"x": [f"{v:.3f}" for v in x], "day": days, "y": x + 0.1 * rng.normal(size=n)})
    held = holdout_rows(as_target("t", table["y"], "regression"), "regression", 0)
    for row in (np.flatnonzero(held)[0], np.flatnonzero(~held)[0]):
        odd = table.astype({"day": object})
        odd.loc[row, ["x", "day"]] = "err", "tbd"
        odd.to_csv(tmp_path / "odd.csv", index=False)
        done = mercer("fit", tmp_path / "odd.csv", *QUICK, "--out", tmp_path / "m")
        assert done.exit_code == 0, done.output
        assert "'err' as missing" in done.output
        assert "'tbd' as missing" in done.output
        assert mercer("predict", tmp_path / "m", tmp_path / "odd.csv", "--out", tmp_path / "p.csv").exit_code == 0
        assert pd.read_csv(tmp_path / "p.csv").iloc[:, 0].notna().all()
        asked = ["--target", "y", "--methods", "ridge", "--kernel", "linear", "--folds", 3, "--repeats", 1]
        done = mercer("compare", tmp_path / "odd.csv", *asked)
        assert done.exit_code == 0, done.output


def test_labels_and_categories_are_as_they_are_written(tmp_path):
    """001 is not 1: neither in what is predicted, nor where a later table has only such categories."""
    rng = np.random.default_rng(0)
    label, kind = rng.choice(["001", "002", "003"], 90), rng.choice(["01", "02", "x"], 90)
    table = pd.DataFrame({"z": 9 * label.astype(int) + rng.normal(size=90), "kind": kind, "y": label})
    table.to_csv(tmp_path / "t.csv", index=False)
    done = mercer("fit", tmp_path / "t.csv", *QUICK, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "m").classes_.tolist() == ["001", "002", "003"]
    table[kind != "x"].to_csv(tmp_path / "new.csv", index=False)
    done = mercer("predict", tmp_path / "m", tmp_path / "new.csv", "--keep", "y", "--out", tmp_path / "p.csv")
    assert "does not know" not in done.output
    found = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert found["y"].tolist() == label[kind != "x"].tolist()
    assert (found["y"] == found["y_predicted"]).mean() > 0.9
    done = mercer("evaluate", tmp_path / "m", tmp_path / "new.csv")
    assert "does not know" not in done.output
    assert re.search(r"accuracy (0\.9|1\.0)", done.output), done.output


def test_an_identifier_is_found_though_a_line_below_the_rows_has_none(numbered, tmp_path):
    table = pd.read_csv(numbered)
    total = dict.fromkeys(table.columns, "") | {"a": "total"}
    pd.concat([table.astype(object), pd.DataFrame([total])]).to_csv(tmp_path / "t.csv", index=False)
    done = mercer("fit", tmp_path / "t.csv", *QUICK, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "m").encoder.columns_ == ["a", "b, c", "leak"]


def test_blank_lines_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k},{k % 7}\n" + "\n" * (k in (3, 9)) for k in range(40)))
    assert "2 blank lines were left out" in mercer("fit", tmp_path / "t.csv", *QUICK).output


def test_a_word_in_a_target_of_numbers_is_named_with_its_row(tmp_path):
    table = pd.DataFrame({"x": np.arange(60.0), "y": [None, *(f"{k / 7:.3f}" for k in range(58)), "err"]})
    table.to_csv(tmp_path / "t.csv", index=False)
    for options in ([], ["--task", "regression"]):
        done = mercer("fit", tmp_path / "t.csv", *QUICK, *options)
        assert done.exit_code != 0
        assert re.search(r"'err' in row 60 \(counted from 1\), .*leave it\s+empty", done.output), done.output


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        (["--drop", "leak"], ["a", "b, c"]),
        (["--columns", 'a, "b, c"'], ["a", "b, c"]),
        (["--columns", "b, c"], ["b, c"]),
        (["--columns", "column 1,a,CustomerId"], ["column 1", "CustomerId", "a"]),
    ],
)
@pytest.mark.parametrize("command", ["fit", "tune"])
def test_the_model_remembers_its_columns(numbered, tmp_path, command, options, columns):
    asked = QUICK if command == "fit" else QUICK[:4]
    done = mercer(command, numbered, *asked, *options, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "m").encoder.columns_ == columns
    if "--drop" in options:
        assert "leak is left out: as asked by --drop" in done.output
    pd.read_csv(numbered).rename(columns={"Unnamed: 0": "column 1"})[columns].to_csv(tmp_path / "new.csv", index=False)
    predicted = mercer("predict", tmp_path / "m", tmp_path / "new.csv")
    assert predicted.exit_code == 0, predicted.output
    assert predicted.stderr == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--columns", "a,leek"], "no column 'leek' to predict from; did you mean 'leak'"),
        (["--drop", "LEAK"], "did you mean 'leak'"),
        (["--drop", "zzz"], "its columns to predict from are column 1, CustomerId, a"),
        (["--drop", "y"], "'y' is the target"),
        (["--columns", "a", "--drop", "leak"], "--columns and --drop together"),
        (["--columns", ","], "name columns"),
        (["--drop", 'column 1,CustomerId,a,"b, c",leak'], "leave some"),
    ],
)
def test_names_that_are_not_there_are_refused(numbered, options, words):
    done = mercer("fit", numbered, *QUICK, *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_counter_that_is_the_only_column_is_used(tmp_path):
    t = np.arange(60)
    pd.DataFrame({"t": t, "y": np.sin(t / 10)}).to_csv(tmp_path / "series.csv", index=False)
    done = mercer("fit", tmp_path / "series.csv", *QUICK)
    assert done.exit_code == 0, done.output
    assert "left out" not in done.output


def test_check_looks_at_the_columns_that_a_fit_would(numbered):
    def check(*options):
        return mercer("check", "gaussian(gamma=0.5)", numbered, "--target", "y", *options)

    assert "rows of 3 columns" in check().output
    assert "rows of 2 columns" in check("--drop", "leak").output
    assert "rows of 1 column" in check("--columns", "a").output
    assert "did you mean 'leak'" in check("--columns", "leek").stderr
    for options in (["--columns", "a"], ["--columns", "0"], ["--drop", "a"]):
        done = mercer("check", "gaussian(gamma=0.5)", *options)
        assert done.exit_code == 2
        assert "table" in done.stderr
