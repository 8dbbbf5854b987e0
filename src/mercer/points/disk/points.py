"""Points as the rows of a source: they are read into memory, or packed once in a temporary file."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.points.base import Index, VectorPoints
from mercer.points.budget import parse_memory
from mercer.points.dense import DensePoints
from mercer.points.disk.ahead import ahead
from mercer.points.disk.packed import FilePoints, RowFile
from mercer.points.disk.scratch import no_space, require_space, temporary
from mercer.points.disk.sources import RowSource, SomeRows

__all__ = ["DiskPoints"]

LOADED_SHARE = 4
"""Rows are read into memory if the budget is this many times their size: the engine copies them, once or twice."""

WINDOWS = 32
"""A window is at most this part of the budget: windows, the engine's copies and the next window are in memory at a
time, on both sides of a kernel matrix."""

LARGEST_WINDOW = 1 << 24
"""Bytes of the largest window. Larger ones are not read faster, and the C library frees their memory after each use."""


@dataclass(frozen=True, eq=False)
class DiskPoints(VectorPoints):
    """The rows of a source, such as a Parquet file. A fit packs them once, or reads them into memory if they fit.

    `validate` makes one pass over the source, in which all rows are checked. Rows that fit four times into the budget
    are read into memory. Other rows are written to a temporary file, which is deleted with the points that
    `validate` returned, unless the source is a ``.npy`` file, which is read in place.

    Parameters
    ----------
    source : RowSource
    memory : int, str or None
        The budget; an estimator gives its own.
    folder : str or None
        The folder of the temporary file, by default the system's.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.points.disk.sources import ChunkSource
    >>> len(DiskPoints(ChunkSource(lambda: iter([np.ones((2, 3)), np.zeros((1, 3))]))).validate("example"))
    3
    """

    source: RowSource
    memory: Any = None
    folder: str | None = None
    _kept: dict[int, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}  # what a fit made belongs to this process

    def __getitem__(self, key: Any) -> DiskPoints:
        """Some of the rows, in their order, as points on disk: so scikit-learn's cross-validation splits data."""
        index = np.arange(len(self))[key[0] if isinstance(key, tuple) else key]
        return replace(self, source=SomeRows(self.source, np.atleast_1d(index)), _kept={})

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        given, do = "rows on disk, where rows in memory are read", "give points.dense(), an array of all rows"
        raise InvalidInput(message(self.source.name, given, do))

    # ---- from the source --------------------------------------------------------------------------------------------

    def within(self, memory: Any) -> DiskPoints:
        return replace(self, memory=memory)

    def validate(self, who: str) -> VectorPoints:  # type: ignore[override]
        budget = parse_memory(self.memory)
        kept = self._kept.get(budget)
        found = kept() if kept is not None else None
        if found is None:
            found = self._made(who, budget)
            self._kept[budget] = weakref.ref(found)
        return found

    def checked(self, who: str, rows: int) -> Iterator[NDArray[Any]]:
        """The rows in order, at most `rows` at a time, checked and read ahead; InvalidInput names the first bad one."""
        first = 0
        for chunk in ahead(self.source.chunks(rows, self.memory)):
            self._check(chunk, first, who)
            yield chunk
            first += len(chunk)
        if first == 0:
            raise InvalidInput(message(who, f"{self.source.name} has no rows", "give at least one row"))

    @property
    def _row_bytes(self) -> int:
        return self.source.columns * self.source.dtype.itemsize

    def window_rows(self, budget: int) -> int:
        """Rows of a window within the budget."""
        return max(1, min(budget // WINDOWS, LARGEST_WINDOW) // self._row_bytes)

    def _made(self, who: str, budget: int) -> VectorPoints:
        rows, count = self.window_rows(budget), self.source.count
        fits, bare = budget // (LOADED_SHARE * self._row_bytes), self.source.bare()
        chunks = self.checked(who, rows)
        if count is not None and count <= fits:
            return _Loaded(_joined(chunks, (count, self.source.columns), self.source.dtype))
        if bare is not None and count is not None:
            size = max(_size(chunk) for chunk in chunks)
            handle = open(bare[0], "rb", buffering=0)  # noqa: SIM115 - RowFile closes it
            shape, window = (count, self.source.columns), rows * self._row_bytes
            check = self.source.check
            file = RowFile(handle, self.source.name, bare[1], shape, self.source.dtype, window, self.folder, check)
            return FilePoints(file, self.source.dtype, size, self.source.names)
        return self._packed(chunks, fits, rows)

    def _packed(self, chunks: Iterator[NDArray[Any]], fits: int, rows: int) -> VectorPoints:
        """The rows in a temporary file; those of a source of unknown length in memory as long as they fit."""
        held: list[NDArray[Any]] | None = [] if self.source.count is None else None
        total, size = 0, 0.0
        if self.source.count is not None:
            require_space(self.source.count * self._row_bytes, self.source.name, self.folder)
        handle = temporary(self.source.name, self.folder)
        try:
            for chunk in chunks:
                total, size = total + len(chunk), max(size, _size(chunk))
                if held is not None and total <= fits:
                    held.append(chunk)
                    continue
                for part in [*(held or ()), chunk]:
                    self._write(handle, part)
                held = None
        except BaseException:
            handle.close()
            raise
        shape = total, self.source.columns
        if held is not None:
            handle.close()
            return _Loaded(_joined(iter(held), shape, self.source.dtype))
        window = rows * self._row_bytes
        file = RowFile(handle, self.source.name, 0, shape, self.source.dtype, window, self.folder)
        file.reading["bytes packed"] = float(total * self._row_bytes)
        return FilePoints(file, self.source.dtype, size, self.source.names)

    def _write(self, handle: BinaryIO, chunk: NDArray[Any]) -> None:
        if self.source.count is None:
            require_space(chunk.nbytes, self.source.name, self.folder)
        left = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data
        try:
            while len(left):
                left = left[handle.write(left) :]
        except OSError as error:
            raise no_space(f"writing failed ({error.strerror})", self.source.name, self.folder) from error

    def _check(self, chunk: NDArray[Any], first: int, who: str) -> None:
        """Raise InvalidInput unless x and 4‖x‖² are finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            good = np.isfinite(4 * np.einsum("ij,ij->i", chunk, chunk))
        if good.all():
            return
        row = int(np.argmin(good))
        bad = np.flatnonzero(~np.isfinite(chunk[row]))
        place = f"{self.source.name}, row {first + row}"
        if len(bad):
            names = self.source.names
            column = repr(names[bad[0]]) if names is not None else str(bad[0])
            given, do = f"{place}, column {column} is {chunk[row, bad[0]]}", "fill it in, or leave those rows out"
        else:
            given, do = f"{place} has entries so large that its squared norm overflows", "standardise the columns"
        raise InvalidInput(message(who, given, do))

    # ---- the contract, by what `validate` returns -------------------------------------------------------------------

    @property
    def _ready(self) -> VectorPoints:
        return self.validate(self.source.name)

    @property
    def rows(self) -> Any:  # type: ignore[override]
        return self._ready.rows

    @property
    def names(self) -> Any:
        return self.source.names

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def columns(self) -> int:
        return self.source.columns

    def __len__(self) -> int:
        return len(self._ready) if self.source.count is None else self.source.count

    @property
    def nbytes(self) -> int:
        return len(self) * self._row_bytes

    def take(self, index: Index, *, copy: bool = True) -> VectorPoints:
        return self._ready.take(index)  # type: ignore[return-value]

    def run(self, first: int, last: int) -> VectorPoints:
        return self._ready.run(first, last)  # type: ignore[return-value]

    def dense(self) -> NDArray[Any]:
        return self._ready.dense()

    def astype(self, dtype: DTypeLike) -> VectorPoints:
        return self._ready.astype(dtype)

    def stack(self, first: VectorPoints, second: VectorPoints) -> VectorPoints:
        return self._ready.stack(first, second)

    def largest(self) -> float:
        return self._ready.largest()

    def squared_norms(self) -> NDArray[Any]:
        return self._ready.squared_norms()

    def fingerprint(self) -> str:
        return self._ready.fingerprint()


class _Loaded(DensePoints):
    """Rows that were read into memory."""

    __slots__ = ("__weakref__",)


def _joined(chunks: Iterator[NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    rows, done = np.empty(shape, dtype), 0
    for chunk in chunks:
        rows[done : done + len(chunk)] = chunk
        done += len(chunk)
    return rows


def _size(chunk: NDArray[Any]) -> float:
    return float(max(chunk.max(initial=0.0), -chunk.min(initial=0.0)))
