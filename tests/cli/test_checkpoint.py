"""`--checkpoint`: Ctrl-C says how to go on, and the same command goes on to the same model."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402
from mercer.cli.guard import told_warnings  # noqa: E402
from mercer.errors import CheckpointWarning, ConvergenceWarning, warn  # noqa: E402
from mercer.events import SolverStep, observe  # noqa: E402
from mercer.io import load  # noqa: E402
from mercer.points import fingerprint  # noqa: E402


class CtrlC:
    def __init__(self, at):
        self.at, self.steps = at, 0

    def on_event(self, event):
        self.steps += isinstance(event, SolverStep)
        if self.steps == self.at:
            raise KeyboardInterrupt


def mercer(*args, stopped_at=None):
    with observe(CtrlC(stopped_at)):
        return testing.CliRunner().invoke(commands.app, [str(arg) for arg in args])


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 3))
    frame = pd.DataFrame(X, columns=["x", "y", "z"]).assign(kind=np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "a", "b"))
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.fixture
def given(table):
    quick = ["--kernel", "gaussian(gamma=0.5)", "--alpha", "0.01", "--threads", "1"]
    return ["fit", table, "--target", "kind", "--method", "svm", *quick]


def test_the_same_command_goes_on_to_the_same_model(given, tmp_path):
    kept, out, other = (tmp_path / name for name in ("run.checkpoint", "model.mercer", "other.mercer"))
    assert mercer(*given, "--out", out).exit_code == 0
    again = [*given, "--out", other, "--checkpoint", kept]
    done = mercer(*again, stopped_at=2)
    assert done.exit_code == 130
    (line,) = [line for line in done.output.splitlines() if line.startswith("mercer: ")]
    assert line.startswith("mercer: stopped. checkpoint: ")
    assert line.endswith("run the same again to go on from there.")
    assert kept.exists()
    assert not other.exists()
    assert mercer(*again).exit_code == 0
    assert not kept.exists()
    assert fingerprint(load(other)) == fingerprint(load(out))


def test_a_checkpoint_of_another_fit_is_refused(given, tmp_path):
    kept = tmp_path / "run.checkpoint"
    assert mercer(*given, "--checkpoint", kept, stopped_at=2).exit_code == 130
    refused = mercer(*given, "--seed", 1, "--checkpoint", kept)
    assert refused.exit_code == 2
    assert "run.checkpoint holds another TableEncoder.fit: frame of fit is another" in refused.output
    assert kept.exists()


def test_tuning_keeps_its_fits_too(table, tmp_path):
    kept, out = tmp_path / "run.checkpoint", tmp_path / "model.mercer"
    given = ["tune", table, "--target", "x", "--drop", "kind", "--kernel", "linear", "--threads", "1"]
    assert mercer(*given, "--checkpoint", kept, "--out", out).exit_code == 0
    assert out.exists()
    assert not kept.exists()


def test_a_checkpoint_that_cannot_be_written_is_told_at_once_and_once(capsys):
    with told_warnings():
        warn("no convergence", ConvergenceWarning)
        for _ in range(2):
            warn("a full disk", CheckpointWarning)
        assert capsys.readouterr().err == "warning: a full disk\n"
    assert capsys.readouterr().err == "warning: no convergence\n"


def test_an_input_is_no_place_for_a_checkpoint(given, table):
    before = table.read_bytes()
    refused = mercer(*given, "--checkpoint", table)
    assert refused.exit_code == 2
    assert "--checkpoint: " in refused.output
    assert table.read_bytes() == before


@pytest.mark.parametrize("end", ["part", "before", "lock"])
def test_files_beside_a_checkpoint_are_neither_inputs_nor_outputs(given, table, end):
    """They are deleted when all is done."""
    kept = table.with_name("run")
    other = table.rename(f"{kept}.{end}")
    refused = mercer("fit", other, *given[2:], "--checkpoint", kept)
    assert refused.exit_code == 2
    assert f"run.{end} is also the file" in refused.output
    assert other.exists()
    refused = mercer(*given, "--checkpoint", kept, "--out", other.rename(table).with_name(f"run.{end}"))
    assert refused.exit_code == 2
    assert f"run.{end} is also the file" in refused.output
