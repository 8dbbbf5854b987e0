"""The page: one file of HTML with all that it shows, which opens without a network and prints."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from mercer.errors import InvalidInput, message

if importlib.util.find_spec("jinja2") is None or importlib.util.find_spec("matplotlib") is None:
    raise ModuleNotFoundError(
        message("mercer.report", "jinja2 or matplotlib is not installed", 'pip install "mercer[report]"'), name="jinja2"
    )

from jinja2 import Environment, PackageLoader

from mercer.files import write_whole
from mercer.io.outputs import check_output
from mercer.report.contents import contents
from mercer.report.scores import number

__all__ = ["check_report_place", "write"]

WHO = "mercer.report.write"
GENERATOR = "mercer.report"
"""By which a report is known as one."""


def write(
    model: Any,
    path: str | PathLike[str],
    X: Any,
    y: Any,
    *,
    train: tuple[Any, Any] | None = None,
    title: str | None = None,
    command: str | None = None,
    why: str | None = None,
) -> Path:
    """Write what a fitted model is worth on rows (X, y) to a page of HTML, and return its path.

    The page has the data, the scores with 95 % intervals beside guessing and a linear model, residuals or a confusion
    matrix with its ROC curve, calibration, the importance of the columns, the training points that carry the
    predictions, `report_` with residual, definiteness, approximation and cost, warnings, and the lines that make the
    model again. It is one file: pictures are in it, nothing is requested, and it can be printed.

    Parameters
    ----------
    model : fitted regressor or classifier
        Of mercer, also at the end of a pipeline or in a search, or the `TableModel` of ``mercer fit``.
    path : str or path
        A file that ends in ``.html``. An earlier report is replaced; another file is not.
    X : array-like of shape (n, d), data frame, or sequence of objects
        Rows that the model was not fitted on: scores on training rows say little.
    y : array-like of shape (n,)
        Their targets.
    train : (X, y), optional
        The rows of the fit, from which guessing and the linear model are made. Without them both are cross-validated
        on the rows above, and the page says so.
    title : str, optional
        The heading; by default the name of the estimator.
    command : str, optional
        The line that makes the model again; by default the call in Python.
    why : str, optional
        Why this kernel; by default what a search says of its choice.

    Returns
    -------
    Path

    Raises
    ------
    InvalidInput
        For a model that predicts nothing or several targets, targets that are missing or do not fit the rows or the
        model, or a path that is not a report's.
    NotFittedError
        For a model that is not fitted.

    Notes
    -----
    The interval of an accuracy is the exact one of Clopper and Pearson; others are from 1000 bootstrap samples of the
    rows, and without an error as wide as that of so many hits. None knows how another sample of training rows would
    have changed the model. Importance is the loss of the score if a column is permuted (some thousand rows at
    most, five times): of two columns that say the same both look unimportant.

    Examples
    --------
    >>> import tempfile, mercer
    >>> from sklearn.datasets import load_iris
    >>> from mercer.report import write
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mercer.SVC().fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write(model, f"{folder}/iris.html", X[1::2], y[1::2], train=(X[::2], y[::2]))
    ...     page.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    place = Path(path)
    check_report_place(place, [])
    found = contents(model, X, y, train, command, title, why)
    environment = Environment(
        loader=PackageLoader("mercer.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    text = environment.get_template("page.html").render(page=found, generator=GENERATOR)
    write_whole(place, text.encode(), WHO)
    return place


def check_report_place(path: Path, inputs: Iterable[Path]) -> None:
    """Raise InvalidInput unless a report may be written here, over nothing but an earlier one.

    Parameters
    ----------
    path : Path
        The file to write.
    inputs : iterable of Path
        Files that must not be overwritten.

    Raises
    ------
    InvalidInput
        If the name does not end in .html, or the file exists and is not a report, or is one of the inputs.

    Examples
    --------
    >>> from pathlib import Path
    >>> check_report_place(Path("report.html"), [Path("data.csv")])
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(message(WHO, str(path), "name a file that ends in .html"))
    check_output(WHO, path, inputs, "a report", _is_report)


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return f'content="{GENERATOR}'.encode() in file.read(1000)
