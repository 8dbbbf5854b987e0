"""What shells offer when Tab is pressed, by the real program."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("typer")

from mercer.cli import completion  # noqa: E402
from mercer.cli.methods.supervised import METHODS  # noqa: E402
from mercer.cli.methods.unsupervised import UNSUPERVISED  # noqa: E402
from mercer.cli.output.plotting import KINDS  # noqa: E402
from mercer.kernels.names import kernel_names  # noqa: E402

SCRIPT = "import sys; sys.argv[0] = 'mercer'; from mercer.cli import main; main()"


def offered(folder, line, shell="bash"):
    """The words for the end of a line."""
    line = line.replace("FOLDER", str(folder))
    words = line.split(" ")
    told = {"_MERCER_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    told |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | told, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shells")
    (folder / "t.csv").write_text("price,rooms,a name\n1,2,3\n")
    with gzip.open(folder / "z.tsv.gz", "wt") as file:
        file.write("price\trooms\n1\t2\n")
    return folder


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mercer tran", ["transform"]),
        ("mercer fit --hold", ["--holdout"]),
        ("mercer fit --method s", ["svm", "spectral"]),
        ("mercer fit --kernel gau", ["gaussian"]),
        ("mercer check gau", ["gaussian"]),
        ("mercer fit FOLDER/t.csv --target ", ["price", "rooms"]),
        ("mercer fit FOLDER/z.tsv.gz --target r", ["rooms"]),
        ("mercer fit FOLDER/t.csv --columns price,", ["price,rooms"]),
        ("mercer compare FOLDER/t.csv --methods ridge,l", ["ridge,logistic"]),
        ("mercer fit none.csv --target ", []),
    ],
)
def test_words_are_offered(folder, line, words):
    assert offered(folder, line) == words


def test_other_shells(folder):
    assert "price" in " ".join(offered(folder, "mercer fit FOLDER/t.csv --target pr", "zsh"))
    assert "price" in " ".join(offered(folder, "mercer fit FOLDER/t.csv --target pr", "fish"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_shown(shell):
    pytest.importorskip("shellingham")
    told = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-c", SCRIPT, "--show-completion", shell]
    done = subprocess.run(command, env=os.environ | told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "_MERCER_COMPLETE" in done.stdout


def test_the_names_are_those_of_the_library():
    assert set(completion.METHODS) == {*METHODS, *UNSUPERVISED}
    assert tuple(KINDS) == completion.PICTURES
    assert set(completion.SUPERVISED) == set(METHODS)
    others = {"constant", "formula", "monomialsum", "precomputed", "setkernel"}  # they need what no name gives
    aliases = {"laplacian", "poly", "rbf"}
    assert set(completion.KERNELS) == set(kernel_names()) - others - aliases


def test_headers_of_tables(tmp_path):
    assert completion._header(str(tmp_path)) == []
    (tmp_path / "t.txt").write_text("a;b;c d\n")
    assert completion._header(str(tmp_path / "t.txt")) == ["a", "b"]
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "t.parquet")
    assert completion._header(str(tmp_path / "t.parquet")) == ["a", "b"]
