"""Targets on the command line: long labels, labels that begin with 0, and dates."""

from __future__ import annotations

import json

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402

QUICK = ("--kernel", "gaussian(gamma=0.1)", "--alpha", "0.1", "--threads", "1")
SNOWFLAKES = [1234567890123456789, 1234567890123456790, 1234567890123456999]


def mercer(*args):
    done = testing.CliRunner().invoke(commands.app, [str(arg) for arg in args])
    assert done.exit_code == 0, done.output
    return done.stdout


def flowers(labels):
    """Rows of three groups that numbers tell apart, with a label for each group."""
    group = np.arange(90) % 3
    x = np.random.default_rng(0).normal(size=(90, 2)) + 6 * np.column_stack([group == 1, group == 2])
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "species": np.array(labels)[group]})


@pytest.mark.parametrize("ending", ["csv", "csv, one missing", "parquet"])
def test_long_labels_are_written_as_they_were(tmp_path, ending):
    frame = flowers(SNOWFLAKES).astype({"species": "Int64"})
    if "missing" in ending:
        frame.loc[0, "species"] = pd.NA
    table = tmp_path / f"snow.{ending[:7].split(',')[0]}"
    if table.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(table)
    else:
        frame.to_csv(table, index=False)
    told = json.loads(mercer("fit", table, "--target", "species", *QUICK, "--out", tmp_path / "m", "--json"))
    assert "3 values" in told["why_task"]
    mercer("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv", dtype=str)["species"]
    assert set(found) == {str(one) for one in SNOWFLAKES}
    assert json.loads(mercer("evaluate", tmp_path / "m", table, "--json"))["score"]["accuracy"] == 1


@pytest.mark.parametrize(("labels", "others"), [([1.0, 1.5, 2.0], [1.0, 2.0]), ([1, 2, 3], [1.5, 2.0, 3.0])])
def test_labels_that_are_numbers_are_the_same_in_another_table(tmp_path, labels, others):
    table, later = tmp_path / "t.csv", tmp_path / "later.csv"
    frame = flowers(labels)
    frame.to_csv(table, index=False)
    mercer("fit", table, "--target", "species", "--task", "classification", *QUICK, "--out", tmp_path / "m")
    known = frame["species"].isin(others)
    frame = frame[known] if known.iloc[0] else frame.replace({"species": {1: 1.5}})  # whole, or with one more
    frame.to_csv(later, index=False)
    found = json.loads(mercer("evaluate", tmp_path / "m", later, "--json"))
    assert found["score"]["accuracy"] == pytest.approx(1 if known.iloc[0] else 2 / 3)
    assert found["unknown_classes"] == ([] if known.iloc[0] else ["1.5"])


def test_the_reason_for_the_task_agrees_with_the_classes(tmp_path):
    flowers(["01", "1", "2"]).to_csv(tmp_path / "t.csv", index=False)
    output = mercer("fit", tmp_path / "t.csv", "--target", "species", *QUICK, "--out", tmp_path / "m")
    assert "whole numbers of 3 values, taken as classes" in " ".join(output.split())
    assert "3 classes: 01 30, 1 30, 2 30" in " ".join(output.split())


def test_a_date_target_is_days_in_any_unit_and_as_text(tmp_path):
    pytest.importorskip("pyarrow")
    x = np.linspace(-1, 1, 60)
    dates = np.datetime64("2024-01-01") + np.round(100 * x).astype("m8[D]")
    frame = pd.DataFrame({"x": x})
    for unit in ("ms", "us"):
        frame.assign(when=dates.astype(f"M8[{unit}]")).to_parquet(tmp_path / f"{unit}.parquet")
    frame.assign(when=dates.astype(str)).to_csv(tmp_path / "text.csv", index=False)
    fit = ("--target", "when", "--task", "regression", *QUICK)
    for table in ("us.parquet", "text.csv"):
        mercer("fit", tmp_path / table, *fit, "--out", tmp_path / "m")
        for other in ("ms.parquet", "us.parquet", "text.csv"):
            told = json.loads(mercer("evaluate", tmp_path / "m", tmp_path / other, "--json"))
            assert told["score"]["R²"] > 0.9
            assert told["score"]["MAE"] < 20


PRICES = {k: 20000 * k + k * 7919 % 9000 for k in range(1, 81)}
RATES = {k: round(k / 7 + 0.001, 3) for k in range(1, 81)}
WRITTEN = {
    "points between thousands": (PRICES, lambda one: f"{one:,}".replace(",", ".")),
    "commas between thousands": (PRICES, "{:,}".format),
    "decimal commas": (RATES, lambda one: f"{one:.3f}".replace(".", ",")),
}


@pytest.fixture(params=WRITTEN)
def priced(request, tmp_path):
    """A model, and a table of which the target alone does not tell what its marks are."""
    values, written = WRITTEN[request.param]
    for name, keys in (("fit", values), ("later", range(8, 36, 3))):
        lines = [f"{k};{written(values[k])}" for k in keys]
        (tmp_path / f"{name}.csv").write_text("\n".join(["x;price", *lines]))
    model = tmp_path / "m.mercer"
    fit = ("--target", "price", "--kernel", "linear", "--alpha", "0.01", "--threads", "1")
    mercer("fit", tmp_path / "fit.csv", *fit, "--out", model)
    return model, tmp_path / "later.csv", [values[k] for k in range(8, 36, 3)]


def test_a_target_is_read_as_the_one_of_the_fit(priced, tmp_path):
    """Its marks are decided once, as those of the columns to predict from are."""
    model, later, values = priced
    assert json.loads(mercer("evaluate", model, later, "--json"))["score"]["R²"] > 0.99
    mercer("predict", model, later, "--keep", "price", "--out", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv")["price"].tolist() == values
    later.write_text(later.read_text().replace("x;price", "x;cost"))
    found = json.loads(mercer("evaluate", model, later, "--target", "cost", "--json"))
    assert found["score"]["R²"] > 0.99


def test_residuals_are_those_of_the_target_as_the_fit_read_it(priced, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from mercer.cli import predicting

    (model, later, values), drawn, compared = priced, [], predicting.comparable
    monkeypatch.setattr(predicting, "comparable", lambda *args: drawn.append(compared(*args)) or drawn[0])
    mercer("plot", model, later, "--kind", "residuals", "--out", tmp_path / "p.png")
    assert drawn[0][0].tolist() == values


def test_a_target_that_is_not_read_is_not_held_to_the_marks_of_the_fit(priced, tmp_path):
    model, later, _ = priced
    later.write_text("x;price\n5;122.51\n7;33\n")
    assert len(mercer("predict", model, later).splitlines()) == 3
