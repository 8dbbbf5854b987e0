"""Tables of Parquet and Arrow on the command line: they are read like text, and predictions of them stream out."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402
from mercer.cli import predicting  # noqa: E402
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
    kept = pd.read_csv(folder / "k.csv")
    assert [kept[name].tolist(), kept["kind"].tolist()] == [houses[name].tolist(), wanted["kind"].tolist()]
    done = mercer("predict", folder / "csv.mercer", folder / "houses.csv", "--proba", "--out", folder / "c.parquet")
    assert done.exit_code == 0, done.output
    assert list(pd.read_parquet(folder / "c.parquet").columns) == ["kind", "P(cheap)", "P(dear)"]


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


def test_what_cannot_be_fitted_by_chunks_is_refused(folder):
    done = mercer("fit", folder / "houses.csv", "--target", "kind", "--memory", "5kB")
    assert done.exit_code != 0
    assert "give fewer rows or columns, or raise" in done.output.replace("\n", " ")
    done = mercer("tune", folder / "houses.parquet", "--target", "kind", "--memory", "5kB")
    assert done.exit_code != 0
    assert "read_points" in done.output
