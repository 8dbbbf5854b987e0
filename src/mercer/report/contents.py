"""What a report says: gathered from a fitted model and rows that it has not seen, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.inspection import permutation_importance
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, MercerError, message
from mercer.estimators.explain import explain
from mercer.io import TableModel
from mercer.points import SparsePoints, count, points_of
from mercer.report import figures
from mercer.report.scores import Baseline, Score, baselines, scores
from mercer.tables.encoder import TableEncoder
from mercer.version import __version__
from mercer.ways.report import Report

__all__ = ["Contents", "contents"]

WHO = "mercer.report.write"
EXPLAINED = 200
"""Rows whose predictions are divided among the training points."""
SHUFFLED, LEAST_SHUFFLED = 30_000, 200
"""Rows times columns that are permuted, five times each, and rows at least: hundreds of predictions are slow."""
MOST_COLUMNS = 200


@dataclass(frozen=True)
class Contents:
    """The parts of the page, in reading order."""

    title: str
    task: str
    data: list[tuple[str, str]]
    scores: list[Score]
    baselines: list[Baseline]
    pictures: list[figures.Picture]
    account: list[tuple[str, str]]
    """Kernel, method, exactness and cost, as `report_` has them."""
    influential: list[tuple[str, str, str]]
    """Training points with their mean |αⱼ k(x, xⱼ)|, and the share of the whole."""
    notes: list[str]
    warnings: list[str]
    lines: str
    """Python, or a command, that makes the model again."""
    explained: str
    """Over how many rows `influential` is a mean, and of which output."""
    version: str = __version__


def contents(
    model: Any, X: Any, y: Any, train: tuple[Any, Any] | None, command: str | None, title: str | None
) -> Contents:
    """The report of a fitted regressor or classifier on rows X with their y."""
    classes = _is_classifier(model)
    y = np.asarray(y) if classes else np.asarray(y, np.float64)
    if y.ndim != 1 or len(y) != _rows(X) or len(y) < 2:
        raise InvalidInput(message(WHO, f"y of shape {y.shape} for {_rows(X)} rows", "give one target for each row"))
    predicted = np.asarray(model.predict(X))
    if predicted.shape != y.shape:
        raise InvalidInput(message(WHO, f"predictions of shape {predicted.shape}", "give a model of one target"))
    if classes:
        y, predicted = _as_names(y), _as_names(predicted)
    decision = np.asarray(model.decision_function(X)) if classes and hasattr(model, "decision_function") else None
    report = _last(model).report_ if hasattr(_last(model), "report_") else Report()
    importance = _importance(model, X, y, classes)
    found, simpler = (
        scores(y, predicted, decision, classes=classes),
        baselines(*_for_baselines(model, X, y, train, classes), classes=classes),
    )
    influential, explained = _influential(model, X)
    return Contents(
        title or f"{type(_last(model)).__name__}: report",
        "classification" if classes else "regression",
        _data(model, X, y, train, classes),
        found,
        simpler,
        [one for one in [*_pictures(model, X, y, predicted, decision, classes), importance] if one is not None],
        [line for line in report.lines() if line[0] not in ("note", "warning")] if report.estimator else [],
        influential,
        list(report.notes),
        [*_outdone(found[0], simpler), *report.warnings],
        command or _python(model),
        explained,
    )


def _outdone(score: Score, simpler: list[Baseline]) -> list[str]:
    """What to say of a model that a simpler one outdoes."""
    best = max(simpler, key=lambda one: one.value, default=None)
    if best is None or best.value <= score.value:
        return []
    advice = "standardise the columns, or let mercer.KernelSearchCV choose the kernel and its parameters"
    return [f"{best.name} scores higher, {best.value:.4g}: {advice}"]


def _last(model: Any) -> Any:
    """The estimator that a pipeline, a search or the model of a table ends with."""
    while True:
        if isinstance(model, Pipeline):
            model = model[-1]
        elif isinstance(model, TableModel):
            model = model.estimator
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return model


def _is_classifier(model: Any) -> bool:
    """Whether it is one; refuses what is not fitted, or predicts nothing."""
    last = _last(model)
    if not isinstance(last, BaseEstimator) or not (is_classifier(last) or is_regressor(last)):
        given = f"a {type(last).__name__}"
        raise InvalidInput(message(WHO, given, "give a fitted classifier or regressor, alone or in a pipeline"))
    check_is_fitted(last)
    return bool(is_classifier(last))


def _rows(X: Any) -> int:
    return count(getattr(X, "frame", X))


def _as_names(y: NDArray[Any]) -> NDArray[Any]:
    return y.astype(str) if y.dtype == object else y


def _data(model: Any, X: Any, y: NDArray[Any], train: tuple[Any, Any] | None, classes: bool) -> list[tuple[str, str]]:
    last, seen = _last(model), getattr(getattr(_last(model), "report_", None), "n", 0)
    rows = [("rows of the fit", f"{seen:,}")] if seen else []
    rows.append(("rows of this report", f"{len(y):,}, not seen by the fit" if train is not None else f"{len(y):,}"))
    if d := getattr(last, "n_features_in_", 0):
        rows.append(("columns", f"{d:,}"))
    if isinstance(model, TableModel):
        rows.append(("target", model.target))
    if classes:
        names, counts = np.unique(y, return_counts=True)
        told = ", ".join(f"{name}: {times:,}" for name, times in zip(names[:12], counts[:12], strict=True))
        rows.append(("classes", f"{len(names)} ({told}{', …' if len(names) > 12 else ''})"))
    else:
        rows.append(("target's range", f"{y.min():.4g} to {y.max():.4g}, mean {y.mean():.4g}"))
    return rows


def _for_baselines(
    model: Any, X: Any, y: NDArray[Any], train: tuple[Any, Any] | None, classes: bool
) -> tuple[tuple[Any, Any], tuple[Any, Any] | None]:
    """Training and test rows as numbers, or None in place of rows that are not."""
    unseen = (_as_numbers(model, X), y)
    if train is None:
        return unseen, None
    target = np.asarray(train[1])
    return (_as_numbers(model, train[0]), _as_names(target) if classes else target.astype(float)), unseen


def _as_numbers(model: Any, X: Any) -> NDArray[np.float64] | None:
    if isinstance(model, TableModel):
        if not isinstance(model.encoder, TableEncoder):
            return None
        X = model.encoder.transform(getattr(X, "frame", X))
    try:
        found = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 2 and np.all(np.isfinite(found)) else None


def _pictures(
    model: Any, X: Any, y: NDArray[Any], predicted: NDArray[Any], decision: NDArray[Any] | None, classes: bool
) -> list[figures.Picture | None]:
    if not classes:
        return [figures.residuals(y, predicted)]
    found = [figures.confusion(y, predicted)]
    if decision is not None and decision.ndim == 1 and len(np.unique(y)) == 2:
        found.append(figures.roc(y, decision))
    if getattr(model, "has_probabilities", hasattr(model, "predict_proba")):
        found.append(figures.calibration(y == predicted, np.asarray(model.predict_proba(X)).max(axis=1)))
    return found


def _importance(model: Any, X: Any, y: NDArray[Any], classes: bool) -> figures.Picture | None:
    """What the score loses if one column is permuted; None where rows have no columns, or too many."""
    frame = getattr(X, "frame", X)
    points = points_of(frame)
    if not 2 <= points.columns <= MOST_COLUMNS or isinstance(points, SparsePoints):
        return None
    if isinstance(model, TableModel) and (unused := model.ignored(frame)):
        frame = frame.drop(columns=[name for name in unused if name in frame.columns])
    size = max(SHUFFLED // points.columns, LEAST_SHUFFLED)
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:size])
    found = permutation_importance(
        model, _safe_indexing(frame, chosen), y[chosen], scoring=_scorer(classes), n_repeats=5, random_state=0
    )
    names: Sequence[str] = [str(name) for name in points_of(frame).names or _columns(model, points.columns)]
    label = f"loss of {'accuracy' if classes else 'R²'} if the column is permuted"
    return figures.bars(names, found.importances_mean, found.importances_std, "Importance of the columns", label)


def _scorer(classes: bool) -> Any:
    def scored(model: Any, X: Any, y: Any) -> float:
        found = np.asarray(model.predict(X))
        if classes:
            return float(np.mean(_as_names(found) == y))
        return float(1 - np.sum((y - found) ** 2) / max(np.sum((y - y.mean()) ** 2), np.finfo(float).tiny))

    return scored


def _columns(model: Any, d: int) -> Sequence[str]:
    return getattr(model, "feature_names_in_", [f"x{j + 1}" for j in range(d)])


def _influential(model: Any, X: Any) -> tuple[list[tuple[str, str, str]], str]:
    """The training points that carry most of the first output; none where it is no kernel expansion."""
    n = _rows(X)
    some = _safe_indexing(getattr(X, "frame", X), np.sort(np.random.default_rng(0).permutation(n)[:EXPLAINED]))
    try:
        found = explain(model, some)
    except (MercerError, TypeError):
        return [], ""
    size = np.abs(found.contributions).mean(axis=0)
    order, whole = np.argsort(size)[::-1][:10], max(float(size.sum()), np.finfo(float).tiny)
    points = [(f"{found.points} {j}", f"{size[j]:.3g}", f"{100 * size[j] / whole:.1f} %") for j in order]
    return points, f"{len(found.prediction)} rows" + (f", for the output {found.output}" if found.output else "")


def _python(model: Any) -> str:
    last = _last(model)
    room = type(last).__module__.partition(".")[0]
    return f"import {room}\n\nmodel = {room}.{last!r}.fit(X, y)"
