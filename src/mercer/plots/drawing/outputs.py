"""What a fitted model says of rows, as one number or one class for each, and the points that its output is made of."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators import explain
from mercer.points import VectorPoints, points_of

__all__ = ["Output", "expansion_points", "innermost", "output_of", "quietly"]


@dataclass(frozen=True)
class Output:
    """One number for each row, or the place of its class.

    Attributes
    ----------
    function : callable
        Rows to numbers of shape (m,).
    name : str
        What the numbers are.
    classes : tuple
        The classes that the places are of; empty for numbers.
    signed : bool
        Whether 0 divides the numbers.
    column : int
        Which of the model's outputs it is.
    """

    function: Callable[[Any], np.ndarray]
    name: str
    classes: tuple[Any, ...] = ()
    signed: bool = False
    column: int = 0


def output_of(model: Any, output: int | None, rows: np.ndarray, who: str) -> Output:
    """The decision function of two classes, or of the class `output`; the class of the largest of several; else f.

    `rows` are some that the model is tried on.
    """
    check_is_fitted(model)
    if hasattr(model, "decision_function"):
        found, signed = model.decision_function, True
    elif hasattr(model, "predict"):
        found, signed = model.predict, False
    else:
        given = f"{type(model).__name__}, which has neither decision_function nor predict"
        raise InvalidInput(message(who, given, "give a classifier, a regressor or a clusterer, or ComponentsDisplay"))
    tried = np.asarray(quietly(found, rows[:1]))
    labels = getattr(model, "classes_", None) if is_classifier(model) else getattr(model, "labels_", None)
    if labels is not None and output is None and (tried.ndim == 2 or not signed):
        return _places(model, np.unique(labels))
    columns = tried.shape[1] if tried.ndim == 2 else 1
    place = 0 if output is None else int(output)
    if not 0 <= place < columns:
        raise InvalidInput(message(who, f"output={output!r}", f"give a whole number from 0 to {columns - 1}"))
    names = [str(one) for one in labels] if labels is not None and len(labels) == columns else [str(place)]
    name = f"f of {names[place]}" if columns > 1 and len(names) == columns else "f(x)"
    return Output(lambda X: np.asarray(found(X)).reshape(len(X), -1)[:, place], name, (), signed, place)


def quietly(function: Callable[..., Any], *given: Any) -> Any:
    """The function's value. Rows of a picture have no names of columns, which a model fitted with names warns of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return function(*given)


def _places(model: Any, classes: np.ndarray) -> Output:
    """The predicted class, as its place among all."""
    return Output(lambda X: np.searchsorted(classes, model.predict(X)), "class", tuple(classes.tolist()))


def expansion_points(model: Any, output: Output, tried: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows xⱼ and the coefficients αⱼ of f(x) = b + Σⱼ αⱼ k(x, xⱼ), or None if the output is not such a sum.

    They must add up to the output at the row that is tried, so that no picture shows coefficients of something else.
    """
    try:
        explanation = quietly(explain, model, tried[:1], output.column)
        own = np.asarray(quietly(output.function, tried[:1]), np.float64)
    except (InvalidInput, TypeError):
        return None
    points = _in_columns_of_the_table(model)
    if points is None or not np.allclose(explanation.prediction, own, rtol=1e-6, atol=1e-9):
        return None
    return points, explanation.coefficients


def innermost(model: Any) -> tuple[Any, list[Any]]:
    """The estimator within searches and pipelines, and the transformers before it."""
    before: list[Any] = []
    while hasattr(model, "best_estimator_") or hasattr(model, "steps"):
        if hasattr(model, "steps"):
            before += [step for step in model[:-1] if hasattr(step, "transform")]
        model = model.best_estimator_ if hasattr(model, "best_estimator_") else model[-1]
    return model, before


def _in_columns_of_the_table(model: Any) -> np.ndarray | None:
    """The points of the estimator within searches and pipelines, before what the pipelines made of them."""
    model, before = innermost(model)
    points = points_of(getattr(model, "X_fit_", []))
    if not isinstance(points, VectorPoints) or not all(hasattr(step, "inverse_transform") for step in before):
        return None
    rows = np.asarray(points.dense(), np.float64)
    for step in reversed(before):
        rows = step.inverse_transform(rows)
    return rows
