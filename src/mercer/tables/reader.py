"""Reads tables from files: delimited text, svmlight, FASTA, texts, NumPy, Parquet, Arrow and spreadsheets."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.points import parse_memory, require
from mercer.points.disk import ArrowSource, ParquetSource
from mercer.tables.arrays import ARRAYS, parse_arrays
from mercer.tables.delimited import as_written, left_out, looks_like_lines, looks_like_texts, parse_delimited
from mercer.tables.numbers import LARGEST, RUN
from mercer.tables.raw import STANDARD_INPUT, decoded, read_bytes, require_room, shown_name
from mercer.tables.sequences import is_fasta, parse_fasta
from mercer.tables.sheets import SHEETS, sheet_as_csv
from mercer.tables.svmlight import looks_like_svmlight, parse_svmlight
from mercer.tables.texts import near_names

__all__ = ["COLUMNAR", "Table", "read_table"]

MOST = 6
"""Most columns that get a note of their own."""


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame, its source, and notes on how it was read.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns have distinct names.
    path : str
    format : "delimited", "columnar", "array", "svmlight", "fasta" or "lines"
    notes : tuple of str
        Notes on how the file was read.
    written : mapping of str to pandas.Series
        Columns of numbers that are identifiers, as they are written, of those that were asked for.
    marks : mapping of str to str
        How numbers are written in columns where they are not plain: "0,0" with a decimal comma, "1.000" with points
        between thousands, "1,000%" with commas and a sign.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"x": [1, 2], "y": [0.5, None]}), "a.csv")
    >>> rest, y = table.split("y")
    >>> y.tolist(), rest.notes
    ([0.5], ('1 of 2 rows has no y and was left out',))
    """

    frame: Any
    path: str
    format: str = "delimited"
    notes: tuple[str, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict, repr=False)
    marks: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.frame.columns]

    @property
    def of_sequences(self) -> bool:
        """Whether the rows are sequences or texts, not columns."""
        return self.format in ("fasta", "lines")

    @property
    def default_target(self) -> str | None:
        """The name of the target if the format defines one; otherwise None."""
        if self.format == "array" and "y" in self.columns:
            return "y"
        return "label" if self.format in ("svmlight", "fasta") else None

    def split(self, target: str | None) -> tuple[Table, Any]:
        """The table without its target, and the target. Rows without a target are left out, with a note."""
        target = target or self.default_target
        if target is None and self.format == "lines":
            given = "texts, one in each line, without a target"
            do = "give a FASTA file, whose header lines are the target, or a table with a column of texts"
            raise InvalidInput(message(self.path, given, do))
        if target is None:
            given = f"no target; the columns are {_named(self.columns)}"
            raise InvalidInput(message(self.path, given, "name one of them, --target NAME"))
        if target not in self.columns:
            near = near_names(target, self.columns, n=3) or _ignoring_case(target, self.columns)
            advice = (
                f"did you mean {' or '.join(map(repr, near))}?" if near else f"the columns are {_named(self.columns)}"
            )
            raise InvalidInput(message(self.path, f"has no column {target!r}", advice))
        column = self.frame[target]
        numbers = column.to_numpy(np.float64, na_value=np.nan) if column.dtype.kind == "f" else np.zeros(len(column))
        infinite = np.isinf(numbers)
        present = column.notna().to_numpy(bool) & ~infinite
        if not present.any():
            raise InvalidInput(message(self.path, f"the target {target!r} has no values", "choose another column"))
        if len(self.columns) == 1:
            given = f"{target!r} is its only column"
            raise InvalidInput(message(self.path, given, "give a table with columns to predict it from"))
        rest, absent = self.frame.drop(columns=[target]), int((~present).sum())
        if not absent:
            return replace(self, frame=rest), self.frame[target]
        note = f"{absent} of {len(present)} rows {'has' if absent == 1 else 'have'} no {target} "
        note += f"(in {infinite.sum()} it is infinite) and " if infinite.any() else "and "
        note += "was left out" if absent == 1 else "were left out"
        return replace(self, frame=rest[present], notes=(*self.notes, note)), self.frame[target][present]


def read_table(
    path: str | Path,
    *,
    memory: Any = None,
    texts: str | None = None,
    kept: Sequence[str] = (),
    like: Mapping[str, str] = MappingProxyType({}),
) -> Table:
    """Read CSV, TSV, svmlight, FASTA or plain text, gzipped or not, .npy or .npz, Parquet, Arrow, or a spreadsheet.

    "-" is standard input. The first sheet of .xlsx, .xlsb, .xls and .ods is read (`pip install "mercer[excel]"`).

    The delimiter is the comma, semicolon, tab, bar or space that splits all lines into equally many fields. A first
    line of numbers only is not a header; the columns are then c1, c2, .... Empty fields, NA, NaN, null, None, N/A and ?
    are missing. Infinite numbers are missing too, with a note. Numbers may have marks between thousands, and the sign
    of a currency or of percent if all numbers of the column have it; the comma may be the decimal one if it is not the
    delimiter, or in quotes where it cannot separate thousands. A note says what was found. Space-delimited numbers are
    plain.

    In svmlight files the target is `label`, and the features are named by their indices, f1, f2, .... In FASTA files
    the header line is `label`, and the other column is `sequence`. A file that ends in .txt, and whose lines no
    delimiter divides alike, has a text in each line; its only column is `sequence`. Arrays of .npy have the columns c1,
    c2, ..., those of .npz the names of its arrays; there the target is `y`.

    Parameters
    ----------
    path : path-like
    memory : int or str, optional
        Memory budget, such as "2GB"; by default half of the free memory.
    texts : str, optional
        The name of a column of texts. Plain text then has a text in each line, unless it is a table: its first line
        has this name, or a delimiter divides all lines alike.
    kept : sequence of str
        Columns of text and spreadsheets whose identifiers, such as 00123, are wanted as they are written.
    like : mapping of str to str
        How columns were written in another table: their `marks`, or "text" for those that are not read as numbers, as
        `TableEncoder.written` has them. They decide where this table alone leaves a doubt, as 3.014 does.

    Returns
    -------
    Table

    Raises
    ------
    InvalidInput
        For a file that is missing, empty, not text, of another format than its name says, or not a table.
    MemoryExceeded
        For a file whose (unpacked) text exceeds the budget.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.csv"
    >>> _ = path.write_text("rooms;price\\n3;120\\n5;?\\n")
    >>> read_table(path).frame
       rooms  price
    0      3  120.0
    1      5    NaN
    """
    _require_pandas()
    path = Path(path)
    name, ending = shown_name(path), _ending(path)
    if ending in COLUMNAR:
        return _columnar_table(path, ending, name, memory)
    data = read_bytes(path, memory)
    if path == STANDARD_INPUT:
        ending = next((one for magic, one in MAGIC.items() if data.startswith(magic)), "")
        if ending in COLUMNAR:
            return _piped_table(data, ending, name, memory)
        ending = ".npz" if ending == ".xlsx" and b".npy" in data[:200] else ending
    if ending in ARRAYS:
        require_room(data, name, memory)
        return _checked(*parse_arrays(data, name), name, "array")
    if ending in SHEETS:
        require_room(data, name, memory)
        text, notes = sheet_as_csv(data, name, parse_memory(memory))
        return _delimited(text, name, notes, memory, kept, like, ",")
    text, notes = decoded(data, name)
    del data
    # An index without a name begins with the delimiter, as a comment of FASTA does.
    if is_fasta(text, name) and not (ending == ".csv" and text.startswith(";")):
        return _fasta_table(text, name, notes)
    if texts is not None and ending in ("", ".txt") and looks_like_texts(text, texts):
        return _of_lines(text, name, notes, texts)
    if texts is None and ending == ".txt" and looks_like_lines(text):
        return _of_lines(text, name, notes)
    if looks_like_svmlight(text):
        return _checked(*parse_svmlight(text, name, memory), name, "svmlight", notes)
    return _delimited(text, name, notes, memory, kept, like)


def _delimited(
    text: str,
    name: str,
    notes: tuple[str, ...],
    memory: Any,
    kept: Sequence[str],
    like: Mapping[str, str],
    delimiter: str | None = None,
) -> Table:
    """The table of a delimited text, with how its columns are written."""
    frame, more, marks = parse_delimited(text, name, delimiter, memory, like)
    table = replace(_checked(frame, more, name, "delimited", notes), marks=marks)
    return replace(table, written=as_written(text, table.frame, kept, delimiter)) if kept else table


def _checked(frame: Any, more: Any, name: str, form: str, notes: tuple[str, ...] = ()) -> Table:
    """The table of a data frame that has rows, with notes on infinite numbers."""
    if len(frame) == 0 or len(frame.columns) == 0:
        raise InvalidInput(message(name, "has a header and no rows", "give a table with rows"))
    if twice := frame.columns[frame.columns.duplicated()].tolist():
        raise InvalidInput(message(name, f"has two columns named {twice[0]!r}", "give them different names"))
    if len(frame.columns) > len(frame):
        frame = frame.copy()  # one block for each type, because pandas keeps and takes the columns of a text one by one
    return Table(frame, name, form, (*notes, *more, *_infinite(frame)))


def _ending(path: Path) -> str:
    """The ending of a name, in lower case, without that of gzip."""
    ending = path.suffix.lower()
    return Path(path.stem).suffix.lower() if ending in (".gz", ".gzip") else ending


def _of_lines(text: str, name: str, notes: tuple[str, ...], column: str = "sequence") -> Table:
    import pandas as pd

    lines = [line.strip() for line in text.split("\n") if line.strip()]
    lines = lines[1:] if lines[0] == column else lines
    more = ["plain text: one text in each line", *left_out(text.rstrip())]
    return Table(pd.DataFrame({column: lines}), name, "lines", (*notes, *more))


MAGIC = {
    b"\x93NUMPY": ".npy", b"PK\x03\x04": ".xlsx", b"\xd0\xcf\x11\xe0": ".xls", b"PAR1": ".parquet", b"ARROW1": ".arrow",
}  # fmt: skip
"""The first bytes of files that are not text: standard input has no name that would tell."""
COLUMNAR = {".parquet": ParquetSource, ".arrow": ArrowSource, ".feather": ArrowSource}
"""The sources of tables that are stored by columns, by the endings of their files."""


def _piped_table(data: bytes, ending: str, name: str, memory: Any) -> Table:
    """A table of Parquet or Arrow from a pipe: these formats are read from their end on, so it becomes a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return _columnar_table(path, ending, name, memory)


def _columnar_table(path: Path, ending: str, name: str, memory: Any) -> Table:
    """A table of Parquet or Arrow, if it fits in the budget as often as a text would."""
    frames, size = [], 0
    for frame in COLUMNAR[ending].frames(path, 1 << 16, memory):
        size += int(frame.memory_usage(deep=True).sum())
        require(2 * size, parse_memory(memory), name, "fit it in Python (mercer.points.read_points)")
        frames.append(frame)
    import pandas as pd

    frame = pd.concat(frames, ignore_index=True)
    return _checked(frame, (), name, "columnar")


def _infinite(frame: Any) -> list[str]:
    """Notes on the columns with infinite or too large numbers, which are treated as missing."""
    floats = np.flatnonzero([dtype.kind == "f" for dtype in frame.dtypes])
    notes, width = [], max(1, RUN // len(frame))
    for first in range(0, len(floats), width):  # many at a time, because pandas is slow to find one
        some = frame.iloc[:, floats[first : first + width]]
        beyond = np.abs(some.to_numpy(np.float64, na_value=np.nan)) >= LARGEST
        for place in np.flatnonzero(beyond.any(axis=0)):
            found = np.flatnonzero(beyond[:, place])
            given = f"{some.columns[place]}: {some.iat[found[0], place]:g} in row {found[0] + 1} (counted from 1)"
            given += f" and {len(found) - 1} more" if found[1:].size else ""
            notes.append(f"{given}: infinite or at least 1e150, treated as missing")
    return notes if len(notes) <= MOST else [*notes[:MOST], f"the like in {counted(len(notes) - MOST, 'more column')}"]


def _fasta_table(text: str, name: str, notes: tuple[str, ...]) -> Table:
    import pandas as pd

    headers, sequences = parse_fasta(text, name)
    frame = pd.DataFrame({"sequence": [one.upper() for one in sequences], "label": headers})
    notes = (*notes, "FASTA: the target is label, the header line; letters were made upper case")
    return Table(frame, name, "fasta", notes)


def _ignoring_case(target: str, columns: list[str]) -> list[str]:
    return [column for column in columns if column.strip().lower() == target.strip().lower()]


def _named(columns: list[str]) -> str:
    return ", ".join(columns[:12]) + (f" and {len(columns) - 12} more" if len(columns) > 12 else "")


def _require_pandas() -> None:
    try:
        import pandas  # noqa: F401
    except ImportError:
        _refuse_without("pandas")


def _refuse_without(package: str) -> NoReturn:
    raise InvalidInput(message("read_table", f"{package} is not installed", 'pip install "mercer[cli]"')) from None
