"""What is written destroys nothing: no input, no file of another kind, and no half of a file."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer import KernelRidge, load, save  # noqa: E402
from mercer.cli import app as commands  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.files import write_whole  # noqa: E402
from mercer.io.models import FORMAT  # noqa: E402
from mercer.io.outputs import check_output  # noqa: E402

QUICK = ["--kernel", "gaussian(gamma=0.2)", "--alpha", "0.1"]


def mercer(*args, **options):
    return testing.CliRunner().invoke(commands.app, [str(arg) for arg in args], **options)


@pytest.fixture
def folder(tmp_path):
    """A table and a model of it."""
    x = np.linspace(0, 6, 60)
    pd.DataFrame({"x": x, "y": np.sin(x)}).to_csv(tmp_path / "t.csv", index=False)
    done = mercer("fit", tmp_path / "t.csv", "--target", "y", *QUICK, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    return tmp_path


def names_of(path, folder):
    """Other names of a file: itself by another path, a symbolic link, a hard link."""
    os.symlink(path, folder / "link")
    os.link(path, folder / "hard")
    return [path, path.parent / ".." / path.parent.name / path.name, folder / "link", folder / "hard"]


def test_no_output_is_an_input(folder):
    table, model = folder / "t.csv", folder / "m"
    before = table.read_bytes(), model.read_bytes()
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    of_table, of_model = names_of(table, folder / "a"), names_of(model, folder / "b")
    fit = ["fit", table, "--target", "y", *QUICK, "--out"]
    tune = ["tune", table, "--target", "y", "--kernel", "gaussian"]
    for command in (
        *([*fit, name] for name in of_table),
        *([*tune, "--out", name] for name in of_table),
        *([*tune, "--resume", name] for name in of_table),
        *(["predict", model, table, "--out", name] for name in [*of_table, *of_model]),
    ):
        done = mercer(*command)
        assert done.exit_code == 2, (command, done.output)
        assert "is also the file" in done.stderr
        assert (table.read_bytes(), model.read_bytes()) == before
    done = mercer(*tune, "--resume", folder / "new", "--out", folder / "new")
    assert done.exit_code == 2
    assert not (folder / "new").exists()


def test_a_file_of_another_kind_is_kept(folder):
    (folder / "notes.txt").write_text("years of work\n")
    (folder / "empty").touch()
    for command in (
        ["fit", folder / "t.csv", "--target", "y", *QUICK, "--out", folder / "notes.txt"],
        ["tune", folder / "t.csv", "--target", "y", "--out", folder / "notes.txt"],
        ["predict", folder / "m", folder / "t.csv", "--out", folder / "notes.txt"],
    ):
        done = mercer(*command)
        assert done.exit_code == 2, done.output
        assert "notes.txt exists and is not" in done.stderr
        assert "name another file" in done.stderr
    with pytest.raises(InvalidInput, match="exists and is not a model"):
        save(KernelRidge(), folder / "notes.txt")
    assert (folder / "notes.txt").read_text() == "years of work\n"
    save(KernelRidge(alpha=2.0), folder / "empty")
    assert load(folder / "empty").alpha == 2.0


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.csv.zip"])
def test_what_was_written_before_is_replaced(folder, name):
    for _ in range(2):
        done = mercer("predict", folder / "m", folder / "t.csv", "--out", folder / name)
        assert done.exit_code == 0, done.output
        assert len(pd.read_csv(folder / name)) == 60
        fit = mercer("fit", folder / "t.csv", "--target", "y", *QUICK, "--out", folder / "m")
        assert fit.exit_code == 0, fit.output
    assert sorted(path.name for path in folder.iterdir()) == ["m", name, "t.csv"]


def test_a_damaged_model_may_be_replaced_and_a_link_is_written_through(folder):
    whole = (folder / "m").read_bytes()
    # The order of the header's entries is random; what is cut off comes after the one that names the format.
    (folder / "m").write_bytes(whole[: max(300, whole.index(FORMAT.encode()) + 2 * len(FORMAT))])
    os.symlink(folder / "m", folder / "link")
    os.chmod(folder / "m", 0o600)
    save(KernelRidge(alpha=3.0), folder / "link")
    assert (folder / "link").is_symlink()
    assert load(folder / "m").alpha == 3.0
    assert (folder / "m").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there are no such devices")
def test_devices_are_no_files(folder):
    with pytest.raises(InvalidInput, match="a device or a pipe"):
        save(KernelRidge(), "/dev/null")
    assert mercer("predict", folder / "m", folder / "t.csv", "--out", "/dev/null").exit_code == 0
    assert not os.path.isfile("/dev/null")


def test_an_interrupted_write_leaves_the_old_file(folder, monkeypatch):
    before = (folder / "m").read_bytes()

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(InvalidInput, match="No space left"):
        write_whole(folder / "m", b"half", "save")
    assert (folder / "m").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["m", "t.csv"]


def test_case_does_not_make_another_file(folder):
    """Where the file system takes m and M for one file, which os.path.samefile knows."""
    if not (folder / "M").exists():
        pytest.skip("the file system tells cases apart")
    with pytest.raises(InvalidInput, match="is also the file"):
        check_output("--out", folder / "M", [folder / "m"], "a model", lambda _: True)


def test_standard_input_may_be_the_output_as_well(folder):
    table = folder / "t.csv"
    before = table.read_bytes()
    command = [sys.executable, "-m", "mercer", "predict", str(folder / "m"), "-", "--out", str(table)]
    with table.open("rb") as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "is also the file" in done.stderr
    assert table.read_bytes() == before
