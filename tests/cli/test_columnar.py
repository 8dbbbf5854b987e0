"""Tables of Parquet and Arrow on the command line: they are read like text, and predictions of them stream out."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402
from mercer.cli import predicting  # noqa: E402
from mercer.cli.output.schema import json_schema  # noqa: E402
from mercer.io import load  # noqa: E402
from mercer.tables import beyond  # noqa: E402

runner = testing.CliRunner()


def mercer(*args):
    return runner.invoke(commands.app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table as text and as Parquet and Arrow, and a model of it."""
    folder = tmp_path_factory.mktemp("columnar")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=80), "town": rng.choice(["A", "B"], 80)})
    frame["kind"] = np.where(frame["size"] > 0, "dear", "cheap")
    frame.to_csv(folder / "houses.csv", index=False)
    frame.to_parquet(folder / "houses.parquet", index=False, row_group_size=30)
    frame.to_feather(folder / "houses.arrow")
    quick = ["--target", "kind", "--kernel", "gaussian(gamma=0.2)", "--alpha", "0.1"]
    for name in ("csv", "parquet", "arrow"):
        done = mercer("fit", folder / f"houses.{name}", *quick, "--memory", "1GB", "--out", folder / f"{name}.mercer")
        assert done.exit_code == 0, done.output
    return folder


def test_predictions_stream_and_are_those_of_text(folder, monkeypatch):
    monkeypatch.setattr(predicting, "CHUNK", 25)
    assert mercer("predict", folder / "csv.mercer", folder / "houses.csv", "--out", folder / "a.csv").exit_code == 0
    wanted = pd.read_csv(folder / "a.csv")
    for name in ("parquet", "arrow"):
        for out in ("b.csv", "b.parquet"):
            done = mercer("predict", folder / f"{name}.mercer", folder / f"houses.{name}", "--out", folder / out)
            assert done.exit_code == 0, done.output
            assert f"80 predictions of kind in {folder / out}" in done.output.replace("\n", "")
            found = pd.read_csv(folder / out) if out == "b.csv" else pd.read_parquet(folder / out)
            assert found["kind"].tolist() == wanted["kind"].tolist()
    houses = pd.read_parquet(folder / "houses.parquet")
    name = str(houses.columns[0])
    given = (folder / "csv.mercer", folder / "houses.parquet")
    done = mercer("predict", *given, "--keep", name, "--out", folder / "k.csv")
    assert done.exit_code == 0, done.output
    kept = pd.read_csv(folder / "k.csv", float_precision="round_trip")  # else the last digit may be another
    assert [kept[name].tolist(), kept["kind"].tolist()] == [houses[name].tolist(), wanted["kind"].tolist()]
    done = mercer("predict", folder / "csv.mercer", folder / "houses.csv", "--proba", "--out", folder / "c.parquet")
    assert done.exit_code == 0, done.output
    assert list(pd.read_parquet(folder / "c.parquet").columns) == ["kind", "P(cheap)", "P(dear)"]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("ids", [[2**53 + 1 + 2 * k for k in range(80)], [k % 7 for k in range(80)]])
@pytest.mark.parametrize("gone", [[3], [40], list(range(25))])
def test_kept_integers_stay_such_beside_missing_ones(folder, tmp_path, monkeypatch, ending, ids, gone):
    frame = pd.read_parquet(folder / "houses.parquet").assign(id=pd.Series(ids, dtype="Int64"))
    frame.loc[gone, "id"] = pd.NA
    frame["kept"] = frame["town"].where(frame["id"].notna()).astype("category")
    (frame.to_parquet if ending == "parquet" else frame.to_feather)(tmp_path / f"n.{ending}")
    given = ("predict", folder / "csv.mercer", tmp_path / f"n.{ending}", "--keep", "id,kept", "--out")
    assert mercer(*given, tmp_path / "whole.tsv").exit_code == 0
    monkeypatch.setattr(predicting, "CHUNK", 25)
    for out in ("o.csv", "o.parquet"):
        done = mercer(*given, tmp_path / out)
        assert done.exit_code == 0, done.output
    wanted = ["" if k in gone else str(one) for k, one in enumerate(ids)]
    for out, mark in {"o.csv": ",", "whole.tsv": "\t"}.items():
        found = pd.read_csv(tmp_path / out, sep=mark, dtype=str, keep_default_na=False)
        assert found["id"].tolist() == wanted
        assert found["kept"].tolist() == frame["kept"].astype(object).fillna("").tolist()
    found = parquet.read_table(tmp_path / "o.parquet")["id"].to_pylist()
    assert ["" if one is None else str(one) for one in found] == wanted


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_kept_columns_have_their_types_in_parquet(folder, tmp_path, monkeypatch, ending):
    import pyarrow as pa
    from pyarrow import feather

    n, frame = 80, pd.read_parquet(folder / "houses.parquet")
    hours = [None if k < 30 else datetime(2024, 1, 1) + timedelta(hours=k) for k in range(n)]
    columns = {
        "when": pa.array(hours, pa.timestamp("us", "UTC")),
        "day": pa.array([None if k == 40 else one and one.date() for k, one in enumerate(hours)]),
        "flag": pa.array([None if k == 70 else k % 3 == 0 for k in range(n)]),
        "price": pa.array([Decimal(k) / 8 for k in range(n)], pa.decimal128(9, 3)),
        "code": pa.array([None if k < 30 else " " * (k % 2) + f"c{k}" for k in range(n)]),
        "empty": pa.array([None if k % 2 else "" for k in range(n)], pa.large_string()),
        "list": pa.array([None if k == 3 else [k, 1] for k in range(n)]),
        "bytes": pa.array([None if k == 4 else b"b%d" % k for k in range(n)]),
        "kind": pa.array([None if k < 30 else "uv"[k % 2] for k in range(n)]).dictionary_encode(),
    }
    table = pa.table({**{name: frame[name] for name in frame}, **columns})
    (parquet.write_table if ending == "parquet" else feather.write_feather)(table, tmp_path / f"n.{ending}")
    monkeypatch.setattr(predicting, "CHUNK", 25)
    given = ("predict", folder / "csv.mercer", tmp_path / f"n.{ending}", "--keep", ",".join(columns), "--out")
    done = mercer(*given, tmp_path / "o.parquet")
    assert done.exit_code == 0, done.output
    found = parquet.read_table(tmp_path / "o.parquet")
    for name, column in columns.items():
        assert found[name].type == (pa.string() if name == "kind" else column.type)
        assert found[name].to_pylist() == column.to_pylist()


def test_a_word_is_named_with_its_row_in_the_file(folder, tmp_path, monkeypatch):
    frame = pd.read_parquet(folder / "houses.parquet").astype({"size": str})
    frame.loc[60, "size"] = "big"
    frame.to_parquet(tmp_path / "n.parquet")
    monkeypatch.setattr(predicting, "CHUNK", 25)
    done = mercer("predict", folder / "csv.mercer", tmp_path / "n.parquet", "--out", tmp_path / "o.csv")
    assert "'big' in row 61 (counted from 1)" in done.output.replace("\n", " ")


def noted(done):
    assert done.exit_code == 0, done.output
    return [line for line in done.stderr.splitlines() if line.startswith("note: ")]


def test_streamed_predictions_have_the_notes_of_those_in_memory(folder, tmp_path, monkeypatch):
    frame = pd.read_parquet(folder / "houses.parquet").assign(height=1.0)
    frame.loc[[3, 40, 70], "size"] = np.nan
    frame.loc[[30, 31], "town"] = "C"
    frame.to_parquet(tmp_path / "new.parquet", index=False)
    given = ("predict", folder / "parquet.mercer", tmp_path / "new.parquet")
    whole = noted(mercer(*given))
    assert len(whole) == 3
    assert noted(mercer(*given, "--out", tmp_path / "o.csv")) == whole
    monkeypatch.setattr(predicting, "CHUNK", 25)
    parts = noted(mercer(*given, "--out", tmp_path / "o.csv"))
    assert parts[0] == whole[0] == "note: columns that the model does not use: height"
    missing, unseen = sorted(parts[1:])
    assert missing.startswith("note: size: missing in 1 of 25 rows, filled by ")
    assert missing.endswith(" (in rows 1 to 25, and the like in 2 later parts)")
    assert unseen == "note: town: 'C' in 2 of 25 rows, which the model does not know (in rows 26 to 50)"


def test_notes_on_columns_with_colons_in_their_names_are_kept_apart():
    lines = [f"{name}: missing in 1 of 2 rows, filled by 0" for name in ("a", "a: b", "a: c")]
    joined = predicting._joined([(2, lines), (2, lines[1:])], ["a", "a: b", "a: c"])
    later = ["", ", and the like in 1 later part", ", and the like in 1 later part"]
    assert joined == [f"{line} (in rows 1 to 2{more})" for line, more in zip(lines, later, strict=True)]


def test_a_file_of_another_kind_and_one_that_is_cut_off(folder):
    done = mercer("predict", folder / "csv.mercer", folder / "houses.csv", "--out", folder / "houses.parquet")
    assert done.exit_code != 0
    assert "is not a table of these outputs" in done.output.replace("\n", " ")
    data = (folder / "houses.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(data[: len(data) // 2])
    done = mercer("fit", folder / "cut.parquet")
    assert done.exit_code != 0
    assert "cannot be read as Parquet" in done.output.replace("\n", " ")


def test_a_table_beyond_the_budget_is_fitted_by_chunks(folder, tmp_path, monkeypatch, rng):
    monkeypatch.setattr(beyond, "CHUNK", 500)
    rows = rng.normal(size=(20_000, 12))
    frame = pd.DataFrame(rows, columns=list("abcdefghijkl")).assign(y=rows[:, 0] + np.sin(rows[:, 1]) / 4)
    frame["town"] = np.where(frame["a"] > 0, "A", "B")
    frame.loc[[3, 19_999], "y"] = np.nan
    frame.to_parquet(tmp_path / "big.parquet", index=False, row_group_size=700)
    quick = ["--kernel", "gaussian(gamma=0.02)", "--alpha", "0.1", "--memory", "3MB", "--out", tmp_path / "big.mercer"]
    done = mercer("fit", tmp_path / "big.parquet", "--target", "y", *quick)
    assert done.exit_code == 0, done.output
    assert "20000 rows do not fit in memory: the kernel is chosen" in done.output.replace("\n", " ")
    model = load(tmp_path / "big.mercer")
    assert model.n_rows_ == 19_998
    assert model.estimator.report_.reading["rows"] > 19_998
    assert model.score(frame.dropna()) > 0.9
    done = mercer("fit", tmp_path / "big.parquet", "--target", "town", "--no-holdout", *quick)
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "big.mercer").n_rows_ == 20_000
    assert load(tmp_path / "big.mercer").score(frame) > 0.9


def test_a_table_that_fits_without_its_solver_is_fitted_on_landmarks_too(tmp_path, rng):
    """A budget too small for the table was enough, and a larger one, which had no room for all pairs, was refused."""
    X = rng.normal(size=(60_000, 3))
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": np.sin(X[:, 0])})
    frame.to_parquet(tmp_path / "big.parquet", index=False, row_group_size=10_000)
    given = ("fit", tmp_path / "big.parquet", "--target", "y", "--kernel", "gaussian(gamma=0.5)", "--alpha", "1")
    done = mercer(*given, "--memory", "8MB", "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    told = "on landmarks, because KernelRidge by conjugate gradients, matrix-free on 60000 rows: needs"
    assert told in " ".join(done.output.split())
    assert told in " ".join(mercer("inspect", tmp_path / "m").output.split())


def test_all_rows_are_counted_and_the_sample_is_called_one(tmp_path, rng):
    rows = rng.normal(size=(20_000, 12))
    frame = pd.DataFrame(rows, columns=list("abcdefghijkl")).assign(y=rows[:, 0])
    frame.loc[:99, "y"] = np.nan
    frame.loc[100, "y"] = np.inf
    frame.to_parquet(tmp_path / "big.parquet", index=False, row_group_size=1000)
    given = ("fit", tmp_path / "big.parquet", "--target", "y", "--kernel", "linear", "--alpha", "1", "--memory", "3MB")
    said = mercer(*given, "--out", tmp_path / "big.mercer").output
    found = json.loads(mercer(*given, "--json").stdout)
    assert "19899 rows, 12 columns and the target y" in said
    assert "fitted on all 19899 rows, those held out too" in said
    assert f"{found['held_out']} rows, a quarter of the sample, are held out" in said
    assert "in the sample the target is " in said
    assert "Score on the rows held out, of a model of the rest of the sample" in said
    assert found["rows"] == 19_899
    assert 4 * found["held_out"] == pytest.approx(found["sample"], abs=4)
    assert found["sample"] < 5000
    assert found["notes"][1].startswith("of the sample, ")
    told = load(tmp_path / "big.mercer").notes[-1]
    assert told.startswith(f"on a quarter of a sample of {found['sample']} rows, by a model of the rest of it: ")
    pytest.importorskip("jsonschema").validate(found, json_schema("fit"))


def test_what_cannot_be_fitted_by_chunks_is_refused(folder):
    done = mercer("fit", folder / "houses.csv", "--target", "kind", "--memory", "5kB")
    assert done.exit_code != 0
    assert "give fewer rows or columns, or raise" in done.output.replace("\n", " ")
    done = mercer("tune", folder / "houses.parquet", "--target", "kind", "--memory", "5kB")
    assert done.exit_code != 0
    assert "read_points" in done.output
