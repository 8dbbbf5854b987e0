"""Tables that commands write: CSV, TSV, Parquet or NumPy files, whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.places import given_paths
from mercer.errors import InvalidInput, message
from mercer.files import write_whole
from mercer.io.outputs import check_output
from mercer.points.disk import ParquetSource

__all__ = ["check_table_place", "write_table"]

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
OTHERS = (".xlsx", ".xls", ".ods", ".arrow", ".feather", ".npz", ".json", ".html", ".mercer")
"""Endings of files that are not written: a table of text under such a name would mislead."""


def check_table_place(out: Path | None, inputs: Iterable[Path | None], columns: list[str]) -> None:
    """Raise InvalidInput if a table with these columns must not be written here."""
    if out is None:
        return
    if out.suffix.lower() in OTHERS:
        given = f"{out.name}: files that end in {out.suffix} are not written"
        raise InvalidInput(message("--out", given, "end it in .csv, .tsv, .parquet or .npy"))
    what = f"a table of these outputs (a file with the columns {', '.join(columns[:3])} alone)"
    check_output("--out", out, given_paths(inputs), what, lambda path: _is_such(path, columns), to_devices=True)


def write_table(frame: Any, out: Path) -> None:
    """Write a data frame as the ending of the file says, whole or not at all; write to devices directly."""
    buffer, ending = io.BytesIO(), out.suffix.lower()
    if ending == ".parquet":
        frame.to_parquet(buffer, index=False)
    elif ending == ".npy":
        np.save(buffer, _array(frame, out), allow_pickle=False)
    else:
        tabs = Path(out.stem if ending in COMPRESSED else out).suffix.lower() == ".tsv"
        frame.to_csv(buffer, index=False, sep="\t" if tabs else ",", compression=COMPRESSED.get(ending))
    if out.exists() and not out.is_file():
        out.write_bytes(buffer.getvalue())
    else:
        write_whole(out, buffer.getvalue(), "--out")


def _array(frame: Any, out: Path) -> Any:
    """The columns as one array, of one dimension for one column; text as fixed-width strings."""
    kinds = {"text" if frame[name].dtype.kind not in "iufb" else "numbers" for name in frame}
    if len(kinds) > 1:
        given = f"{out.name}: the columns are text and numbers, and an array has one type"
        raise InvalidInput(message("--out", given, "end it in .csv or .parquet"))
    values = frame.to_numpy(str if kinds == {"text"} else None)
    return values[:, 0] if values.shape[1] == 1 else values


def _is_such(path: Path, columns: list[str]) -> bool:
    """Whether an existing file is a table with these columns, or an array with as many columns.

    Files that are neither are refused.
    """
    import pandas as pd

    if path.suffix.lower() == ".parquet":
        with suppress(InvalidInput, ImportError):
            return list(ParquetSource.columns_of(path)) == columns
        return False
    try:
        if path.suffix.lower() == ".npy":
            shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
            return len(shape) <= 2 and (shape[1] if shape[1:] else 1) == len(columns)
        tabs = ".tsv" in [one.lower() for one in path.suffixes[-2:]]
        return [str(name) for name in pd.read_csv(path, nrows=0, sep="\t" if tabs else ",").columns] == columns
    except Exception:  # pandas and NumPy raise many kinds of errors for what is not a table
        return False
