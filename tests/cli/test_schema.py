"""What --json prints keeps to the schema of each command, to the letter: no field more, none less, in its type."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
jsonschema = pytest.importorskip("jsonschema")
testing = pytest.importorskip("typer.testing")

from mercer import KernelPCA, save  # noqa: E402
from mercer.cli import app as commands  # noqa: E402
from mercer.cli import demo, guard, scores  # noqa: E402
from mercer.cli.options import COMMANDS  # noqa: E402
from mercer.cli.output.schema import RESULTS, json_schema  # noqa: E402

DOCS = Path(__file__).resolve().parents[2] / "docs"
QUICK = "--columns a,b --kernel gaussian(gamma=0.5) --alpha 0.1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "price": 10 * x[:, 0] + rng.normal(size=80)})
    frame["kind"] = np.where(frame["price"] > 0, "pos", "neg")
    frame.to_csv(folder / "t.csv", index=False)
    frame.assign(kind="odd").to_csv(folder / "odd.csv", index=False)
    (folder / "s.fasta").write_text("".join(f">{i % 2}\n{'acgt' * 4 if i % 2 else 'aacc' * 4}{'acgt'[i % 4]}\n"
                                            for i in range(40)))  # fmt: skip
    save(KernelPCA(2).fit(x), folder / "plain")
    for target in ("price", "kind"):
        run(folder, f"fit t.csv --target {target} {QUICK} --out {target}")
    run(folder, "fit t.csv --columns a,b --method pca --components 2 --out pca")
    run(folder, "fit t.csv --columns a,b --method kmeans --clusters 2 --out kmeans")
    run(folder, "fit s.fasta --kernel spectrum(k=3) --alpha 1 --out sequences")
    return folder


def run(folder, text, status=0):
    """The standard output of a command in a folder."""
    with contextlib.chdir(folder):
        done = testing.CliRunner().invoke(commands.app, text.split())
    assert done.exit_code == status, done.output
    return done.stdout


def strictly(schema):
    """The schema, whose objects have no other fields."""
    if isinstance(schema, list):
        return [strictly(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {name: strictly(one) for name, one in schema.items()} | closed


CASES = [
    f"fit t.csv --target price {QUICK}",
    f"fit t.csv --target kind {QUICK} --out new --no-holdout",
    "fit t.csv --target kind --columns a --kernel linear",
    "fit t.csv --target kind --columns a,b --kernel gaussian(gamma=0.5) --method discriminant",
    "fit s.fasta --kernel spectrum(k=3) --alpha 1",
    "fit t.csv --columns a,b --method pca --components 2 --out pca2",
    "fit t.csv --columns a,b --method kmeans --clusters 2",
    "fit t.csv --columns a,b --method spectral --clusters 2",
    "fit t.csv --columns a,b --method oneclass",
    "tune t.csv --target price --columns a,b",
    "tune t.csv --target price --columns a,b --kernel gaussian --per-column",
    "tune t.csv --target kind --columns a,b --kernel linear",
    "compare t.csv --target price --columns a,b --methods ridge --kernel linear --folds 2 --repeats 1",
    "compare t.csv --target kind --columns a,b --methods ridge --kernel linear --folds 2 --repeats 1 --out new2",
    "predict price t.csv",
    "predict kind t.csv --proba",
    "predict kind t.csv --out p.csv",
    "transform pca t.csv",
    "transform kmeans t.csv",
    "evaluate price t.csv",
    "evaluate kind t.csv",
    "evaluate kind odd.csv",
    "inspect price",
    "inspect kind",
    "inspect pca",
    "inspect sequences",
    "inspect plain",
    "plot price t.csv --out p.png",
    "check gaussian(gamma=1.0)",
    "check linear t.csv --columns a,b",
    "demo",
]


@pytest.mark.parametrize("text", CASES)
def test_results_keep_to_the_schema(folder, text, monkeypatch):
    monkeypatch.setattr(demo, "_digits", lambda: scores.Score({"accuracy": 1.0}))
    monkeypatch.setattr(demo, "_pca_race", lambda: demo.Race("a", 1.0, 1.0, 0.0))
    monkeypatch.setattr(demo, "_ridge_race", lambda: demo.Race("b", 1.0, 1.0, 0.0))
    command = text.split()[0]
    out = run(folder, f"{text} --json")
    assert out.count("\n") == 1
    jsonschema.validate(json.loads(out), strictly(json_schema(command)))


def test_a_refuted_kernel_keeps_to_the_schema(folder):
    found = json.loads(run(folder, "check sigmoid(coef0=0.5) --vary gamma=0.1,1 --json", status=1))
    jsonschema.validate(found, strictly(json_schema("check")))


def test_the_lab_prints_its_address(monkeypatch, capsys):
    pytest.importorskip("bokeh")
    monkeypatch.setattr("mercer.lab.server.serve", lambda *given: given[-1]("http://127.0.0.1:1/token"))
    assert commands.run(["lab", "moons", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, strictly(json_schema("lab")))
    assert found["address"].startswith("http://127.0.0.1")


def test_every_case_has_been_thought_of():
    assert {one.split()[0] for one in CASES} | {"lab"} == set(RESULTS) == set(COMMANDS)
    named = {command.name or command.callback.__name__ for command in commands.app.registered_commands}
    assert set(RESULTS) == named - {"schema"}


@pytest.mark.parametrize("command", RESULTS)
def test_the_schema_is_one_and_refuses_what_it_should(command, folder):
    schema = json.loads(run(folder, f"schema {command}"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == json_schema(command)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"command": command}, schema)  # fields are missing
    fields = dict.fromkeys(schema["properties"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(fields, schema)  # null for what cannot be


def test_a_command_without_a_result_has_no_schema():
    done = testing.CliRunner().invoke(commands.app, ["schema", "schema"])
    assert done.exit_code == 2
    assert "choose one of fit, tune" in done.stderr


def test_the_page_is_the_types(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    draw = importlib.import_module("draw_results")
    assert (DOCS / "json.md").read_text(encoding="utf-8") == draw.page(), "python docs/draw_results.py draws it anew"


def test_the_page_has_the_exit_statuses():
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    for status in (0, guard.FAILED, guard.BAD_INPUT, guard.INTERRUPTED, guard.TERMINATED):
        assert f"\n| {status} | " in page
