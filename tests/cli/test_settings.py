"""Settings in files: a run that is written down gives the same model, bit for bit; mistakes are named."""

from __future__ import annotations

import contextlib
import json
import tomllib

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
testing = pytest.importorskip("typer.testing")
load_file = pytest.importorskip("safetensors.numpy").load_file

from mercer.cli import app as commands  # noqa: E402
from mercer.cli.settings import as_toml  # noqa: E402
from mercer.io import load  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settings")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b, c": x[:, 1], "price": 10 * x[:, 0] + rng.normal(size=90)})
    frame["kind"] = np.where(frame["price"] > 0, "pos", "neg")
    frame["town"] = rng.choice(["Ay", "Bee", "Cee"], 90)
    words = np.array(["fine film", "dull plot", "good cast", "bad sound", "great end"])
    frame["said"] = [f"{' '.join(rng.choice(words, 3))} {i}" for i in range(90)]
    frame.to_csv(folder / "t.csv", index=False)
    frame.assign(price=-frame["price"]).to_csv(folder / "other.csv", index=False)
    lines = [f">{i % 2}\n{''.join(rng.choice(list('acgt'), 30)) + 'acgtacgt' * (i % 2)}" for i in range(60)]
    (folder / "s.fasta").write_text("\n".join(lines) + "\n")
    return folder


def run(folder, *words, status=0):
    with contextlib.chdir(folder):
        done = testing.CliRunner().invoke(commands.app, [str(one) for word in words for one in word.split()])
    assert done.exit_code == status, done.output
    return done


RUNS = [
    "t.csv --target price",
    "t.csv --target kind --seed 3",
    "t.csv --target price --no-holdout --drop said",
    "t.csv --target price --columns a --kernel matern",
    "t.csv --target kind --columns a,town --method svm",
    "t.csv --target price --columns a,town --method svm --alpha 0.25",
    "t.csv --target kind --columns a,town --method logistic",
    "t.csv --target kind --columns a --method discriminant",
    "t.csv --target price --columns a --method gp",
    "t.csv --target kind --columns a,said --text said",
    "t.csv --target price --text said --drop kind,town",
    "t.csv --columns a,town --method pca --components 3",
    "t.csv --columns a,town --method kmeans",
    "t.csv --columns a --method spectral --clusters 3",
    "t.csv --columns a,said --text said --method kmeans",
    "t.csv --columns a --method oneclass",
    "s.fasta",
    "s.fasta --method pca",
]


def parts(path):
    """The arrays of a model file bit by bit, and all else but the report, which has seconds and bytes."""
    arrays = {name: (one.dtype.str, one.shape, one.tobytes()) for name, one in load_file(path).items()}
    model = load(path)
    texts = [
        repr(model.estimator),
        *map(str, vars(model.encoder).values()),
        getattr(model, "temperature_", None),
        getattr(model, "pair_temperature_", None),
        model.target,
    ]
    return arrays, texts, model.notes, model.n_rows_


@pytest.mark.parametrize("text", RUNS)
def test_a_run_that_is_written_down_gives_the_same_model(folder, text):
    run(folder, f"fit {text} --threads 1 --out m --save-config run.toml")
    first = parts(folder / "m")
    assert first[0]
    run(folder, "fit --config run.toml --out again")
    assert parts(folder / "again") == first
    run(folder, "fit --config run.toml")  # to its own place
    assert parts(folder / "m") == first
    for one in ("m", "again", "run.toml"):
        (folder / one).unlink()


def test_the_settings_are_all_there(folder):
    run(folder, "fit t.csv --target price --drop kind,town,said --out m --save-config run.toml")
    text = (folder / "run.toml").read_text(encoding="utf-8")
    assert text.startswith("# mercer ")
    found = tomllib.loads(text)
    assert found.pop("kernel")
    assert found.pop("alpha") > 0
    assert found == {
        "command": "fit", "table": "t.csv", "target": "price", "method": "ridge", "drop": "kind,town,said",
        "task": "regression", "out": "m", "seed": 0, "holdout": True, "json": False,
    }  # fmt: skip
    (folder / "m").unlink()


def test_what_is_given_counts_more(folder, tmp_path):
    (tmp_path / "run.toml").write_text('table = "t.csv"\ntarget = "price"\ncolumns = ["a", "b, c"]\nkernel = "linear"\n'
                                       "alpha = 1\njson = true\nholdout = false\n")  # fmt: skip
    config = f"--config {tmp_path / 'run.toml'}"
    plain = json.loads(run(folder, f"fit {config}").stdout)
    assert (plain["columns"], plain["kernel"], plain["alpha"]) == (["a", "b, c"], "Linear()", 1.0)
    assert plain["held_out"] == 0
    given = json.loads(run(folder, f"fit other.csv {config} --target kind --alpha 0.5 --columns a --holdout").stdout)
    assert (given["table"], given["target"], given["alpha"], given["columns"]) == ("other.csv", "kind", 0.5, ["a"])
    assert given["held_out"] > 0


def test_other_commands_take_settings_too(folder, tmp_path):
    run(folder, "fit t.csv --target kind --columns a --kernel linear --alpha 1 --out m")
    lines = {
        "tune": 'table = "t.csv"\ntarget = "price"\ncolumns = "a"\nkernel = "linear"\n',
        "compare": 'table = "t.csv"\ntarget = "price"\ncolumns = "a"\nkernel = ["linear", "gaussian"]\n'
        'methods = ["ridge", "svm"]\nfolds = 2\nrepeats = 1\n',
        "predict": 'model = "m"\ntable = "t.csv"\nproba = true\n',
        "evaluate": 'model = "m"\ntable = "t.csv"\n',
        "check": 'kernel = "linear"\ntable = "t.csv"\ncolumns = "a"\n',
    }
    for command, text in lines.items():
        (tmp_path / "one.toml").write_text(text)
        out = run(folder, f"{command} --config {tmp_path / 'one.toml'} --json").stdout
        assert json.loads(out)["command"] == command
    (tmp_path / "one.toml").write_text(lines["compare"])
    first = json.loads(run(folder, f"compare --config {tmp_path / 'one.toml'} --json --save-config c.toml").stdout)
    again = json.loads(run(folder, "compare --config c.toml").stdout)
    assert [one["scores"] for one in first["leaderboard"]] == [one["scores"] for one in again["leaderboard"]]
    assert len(first["leaderboard"]) == 5
    (folder / "c.toml").unlink()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kernl = 'linear'", "'kernl' is not a setting of mercer fit; did you mean 'kernel'?"),
        ("per_column = true", "'per_column' is not a setting of mercer fit"),
        ("debug = true", "'debug' is not a setting"),
        ("seed = ", "is not a TOML file"),
        ("seed = 'one'", "--seed"),
        ("seed = true", "seed = True; give a text, a number"),
        ("holdout = 1", "holdout = 1; give true or false"),
        ("columns = [1, 2]", "columns = [1, 2]; give a list of texts"),
        ("alpha = {a = 1}", "alpha = {'a': 1}; give"),
        ("command = 'tune'", "has the settings of mercer tune, not of mercer fit"),
    ],
)
def test_mistakes_in_a_file_are_named(folder, tmp_path, text, words, capsys):
    (tmp_path / "run.toml").write_text(text + "\n")
    assert commands.run(["fit", str(folder / "t.csv"), "--config", str(tmp_path / "run.toml")]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("mercer: ")
    assert said.count("\n") == 1


def test_a_file_that_is_missing_or_something_else(folder, tmp_path, capsys):
    assert commands.run(["fit", "--config", str(tmp_path / "none.toml")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert commands.run(["fit", "--config", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
    (tmp_path / "mine.toml").write_text("a = 1\n")
    given = ["--target", "price", "--save-config", str(tmp_path / "mine.toml")]
    assert commands.run(["fit", str(folder / "t.csv"), *given]) == 2
    assert "exists and is not settings of mercer" in capsys.readouterr().err
    assert (tmp_path / "mine.toml").read_text() == "a = 1\n"


def test_every_text_comes_back_from_toml():
    texts = ['a "b"', "it's\\n", "tab\t", "line\n", "\x7f\x01", "α ≥ 2", "", "C:\\data"]
    settings = {"texts": texts, "yes": True, "number": 1e-300, "whole": -3, "array": np.float64(0.1)}
    assert tomllib.loads(as_toml(settings)) == settings
