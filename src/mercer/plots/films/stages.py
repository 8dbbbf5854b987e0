"""What a model was at each step of its fit: from its history, or from a copy that meets the rows part by part."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.plots.drawing.outputs import quietly
from mercer.points import VectorPoints, count, points_of, take

__all__ = ["Stages", "stages_of"]

MOST_PARTS = 100


@dataclass(frozen=True, eq=False)
class Stages:
    """f at the places of a picture, and the sum that it is, at each step that is shown.

    Attributes
    ----------
    values : list of arrays of shape (places,) or (places, outputs)
    steps : array of int
    unit : str
        What the steps count.
    made : int
        How many there were.
    points : list of arrays of shape (k, d), one for each step or one for all; or empty
    coefficients : list of arrays of shape (k,), or empty
    labels : array of int of shape (steps, n) or None
        The clusters of the rows.
    """

    values: list[np.ndarray]
    steps: np.ndarray
    unit: str
    made: int
    points: list[np.ndarray]
    coefficients: list[np.ndarray]
    labels: np.ndarray | None = None


def stages_of(model: Any, at: np.ndarray, X: Any, y: np.ndarray | None, most: int) -> Stages:
    """The stages of a model, at most this many of them, the first and the last among them."""
    met_by_parts = hasattr(model, "partial_fit") and not getattr(model, "keep_history", False)
    if hasattr(model, "staged_decision_function") and not met_by_parts:
        return _from_history(model, at, most)
    if met_by_parts:
        return _by_parts(model, at, X, y, most)
    given = f"{type(model).__name__}, which does not say what it was at each step"
    do = "give a KernelPerceptron, KernelLMS or KernelKMeans with keep_history=True, or one with partial_fit"
    raise InvalidInput(message("film", given, do))


def shown_of(total: int, most: int) -> np.ndarray:
    """Which of the stages are shown.

    >>> shown_of(1001, 5)
    array([   0,  250,  500,  750, 1000])
    """
    if most < 1:
        raise InvalidInput(message("film", f"frames={most}", "give one or more"))
    return np.unique(np.round(np.linspace(total - 1, 0, min(total, most))).astype(int))


def _from_history(model: Any, at: np.ndarray, most: int) -> Stages:
    check_is_fitted(model)
    every = int(getattr(model, "keep_history", 1)) or 1
    online = hasattr(model, "history_ends_")
    frames = model.history_ends_ if online else getattr(model, "history_", None)
    total = math.inf if frames is None else len(frames)
    wanted = None if total == math.inf else set(shown_of(int(total), most).tolist())
    values = quietly(
        lambda: [v for t, v in enumerate(model.staged_decision_function(at)) if wanted is None or t in wanted]
    )
    kept = np.arange(len(values)) if wanted is None else np.array(sorted(wanted))
    if wanted is None:
        kept = shown_of(len(values), most)
        values = [values[t] for t in kept]
    points, alpha, labels = _dictionaries(model, kept) if online else _remembered(model, kept)
    made, unit = len(values) if total == math.inf else int(total), "rows met" if online else "step"
    return Stages([np.asarray(v) for v in values], every * (kept + online), unit, made, points, alpha, labels)


def _remembered(model: Any, kept: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray | None]:
    """The points and their coefficients of one output, or the labels, from `history_`."""
    history = getattr(model, "history_", None)
    if history is None:
        return [], [], None
    if history.dtype.kind == "i":
        return [], [], history[kept]
    n, alpha = count(model.X_fit_), history[kept].reshape(len(kept), history.shape[1], -1)
    rows = points_of(model.X_fit_)
    if alpha.shape[2] != 1 or not isinstance(rows, VectorPoints):
        return [], [], None
    return [np.asarray(rows.dense(), np.float64)], list(alpha[:, -n:, 0]), None


def _dictionaries(model: Any, kept: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], None]:
    """The dictionary of an online estimator at each step, and its coefficients of one output."""
    rows, b, ends = points_of(model.history_rows_), model.history_.reshape(len(model.history_), -1), model.history_ends_
    if b.shape[1] != 1 or not isinstance(rows, VectorPoints):
        return [], [], None
    parts = [np.arange(ends[t - 1] if t else 0, ends[t]) for t in kept]
    x = np.asarray(rows.dense(), np.float64)
    return [x[one] for one in parts], [b[one, 0] for one in parts], None


def _by_parts(model: Any, at: np.ndarray, X: Any, y: np.ndarray | None, most: int) -> Stages:
    """A copy meets the rows in their order; what it was before is forgotten."""
    if y is None:
        given = f"{type(model).__name__} without y"
        raise InvalidInput(message("film", given, "give y, of which a copy learns part by part"))
    learner, n = clone(model), count(X)
    ends = np.unique(np.round(np.linspace(0, n, min(n, MOST_PARTS, most) + 1)).astype(int))
    options = {"classes": np.unique(y)} if is_classifier(model) else {}
    values, points, alpha = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    for first, last in itertools.pairwise(ends.tolist()):
        part = np.arange(first, last)
        learner.partial_fit(take(X, part), y[part], **options)
        decide = learner.decision_function if hasattr(learner, "decision_function") else learner.predict
        values.append(np.asarray(quietly(decide, at)))
        b = np.asarray(getattr(learner, "dual_coef_", np.empty((0, 0))), np.float64).reshape(-1, 1)
        rows = points_of(getattr(learner, "X_fit_", []))
        if isinstance(rows, VectorPoints) and len(b) == len(rows):
            points.append(np.asarray(rows.dense(), np.float64))
            alpha.append(b[:, 0])
    if len(points) < len(values):
        points, alpha = [], []
    return Stages(values, ends[1:], "rows met", len(values), points, alpha)
