"""What a failing disk does: the n-th operation on files fails, for many n or all. Run by test_faulty_files.py.

The process is started with the layer of faults.c before libc. For each piece of work, and for a fault that passes
(EIO) and for a disk that stays full (ENOSPC), a line of JSON gives the operations that there are, and what went wrong:
an error that is none of mercer's, a file of before that is lost, and files that are left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mercer
from mercer import KernelRidge, KernelSearchCV, load
from mercer.cli import app
from mercer.errors import MercerError
from mercer.io import save, stream
from mercer.points import read_points

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(y=X[:, 0] + X[:, 1] ** 2)
MODEL = KernelRidge("gaussian(gamma=0.1)", alpha=0.1).fit(X[:40], X[:40, 0])
OTHER = KernelRidge("gaussian(gamma=0.2)", alpha=0.1).fit(X[:40], X[:40, 0])
LAYER = ctypes.CDLL(None)


def of_command(text: str) -> Callable[[Path], Any]:
    """A command; its status 1 or 2 with one line is its error. HERE is the folder."""

    def run(here: Path) -> None:
        told = io.StringIO()
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
            status = app.run(text.replace("HERE", str(here)).split())
        if status:
            lines = told.getvalue().strip().splitlines()
            raise MercerError(lines[-1]) if status in (1, 2) and lines else RuntimeError(f"{status} {lines}")

    return run


def packed(here: Path) -> None:
    """Rows that do not fit are packed in a temporary file."""
    many = np.tile(X, (200, 1))
    chunks = read_points(lambda: iter(np.array_split(many, 5)), folder=here)
    model = KernelRidge("gaussian(gamma=0.1)", solver="nystroem", n_landmarks=5, memory="3MB").fit(chunks, many[:, 0])
    assert model.report_.reading["bytes packed"]


def searched(here: Path) -> None:
    KernelSearchCV(KernelRidge(), {"alpha": [0.1, 1.0]}, cv=2, resume=here / "scores.json").fit(X[:40], X[:40, 0])


def checkpointed(here: Path) -> None:
    with mercer.checkpoint(here / "run.checkpoint", every=0):
        KernelRidge("gaussian", alpha=0.1, solver="cg").fit(X[:40], X[:40, 0])


FIT = "fit HERE/rows.csv --target y --out HERE/model.mercer --kernel gaussian --report HERE/report.html"
PREDICT = "predict HERE/kept.mercer HERE/rows.csv --out HERE/out"
WORK: dict[str, tuple[Callable[[Path], Any], dict[str, Callable[[Path], Any]]]] = {
    "save": (lambda here: save(OTHER, here / "model.mercer"), {"model.mercer": load}),
    "fit on the command line": (of_command(FIT), {"model.mercer": load}),
    "predict to text": (of_command(PREDICT + ".csv"), {"out.csv": pd.read_csv}),
    "predict to Parquet": (of_command(PREDICT + ".parquet"), {"out.parquet": pd.read_parquet}),
    "stream of predictions": (
        lambda here: stream(MODEL, read_points(here / "rows.npy"), here / "out.csv"),
        {"out.csv": pd.read_csv},
    ),
    "rows packed in a file": (packed, {}),
    "search": (searched, {}),
    "checkpoint": (checkpointed, {}),
}
"""What is done, and the files of before, each with what reads it."""


def prepared(folder: Path) -> set[str]:
    """A folder with inputs, and with outputs of earlier work; the names in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    np.save(folder / "rows.npy", X)
    FRAME.to_csv(folder / "rows.csv", index=False)
    save(MODEL, folder / "model.mercer")
    shutil.copy(KEPT, folder / "kept.mercer")
    pd.DataFrame({"y": [1.0]}).to_csv(folder / "out.csv", index=False)
    pd.DataFrame({"y": [1.0]}).to_parquet(folder / "out.parquet")
    return {one.name for one in folder.iterdir()}


def tried(name: str, folder: Path, which: int, stays: bool) -> tuple[int, list[str]]:
    """The operations up to the end, and what went wrong."""
    work, kept = WORK[name]
    before, wrong = prepared(folder), []
    LAYER.fault_at(str(folder).encode(), ctypes.c_long(which), int(stays), errno.ENOSPC if stays else errno.EIO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work(folder)
    except MercerError as error:
        if "\n" in str(error) or not which:
            wrong.append(str(error))
    except Exception as error:
        wrong.append(f"{type(error).__name__}: {error}")
    operations = LAYER.fault_count()
    LAYER.fault_at(b"", ctypes.c_long(0), 0, 0)
    for file, read in kept.items():
        try:
            read(folder / file)
        except Exception as error:
            wrong.append(f"{file} is lost: {type(error).__name__}")
    after = {one.name for one in folder.iterdir()}
    more = {one for one in after - before if one.startswith(".") or one.endswith((".part", ".tmp"))}
    wrong += [f"{one} is gone" for one in before - after] + [f"{one} was left" for one in more]
    return operations, wrong


def main(names: list[str], most: int) -> None:
    """Of more than `most` operations, so many fail that are evenly spread from the first to the last."""
    folder = Path(tempfile.mkdtemp()).resolve() / "work"
    LAYER.fault_count.restype = ctypes.c_long
    for name in names or list(WORK):
        for stays in (False, True):
            operations, found = tried(name, folder, 0, stays)  # without a fault
            wrong = dict.fromkeys(found, 0)
            for which in np.unique(np.linspace(1, operations, min(most, operations)).astype(int)):
                wrong.update(dict.fromkeys(tried(name, folder, int(which), stays)[1], int(which)))
            sys.stdout.write(json.dumps([name, stays, operations, wrong]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    KEPT = Path(tempfile.mkdtemp()) / "kept.mercer"
    FRAME.to_csv(KEPT.parent / "rows.csv", index=False)
    of_command("fit HERE/rows.csv --target y --out HERE/kept.mercer --kernel gaussian")(KEPT.parent)
    main(sys.argv[2:], int(sys.argv[1]))
