"""Tables in Parquet files, by row groups. What a group takes is known, or refused, before it is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mercer.points.budget import require
from mercer.points.disk.arrow import Batches, TableSource, needed
from mercer.points.disk.pages import Pages, pages_of

__all__ = ["ParquetSource"]

NUMBERS = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")
PLAIN = ("NONE", "INT", "TIMESTAMP")
"""Numbers with another meaning become objects of Python, such as dates."""
OBJECT = 100
"""Bytes of one, without the bytes of its text."""
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
            for group in range(file.num_row_groups):
                width = _checked(file, raw, path, group, names, budget)
                yield from file.iter_batches(rows if room is None else max(1, min(rows, room // width)), [group], names)


def _opened(path: Path, **options: Any) -> Any:
    most = min(CONTAINERS + path.stat().st_size // LEAST, 1_000_000)
    open_file = needed("pyarrow.parquet").ParquetFile
    return open_file(path, pre_buffer=False, buffer_size=1 << 20, thrift_container_size_limit=most, **options)


def _rows(path: Path) -> int:
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def _checked(file: Any, raw: BinaryIO, path: Path, group: int, names: list[str], budget: int) -> int:
    """The bytes that a row of a group takes at most.

    Raises
    ------
    InvalidInput
        For pages that say they take far more than their bytes can hold.
    MemoryExceeded
        If the pages, and the values of nested columns, do not fit in the budget.
    """
    found, schema = file.metadata.row_group(group), file.schema
    flat = len(schema) == len(file.schema_arrow.names)
    places = map(file.schema_arrow.names.index, names) if flat else range(len(schema))
    width = taken = 0
    for place in places:
        column, leaf = found.column(place), schema.column(place)
        start = column.data_page_offset
        if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
            start = column.dictionary_page_offset
        pages = pages_of(raw, start, column.total_compressed_size, column.num_values, leaf.path, path.name)
        each = _width(leaf, pages, path, group)
        taken += 3 * pages.largest + pages.dictionary + ENTRY * pages.entries  # a batch ends within pages
        if leaf.max_repetition_level:
            taken += pages.values * each
        else:
            width += each
    require(taken + width, budget, f"{path.name}: a row group", "write it with smaller pages")
    return max(width, 1)


def _width(leaf: Any, pages: Pages, path: Path, group: int) -> int:
    """The bytes that a value of a column takes at most."""
    if leaf.physical_type in NUMBERS and leaf.logical_type.type in PLAIN:
        return 8
    if leaf.physical_type != "BYTE_ARRAY":
        return OBJECT + max(leaf.length or 0, 0)
    if pages.shared or (pages.entries and leaf.max_repetition_level):
        return OBJECT + pages.total
    return OBJECT + pages.each + (_longest(path, group, leaf.path) if pages.entries else 0)


def _longest(path: Path, group: int, column: str) -> int:
    """The length of the longest text in the dictionary of a column: any row may be this one."""
    compute = needed("pyarrow.compute")
    with _opened(path, read_dictionary=[column]) as file:
        for batch in file.iter_batches(1, [group], [column]):
            return int(compute.max(compute.binary_length(batch.column(0).dictionary)).as_py() or 0)
    return 0
