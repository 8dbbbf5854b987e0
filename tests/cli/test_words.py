"""What the commands say: numbers of kernels in six digits, what may be meant by an option, and of other files."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
pytest.importorskip("typer")

from mercer.cli.app import run  # noqa: E402
from mercer.cli.output.show import shortened  # noqa: E402

LONG = re.compile(r"\d\.\d{7}")


@pytest.fixture
def table(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).random((60, 4)).round(3), columns=["a", "b", "c", "y"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    return str(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "command",
    [
        "fit TABLE --target y --kernel gaussian --alpha 0.1",
        "fit TABLE --target y --kernel gaussian+laplace",
        "fit TABLE --target y --kernel gaussian --method pca",
        "check gaussian TABLE --target y",
    ],
)
def test_numbers_of_kernels_have_six_digits(table, capsys, command):
    assert run(command.replace("TABLE", table).split()) == 0
    shown, _, following = capsys.readouterr().out.partition("\nNext")
    assert "aussian" in shown
    assert not LONG.search(shown)
    assert bool(LONG.search(following)) == ("laplace" in command)  # to be copied, for the same bits


def test_json_keeps_all_digits(table, capsys):
    assert run(f"fit {table} --target y --kernel gaussian --alpha 0.1 --json".split()) == 0
    assert LONG.search(json.loads(capsys.readouterr().out)["kernel"])


def test_only_numbers_of_kernels_are_shortened():
    line = "Gaussian(gamma=1.23456789e-05).on(['0.123456789']) + 0.33333333 * Linear()"
    assert shortened(line) == "Gaussian(gamma=1.23457e-05).on(['0.123456789']) + 0.333333 * Linear()"
    assert shortened("classes: 0.123456789") == "classes: 0.123456789"
    assert shortened("X" * 300_000) == "X" * 300_000


@pytest.mark.parametrize(
    ("option", "meant"),
    [("--lambda", "--alpha"), ("--C", "--alpha"), ("--gamma", 'gaussian(gamma=NUMBER)"'), ("--degree", "polynomial")],
)
def test_options_of_textbooks_are_explained(table, capsys, option, meant):
    assert run(["fit", table, "--target", "y", option, "0.1"]) == 2
    said = capsys.readouterr().err
    assert f"No such option: {option}; give " in said
    assert meant in said


def test_only_options_of_the_command_are_meant(table, capsys):
    assert run(["tune", table, "--target", "y", "--lambda", "0.1"]) == 2
    assert "--alpha" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["predict TABLE TABLE", "evaluate TABLE TABLE", "inspect TABLE"])
def test_a_table_is_no_model(table, capsys, command):
    assert run(command.replace("TABLE", table).split()) == 2
    said = capsys.readouterr().err
    assert "is not a model file of mercer" in said
    assert "give a file that mercer fit --out" in said
    assert "deserializing" not in said
