"""Tables in Parquet files, by row groups. What a group takes is known, or refused, before it is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Any, NamedTuple

from mercer.points.budget import require
from mercer.points.disk.arrow import Batches, TableSource, needed
from mercer.points.disk.pages import Pages, pages_of

__all__ = ["ParquetSource"]

NUMBERS = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")
PLAIN = ("NONE", "INT", "TIMESTAMP")
"""Numbers with another meaning become objects of Python, such as dates."""
OBJECT = 100
"""Bytes of one, without the bytes of its text."""
SMALL = 1 << 12
"""Bytes of a buffer that is not used."""
ENTRY = 16
"""Bytes of an entry of a dictionary, without those of its text."""
CONTAINERS, LEAST = 1_000, 8
"""Arrow makes room for as many parts as a list in the footer says. Each of a long list has at least `LEAST` bytes."""


class ParquetSource(TableSource):
    """Parquet files: their row groups are read one after the other, in order."""

    kind = "Parquet"

    def __init__(
        self, paths: Sequence[Path], columns: Sequence[str] | None = None, without: Sequence[str] = ()
    ) -> None:
        super().__init__(paths, columns, without)
        self.count = sum(self._guarded(path, _rows) for path in self.paths)

    def _schema(self, path: Path) -> Any:
        with _opened(path) as file:
            return file.schema_arrow

    def _batches(self, path: Path, rows: int, names: list[str], budget: int, room: int | None) -> Batches:
        with _opened(path) as file, path.open("rb", buffering=0) as raw:
            leaves, unread = _leaves(file, names), _unread(path, file.metadata)
            full = [group for group in range(file.num_row_groups) if file.metadata.row_group(group).num_rows]
            for group in full:
                with suppress(_WouldRead):
                    next(unread.iter_batches(1, [group], names, use_threads=False))
                width = _checked(file, _reader(raw), path, group, leaves, budget)
                yield from file.iter_batches(rows if room is None else max(1, min(rows, room // width)), [group], names)


class _Leaf(NamedTuple):
    """A column as it is stored: its place, its name, whether it has texts, several values a row, and their bytes."""

    place: int
    path: str
    texts: bool
    repeated: bool
    width: int


def _leaves(file: Any, names: list[str]) -> list[_Leaf]:
    """The stored columns of these names; all of them if some are nested."""
    schema, places = file.schema, {name: place for place, name in enumerate(file.schema_arrow.names)}
    found = []
    for place in [places[name] for name in names] if len(schema) == len(places) else range(len(schema)):
        one = schema.column(place)
        number = one.physical_type in NUMBERS and one.logical_type.type in PLAIN
        width = 8 if number else OBJECT + max(one.length or 0, 0)
        found.append(_Leaf(place, one.path, one.physical_type == "BYTE_ARRAY", one.max_repetition_level > 0, width))
    return found


def _reader(raw: FileIO) -> Callable[[int, int], bytes]:
    """A function that reads so many bytes at a place."""
    if hasattr(os, "pread"):
        return partial(os.pread, raw.fileno())
    return lambda length, at: raw.read(length) if raw.seek(at) >= 0 else b""  # Windows


def _opened(path: Path, **options: Any) -> Any:
    most = min(CONTAINERS + path.stat().st_size // LEAST, 1_000_000)
    open_file = needed("pyarrow.parquet").ParquetFile
    return open_file(path, pre_buffer=False, buffer_size=1 << 20, thrift_container_size_limit=most, **options)


class _WouldRead(Exception):
    """Raised instead of reading."""


class _Unread(RawIOBase):
    """A file of a size that nobody may read."""

    def __init__(self, size: int) -> None:
        self.size, self.at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.at = offset if whence == os.SEEK_SET else self.size + offset
        return self.at

    def tell(self) -> int:
        return self.at

    def read(self, size: int = -1) -> bytes:
        raise _WouldRead


def _unread(path: Path, metadata: Any) -> Any:
    """The file with its footer but without its pages.

    What Arrow finds wrong with the columns of a row group it raises when it is about to read them. Asked about such a
    column otherwise, it ends the process.
    """
    source = needed("pyarrow").PythonFile(_Unread(path.stat().st_size), "r")
    open_file = needed("pyarrow.parquet").ParquetFile
    return open_file(source, metadata=metadata, pre_buffer=False, buffer_size=SMALL)


def _rows(path: Path) -> int:
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def _checked(
    file: Any, read: Callable[[int, int], bytes], path: Path, group: int, leaves: list[_Leaf], budget: int
) -> int:
    """The bytes that a row of a group takes at most.

    Raises
    ------
    InvalidInput
        For pages that say they take far more than their bytes can hold.
    MemoryExceeded
        If the pages, and the values of nested columns, do not fit in the budget.
    """
    found = file.metadata.row_group(group)
    width = taken = 0
    for leaf in leaves:
        column = found.column(leaf.place)
        start = column.data_page_offset
        if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
            start = column.dictionary_page_offset
        pages = pages_of(read, start, column.total_compressed_size, column.num_values, leaf.path, path.name)
        each = leaf.width + (_text_width(leaf, pages, path, group) if leaf.texts else 0)
        taken += 3 * pages.largest + pages.dictionary + ENTRY * pages.entries  # a batch ends within pages
        if leaf.repeated:
            taken += pages.values * each
        else:
            width += each
    require(taken + width, budget, f"{path.name}: a row group", "write it with smaller pages")
    return max(width, 1)


def _text_width(leaf: _Leaf, pages: Pages, path: Path, group: int) -> int:
    """The bytes of a text in a column at most."""
    if pages.shared or (pages.entries and leaf.repeated):
        return pages.total
    return pages.each + (_longest(path, group, leaf.path) if pages.entries else 0)


def _longest(path: Path, group: int, column: str) -> int:
    """The length of the longest text in the dictionary of a column: any row may be this one."""
    compute, types = needed("pyarrow.compute"), needed("pyarrow.types")
    with _opened(path, read_dictionary=[column]) as file:
        for batch in file.iter_batches(1, [group], [column]):
            texts = batch.column(0)
            while types.is_struct(texts.type):
                texts = texts.field(0)  # it has been read without its other fields
            return int(compute.max(compute.binary_length(texts.dictionary)).as_py() or 0)
    return 0
