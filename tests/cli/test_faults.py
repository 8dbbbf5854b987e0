"""Every command with every fault: one clear line and the status, nothing lost, and no file written in half."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
typer = pytest.importorskip("typer")

from mercer.cli import app as commands  # noqa: E402
from mercer.cli import demo, scores  # noqa: E402
from mercer.cli.guard import guarded  # noqa: E402
from mercer.errors import InvalidInput, message  # noqa: E402

QUICK = "--kernel gaussian(gamma=0.5) --alpha 0.1 --threads 1"
COMMANDS = {
    "fit": f"fit TABLE --target price {QUICK} --out NEW.mercer",
    "fit, classes": f"fit TABLE --target kind {QUICK} --out NEW.mercer --json",
    "fit, report": f"fit TABLE --target price {QUICK} --report NEW.html",
    "fit, settings": f"fit TABLE --target price {QUICK} --save-config NEW.toml",
    "pca": "fit TABLE --target price --method pca --components 2 --out NEW.mercer",
    "kmeans": "fit TABLE --target price --method kmeans --clusters 2 --out NEW.mercer",
    "tune": "tune TABLE --target price --kernel linear --out NEW.mercer --resume NEW.json",
    "compare": "compare TABLE --target price --methods ridge --kernel linear --folds 2 --repeats 1 "
    "--out NEW.mercer --resume NEW.json",
    "predict": "predict price.mercer TABLE --out NEW.csv",
    "predict, parquet": "predict price.mercer TABLE --out NEW.parquet",
    "predict, array": "predict price.mercer TABLE --out NEW.npy",
    "predict, classes": "predict kind.mercer TABLE --proba",
    "predict, a stream": "predict price.mercer rows.parquet --out NEW.csv",
    "transform": "transform pca.mercer TABLE --out NEW.csv",
    "evaluate": "evaluate price.mercer TABLE",
    "evaluate, classes": "evaluate kind.mercer TABLE --json",
    "inspect": "inspect price.mercer",
    "plot": "plot price.mercer TABLE --out NEW.png",
    "plot, residuals": "plot price.mercer TABLE --kind residuals --out NEW.svg",
    "check": "check gaussian TABLE --target price",
    "schema": "schema fit",
    "lab": "lab TABLE --target price",
    "demo": "demo --threads 1",
}
"""Each command, with the names of its table and of its output to be filled in."""
NEEDED = {
    "plot": ["matplotlib"],
    "plot, residuals": ["matplotlib"],
    "fit, report": ["jinja2", "matplotlib"],
    "lab": ["bokeh"],
    "predict, parquet": ["pyarrow"],
    "predict, a stream": ["pyarrow"],
}
READERS = [name for name, text in COMMANDS.items() if "TABLE" in text]
FITS = [name for name in READERS if COMMANDS[name].split()[0] in ("fit", "tune", "compare", "lab")]
LEARNERS = [name for name in FITS if name not in ("pca", "kmeans")]
USERS = [name for name, text in COMMANDS.items() if ".mercer" in text.split()[1]]
WRITERS = [name for name, text in COMMANDS.items() if "NEW" in text]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The tables and the models that the commands read."""
    folder = tmp_path_factory.mktemp("faults")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "price": 10 * x[:, 0] + rng.normal(size=60)})
    frame["kind"] = np.where(frame["price"] > 0, "pos", "neg")
    frame.to_csv(folder / "good.csv", index=False)
    frame.assign(price=5.0, kind="pos").to_csv(folder / "constant.csv", index=False)
    frame.drop(columns="a").to_csv(folder / "lacking.csv", index=False)
    (folder / "empty.csv").write_bytes(b"")
    (folder / "header.csv").write_text("a,b,price,kind\n")
    (folder / "junk.csv").write_bytes(b"\x00\xff\x1b\x00" * 100)
    with contextlib.suppress(ImportError):
        frame.to_parquet(folder / "rows.parquet", index=False)
        frame[:0].to_parquet(folder / "header.parquet", index=False)
    for target in ("price", "kind"):
        own = f"fit good.csv --target {target} --columns a,b {QUICK} --out {target}.mercer"
        assert run(own, folder)[0] == 0
    assert run("fit good.csv --columns a,b --method pca --components 2 --out pca.mercer", folder)[0] == 0
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """Copies of the tables and models in a folder of their own, and a demo that takes no time."""
    for one in made.iterdir():
        shutil.copy(one, tmp_path)
    monkeypatch.setattr(demo, "_digits", lambda: scores.Score({"accuracy": 1.0}))
    monkeypatch.setattr(demo, "_pca_race", lambda: demo.Race("a", 1.0, 1.0, 0.0))
    monkeypatch.setattr(demo, "_ridge_race", lambda: demo.Race("b", 1.0, 1.0, 0.0))
    return tmp_path


def command(name, table="good.csv", new="NEW"):
    for needed in NEEDED.get(name, ()):
        pytest.importorskip(needed)
    return COMMANDS[name].replace("TABLE", table).replace("NEW", new)


def run(text, folder, descriptor=None):
    """(status, standard output, standard error) of a command in a folder; standard output may be a descriptor."""
    out = io.StringIO() if descriptor is None else open(descriptor, "w", closefd=False)  # noqa: SIM115
    with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()) as err:
        with contextlib.redirect_stdout(out):
            status = commands.run(text.split())
        if descriptor is not None:
            out.close()  # flushes, as Python does when it ends
    return status, out.getvalue() if descriptor is None else "", err.getvalue()


def contents(folder):
    """All files of a folder, with the hidden ones, and what is in them."""
    return {one.name: one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def one_line(err):
    """The one line on standard error that says what is wrong; notes and warnings may stand before it."""
    lines = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: "))]
    assert len(lines) == 1, err
    assert re.fullmatch(r"mercer: [^;]+: .+; .+[.?]", lines[0]), lines[0]
    assert not re.search("unexpected error|Traceback|Errno", lines[0]), lines[0]
    return lines[0]


def refused(text, folder, words, status=2):
    """A command that fails with one line, and leaves the folder as it was."""
    before = contents(folder)
    found, out, err = run(text, folder)
    assert found == status, (text, out, err)
    assert words in one_line(err), err
    assert "--json" not in text or out == "", out
    assert contents(folder) == before
    return err


# ---- what is read ----------------------------------------------------------------------------------------------------

TABLES = {
    "none.csv": (READERS, "no such file"),
    "folder": (READERS, "is a folder"),
    "empty.csv": (READERS, "is empty"),
    "header.csv": (READERS, "no rows"),
    "header.parquet": (READERS, "no rows"),
    "junk.csv": (READERS, "junk.csv"),
    "constant.csv": (LEARNERS, "one value"),
    "lacking.csv": ([name for name in USERS if name in READERS], "'a'"),
}


@pytest.mark.parametrize(("name", "table"), [(name, table) for table, (able, _) in TABLES.items() for name in able])
def test_a_table_that_will_not_do(folder, name, table):
    if table.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (folder / "folder").mkdir()
    refused(command(name, table), folder, TABLES[table][1])


@pytest.mark.parametrize("name", [name for name in READERS if name not in LEARNERS])
def test_a_constant_target_is_no_fault_if_it_is_not_learned(folder, name):
    status, out, err = run(command(name, "constant.csv"), folder)
    assert status == 0, err
    assert "nan" not in out.lower()


@pytest.mark.parametrize("name", [name for name in COMMANDS if "--target price" in COMMANDS[name]])
def test_a_wrong_target(folder, name):
    refused(command(name).replace("--target price", "--target prize"), folder, "did you mean 'price'")


@pytest.mark.parametrize("name", [*FITS, "check"])
@pytest.mark.parametrize("option", ["--columns", "--drop"])
def test_a_wrong_column(folder, name, option):
    refused(f"{command(name)} {option} aa", folder, "did you mean 'a'")


def test_a_wrong_target_of_an_evaluation(folder):
    refused("evaluate price.mercer good.csv --target prize", folder, "did you mean 'price'")


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("fault", ["missing", "empty", "cut", "another", "folder"])
def test_a_model_that_will_not_do(folder, name, fault):
    text = command(name)
    path = folder / text.split()[1]
    data = path.read_bytes()
    path.unlink()
    if fault == "folder":
        path.mkdir()
    elif fault != "missing":
        path.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "another": b"a,b\n1,2\n"}[fault])
    refused(text, folder, {"missing": "no such file", "folder": "is a folder"}.get(fault, "not a model file"))


@pytest.mark.parametrize("name", [name for name in READERS if name in (*FITS, "check")])
@pytest.mark.parametrize("columns", [600, pytest.param(100_000, marks=pytest.mark.soak)])
def test_very_many_columns(folder, name, columns):
    """They are fitted, or it is said that they are too many."""
    if columns > 600 and name not in ("fit", "pca", "lab"):
        pytest.skip("fits several times as often as `fit`")
    X = np.random.default_rng(0).normal(size=(32, columns))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(columns)]).round(2)
    frame.insert(0, "price", X[:, 0])
    frame.insert(1, "kind", np.where(X[:, 0] > 0, "a", "b"))
    frame.to_csv(folder / "wide.csv", index=False)
    text = command(name, "wide.csv")
    if name == "lab":
        refused(text, folder, "choose some with --columns; at most 500 are taken")
        return
    status, out, err = run(text, folder)
    assert (status, err) == (0, "")
    if text.endswith("NEW.mercer") and columns > 600:
        status, out, err = run("inspect NEW.mercer", folder)
        assert status == 0
        assert max(map(len, out.splitlines())) < 1000
        asked = {"fit": "predict", "pca": "transform"}[name]
        refused(f"{asked} NEW.mercer good.csv", folder, "'c0', 'c1'")


# ---- where it may not read or write ----------------------------------------------------------------------------------


@contextlib.contextmanager
def without_privileges():
    """Let the permissions of files hold for the superuser too: without the capabilities that override them."""
    if not hasattr(os, "geteuid"):
        pytest.skip("NOT TESTED: permissions of files, which this system does not have")
    if os.geteuid() != 0:
        yield
        return
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        header, kept = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert libc.capget(header, kept) == 0
    except (AttributeError, OSError, AssertionError):
        pytest.skip("NOT TESTED: permissions of files, because the superuser has all of them on this system")
    fewer = (ctypes.c_uint32 * 6)(*kept)
    fewer[0] &= ~0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, in force
    assert libc.capset(header, fewer) == 0
    try:
        yield
    finally:
        assert libc.capset(header, kept) == 0


@pytest.mark.parametrize("name", READERS)
def test_no_permission_to_read_the_table(folder, name):
    (folder / "good.csv").chmod(0)
    with without_privileges():
        status, out, err = run(command(name), folder)
    assert (status, out) == (2, ""), err
    assert "good.csv: may not be read" in one_line(err)
    assert not list(folder.glob("*NEW*"))


@pytest.mark.parametrize("name", USERS)
def test_no_permission_to_read_the_model(folder, name):
    text = command(name)
    (folder / text.split()[1]).chmod(0)
    with without_privileges():
        status, out, err = run(text, folder)
    assert (status, out) == (2, ""), err
    assert "may not be read" in one_line(err)


@pytest.mark.parametrize("name", WRITERS)
def test_no_permission_to_write_in_the_folder(folder, name):
    (folder / "sealed").mkdir(mode=0o555)
    with without_privileges():
        status, out, err = run(command(name, new="sealed/NEW"), folder)
        assert status == 2, (out, err)
        assert out == "", "it is said before the work"
        assert "the folder sealed may not be written" in one_line(err)
        assert not any((folder / "sealed").iterdir())


@pytest.mark.parametrize("name", WRITERS)
def test_no_permission_to_replace_a_file(folder, name):
    text = command(name)
    assert run(text, folder)[0] == 0
    first = sorted(folder.glob("NEW*"))[0]
    first.chmod(0o444)
    with without_privileges():
        refused(text, folder, f"{first.name} is write-protected")


# ---- where there is no room ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def short_files(most):
    """No file may grow beyond so many bytes: what is written then fails, as on a disk that is full."""
    resource = pytest.importorskip("resource", reason="NOT TESTED: a full disk, which this system cannot imitate")
    kept = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, kept[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, kept)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_no_room_for_the_output(folder, name, there):
    """A file that is there is kept as it was, because the new one does not replace it before it is whole."""
    text = command(name)
    if there:
        assert run(text, folder)[0] == 0
    with short_files(64):
        err = refused(text, folder, "cannot be written (File too large)", status=1)
    assert re.match(r"mercer: --[a-z-]+: ", err.splitlines()[-1]), "no function speaks"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_room_for_what_is_printed(folder, name):
    if not os.path.exists("/dev/full"):
        pytest.skip("NOT TESTED: a standard output without room, which this system does not have")
    if name == "lab":
        pytest.skip("its page would be served")
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        status, _, err = run(command(name), folder, full)
    finally:
        os.close(full)
    if COMMANDS[name].startswith(("predict", "transform")) and name in WRITERS:
        assert status == 0, err  # nothing is printed there
    else:
        assert status == 1, err
        assert "output: it cannot be written (No space left on device)" in one_line(err)


def test_a_closed_standard_output():
    command = f"{shlex.quote(sys.executable)} -m mercer schema fit >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "standard output: it is closed" in one_line(done.stderr.decode())


def test_no_room_for_the_rest_of_what_is_printed_at_once(folder):
    """Without buffers, Python takes a write of the first bytes for the whole."""
    with (folder / "schema.json").open("w") as out, short_files(64):
        done = subprocess.run(
            [sys.executable, "-u", "-m", "mercer", "schema", "fit"], stdout=out, stderr=subprocess.PIPE
        )
    assert (folder / "schema.json").stat().st_size == 64
    assert done.returncode == 1
    assert "output: it cannot be written" in one_line(done.stderr.decode())


# ---- nobody reads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_a_broken_pipe_is_quiet_and_loses_nothing(folder, name):
    """As in ``mercer fit ... | head -1``: what is to be saved is saved, and nothing is said."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        status, _, err = run(command(name), folder, writing)
    finally:
        os.close(writing)
    assert status == (0 if name in WRITERS else 1)
    assert not [line for line in err.splitlines() if not line.startswith(("note: ", "60 "))]
    assert len(list(folder.glob("NEW*"))) == COMMANDS[name].count("NEW")


@pytest.mark.parametrize("name", WRITERS)
def test_a_pipe_of_messages_that_broke_loses_nothing(folder, name):
    """As in ``mercer predict ... 2>&1 | head -1``."""
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.ExitStack() as stack:
        broken = stack.enter_context(open(writing, "w"))
        for entered in (
            contextlib.chdir(folder),
            contextlib.redirect_stderr(broken),
            contextlib.redirect_stdout(broken),
        ):
            stack.enter_context(entered)
        status = commands.run(command(name).split())
    assert status == 0
    assert len(list(folder.glob("NEW*"))) == COMMANDS[name].count("NEW")


@pytest.mark.parametrize("name", WRITERS)
def test_ctrl_c_while_it_writes_leaves_nothing_in_half(folder, name, monkeypatch):
    def replace(*_):
        raise KeyboardInterrupt

    before = contents(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        status, _, err = run(command(name), folder)
    assert status == 130
    assert err.splitlines()[-1] == "mercer: stopped."
    assert contents(folder) == before


def test_the_option_of_a_parameter_speaks(capsys):
    @guarded
    def command(per_column=None, debug=False):
        raise InvalidInput(message("KernelSearchCV", f"per_column={per_column!r}", "give true or false"))

    for given, speaker in (("x", "--per-column: 'x'"), (None, "KernelSearchCV: per_column=None")):
        with pytest.raises(typer.Exit):
            command(per_column=given)
        assert capsys.readouterr().err.startswith(f"mercer: {speaker}")
