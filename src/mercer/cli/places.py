"""Refuses an output, before the work, that would replace an input or a file of another kind."""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.io.models import is_model_file
from mercer.io.outputs import check_output, write_whole
from mercer.points.disk import ParquetSource

__all__ = [
    "check_model_place",
    "check_predictions_place",
    "check_report_place",
    "check_scores_place",
    "write_predictions",
]

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}


def check_model_place(out: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raise InvalidInput if a model must not be written here."""
    if out is not None:
        check_output("--out", out, _given(inputs), "a model of mercer", is_model_file)


def check_report_place(report: Path | None, inputs: Iterable[Path | None], *, holdout: bool) -> None:
    """Whether a report may be written here, and there will be rows to write it from."""
    if report is None:
        return
    if not holdout:
        advice = "leave --no-holdout out: a report says what the model is worth on rows that it has not seen"
        raise InvalidInput(message("--report", "no rows are held out", advice))
    from mercer.report import check_report_place

    check_report_place(report, _given(inputs))


def check_scores_place(resume: Path | None, others: Iterable[Path | None]) -> None:
    """Raise InvalidInput if the scores of a search must not be kept here. The search itself checks an existing file."""
    if resume is not None:
        check_output("--resume", resume, _given(others), "a file of scores", lambda _: True)


def check_predictions_place(out: Path | None, inputs: Iterable[Path | None], columns: list[str]) -> None:
    """Raise InvalidInput if a table of predictions with these columns must not be written here."""
    if out is not None:
        what = f"a table of predictions (a CSV file with the columns {', '.join(columns[:3])} alone)"
        check_output("--out", out, _given(inputs), what, lambda path: _header(path) == columns, to_devices=True)


def write_predictions(frame: Any, out: Path) -> None:
    """Write a Parquet or CSV file, compressed as its name says, whole or not at all; write to devices directly."""
    buffer = io.BytesIO()
    if out.suffix.lower() == ".parquet":
        frame.to_parquet(buffer, index=False)
    else:
        frame.to_csv(buffer, index=False, compression=COMPRESSED.get(out.suffix.lower()))
    if out.exists() and not out.is_file():
        out.write_bytes(buffer.getvalue())
    else:
        write_whole(out, buffer.getvalue(), "--out")


def _given(paths: Iterable[Path | None]) -> list[Path]:
    return [path for path in paths if path is not None]


def _header(path: Path) -> list[str]:
    """The names of the columns of a CSV or Parquet file; none if it is neither."""
    import pandas as pd

    if path.suffix.lower() == ".parquet":
        with suppress(InvalidInput, ImportError):
            return list(ParquetSource.columns_of(path))
        return []
    try:
        return [str(name) for name in pd.read_csv(path, nrows=0).columns]
    except (OSError, ValueError, EOFError):
        return []
