"""Points as the rows of a file that holds them as memory does: they are read a window at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.points.base import Index, VectorPoints
from mercer.points.dense import DensePoints
from mercer.points.disk.scratch import scratch
from mercer.points.fingerprint import fingerprint_of_chunks

__all__ = ["FilePoints", "RowFile"]

GAP = 1 << 16
"""Bytes between two wanted rows up to which they are read together: about what a disk reads in the time of a seek."""


class RowFile:
    """A file of rows one after the other, which one thread reads ahead.

    Parameters
    ----------
    handle : binary file
        It is closed with this object; a temporary file goes with it.
    name : str
        The name in messages.
    offset : int
        The position of the first number.
    shape : tuple of two int
    dtype : float32 or float64
    window : int
        Bytes that may be in memory at a time.
    folder : str, optional
        The folder of temporary files, by default the system's.
    check : callable, optional
        Raises InvalidInput if the file, the user's, has changed.
    """

    def __init__(
        self,
        handle: BinaryIO,
        name: str,
        offset: int,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        window: int,
        folder: str | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.name, self.shape, self.dtype, self.window, self.folder = name, shape, dtype, window, folder
        self.reading = {"rows": 0.0, "bytes": 0.0, "seconds waited": 0.0}
        self._handle, self._offset, self._check = handle, offset, check
        self._lock, self._thread = threading.Lock(), ThreadPoolExecutor(1, "mercer-ahead")
        self._coming: tuple[tuple[int, int], Future[NDArray[Any]]] | None = None
        self._last = -1

    def __del__(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._handle.close()

    def read(self, first: int, last: int) -> NDArray[Any]:
        """The rows from `first` up to but not including `last`; if they follow the last ones, then the next as well."""
        with self._watched():
            coming, self._coming = self._coming, None
            ready = coming is not None and coming[0] == (first, last)
            rows = coming[1].result() if coming is not None and ready else self._read(first, last)
        self._count(rows)
        end = min(2 * last - first, self.shape[0])
        if first == self._last and last < end and rows.nbytes <= self.window:
            self._coming = (last, end), self._thread.submit(self._read, last, end)
        self._last = last
        return rows

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Check that the file is the same, and count the seconds of reading."""
        if self._check is not None:
            self._check()
        start = perf_counter()
        yield
        self.reading["seconds waited"] += perf_counter() - start

    def _count(self, rows: NDArray[Any]) -> None:
        self.reading["rows"] += len(rows)
        self.reading["bytes"] += rows.nbytes

    def _read(self, first: int, last: int) -> NDArray[Any]:
        rows = np.empty((last - first, self.shape[1]), self.dtype)
        self._fill(rows, first)
        return rows

    def _fill(self, rows: NDArray[Any], first: int) -> None:
        """Read the rows from `first` on into an array."""
        wanted = rows.reshape(-1).view(np.uint8).data
        with self._lock:
            self._handle.seek(self._offset + first * self.row_bytes)
            done = 0
            while done < len(wanted):
                more = self._handle.readinto(wanted[done:])  # type: ignore[attr-defined]
                if not more:
                    raise InvalidInput(message(self.name, f"ends before row {first + len(rows) - 1}", "write it again"))
                done += more

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return int(self.shape[1] * self.dtype.itemsize)

    def take(self, index: Index) -> NDArray[Any]:
        """The rows with these indices; those that are close together are read together."""
        order = np.argsort(index, kind="stable")
        wanted = np.asarray(index)[order]
        rows, out = (np.empty((len(wanted), self.shape[1]), self.dtype) for _ in range(2))
        with self._watched():
            for first, last in self._near(wanted):
                low, high = int(wanted[first]), int(wanted[last - 1]) + 1
                if last - first == 1:
                    self._fill(rows[first:last], low)
                else:
                    rows[first:last] = self._read(low, high)[wanted[first:last] - low]
        self._count(rows)
        out[order] = rows
        return out

    def _near(self, wanted: Index) -> Iterator[tuple[int, int]]:
        """The runs of sorted indices whose rows are close together, and fit in a window."""
        near, most = GAP // self.row_bytes + 1, max(self.window // self.row_bytes, 1)
        ends = [0, *(np.flatnonzero(np.diff(wanted) > near) + 1).tolist(), len(wanted)]
        for start, end in pairwise(ends):
            first = start
            while first < end:
                within = int(np.searchsorted(wanted[first:end], wanted[first] + most)) if end - first > 1 else 1
                yield first, first + within
                first += within


@dataclass(frozen=True, eq=False)
class FilePoints(VectorPoints):
    """Rows in a file that holds them as memory does. Parts of them are `DensePoints`.

    Parameters
    ----------
    file : RowFile
    kind : float32 or float64
        The dtype of the rows that are read.
    size : float
        The largest |number|.
    names : list of str, optional
        The names of the columns.
    index : integers of shape (n,), optional
        The rows of the file that the points are, by default all in their order.

    Attributes
    ----------
    rows : FilePoints
        The points themselves, which have the shape, the dtype and the indexing of an array.

    Examples
    --------
    >>> from mercer.points import DiskPoints
    >>> from mercer.points.disk.sources import ChunkSource
    >>> rows = DiskPoints(ChunkSource(lambda: iter([np.ones((2, 3))])), memory=1).validate("example")
    >>> isinstance(rows, FilePoints), len(rows)
    (True, 2)
    """

    file: RowFile
    kind: np.dtype[Any]
    size: float
    names: Any = None  # type: ignore[assignment]
    index: Index | None = None

    @property
    def rows(self) -> FilePoints:  # type: ignore[override]
        return self

    def __reduce__(self) -> Any:
        return DensePoints, (self.dense(),)

    # ---- as an array ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.file.shape[0] if self.index is None else len(self.index)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        if isinstance(key, slice):
            first, last, step = key.indices(len(self))
            return self._read(first, max(first, last))[::step] if step > 0 else self.dense()[key]
        index = np.arange(len(self))[key]
        return self._taken(index) if np.ndim(index) else self._taken(np.array([index]))[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.dense().astype(dtype or self.kind, copy=False)

    @property
    def ndim(self) -> int:
        """2, as for an array."""
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.kind

    @property
    def columns(self) -> int:
        return self.file.shape[1]

    @property
    def nbytes(self) -> int:
        return len(self) * self.columns * self.kind.itemsize

    @property
    def window(self) -> int:
        return self.file.window

    @property
    def reading(self) -> dict[str, float]:
        return self.file.reading

    # ---- the contract -----------------------------------------------------------------------------------------------

    def validate(self, who: str) -> FilePoints:
        return self  # checked when the file was opened or packed

    def take(self, index: Index, *, copy: bool = True) -> DensePoints:
        return DensePoints(self._taken(np.asarray(index)))

    def among(self, index: Index, others: Index | None = None) -> VectorPoints:
        small = len(index) * self.file.row_bytes <= self.window
        return self.take(index) if small else replace(self, index=self.kept(self._places(np.asarray(index))))

    def scratch(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        return scratch(shape, dtype, self.file.name, self.file.folder)

    def kept(self, array: NDArray[Any]) -> NDArray[Any]:
        copy = self.scratch(array.shape, array.dtype)
        copy[...] = array
        return copy

    def run(self, first: int, last: int) -> DensePoints:
        return DensePoints(self._read(first, last))

    def dense(self) -> NDArray[Any]:
        return self._read(0, len(self))

    @property
    def written(self) -> int:
        return self.nbytes

    def astype(self, dtype: DTypeLike) -> FilePoints:
        return self if self.kind == dtype else replace(self, kind=np.dtype(dtype))

    def widened(self, dtype: DTypeLike) -> FilePoints:
        return self.astype(dtype) if self.kind.itemsize < np.dtype(dtype).itemsize else self

    def stack(self, first: VectorPoints, second: VectorPoints) -> DensePoints:
        return DensePoints(np.concatenate([first.dense(), second.dense()]))

    def chunks(self) -> Iterator[DensePoints]:
        for block in self.blocks(self.window):
            assert isinstance(block, DensePoints)
            yield block

    def largest(self) -> float:
        return float(self.kind.type(self.size))

    def squared_norms(self) -> NDArray[Any]:
        return np.concatenate([part.squared_norms() for part in self.chunks()])

    def fingerprint(self) -> str:
        return fingerprint_of_chunks((len(self), self.columns), self.kind, (part.rows for part in self.chunks()))

    def _read(self, first: int, last: int) -> NDArray[Any]:
        if self.index is not None:
            return self._taken(np.arange(first, last))
        return self.file.read(first, last).astype(self.kind, copy=False)

    def _taken(self, index: Index) -> NDArray[Any]:
        return self.file.take(self._places(index)).astype(self.kind, copy=False)

    def _places(self, index: Index) -> Index:
        return index if self.index is None else self.index[index]
