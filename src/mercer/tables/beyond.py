"""Tables of Parquet and Arrow that do not fit in memory: a sample to choose with, and a fit of all rows by chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, MemoryExceeded, message
from mercer.points import DiskPoints, parse_memory
from mercer.points.disk import ChunkSource
from mercer.tables.reader import COLUMNAR, Table, read_table

__all__ = ["all_rows", "table_or_sample"]

CHUNK = 1 << 15
"""Rows of a chunk."""
SHARE = 16
"""The sample takes at most this part of the budget: the choice of a kernel and a fit need the rest."""
MOST = 100_000
"""The most rows of the sample."""


def table_or_sample(path: Path, memory: str | None, seed: int, kept: Sequence[str] = ()) -> tuple[Table, Path | None]:
    """The table in a file and None, or random rows of it and the path of the file if it does not fit in memory."""
    with suppress(MemoryExceeded):
        return read_table(path, memory=memory, kept=kept), None
    if path.suffix.lower() not in COLUMNAR:
        return read_table(path, memory=memory, kept=kept), None
    frame, total = _sample(path, memory, np.random.default_rng(seed))
    note = f"{total} rows do not fit in memory: the kernel is chosen, and the score measured, on {len(frame)} of them"
    return Table(frame, path.name, "columnar", (note,)), path


def _sample(path: Path, memory: str | None, rng: np.random.Generator) -> tuple[Any, int]:
    """Random rows of a file that take a part of the memory, each with the same probability; the number of all rows."""
    import pandas as pd

    kept, share, total, room = [], 1.0, 0, parse_memory(memory) // SHARE
    for frame in COLUMNAR[path.suffix.lower()].frames(path, CHUNK, memory):
        total += len(frame)
        kept.append(frame[rng.random(len(frame)) < share])
        while sum(map(len, kept)) > min(MOST, room // (1 + frame.memory_usage(deep=True).sum() // len(frame))) > 0:
            share, kept = share / 2, [one[rng.random(len(one)) < 0.5] for one in kept]
    return pd.concat(kept, ignore_index=True), total


def all_rows(
    path: Path, target: str, encoder: Any, memory: str | None = None
) -> tuple[DiskPoints, NDArray[np.bool_], Any]:
    """The encoded rows of a file that have a target, which rows these are, and the target of all rows."""
    import pandas as pd

    source = COLUMNAR[path.suffix.lower()]
    column = pd.Series(source.column(path, target))
    present = column.notna().to_numpy(bool)
    if column.dtype.kind == "f":
        present = present & np.isfinite(column.to_numpy())
    if getattr(encoder, "text_columns_", ()):
        given = f"columns of text in a table that does not fit in memory: {', '.join(encoder.text_columns_[:5])}"
        raise InvalidInput(message(path.name, given, "leave them out, --drop, or raise --memory"))

    def chunks() -> Iterator[NDArray[Any]]:
        first = 0
        for frame in source.frames(path, CHUNK, memory):
            yield encoder.transform(frame[present[first : first + len(frame)]])
            first += len(frame)

    rows = DiskPoints(ChunkSource(chunks, path.name))
    rows.source.count = int(present.sum())
    return rows, present, column
