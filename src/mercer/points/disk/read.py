"""Opens files of rows as points."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.points.disk.arrow import ArrowSource, CsvSource, TableSource
from mercer.points.disk.parquet import ParquetSource
from mercer.points.disk.points import DiskPoints
from mercer.points.disk.slabs import ZarrSource
from mercer.points.disk.sources import ChunkSource, NpySource, RowSource

__all__ = ["read_points"]


def read_points(
    given: Any,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    without: Sequence[str] = (),
    folder: str | None = None,
    memory: Any = None,
) -> Any:
    """The rows of files, or of an iterator that can be started again, as points that need not fit in memory.

    Estimators fit them like arrays, within `memory=`: rows that fit are read into memory, and others are packed once
    in a temporary file.

    Parameters
    ----------
    given : path, sequence of paths, or callable
        ``.npy``, ``.parquet``, ``.arrow`` or ``.feather``, ``.csv``, ``.zarr``. Several files are parts of one table,
        in the given order; a folder stands for its Parquet files, ordered by name, with numbers in names by their
        value. A callable returns a new iterator of arrays or data frames at each call.
    target : str, optional
        The column to predict. It is returned as an array and left out of the rows.
    columns : sequence of str, optional
        The columns to read from a table, in this order; by default all.
    without : sequence of str, default ()
        Columns to leave out.
    folder : str, optional
        The folder of the temporary file, by default the system's.
    memory : int, str or None
        The budget in which the target is read. An estimator gives its own for the rows.

    Returns
    -------
    points : DiskPoints
    y : array of shape (n,)
        Only if a target is given.

    Raises
    ------
    InvalidInput
        For files that are missing, cut off, or of another kind, and for columns that hold no numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> points = read_points(lambda: iter([np.array([[0.0], [1.0]]), np.array([[2.0]])]))
    >>> KernelRidge("linear", alpha=1.0).fit(points, [0.0, 1.0, 2.0]).predict([[3.0]]).round(2)
    array([2.5])
    """
    if columns is not None and target is not None:
        columns = [name for name in columns if name != target]
    source = _source(given, columns, (*without, *((target,) if target is not None and columns is None else ())))
    if target is None:
        return DiskPoints(source, memory, folder)
    return DiskPoints(source, memory, folder), source.target(target, memory)


def _source(given: Any, columns: Sequence[str] | None, without: Sequence[str]) -> RowSource:
    if callable(given):
        return _without_names(ChunkSource(given), columns, without)
    paths = [Path(one) for one in ([given] if isinstance(given, str | Path) else given)]
    if len(paths) == 1 and paths[0].is_dir() and paths[0].suffix != ".zarr":
        paths = sorted(paths[0].glob("*.parquet"), key=_by_numbers) or paths
    endings = {path.suffix.lower() for path in paths}
    ending = endings.pop() if len(endings) == 1 else ""
    if ending in TABLES:
        return TABLES[ending](paths, columns, without)
    if ending not in ARRAYS or len(paths) > 1:
        do = "give files that all end in " + ", or in ".join(TABLES) + ", or one that ends in " + " or ".join(ARRAYS)
        raise InvalidInput(message("read_points", f"files {[path.name for path in paths[:3]]}", do))
    return _without_names(ARRAYS[ending](paths[0]), columns, without)


def _by_numbers(path: Path) -> tuple[list[Any], str]:
    """The name, in which numbers are compared by their value: writers number parts without leading zeros.

    >>> sorted([Path("part.10.parquet"), Path("part.2.parquet")], key=_by_numbers)[0].name
    'part.2.parquet'
    """
    parts = re.split("([0-9]+)", path.name)  # texts and numbers in turn, so that like is compared with like
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], path.name


def _without_names(source: RowSource, columns: Sequence[str] | None, without: Sequence[str]) -> RowSource:
    """The source; InvalidInput if columns are named, because it has no names."""
    if columns or without:
        given = f"columns {[*(columns or ()), *without]} of an array without names"
        raise InvalidInput(message(source.name, given, "leave them out, and give y as an array"))
    return source


TABLES: dict[str, type[TableSource]] = {
    ".parquet": ParquetSource,
    ".arrow": ArrowSource,
    ".feather": ArrowSource,
    ".csv": CsvSource,
}
"""The sources of tables, by the endings of their files."""
ARRAYS: dict[str, Callable[[Path], RowSource]] = {".npy": NpySource, ".zarr": ZarrSource}
"""The sources of arrays, by the endings of their files."""
