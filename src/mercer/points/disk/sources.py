"""Sources of rows: files and restartable iterators, read from the first row to the last, a chunk at a time."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.points.budget import parse_memory
from mercer.points.fingerprint import fingerprint

__all__ = ["ChunkSource", "Chunks", "FileSource", "NpySource", "RowSource", "SomeRows", "Stamp", "floats"]

Array = NDArray[Any]
Chunks = Iterator[Array]


def floats(dtype: Any) -> np.dtype[Any]:
    """The dtype of rows: float32 for floats of up to 32 bits, else float64.

    >>> floats(np.int8), floats(np.float16)
    (dtype('float64'), dtype('float32'))
    """
    given = np.dtype(dtype)
    return np.dtype(np.float32 if given.kind == "f" and given.itemsize <= 4 else np.float64)


class Stamp(NamedTuple):
    """The size of a file and the time of its last change, by which a change is noticed."""

    size: int
    time: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of a file; InvalidInput if there is none."""
        try:
            found = os.stat(path)
        except OSError as error:
            do = "give the path of a file, and all files of a table in parts"
            raise InvalidInput(message(path.name, f"cannot be read ({error.strerror})", do)) from error
        return cls(found.st_size, found.st_mtime_ns)

    def check(self, path: Path) -> None:
        """Raise InvalidInput if the file has changed since."""
        if Stamp.of(path) != self:
            raise InvalidInput(message(path.name, "changed while it was read", "fit again when it is complete"))


class RowSource(ABC):
    """Rows of numbers that are read in order, as often as wanted.

    A subclass must have `_chunks` and sets the attributes when it is made.

    Attributes
    ----------
    name : str
        The name in messages.
    paths : tuple of Path
        The files that are read, if any.
    columns : int
        The number of columns.
    dtype : float32 or float64
    count : int or None
        The number of rows, None if only a pass over them tells.
    names : sequence of str or None
        The names of the columns.
    """

    name: str
    columns: int
    dtype: np.dtype[Any]
    paths: tuple[Path, ...] = ()
    count: int | None = None
    names: Sequence[str] | None = None

    def chunks(self, rows: int, memory: Any = None) -> Chunks:
        """The rows in order, at most `rows` at a time; raises InvalidInput if the source has changed meanwhile.

        MemoryExceeded if a piece that can be read only as a whole does not fit in `memory`.
        """
        self.check()
        for chunk in self._chunks(rows, parse_memory(memory)):
            for first in range(0, len(chunk), rows):
                yield chunk[first : first + rows]
        self.check()

    @abstractmethod
    def _chunks(self, rows: int, budget: int) -> Chunks:
        """The rows in order, about `rows` at a time; what is read to make them fits in the budget."""

    def check(self) -> None:  # noqa: B027 - an iterator has nothing to compare
        """Raise InvalidInput if the source has changed since it was opened."""

    def target(self, name: str, memory: Any = None) -> Array:
        """The values of a column that is not among the rows; only a table with names has some."""
        raise InvalidInput(message(self.name, f"target={name!r}, and columns without names", "give y as an array"))

    def bare(self) -> tuple[Path, int] | None:
        """The file and the position of the first number, if the file holds the rows as memory does."""
        return None


class FileSource(RowSource):
    """Rows in one file or in several, read in the given order.

    Parameters
    ----------
    paths : sequence of paths
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self.name = self.paths[0].name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
        self.stamps = tuple(Stamp.of(path) for path in self.paths)

    def check(self) -> None:
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            stamp.check(path)


class NpySource(FileSource):
    """The rows of an array in a file of NumPy's (``.npy``).

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: Path) -> None:
        super().__init__([path])
        try:
            self._array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # whatever NumPy's tokenizer of the header raises
            do = "write it again with numpy.save: it may be cut off, or no array of numbers"
            raise InvalidInput(message(path.name, f"cannot be read as .npy ({error})", do)) from error
        if self._array.ndim != 2 or self._array.dtype.kind not in "fiub" or 0 in self._array.shape:
            given = f"has shape {self._array.shape} and dtype {self._array.dtype}"
            raise InvalidInput(message(path.name, given, "give a table of numbers, one row a point"))
        self.count, self.columns = self._array.shape
        self.dtype = floats(self._array.dtype)

    def __reduce__(self) -> Any:
        return NpySource, (self.paths[0],), {"stamps": self.stamps}  # the file, not its numbers

    def _chunks(self, rows: int, budget: int) -> Chunks:
        for first in range(0, len(self._array), rows):
            yield np.ascontiguousarray(self._array[first : first + rows], self.dtype)

    def bare(self) -> tuple[Path, int] | None:
        plain = self._array.flags.c_contiguous and self._array.dtype == self.dtype
        return (self.paths[0], int(self._array.offset)) if plain else None


class ChunkSource(RowSource):
    """Rows from a function that returns a new iterator of chunks each time.

    Parameters
    ----------
    restart : callable
        ``restart()`` gives arrays of shape (any, d) and of one dtype, the same ones at each call; or data frames whose
        columns have the same names.
    """

    def __init__(self, restart: Callable[[], Iterable[Any]], name: str = "chunks") -> None:
        self._restart, self.name = restart, name
        begun = restart()
        chunk = next(iter(begun), None)
        first = None if chunk is None else np.asarray(chunk)
        if first is None or first.ndim != 2 or first.dtype.kind not in "fiub":
            given = "no chunk" if first is None else f"a chunk of shape {first.shape} and dtype {first.dtype}"
            raise InvalidInput(message(name, given, "give arrays of numbers, one row a point"))
        if isinstance(begun, Iterator) and restart() is begun:
            raise self._not_again()
        self.columns, self.dtype, self.names = first.shape[1], floats(first.dtype), _names(chunk)
        self._first = fingerprint(np.ascontiguousarray(first))

    def _chunks(self, rows: int, budget: int) -> Chunks:
        place = -1
        for place, chunk in enumerate(self._restart()):
            found = np.asarray(chunk)
            if place == 0 and fingerprint(np.ascontiguousarray(found)) != self._first:
                raise self._not_again()
            self._require_alike(place + 1, found, _names(chunk))
            yield np.ascontiguousarray(found, self.dtype)
        if place < 0:
            raise self._not_again()

    def _not_again(self) -> InvalidInput:
        given = "the function does not begin again with the first chunk"
        return InvalidInput(message(self.name, given, "give a function that makes a new iterator at each call"))

    def _require_alike(self, number: int, chunk: Array, names: Sequence[str] | None) -> None:
        """Raise InvalidInput for a chunk that is no continuation of the first one, or whose numbers would be cut."""
        if chunk.ndim != 2 or chunk.shape[1] != self.columns:
            given = f"chunk {number} of shape {chunk.shape} after one of {self.columns} columns"
            raise InvalidInput(message(self.name, given, "give chunks with the same columns"))
        if names != self.names:
            given = f"chunk {number} has other names of columns than the first one, or another order"
            raise InvalidInput(message(self.name, given, "give chunks with the same columns"))
        kept = chunk.dtype.kind in "fiub" and (
            floats(chunk.dtype) == self.dtype or np.can_cast(chunk.dtype, self.dtype)
        )
        if not kept:
            given = f"chunk {number} has dtype {chunk.dtype}, and rows are {self.dtype} as in the first chunk"
            raise InvalidInput(message(self.name, given, "give chunks of one dtype"))


def _names(chunk: Any) -> list[str] | None:
    """The names of the columns of a data frame, if they are texts, as scikit-learn reads them."""
    names = list(getattr(chunk, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


class SomeRows(RowSource):
    """Some rows of a source, in its order.

    Parameters
    ----------
    source : RowSource
    index : integers of shape (n,)
        The numbers of the rows, in growing order.
    """

    def __init__(self, source: RowSource, index: NDArray[np.intp]) -> None:
        if np.any(np.diff(index) <= 0):
            do = "give growing numbers, such as those of scikit-learn's KFold and StratifiedKFold"
            raise InvalidInput(message(source.name, "rows are asked for in another order than they are read", do))
        self._source, self._index = source, index
        self.name, self.paths, self.names = source.name, source.paths, source.names
        self.columns, self.dtype, self.count = source.columns, source.dtype, len(index)

    def _chunks(self, rows: int, budget: int) -> Chunks:
        first = done = 0
        for chunk in self._source.chunks(rows, budget):
            last = int(np.searchsorted(self._index, first + len(chunk)))
            yield chunk[self._index[done:last] - first]
            first, done = first + len(chunk), last
