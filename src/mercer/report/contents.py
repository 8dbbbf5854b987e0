"""What a report says: gathered from a fitted model and rows that it has not seen, as plain data."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.inspection import permutation_importance
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, MercerError, message
from mercer.estimators.base.seen import said_of_seen, share_of_the_fit
from mercer.estimators.explanation import explain
from mercer.io import TableModel
from mercer.kernels import Kernel
from mercer.numerals import counted, ratio
from mercer.points import SparsePoints, count, points_of
from mercer.report import figures
from mercer.report.scores import Baseline, Score, accuracy, baselines, number, r2, scores
from mercer.version import __version__
from mercer.ways.report import Report

__all__ = ["Contents", "contents"]

WHO = "mercer.report.write"
EXPLAINED = 200
"""Rows whose predictions are divided among the training points."""
SHUFFLED, LEAST_SHUFFLED = 30_000, 200
"""Rows times columns that are permuted, five times each, and rows at least: hundreds of predictions are slow."""
MOST_COLUMNS = 200
LEAST_HALVED = 20
LEAST_SCORED = 200
"""With fewer rows the interval of an accuracy of 0.9 is wider than 0.08."""
HALVES = " For each half of the rows the temperature of the probabilities is fitted to the other half."


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
    model: Any, X: Any, y: Any, train: tuple[Any, Any] | None, command: str | None, title: str | None, why: str | None
) -> Contents:
    """The report of a fitted regressor or classifier on rows X with their y."""
    classes = _is_classifier(model)
    y = _targets(y, _rows(X), classes, getattr(model, "classes_", None))
    predicted = np.asarray(model.predict(X))
    if predicted.shape != y.shape:
        raise InvalidInput(message(WHO, f"predictions of shape {predicted.shape}", "give a model of one target"))
    if classes:
        y, predicted = _as_names(y), _as_names(predicted)
    decision = _decision(model, X, y) if classes else None
    report = _last(model).report_ if hasattr(_last(model), "report_") else Report()
    importance = _importance(model, X, y, classes)
    found, simpler = (
        scores(y, predicted, decision, classes=classes),
        baselines(*_for_baselines(model, X, y, train, classes), classes=classes),
    )
    influential, explained = _influential(model, X)
    seen = said_of_seen(_seen(model, X))
    return Contents(
        title or f"{type(_last(model)).__name__}: report",
        "classification" if classes else "regression",
        _data(model, y, classes, unseen=train is not None and not seen),
        found,
        simpler,
        [one for one in [*_pictures(model, X, y, predicted, decision, classes), importance] if one is not None],
        _account(report, why or _why(model)),
        influential,
        [*report.notes, *_few(len(y)), *_left_out(X)],
        [*seen, *_outdone(found[0], simpler, _last(model)), *report.warnings],
        command or _python(model),
        explained,
    )


def _account(report: Report, why: str) -> list[tuple[str, str]]:
    """The lines of `report_`, with why this kernel was chosen below the kernel."""
    lines = [line for line in report.lines() if line[0] not in ("note", "warning")] if report.estimator else []
    return [*lines[:1], *([("choice", why)] if why else []), *lines[1:]]


def _why(model: Any) -> str:
    """The candidates of a search; empty if the model was given."""
    while isinstance(model, Pipeline):
        model = model[-1]
    table = getattr(model, "cv_results_", None)
    if table is None or np.ndim(getattr(model, "best_score_", 0.0)):
        return ""
    chosen = ", ".join(f"{name}={value!r}" for name, value in getattr(model, "best_params_", {}).items())
    many = len(next(iter(table.values())))
    return f"the best of {many:,} candidates{f': {chosen}' if chosen else ''}, score {ratio(model.best_score_)}"


def _targets(y: Any, n: int, classes: bool, known: Any) -> NDArray[Any]:
    """One class or number for each of n rows, none missing; of the classes, some that the model knows."""
    try:
        y = np.asarray(y) if classes else np.asarray(y, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(message(WHO, "targets that are not numbers", "give those of the regression")) from error
    if y.ndim != 1 or len(y) != n or n < 2:
        do = "give one target for each row" if n != 1 else "give two rows or more"
        raise InvalidInput(message(WHO, f"y of shape {y.shape} for {counted(n, 'row')}", do))
    missing = np.array([one is None or one != one for one in y.tolist()])
    if missing.any():
        given = f"{missing.sum():,} of {n:,} targets missing, the first in row {missing.argmax()}"
        raise InvalidInput(message(WHO, given, "leave these rows out"))
    if known is not None and not set(y.tolist()) & set(np.asarray(known).tolist()):
        given = f"classes such as {y.tolist()[0]!r}, which the model does not know: it has {known.tolist()[0]!r}"
        raise InvalidInput(message(WHO, given, "give the targets as in the fit"))
    return y


def _decision(model: Any, X: Any, y: NDArray[Any]) -> NDArray[Any] | None:
    """The decision function of two classes, if these are the classes of y."""
    if not hasattr(model, "decision_function"):
        return None
    known = getattr(model, "classes_", getattr(_last(model), "classes_", None))
    found = np.asarray(model.decision_function(X))
    return found if found.ndim == 1 and set(np.unique(y)) == set(_as_names(np.asarray(known))) else None


def _outdone(score: Score, simpler: list[Baseline], estimator: Any) -> list[str]:
    """A warning if a simpler model does better, with what helps rows of numbers, or others."""
    best = max(simpler, key=lambda one: one.value, default=None)
    if best is None or best.value <= score.value:
        return []
    advice = "standardise the columns, or let mercer.KernelSearchCV choose the kernel and its parameters"
    if not estimator.kernel_.space.vectors:
        advice = "give the kernel other parameters, also without .normalized(), which drops lengths, or take that model"
    return [f"{best.name} scores higher, {ratio(best.value)}: {advice}"]


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


def _seen(model: Any, X: Any) -> float:
    """The share of the rows that are rows of the fit, as far as the model tells."""
    if isinstance(model, TableModel):
        return model.share_of_the_fit(X)
    while not hasattr(model, "X_fit_"):
        if isinstance(model, Pipeline):
            X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return 0.0
    rows = points_of(X).items
    return share_of_the_fit(model, np.asarray(rows) if model.kernel_.space.vectors else rows, model.report_.n)


def _data(model: Any, y: NDArray[Any], classes: bool, *, unseen: bool) -> list[tuple[str, str]]:
    last, n = _last(model), getattr(getattr(_last(model), "report_", None), "n", 0)
    rows = [("rows of the fit", f"{n:,}")] if n else []
    rows.append(("rows of this report", f"{len(y):,}{', not seen by the fit' if unseen else ''}"))
    if d := getattr(last, "n_features_in_", 0):
        rows.append(("columns", f"{d:,}"))
    if isinstance(model, TableModel):
        rows.append(("target", model.target))
    if classes:
        names, counts = np.unique(y, return_counts=True)
        told = ", ".join(f"{name}: {times:,}" for name, times in zip(names[:12], counts[:12], strict=True))
        rows.append(("classes", f"{len(names)} ({told}{', …' if len(names) > 12 else ''})"))
    else:
        rows.append(("target's range", f"{number(y.min())} to {number(y.max())}, mean {number(y.mean())}"))
    return rows


def _for_baselines(
    model: Any, X: Any, y: NDArray[Any], train: tuple[Any, Any] | None, classes: bool
) -> tuple[tuple[Any, Any], tuple[Any, Any] | None]:
    """Training and test rows as numbers or texts, or None in place of rows that are neither."""
    unseen = (_as_numbers_or_texts(model, X), y)
    if train is None:
        return unseen, None
    target = np.asarray(train[1])
    return (_as_numbers_or_texts(model, train[0]), _as_names(target) if classes else target.astype(float)), unseen


def _as_numbers_or_texts(model: Any, X: Any) -> NDArray[Any] | None:
    if isinstance(model, TableModel) and model.encoder is not None:
        X = model.encoder.transform(getattr(X, "frame", X))
    try:
        found = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    except (TypeError, ValueError):
        texts = np.asarray(X, object)
        texts = texts[:, 0] if texts.shape[1:] == (1,) else texts
        return texts if texts.ndim == 1 and all(isinstance(one, str) and one for one in texts) else None
    return found if found.ndim == 2 and np.all(np.isfinite(found)) else None


def _pictures(
    model: Any, X: Any, y: NDArray[Any], predicted: NDArray[Any], decision: NDArray[Any] | None, classes: bool
) -> list[figures.Picture | None]:
    if not classes:
        return [figures.residuals(y, predicted)]
    found = [figures.confusion(y, predicted)]
    if decision is not None:
        found.append(figures.roc(y, decision))
    if getattr(model, "has_probabilities", hasattr(model, "predict_proba")):
        found.append(figures.calibration(y == predicted, np.asarray(model.predict_proba(X)).max(axis=1)))
    elif isinstance(model, TableModel) and len(y) >= LEAST_HALVED:
        found.append(figures.calibration(y == predicted, _by_halves(model, X, y).max(axis=1), HALVES))
    return found


def _by_halves(model: TableModel, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
    """The probabilities of ``mercer predict --proba``, for each half of the rows with the temperature of the other."""
    decided, half = model.confidences(X), np.random.default_rng(0).permutation(len(y)) % 2 == 0
    found = np.empty((len(y), len(model.classes_)))
    for part in (half, ~half):
        found[part] = model.chances(decided[part] / model.fitted_temperature(decided[~part], y[~part]))
    return found


def _importance(model: Any, X: Any, y: NDArray[Any], classes: bool) -> figures.Picture | None:
    """The loss of score if one column is permuted, for each column; None for rows without columns or with too many."""
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


def _few(n: int) -> list[str]:
    """A note if the rows that are scored are few."""
    said = f"the scores are of {counted(n, 'row')}, fewer than {LEAST_SCORED}: their intervals are wide"
    return [said] if n < LEAST_SCORED else []


def _left_out(X: Any) -> list[str]:
    d = points_of(getattr(X, "frame", X)).columns
    return [f"the importance of the columns is left out: there are {d:,}, more than {MOST_COLUMNS}"] * (
        d > MOST_COLUMNS
    )


def _scorer(classes: bool) -> Any:
    def scored(model: Any, X: Any, y: Any) -> float:
        found = np.asarray(model.predict(X))
        if classes:
            return accuracy(y, _as_names(found))
        return r2(y, found)

    return scored


def _columns(model: Any, d: int) -> Sequence[str]:
    return getattr(model, "feature_names_in_", [f"x{j + 1}" for j in range(d)])


def _influential(model: Any, X: Any) -> tuple[list[tuple[str, str, str]], str]:
    """The training points that carry most of the first output; none if it is not a kernel expansion."""
    n = _rows(X)
    some = _safe_indexing(getattr(X, "frame", X), np.sort(np.random.default_rng(0).permutation(n)[:EXPLAINED]))
    try:
        found = explain(model, some)
    except (MercerError, TypeError):
        return [], ""
    size = np.abs(found.contributions).mean(axis=0)
    order, whole = np.argsort(size)[::-1][:10], max(float(size.sum()), np.finfo(float).tiny)
    points = [(f"{found.points} {j}", f"{size[j]:.3g}", f"{100 * size[j] / whole:.1f} %") for j in order]
    of = f", for the output {found.output}" if found.output else ""
    return points, counted(len(found.prediction), "row") + of


def _python(model: Any) -> str:
    """The call, and what it imports."""
    if not isinstance(model, BaseEstimator):
        model = _last(model)
    text = model.__repr__(N_CHAR_MAX=10**6)
    used = dict.fromkeys(type(one) for one in _within(model) if re.search(rf"\b{type(one).__name__}\(", text))
    lines = sorted(f"from {_module(one)} import {one.__name__}" for one in used)
    if "np." in text:
        lines = ["import numpy as np", *lines]
    return "\n".join([*lines, "", f"model = {text}.fit(X, y)"])


def _within(value: Any) -> Iterator[Any]:
    """A value, and the estimators and kernels that it is made of."""
    yield value
    parts: Iterable[Any] = ()
    if isinstance(value, BaseEstimator):
        parts = value.get_params(deep=False).values()
    elif isinstance(value, Kernel) and is_dataclass(value):
        parts = (getattr(value, field.name) for field in fields(value))
    elif isinstance(value, dict | list | tuple):
        parts = value.values() if isinstance(value, dict) else value
    for part in parts:
        yield from _within(part)


def _module(kind: type) -> str:
    """Where a class is imported from: the first folders of its file's path, of mercer the two that have all names."""
    rooms = kind.__module__.split(".")
    if rooms[0] == "mercer":
        return "mercer.kernels" if issubclass(kind, Kernel) else "mercer"
    return ".".join(itertools.takewhile(lambda room: not room.startswith("_"), rooms)) or kind.__module__
