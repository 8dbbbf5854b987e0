"""Which columns a model is made of, and what is said of those that are left out."""

from __future__ import annotations

import json
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


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """The same days as texts, as 20240331, as time stamps, and as what is no date; y goes with them."""
    folder, rng = tmp_path_factory.mktemp("dated"), np.random.default_rng(0)
    days = pd.to_datetime("2018-01-01") + pd.to_timedelta(rng.integers(0, 2000, 80), unit="D")
    frame = pd.DataFrame({"a": rng.normal(size=80), "d": days})
    frame["y"] = (days - pd.Timestamp("2018-01-01")).days / 1000
    forms = {"iso": days.strftime("%Y-%m-%d"), "compact": days.strftime("%Y%m%d"), "years": days.year}
    for name, values in forms.items():
        frame.assign(d=values).to_csv(folder / f"{name}.csv", index=False)
    frame.assign(d=days.strftime("%Y%m%d").where(frame.index > 5)).to_csv(folder / "gaps.csv", index=False)
    frame.to_parquet(folder / "stamps.parquet")
    for name in ("iso", "compact"):
        for target in "yd":
            given = [
                "fit",
                folder / f"{name}.csv",
                *QUICK,
                "--task",
                "regression",
                "--out",
                folder / f"{name}.{target}",
            ]
            assert mercer(*given, "--target", target).exit_code == 0
    return folder


@pytest.mark.parametrize("target", ["y", "d"])
@pytest.mark.parametrize("table", ["iso.csv", "compact.csv", "stamps.parquet"])
def test_dates_are_dates_in_every_form(dated, target, table):
    """Numbers such as 20240331 were days since 1970 without a word, in columns and in targets."""
    pytest.importorskip("pyarrow")
    results = [mercer("evaluate", dated / f"iso.{target}", dated / name, "--json") for name in ("iso.csv", table)]
    wanted, found = (json.loads(one.stdout)["score"]["R²"] for one in results)
    assert found == wanted > 0.9


@pytest.mark.parametrize(
    ("model", "table", "words"),
    [
        ("iso.y", "years.csv", "the column 'd': the number 20[12][0-9], where the fit saw dates; write dates as 2024"),
        ("iso.d", "years.csv", "the target 'd': the number 20[12][0-9], where the fit saw dates"),
        ("compact.y", "stamps.parquet", "the column 'd': the date 20[0-9-]+, where the fit saw numbers; give numbers"),
        ("compact.d", "stamps.parquet", "the target 'd': the date 20[0-9-]+, where the fit saw numbers"),
        ("compact.d", "iso.csv", "the target 'd': the date 20[0-9-]+, where the fit saw numbers"),
        ("compact.y", "iso.csv", "is not a number, unlike at the fit"),
    ],
)
def test_numbers_in_the_place_of_dates_are_refused(dated, model, table, words):
    pytest.importorskip("pyarrow")
    done = mercer("evaluate", dated / model, dated / table)
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.search(words, " ".join(done.stderr.split())), done.stderr


def test_missing_days_among_compact_dates_are_missing(dated):
    done = mercer("predict", dated / "iso.y", dated / "gaps.csv", "--json")
    assert "d: missing in 6 of 80 rows" in done.stderr
    assert np.isfinite(json.loads(done.stdout)["predictions"]["y"]).all()


def test_a_sign_that_the_fit_did_not_see_is_told(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(80).round(4)
    frame = pd.DataFrame({"p": p, "c": [f"${100 * one:.2f}" for one in p], "y": p})
    frame.to_csv(tmp_path / "plain.csv", index=False)
    changed = frame.assign(p=[f"{100 * one:.2f} %" for one in p], c=[f"€{100 * one:.2f}" for one in p])
    changed.to_csv(tmp_path / "signs.csv", index=False)
    assert mercer("fit", tmp_path / "plain.csv", *QUICK, "--out", tmp_path / "m").exit_code == 0
    told = mercer("evaluate", tmp_path / "m", tmp_path / "signs.csv").stderr
    assert "p: with the sign %, which the fit did not see, so that 12 % stands for 12" in told
    assert "c: the sign €, where the fit saw $" in told
    assert "where the fit" not in mercer("evaluate", tmp_path / "m", tmp_path / "plain.csv").stderr
    pytest.importorskip("pyarrow")
    assert mercer("fit", tmp_path / "signs.csv", *QUICK, "--out", tmp_path / "s").exit_code == 0
    frame.drop(columns="c").assign(c=p).to_parquet(tmp_path / "plain.parquet")
    told = mercer("evaluate", tmp_path / "s", tmp_path / "plain.parquet").stderr
    assert "p: without the sign % that the fit saw, so that 12 stands for 12 %" in told
    changed.drop(columns="c").to_parquet(tmp_path / "texts.parquet")
    assert mercer("fit", tmp_path / "texts.parquet", *QUICK, "--out", tmp_path / "t").exit_code == 0
    assert "sign" not in mercer("evaluate", tmp_path / "t", tmp_path / "texts.parquet").stderr
    assert "p: without the sign %" in mercer("evaluate", tmp_path / "t", tmp_path / "plain.csv").stderr


def test_dropped_columns_are_in_the_results_with_the_reason(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "same": 1, "empty": np.nan, "big": 2**60 + np.arange(60) % 7})
    frame.assign(y=frame.a).to_csv(tmp_path / "t.csv", index=False)
    found = json.loads(mercer("fit", tmp_path / "t.csv", *QUICK, "--json").stdout)
    assert "same: dropped: constant" in found["left_out"]
    assert "empty: dropped: no values" in found["left_out"]
    assert any(one.startswith("big: dropped: float64 does not tell its values apart") for one in found["left_out"])
    assert "a: standardised" in found["encoding"]


def test_an_evaluation_names_the_column_that_it_read(numbered, tmp_path):
    assert mercer("fit", numbered, *QUICK, "--columns", "a", "--out", tmp_path / "m").exit_code == 0
    done = mercer("evaluate", tmp_path / "m", numbered, "--target", "leak", "--json")
    assert json.loads(done.stdout)["target"] == "leak"
    done = mercer("evaluate", tmp_path / "m", numbered, "--target", "a")
    assert "--target: 'a' is a column that the model predicts from; name another column" in done.stderr


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
