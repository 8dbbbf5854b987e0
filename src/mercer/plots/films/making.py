"""A film from a model: what it was at each step, over the plane that shows the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from mercer.errors import InvalidInput, message
from mercer.plots.drawing.display import drawn_of, named_columns, numbers, one_for_each
from mercer.plots.drawing.plane import Plane, spread
from mercer.plots.films.frames import Film
from mercer.plots.films.stages import Stages, stages_of
from mercer.points import count

__all__ = ["film"]

SIDE, SIDE_OF_CLASSES = 64, 128
PLACES = 240
MOST_FRAMES = 2000
MOST_ROWS = 400
"""Rows, and points of the expansion, that a film shows."""
MOST_CLASSES = 20


def film(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    columns: Sequence[int] = (0, 1),
    frames: int = MOST_FRAMES,
    side: int | None = None,
) -> Film:
    """f(x) at each step of a model's fit, over two columns of X or along its only one.

    Parameters
    ----------
    model : estimator
        Fitted with ``keep_history=``, so that it has `staged_decision_function`: `KernelPerceptron`, `KernelLMS`,
        `KernelKMeans` and the online estimators. Or one with `partial_fit` and no history: a copy of it meets the rows
        of X in their order, in a hundred parts, and each part is a frame.
    X : array-like or CSR matrix of shape (n, d)
        Rows to show, such as those of the fit; of more than 400 as many are shown.
    y : array-like of shape (n,), optional
        Their classes or targets. Models with `partial_fit`, and curves, need them.
    columns : (int, int)
        Which two vary; the others stay at their medians.
    frames : int
        At most; of more steps so many are shown, evenly spaced, and the film says so.
    side : int
        f is computed at side² places; by default 64², and 128² for classes.

    Returns
    -------
    Film
        Its `save` writes a GIF or an HTML file.

    Raises
    ------
    InvalidInput
        For models that do not say what they were at each step, and those without a history.
    sklearn.exceptions.NotFittedError

    Examples
    --------
    The cubic 1 − 2x³, learned by gradient descent:

    >>> import numpy as np
    >>> from mercer import KernelLMS
    >>> from mercer.plots import film
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> y = 1 - 2 * X[:, 0] ** 3
    >>> model = KernelLMS("monomialsum(degree=3)", max_iter=100, tol=None, keep_history=True).fit(X, y)
    >>> cubic = film(model, X, y)
    >>> cubic.kind, len(cubic)
    ('curve', 101)
    """
    rows, drawn = numbers(X, "film", MOST_ROWS)
    targets = None if y is None else one_for_each(y, count(X), "film")
    if rows.shape[1] == 1:
        return _curve(model, X, targets, rows, drawn, frames)
    many = hasattr(model, "labels_") or len(getattr(model, "classes_", ())) > 2
    side = (SIDE_OF_CLASSES if many else SIDE) if side is None else int(side)
    plane = Plane.through(rows, columns, side, "film")
    stages = stages_of(model, plane.rows(), X, targets, frames)
    values, classes = _on_grid(stages, side, is_regressor(model))
    labels, names = _labels(stages, targets, drawn, count(X))
    points, alpha = (None, None) if classes else _discs(stages, list(plane.columns))
    relative = ""
    if stages.unit != "step" and not classes:
        values, alpha = _relative(values), None if alpha is None else _relative(alpha)
        relative = "f and α relative to the largest of each frame"
    named = named_columns(model, rows.shape[1])
    return Film(
        "classes" if classes else "surface",
        values,
        (plane.first, plane.second),
        rows=rows[:, plane.columns],
        signed=not is_regressor(model),
        labels=labels,
        points=points,
        coefficients=alpha,
        classes=names or tuple(map(str, getattr(model, "classes_", range(classes)))),
        names=(named[plane.columns[0]], named[plane.columns[1]]),
        **_said(model, stages, plane.note, relative, drawn_of(len(rows), count(X))),
    )


def _curve(model: Any, X: Any, y: np.ndarray | None, rows: np.ndarray, drawn: np.ndarray, frames: int) -> Film:
    """f along the only column, with the targets."""
    if y is None or y.dtype.kind not in "fiub":
        given = "rows of one column without targets that are numbers"
        raise InvalidInput(message("film", given, "give y, or rows of two columns or more"))
    at = np.linspace(*spread(rows[:, 0]), PLACES)
    stages = stages_of(model, at[:, None], X, y, frames)
    values = np.stack([one.reshape(len(at), -1)[:, 0] for one in stages.values])
    low, high = spread(y[drawn].astype(np.float64))
    room = 0.25 * (high - low)
    return Film(
        "curve",
        values,
        (at, np.array([low - room, high + room])),
        rows=np.column_stack([rows[:, 0], y[drawn]]),
        names=(named_columns(model, 1)[0], "f"),
        **_said(model, stages, drawn_of(len(rows), count(X))),
    )


def _said(model: Any, stages: Stages, *notes: str) -> dict[str, Any]:
    """The title and the notes of a film of either kind."""
    name = type(model).__name__
    return {
        "steps": stages.steps,
        "unit": stages.unit,
        "title": f"{name}: f at each step" if stages.unit == "step" else f"{name}: f as rows are met",
        "notes": tuple(note for note in notes if note),
        "made": stages.made if stages.made > len(stages.values) else 0,
    }


def _on_grid(stages: Stages, side: int, first: bool) -> tuple[np.ndarray, int]:
    """f of one output (or of the first) and 0, or the index of the largest of several outputs and their number."""
    outputs = stages.values[0].reshape(side * side, -1).shape[1]
    if outputs == 1 or first:
        return np.stack([one.reshape(side, side, -1)[:, :, 0] for one in stages.values]), 0
    return np.stack([one.argmax(axis=1).reshape(side, side) for one in stages.values]), outputs


def _relative(values: np.ndarray) -> np.ndarray:
    """Each frame over its largest |value|: steps of 1/t are large at first, and small at last."""
    size = np.abs(values).reshape(len(values), -1).max(axis=1).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(values / np.where(size > 0, size, 1.0))


def _labels(
    stages: Stages, y: np.ndarray | None, drawn: np.ndarray, n: int
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """The places of the rows' classes or clusters, and the classes."""
    if stages.labels is not None and stages.labels.shape[1] == n:
        return stages.labels[:, drawn], ()
    if y is None or y.dtype.kind == "f":
        return None, ()
    classes, places = np.unique(y, return_inverse=True)
    return (places[drawn], tuple(map(str, classes))) if len(classes) <= MOST_CLASSES else (None, ())


def _discs(stages: Stages, columns: list[int]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The points with the largest |α| and their coefficients, equally many in each frame; missing ones are 0."""
    if not stages.points or not any(map(len, stages.coefficients)):
        return None, None
    alpha = np.zeros((len(stages.values), max(map(len, stages.coefficients))))
    at = np.zeros((len(stages.points), alpha.shape[1], 2))
    for frame, one in enumerate(stages.coefficients):
        alpha[frame, : len(one)] = np.nan_to_num(one, posinf=0, neginf=0)
    for frame, rows in enumerate(stages.points):
        at[frame, : len(rows)] = rows[:, columns]
    largest = np.sort(np.argsort(-np.abs(alpha).max(axis=0), kind="stable")[:MOST_ROWS])
    return at[:, largest], alpha[:, largest]
