"""From settings to what the lab shows: surface, embedding, variances, Gram matrix, score, definiteness and code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.errors import Cancelled, InvalidInput, MercerError, message
from mercer.estimators import KernelPCA
from mercer.events import Cancel, StageDone, emit, observe
from mercer.gram import KernelOperator
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.base import trace_or_none
from mercer.lab.code import command, python
from mercer.lab.data import Dataset
from mercer.lab.settings import METHODS, Settings
from mercer.numerals import counted
from mercer.validity import KernelReport, check_kernel
from mercer.validity.proofs.derivation import pretty

__all__ = ["Outcome", "Surface", "outcomes"]

Floats = NDArray[np.float64]

GRID, GRAM_ROWS, COMPONENTS = 60, 200, 10
"""Points of the surface along each axis; rows of the Gram matrix that are drawn; variances that are shown."""

MOST_SECONDS = 20.0
"""For one of the things that an outcome consists of."""

Stage = Literal["model", "components", "done"]


@dataclass(frozen=True, eq=False)
class Surface:
    """What a model says over the plane of two columns, or along one, the others at their medians.

    Attributes
    ----------
    kind : "prediction", "decision", "classes", "component" or "clusters"
    values : ndarray of shape (60, 60), or (60,) along one column
        Row i belongs to the i-th place on the second axis.
    x : ndarray of shape (60,)
        The places on the first axis.
    y : ndarray of shape (60,), or (n,) along one column
        The places on the second axis, or the heights of the rows: their targets, or what the model says of them.
    weights : ndarray of shape (n,)
        |αᵢ|/max |α| of the training rows; nan for rows that are held out, and where a method has no α.
    """

    kind: str
    values: Floats
    x: Floats
    y: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Outcome:
    """All that belongs to some settings. What cannot be computed is None, and `notes` say why.

    Attributes
    ----------
    settings : Settings
    stage : "model", "components" or "done"
        What there is: the model with its surface, score and Gram matrix; the components too; all.
    kernel : Kernel
    formula : str
        Of the kernel, with its numbers.
    estimator : str
    surface : Surface or None
    score : float or None
        R² or accuracy on the rows held out; the share of two components; minus the inertia of clusters.
    score_name : str
    embedding : ndarray of shape (n, 2) or None
    ratios : ndarray or None
        Shares of variance of the kernel's components.
    gram : ndarray of shape (m, m) or None
        Of rows ordered by class, target or cluster, m ≤ 200.
    report : KernelReport or None
        Whether the function is a kernel.
    python, command : str
    seconds : float
    notes : tuple of str
    """

    settings: Settings
    stage: Stage
    kernel: Kernel
    formula: str
    estimator: str = ""
    surface: Surface | None = None
    score: float | None = None
    score_name: str = ""
    embedding: Floats | None = None
    embedding_name: str = ""
    ratios: Floats | None = None
    gram: Floats | None = None
    report: KernelReport | None = None
    python: str = ""
    command: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


def outcomes(data: Dataset, settings: Settings) -> Iterator[Outcome]:
    """The outcome of the model, then also with the kernel's components, then also with the verdict on the kernel.

    Raises
    ------
    InvalidInput
        For a text that is not a kernel, a method that needs classes, and rows that the kernel doesn't take.

    Examples
    --------
    >>> from mercer.lab import bundled
    >>> first, second, last = outcomes(bundled("iris"), Settings("svm", gamma=0.5))
    >>> first.formula, first.ratios, second.ratios.shape, second.report, last.report.verdict, round(last.score, 2)
    ('exp(−0.5·‖x − z‖²)', None, (10,), None, 'proved', 0.89)
    """
    start, last = perf_counter(), data.X.shape[1] - 1
    settings = replace(settings, axes=(min(settings.axes[0], last), min(settings.axes[1], last)))
    if settings.only_axes:
        chosen = tuple(dict.fromkeys(settings.axes))
        data = data.with_columns(chosen)
        settings = replace(settings, axes=(0, len(chosen) - 1))
    work = _Work(data, settings)
    for stage in work.stages():
        yield replace(stage, seconds=perf_counter() - start)


class _Work:
    """One computation; `notes` collects what could not be computed."""

    def __init__(self, data: Dataset, settings: Settings) -> None:
        self.data, self.settings, self.notes = data, settings, []
        self.method = METHODS[settings.method]
        self.arguments = settings.arguments(data.task, data.unit)
        self.kernel = as_kernel(settings.text).resolve(data.X, data.columns)
        if not self.kernel.space.vectors:
            given = f"{settings.text} is a kernel of other rows than those of a table"
            raise InvalidInput(message("lab", given, "choose a kernel of vectors, such as gaussian(gamma=0.1)"))
        self.kernel.check_data(data.X)

    notes: list[str]

    def stages(self) -> Iterator[Outcome]:
        """The model at once, so that its pictures are painted while the rest is computed."""
        found = self.with_model()
        yield found
        pca, scores = self.spanned or (None, None)
        embedding, name = self.tried("embedding", lambda: self.embedding(scores)) or (None, "")
        ratios = None if pca is None else pca.explained_variance_ratio_
        found = replace(found, stage="components", embedding=embedding, embedding_name=name, ratios=ratios)
        yield replace(found, notes=self.all_notes)
        text, d = self.settings.text, self.data.X.shape[1]
        report = self.tried("definiteness", lambda: check_kernel(text, n_features=d))
        yield replace(found, stage="done", report=report, notes=self.all_notes)

    def with_model(self) -> Outcome:
        """Surface, score and Gram matrix, and what needs no computation."""
        data, settings = self.data, self.settings
        e = trace_or_none(self.kernel)
        model = self.model
        score = None if model is None else self.tried("score", lambda: self.score(model))
        return Outcome(
            settings=settings,
            stage="model",
            kernel=self.kernel,
            formula=repr(self.kernel) if e is None else pretty(e),
            estimator=type(model).__name__ if model is not None else "",
            surface=None if model is None else self.tried("surface", lambda: self.surface(model)),
            score=score,
            score_name=self.score_name,
            gram=self.tried("Gram matrix", self.gram),
            python=python(data, settings, self.most_components),
            command=command(data, settings),
            notes=self.all_notes,
        )

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, each once."""
        return tuple(dict.fromkeys(self.notes))

    @cached_property
    def spanned(self) -> tuple[Any, Floats] | None:
        """Kernel PCA and the scores of all rows."""
        pca = KernelPCA(self.most_components, self.settings.text)
        return self.tried("kernel PCA", lambda: (pca, pca.fit_transform(self.data.X)))

    @cached_property
    def model(self) -> Any:
        if self.settings.method == "pca":
            return self.spanned and self.spanned[0]
        return self.tried(self.method.title, self.fitted)

    @property
    def most_components(self) -> int:
        return min(COMPONENTS, len(self.data.y) - 1)

    def tried(self, what: str, work: Any) -> Any:
        """What `work` returns, or None and a note; between two pieces of work it can be cancelled."""
        start = perf_counter()
        try:
            with observe(Cancel(after_seconds=MOST_SECONDS)):
                return work()
        except Cancelled:
            if perf_counter() - start < MOST_SECONDS:  # the page asks for something else
                raise
            given = f"{what} is not done within {MOST_SECONDS:g} seconds"
            self.notes.append(message("lab", given, "take fewer rows (--rows), or choose another kernel"))
            return None
        except MercerError as error:
            self.notes.append(str(error))
            return None
        finally:
            emit(StageDone(f"lab: {what}", perf_counter() - start))

    def fitted(self) -> Any:
        data = self.data
        model = self.method.estimators[data.task](**self.arguments)
        return model.fit(data.X[~data.held], data.y[~data.held]) if self.method.supervised else model.fit(data.X)

    @property
    def score_name(self) -> str:
        held = f"on {counted(int(self.data.held.sum()), 'row')} held out"
        fixed = {"pca": "share of variance of two components", "kmeans": "minus the inertia"}
        return fixed.get(self.settings.method) or f"{'R²' if self.data.task == 'regression' else 'accuracy'} {held}"

    def score(self, model: Any) -> float:
        data = self.data
        if self.settings.method == "pca":
            return float(model.explained_variance_ratio_[:2].sum())
        if self.settings.method == "kmeans":
            return -float(model.inertia_)
        return float(model.score(data.X[data.held], data.y[data.held]))

    def embedding(self, scores: Floats | None) -> tuple[Floats, str] | None:
        """Of all rows: two discriminants if there are two, otherwise two kernel components."""
        if self.settings.method == "discriminant" and self.model is not None:
            Z = self.model.transform(self.data.X)
            if Z.shape[1] > 1:
                return np.asarray(Z[:, :2]), "discriminants"
        if scores is None:
            return None
        return np.column_stack([scores, np.zeros(len(scores))])[:, :2], "kernel components"

    def surface(self, model: Any) -> Surface:
        X, (i, j) = self.data.X, self.settings.axes
        x, y = (_places(X[:, column]) for column in (i, j))
        if i == j:
            return self.curve(model, x)
        rows = np.tile(np.median(X, axis=0), (GRID * GRID, 1))
        rows[:, i], rows[:, j] = np.tile(x, GRID), np.repeat(y, GRID)
        kind, values = self.said(model, rows)
        return Surface(kind, values.reshape(GRID, GRID), x, y, self.weights(model))

    def curve(self, model: Any, x: Floats) -> Surface:
        """Along one column, with a height for each row."""
        X = self.data.X
        rows = np.tile(np.median(X, axis=0), (GRID, 1))
        rows[:, self.settings.axes[0]] = x
        kind, values = self.said(model, rows)
        heights = self.data.codes if kind in ("prediction", "classes") else self.said(model, X)[1]
        return Surface(kind, values, x, heights, self.weights(model))

    def said(self, model: Any, rows: Floats) -> tuple[str, Floats]:
        """The kind of a model's values, and the values."""
        if self.settings.method == "pca":
            return "component", np.asarray(model.transform(rows)[:, 0], np.float64)
        if self.settings.method == "kmeans":
            return "clusters", np.asarray(model.predict(rows), np.float64)
        if self.data.task == "regression":
            return "prediction", np.asarray(model.predict(rows), np.float64)
        if len(model.classes_) == 2:
            return "decision", np.asarray(model.decision_function(rows), np.float64)
        return "classes", np.searchsorted(self.data.classes, model.predict(rows)).astype(np.float64)

    def weights(self, model: Any) -> Floats:
        """|α| of the rows, relative to the largest."""
        data, found = self.data, np.full(len(self.data.y), np.nan)
        alpha = getattr(model, "dual_coef_", None)
        if alpha is None or not self.method.supervised:
            return found
        train, alpha = np.flatnonzero(~data.held), np.abs(np.asarray(alpha))
        if hasattr(model, "support_"):
            found[train] = 0.0
            train, alpha = train[model.support_], alpha.T
        size = alpha.reshape(len(alpha), -1).max(axis=1)
        if len(size) == len(train) and size.max() > 0:
            found[train] = size / size.max()
        return found

    def gram(self) -> Floats:
        """The kernel matrix of at most 200 rows, in the order of what they are coloured by."""
        clustered = self.settings.method == "kmeans" and self.model is not None
        keys = self.model.labels_ if clustered else self.data.codes
        order = np.argsort(keys, kind="stable")
        some = order[np.linspace(0, len(order) - 1, min(GRAM_ROWS, len(order))).astype(int)]
        return np.asarray(KernelOperator(self.kernel, self.data.X[some]).toarray(), np.float64)


def _places(column: Floats) -> Floats:
    """From a little below the smallest to a little above the largest value."""
    low, high = float(column.min()), float(column.max())
    margin = 0.08 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, GRID)
