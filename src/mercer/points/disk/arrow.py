"""Tables that Arrow reads: its own format (Feather) by record batches, and CSV by blocks of text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, MercerError, message
from mercer.numerals import counted
from mercer.points.budget import parse_memory, require
from mercer.points.disk.buffers import blocks_of
from mercer.points.disk.sources import Chunks, FileSource, floats

__all__ = ["ArrowSource", "CsvSource", "TableSource", "needed"]

Batches = Iterator[Any]
FIRST, COLUMN = 1 << 20, 9000
"""Bytes of a CSV file that have its names, and that Arrow takes for each of them, whatever is in the column."""
LARGEST_WHOLE = 1 << 53
"""Up to here float64 has every whole number."""
SHARE = 8
"""A batch of rows with texts takes this part of the memory budget."""


@contextmanager
def _reading(name: str, kind: str) -> Iterator[None]:
    """Turn errors into one that names the file: Arrow raises its own, and what the text in its header leads to."""
    try:
        yield
    except MercerError:
        raise
    except Exception as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        do = "write it again: it may be cut off, or of another format"
        if "conversion error" in said:  # the file is whole, and a value further down is of another type
            do = "give values of one type in each column (the first megabyte tells it), or leave the column out"
        raise InvalidInput(message(name, f"cannot be read as {kind} ({said.rstrip('.')})", do)) from error


class TableSource(FileSource):
    """The columns of numbers of a table in one file or in several; all of them must have the same columns.

    Parameters
    ----------
    paths : sequence of paths
    columns : sequence of str, optional
        The columns to read, in this order; by default all but `without`.
    without : sequence of str, default ()
        Columns to leave out.
    """

    kind: str

    def __init__(
        self, paths: Sequence[Path], columns: Sequence[str] | None = None, without: Sequence[str] = ()
    ) -> None:
        super().__init__(paths)
        self.schemas = {path: self._guarded(path, self._named_schema) for path in self.paths}
        every = list(self.schema.names)
        for name in (*(columns or ()), *without):
            if name not in every:
                given = f"no column {name!r} among {', '.join(map(repr, every[:10]))}"
                raise InvalidInput(message(self.name, given, "name one of the columns"))
        self.names = list(columns) if columns is not None else [name for name in every if name not in without]
        self._require_parts([*self.names, *without], in_order=columns is None)
        self.dtype = self._checked_types()
        self.columns = len(self.names)

    @classmethod
    def _any(cls, path: Path) -> TableSource:
        """The table of a file, with columns of all types."""
        source = cls.__new__(cls)
        FileSource.__init__(source, [path])
        source.schemas = {path: source._guarded(path, source._named_schema)}
        return source

    @property
    def schema(self) -> Any:
        """The Arrow schema of the first file."""
        return self.schemas[self.paths[0]]

    def _require_parts(self, names: Sequence[str], *, in_order: bool) -> None:
        """Raise InvalidInput unless all files have these columns, all numbers or all of the same type.

        Numbers of all types become floats. The order of the columns matters where it is that of the rows.
        """
        for path, schema in self.schemas.items():
            there = schema.names == self.schema.names if in_order else set(names) <= set(schema.names)
            if not there or not all(_alike(schema.field(name).type, self.schema.field(name).type) for name in names):
                given = f"has other columns than {self.paths[0].name}, or other types of them"
                raise InvalidInput(message(path.name, given, "give parts of one table"))

    @classmethod
    def columns_of(cls, path: Path) -> list[str]:
        """The names of the columns of a file."""
        return list(cls._any(path).schema.names)

    @classmethod
    def typed(cls, path: Path, names: Sequence[str]) -> Callable[[Any], dict[str, Any]]:
        """A function that gives these columns of a frame as Arrow arrays of the file's types, categories as texts.

        Frames of a file differ in the types that pandas has for them, such as where values are missing.
        """
        import pyarrow as pa

        schema = cls._any(path).schema
        kinds = {name: schema.field(name).type for name in names if name in schema.names}

        def array(column: Any, kind: Any) -> Any:
            if pa.types.is_dictionary(kind):
                column, kind = column.astype(object), kind.value_type
            return pa.array(column, kind, from_pandas=True)

        return lambda frame: {name: array(frame[name], kind) for name, kind in kinds.items()}

    @classmethod
    def column(cls, path: Path, name: str) -> NDArray[Any]:
        """A column of a file, of any type."""
        return cls._any(path).target(name)

    @classmethod
    def frames(cls, path: Path, rows: int, memory: Any = None) -> Iterator[Any]:
        """The table as pandas data frames of about `rows` rows, with columns of all types, in order.

        Their indices are the places in the file. Integers beside missing ones are integers of pandas, as float64 does
        not hold all of them. A frame takes a part of the memory budget, or MemoryExceeded is raised;
        InvalidInput, for a table without rows.
        """
        source = cls._any(path)
        budget, first = parse_memory(memory), 0
        for batch in source._all_batches(rows, list(source.schema.names), budget, budget // SHARE):
            _require_texts(batch, budget, path.name)
            with _reading(path.name, cls.kind):
                frame = _frame(batch)
            frame.index += first
            first += len(frame)
            yield frame
        if not first:
            raise InvalidInput(message(path.name, "has no rows", "give a table with rows"))

    def _checked_types(self) -> np.dtype[Any]:
        """The dtype of the rows; InvalidInput names columns that hold no numbers."""
        import pyarrow as pa

        kinds = {name: self.schema.field(name).type for name in self.names or ()}
        others = [name for name, kind in kinds.items() if not _is_number(kind)]
        if others or not kinds:
            named = ", ".join(map(repr, others[:5]))
            given = f"{counted(len(others), 'column')} hold{'s' * (len(others) == 1)} no numbers: {named}"
            given = given if kinds else "no columns"
            raise InvalidInput(message(self.name, given, "encode them, or leave them out"))
        every = (schema.field(name).type for schema in self.schemas.values() for name in kinds)
        small = all(pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in every)
        return floats(np.float32 if small else np.float64)

    @abstractmethod
    def _schema(self, path: Path) -> Any:
        """The Arrow schema of a file."""

    @abstractmethod
    def _batches(self, path: Path, rows: int, names: list[str], budget: int, room: int | None) -> Batches:
        """Record batches of these columns in order, of about `rows` rows.

        What is read to make them fits in the budget, or MemoryExceeded is raised. Given `room`, batches have fewer rows
        where the file has the choice and texts take more bytes.
        """

    def _named_schema(self, path: Path) -> Any:
        """The schema. Its names are texts, which Arrow decodes when it is asked, and differ."""
        found = self._schema(path)
        if len(set(found.names)) < len(found.names):
            raise InvalidInput(message(path.name, "has two columns of the same name", "give them different names"))
        return found

    def _guarded(self, path: Path, read: Callable[[Path], Any]) -> Any:
        with _reading(path.name, self.kind):
            return read(path)

    def _chunks(self, rows: int, budget: int) -> Chunks:
        for batch in self._all_batches(rows, list(self.names or ()), budget):
            yield from self._arrays(batch, rows)
            del batch  # it would be in memory beside the next one

    def _arrays(self, batch: Any, rows: int) -> Chunks:
        """A record batch, which may be long, as arrays of at most `rows` rows."""
        for first in range(0, batch.num_rows, rows):
            part = batch.slice(first, rows)
            out = np.empty((part.num_rows, self.columns), self.dtype)
            for place, name in enumerate(self.names or ()):
                out[:, place] = part.column(name).to_numpy(zero_copy_only=False)
            yield out

    def _all_batches(self, rows: int, names: list[str], budget: int, room: int | None = None) -> Batches:
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            stamp.check(path)
            with _reading(path.name, self.kind):
                yield from self._batches(path, rows, names, budget, room)
        needed("pyarrow").default_memory_pool().release_unused()  # it would keep up to 140 MB, which no plan counts

    def target(self, name: str, memory: Any = None) -> NDArray[Any]:
        if name not in self.schema.names:
            raise InvalidInput(message(self.name, f"no column {name!r}", f"name one of {self.schema.names[:10]}"))
        self._require_parts([name], in_order=False)
        budget, parts, size = parse_memory(memory), [], 0
        for batch in self._all_batches(1 << 20, [name], budget, budget // SHARE):
            size += batch.nbytes
            require(size, budget, f"{self.name}: column {name!r}", "give fewer rows")
            parts.append(batch.column(0).to_numpy(zero_copy_only=False))
        return np.concatenate(parts)


class ArrowSource(TableSource):
    """Files of Arrow's own format (also called IPC or Feather), by record batches."""

    kind = "Arrow"

    def _schema(self, path: Path) -> Any:
        with needed("pyarrow.ipc").open_file(str(path)) as file:
            return file.schema

    def _batches(self, path: Path, rows: int, names: list[str], budget: int, room: int | None) -> Batches:
        ipc = needed("pyarrow.ipc")
        with path.open("rb", buffering=0) as raw:
            dictionaries, batches = blocks_of(raw, path.stat().st_size, path.name)
        every = self.schemas[path].names
        largest = max(batches, default=0) * len(names) // max(len(every), 1)
        require(sum(dictionaries) + largest, budget, f"{path.name}: a record batch", "write it with smaller batches")
        places = [every.index(name) for name in names]
        options = ipc.IpcReadOptions(included_fields=sorted(places))
        with ipc.open_file(str(path), options=options) as file:
            for place in range(file.num_record_batches):
                yield _valid(file.get_batch(place).select(names))


class CsvSource(TableSource):
    """CSV files with a line of names: they are read in blocks of text, numbers as float64."""

    kind = "CSV"

    def _schema(self, path: Path) -> Any:
        with path.open("rb") as file:
            commas = file.readline(FIRST).count(b",")
        require(COLUMN * commas, parse_memory(None), f"{path.name}: a table of {commas + 1} columns", "leave some out")
        return self._opened(path, None, FIRST).schema

    def _opened(self, path: Path, names: list[str] | None, block: int) -> Any:
        import pyarrow as pa

        csv = needed("pyarrow.csv")
        # A whole number may be followed by a decimal one. True and False, and dates, are what they are.
        kinds = {name: self.schemas[path].field(name).type for name in names or ()}
        numbers = [name for name, kind in kinds.items() if _is_number(kind) and not pa.types.is_boolean(kind)]
        convert = csv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(numbers, pa.float64()))
        return csv.open_csv(path, csv.ReadOptions(block_size=block), convert_options=convert)

    def _batches(self, path: Path, rows: int, names: list[str], budget: int, room: int | None) -> Batches:
        # A number takes some ten characters.
        block = min(max(rows * len(self.schema.names) * 10, 1 << 16), 1 << 24)
        with self._opened(path, names, block) as reader:
            yield from reader

    def target(self, name: str, memory: Any = None) -> NDArray[Any]:
        """The values of a column; whole numbers, such as those of classes, are integers."""
        import pyarrow as pa

        found = super().target(name, memory)
        begins_whole = all(pa.types.is_integer(schema.field(name).type) for schema in self.schemas.values())
        if begins_whole and np.all(np.abs(found) < LARGEST_WHOLE) and np.all(found == np.rint(found)):
            return found.astype(np.int64)
        return found


def _valid(batch: Any) -> Any:
    """The batch; what Arrow maps it does not check, and would follow anywhere."""
    batch.validate(full=True)
    return batch


def _frame(batch: Any) -> Any:
    """The batch as a pandas data frame, of all its columns: pandas' own part in the file makes indices of some."""
    import pandas as pd
    import pyarrow as pa

    frame = batch.to_pandas(ignore_metadata=True)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count and pa.types.is_integer(column.type):
            absent = column.is_null().to_numpy(zero_copy_only=False)
            frame[name] = pd.arrays.IntegerArray(column.fill_null(0).to_numpy(), absent, copy=True)
    return frame


def _require_texts(batch: Any, budget: int, name: str) -> None:
    """Raise MemoryExceeded if texts that share their letters do not fit in the budget when each has its own."""
    import pyarrow as pa

    taken = 0
    for column in batch.columns:
        if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
            views = np.frombuffer(column.buffers()[1], np.int32)[::4][column.offset : column.offset + len(column)]
            taken += int(views.sum(dtype=np.int64))
        elif "_view" in str(column.type) and not pa.types.is_dictionary(column.type):
            given = f"it has values of {column.type}"
            raise InvalidInput(message(name, given, "leave the column out, or write it as another type"))
    require(taken, budget, f"{name}: texts", "write it with smaller batches")


def _is_number(kind: Any) -> bool:
    """Whether values of this type are read as floats."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _alike(kind: Any, other: Any) -> bool:
    return bool(kind.equals(other)) or (_is_number(kind) and _is_number(other))


def needed(name: str) -> ModuleType:
    """The module of the extra; InvalidInput says how it is installed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        given = f"{name.partition('.')[0]} is not installed"
        raise InvalidInput(message("read_points", given, 'pip install "mercer[disk]"')) from error
