"""What ``mercer fit`` does, without a word on the terminal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.columns import chosen_columns
from mercer.cli.scores import Confusion, Score, guess, score
from mercer.cli.targets import Task, as_target, infer_task, quarter
from mercer.errors import InvalidInput, message
from mercer.estimators import KernelRidge, KernelRidgeClassifier
from mercer.io import SequenceEncoder, Table, TableEncoder, TableModel
from mercer.kernels import Kernel, as_kernel
from mercer.select import (
    RidgeSearch,
    cross_validate_ridge,
    default_alphas,
    default_kernels,
    default_sequence_kernels,
)

__all__ = ["Choice", "Data", "Outcome", "choose", "fit", "given_kernel", "prepare"]

SAMPLE, SCREEN, FOLDS = 3000, 1000, 5
FEWEST = 20
"""Rows that a fit with a quarter held out and five folds needs."""


@dataclass(frozen=True, eq=False)
class Data:
    """A table with its target, its task, and which rows are held out."""

    table: Table
    target: str
    y: NDArray[Any]
    task: Task
    why_task: str
    held: NDArray[np.bool_]
    left_out: tuple[str, ...]
    """Columns that are not looked at, and why, in words."""
    encoder: TableEncoder | SequenceEncoder
    """Fitted once, on the rows that are not held out: choice, fit, refit and file share it."""

    @property
    def frame(self) -> Any:
        """The columns to predict from."""
        return self.table.frame

    @property
    def of_sequences(self) -> bool:
        """Whether the rows are sequences, not columns."""
        return self.table.format == "fasta"

    def encoded(self, rows: NDArray[np.bool_]) -> Any:
        """Some of the rows, as the kernel sees them."""
        return self.encoder.transform(self.frame[rows])

    @property
    def training(self) -> Any:
        """The rows that are not held out, as the kernel sees them."""
        return self.encoded(~self.held)


@dataclass(frozen=True)
class Choice:
    """The kernel and α, and the search that found them where there was one."""

    kernel: Kernel
    alpha: float
    search: RidgeSearch | None


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted model, and its score on the rows that were held out."""

    model: TableModel
    held_out: Score | None
    guessing: Score | None
    confusion: Confusion | None = None


def prepare(
    table: Table,
    target: str | None,
    task: str,
    seed: int,
    holdout: bool = True,
    *,
    columns: str | None = None,
    drop: str | None = None,
) -> Data:
    """Split the target off, choose the columns, find the task, and hold a quarter of the rows out."""
    rest, column = table.split(target)
    name = target or table.default_target or ""
    # Of the whole table, in which counters are complete.
    chosen = chosen_columns(table.path, table.frame, columns, drop, name)
    rest = replace(rest, frame=rest.frame[chosen.names])
    found, why = infer_task(column, task)
    if len(column) < FEWEST:
        raise InvalidInput(message(table.path, f"{len(column)} rows with a target", f"give {FEWEST} or more"))
    y = as_target(table.path, column, found)
    held = quarter(y, found, seed) if holdout else np.zeros(len(y), bool)
    encoder = SequenceEncoder() if rest.format == "fasta" else TableEncoder()
    return Data(rest, name, y, found, why, held, tuple(chosen.said), encoder.fit(rest.frame[~held]))


def choose(data: Data, kernel: str | None, alpha: float | None, seed: int) -> Choice:
    """The kernel and α by cross-validation on the training rows, or what was given of them."""
    if alpha is not None and not (np.isfinite(alpha) and alpha > 0):
        raise InvalidInput(message("--alpha", f"{alpha}", "give a positive number"))
    X = data.training
    given = None if kernel is None else given_kernel(kernel, data, X)
    if given is not None and alpha is not None:
        return Choice(given, alpha, None)
    kernels = _defaults(data, X, seed) if given is None else [given]
    alphas = default_alphas() if alpha is None else [alpha]
    search = cross_validate_ridge(
        X,
        data.y[~data.held],
        kernels,
        alphas,
        folds=FOLDS,
        task=data.task,
        sample=SAMPLE,
        random_state=seed,
        screen=SCREEN,
    )
    return Choice(search.best_kernel, search.best_alpha, search)


def _defaults(data: Data, X: Any, seed: int) -> list[Kernel]:
    return default_sequence_kernels(X) if data.of_sequences else default_kernels(X, random_state=seed)


def given_kernel(text: str, data: Data, X: Any) -> Kernel:
    """The kernel that was asked for, resolved, if it is one of such rows."""
    kernel = as_kernel(text)
    wanted = "any" if data.of_sequences else "vectors"
    if kernel.domain != wanted:
        rows, such = ("sequences", "spectrum(k=3)") if data.of_sequences else ("the rows of a table", "gaussian()")
        advice = f"choose a kernel of those, such as {such}; others are for mercer in Python"
        raise InvalidInput(message("--kernel", f"{text} is no kernel of {rows}", advice))
    kernel = kernel.resolve(X, feature_names=data.encoder.feature_names_out_)
    kernel.check_data(X)
    return kernel


def fit(data: Data, choice: Choice, memory: str | None, *, refit: bool) -> Outcome:
    """Fit the training rows and score those held out; with `refit`, then fit all rows."""
    train = ~data.held
    model = _fitted(data, choice, memory, train)
    if not data.held.any():
        return Outcome(model, None, None)
    held = data.frame[data.held]
    predicted, y = model.predict(held), data.y[data.held]
    classes = data.task == "classification"
    scores = model.decision_function(held) if classes else None
    held_out = score(y, predicted, data.task, scores)
    guessing = guess(data.y[train], y, data.task)
    temperature = None if scores is None else model.fitted_temperature(scores, y)
    if refit:
        del model  # its training rows, before those of the next one
        model = _fitted(data, choice, memory, np.ones(len(data.y), bool))
    if temperature is not None:
        model = model.with_temperature(temperature)
    scored = f"on a quarter of the rows, held out before the fit: {held_out}; guessing: {guessing}"
    model.set_params(notes=(*model.notes, scored))
    return Outcome(model, held_out, guessing, Confusion.of(y, predicted) if classes else None)


def _fitted(data: Data, choice: Choice, memory: str | None, rows: NDArray[np.bool_]) -> TableModel:
    estimator = KernelRidgeClassifier if data.task == "classification" else KernelRidge
    ridge = estimator(choice.kernel, choice.alpha, fit_intercept=True, memory=memory)
    model = TableModel.of(data.encoder, ridge.fit(data.encoded(rows), data.y[rows]), data.target, int(rows.sum()))
    return model.set_params(notes=data.left_out)
