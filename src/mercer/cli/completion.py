"""What shells offer when Tab is pressed. It imports nothing of the library, so that it is quick."""

from __future__ import annotations

import csv
import gzip
from contextlib import suppress
from pathlib import Path

import typer

__all__ = ["KERNELS", "METHODS", "columns", "kernels", "methods", "pictures", "several_methods", "target", "tasks"]

METHODS = ("ridge", "svm", "logistic", "discriminant", "gp", "pca", "kmeans", "spectral", "oneclass")
SUPERVISED = METHODS[:5]
KERNELS = (
    "additivechi2", "allsubstrings", "cauchy", "chi2", "cosine", "dice", "gappedkmer", "gaussian", "globalalignment",
    "hamming", "intersection", "laplace", "linear", "matern", "mismatch", "periodic", "polynomial", "rationalquadratic",
    "sigmoid", "spectrum", "subsequence", "tanimoto",
)  # fmt: skip
PICTURES = ("surface", "posterior", "scores", "residuals", "confusion")
COLUMNAR = {".parquet", ".arrow", ".feather"}
LONGEST = 1 << 20


def methods(incomplete: str) -> list[str]:
    """The methods of ``mercer fit``.

    >>> methods("s")
    ['svm', 'spectral']
    """
    return [name for name in METHODS if name.startswith(incomplete)]


def several_methods(incomplete: str) -> list[str]:
    """Methods with commas between them."""
    return _listed(list(SUPERVISED), incomplete)


def kernels(incomplete: str) -> list[str]:
    """The names of kernels, of which some take parameters in parentheses.

    >>> kernels("co")
    ['cosine']
    """
    return [name for name in KERNELS if name.startswith(incomplete)]


def pictures(incomplete: str) -> list[str]:
    """The kinds of pictures."""
    return [name for name in ("auto", *PICTURES) if name.startswith(incomplete)]


def tasks(incomplete: str) -> list[str]:
    """The tasks."""
    return [name for name in ("auto", "regression", "classification") if name.startswith(incomplete)]


def target(ctx: typer.Context, incomplete: str) -> list[str]:
    """A column of the table that is named before."""
    return [name for name in _header(_table(ctx)) if name.startswith(incomplete)]


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Columns of the table that is named before, with commas between them."""
    return _listed(_header(_table(ctx)), incomplete)


def _listed(names: list[str], incomplete: str) -> list[str]:
    """The lists with one name more.

    >>> _listed(["a", "ab", "b"], "b,a")
    ['b,a', 'b,ab']
    """
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [before + comma + name for name in names if name.startswith(last) and name not in taken]


def _table(ctx: typer.Context) -> str:
    """The table of the line so far. A line that ends in an option is not parsed: then it is the last file on it."""
    files = [one for one in ctx.args if Path(one).is_file()]
    return str(ctx.params.get("table") or (files[-1] if files else ""))


def _header(table: str) -> list[str]:
    """The names in the first line of a table; nothing if it cannot be read. Names that need quotes are left out."""
    names: list[str] = []
    with suppress(Exception):
        path = Path(table)
        if path.suffix.lower() in COLUMNAR:
            names = _stored(path)
        elif path.is_file():
            with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8-sig") as file:
                line = file.readline(LONGEST)
            delimiter = max(",;\t|", key=line.count)
            names = next(csv.reader([line], delimiter=delimiter))
    return [name for name in map(str.strip, names) if name and not set(name) & set(" ,\"'\t\0")]


def _stored(path: Path) -> list[str]:
    import pyarrow.dataset

    kind = "parquet" if path.suffix.lower() == ".parquet" else "ipc"
    return list(pyarrow.dataset.dataset(path, format=kind).schema.names)
