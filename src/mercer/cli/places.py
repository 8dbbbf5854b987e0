"""Refuses an output, before the work, that would replace an input or a file of another kind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mercer.errors import InvalidInput, message
from mercer.io.checkpoint_file import kept_beside
from mercer.io.models import is_model_file
from mercer.io.outputs import check_output

__all__ = ["check_checkpoint_place", "check_model_place", "check_report_place", "check_scores_place", "given_paths"]


def check_model_place(out: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raise InvalidInput if a model must not be written here."""
    if out is not None:
        check_output("--out", out, given_paths(inputs), "a model of mercer", is_model_file)


def check_report_place(report: Path | None, inputs: Iterable[Path | None], *, holdout: bool) -> None:
    """Whether a report may be written here, and there will be rows to write it from."""
    if report is None:
        return
    if not holdout:
        advice = "leave --no-holdout out: a report says what the model is worth on rows that it has not seen"
        raise InvalidInput(message("--report", "no rows are held out", advice))
    from mercer.report import check_report_place

    check_report_place(report, given_paths(inputs))


def check_scores_place(resume: Path | None, others: Iterable[Path | None]) -> None:
    """Raise InvalidInput if the scores of a search must not be kept here. The search itself checks an existing file."""
    if resume is not None:
        check_output("--resume", resume, given_paths(others), "a file of scores", lambda _: True)


def check_checkpoint_place(checkpoint: Path, others: Iterable[Path | None]) -> None:
    """Raise InvalidInput if a checkpoint, or a file that it has beside it, must not be kept here.

    It checks existing files itself.
    """
    for one in (checkpoint, *kept_beside(checkpoint)):
        check_output("--checkpoint", one, given_paths(others), "a checkpoint", lambda _: True)


def given_paths(paths: Iterable[Path | None]) -> list[Path]:
    """The paths that are given."""
    return [path for path in paths if path is not None]
