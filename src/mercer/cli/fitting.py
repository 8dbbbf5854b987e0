"""The work of ``mercer fit``. It prints nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.columns import chosen_columns, named_columns
from mercer.cli.methods.supervised import RIDGE, Method, best_penalty, method_named
from mercer.cli.mixed import Joined, best_parts, joined, placed
from mercer.cli.scores import Confusion, Score, deviations, guess, score
from mercer.errors import InvalidInput, MemoryExceeded, message
from mercer.io import SequenceEncoder, Table, TableEncoder, TableModel
from mercer.kernels import Kernel, as_kernel
from mercer.numerals import counted
from mercer.select import (
    RidgeSearch,
    cross_validate_ridge,
    default_alphas,
    default_kernels,
    default_sequence_kernels,
)
from mercer.shards.workers import on_workers
from mercer.tables.beyond import all_rows, table_or_sample
from mercer.tables.reader import COLUMNAR
from mercer.tables.targets import Task, as_target, form_of_dates, holdout_rows, infer_task

__all__ = [
    "KernelChoice", "Outcome", "TrainingTable", "by_method", "choose", "chosen", "fit", "fitted_encoder",
    "fitted_model", "given_kernel", "prepare", "table_or_sample",
]  # fmt: skip

SAMPLE, SCREEN, FOLDS = 3000, 1000, 5
FEWEST = 20
"""The fewest rows of which a quarter can be held out and the rest be divided into five folds."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table with its target, its task, and which rows are held out."""

    table: Table
    target: str
    y: NDArray[Any]
    task: Task
    why_task: str
    held: NDArray[np.bool_]
    left_out: tuple[str, ...]
    """Sentences that say which columns were left out, and why."""
    encoder: TableEncoder | SequenceEncoder
    """Fitted once, on the rows that are not held out. The choice, the fits and the model file share it."""
    whole: Path | None = None
    """The file of all rows, if the table is a sample of these."""
    total: int | None = None
    """The rows of that file that have a target."""

    @property
    def rows(self) -> int:
        """The rows that have a target, also those that are not in the sample."""
        return len(self.y) if self.total is None else self.total

    @property
    def sample(self) -> int | None:
        """The rows of the sample, if the table is one."""
        return None if self.whole is None else len(self.y)

    @property
    def frame(self) -> Any:
        """The columns to predict from."""
        return self.table.frame

    @property
    def of_sequences(self) -> bool:
        """Whether the rows are sequences, not columns."""
        return self.table.of_sequences

    @property
    def texts(self) -> list[str]:
        """The columns of a table that are texts or sequences."""
        return self.encoder.text_columns_ if isinstance(self.encoder, TableEncoder) else []

    @property
    def has_texts(self) -> bool:
        """Whether some columns of a table are texts or sequences."""
        return bool(self.texts)

    @property
    def training_frame(self) -> Any:
        """The rows that are not held out."""
        return self.frame[~self.held]

    @property
    def training(self) -> Any:
        """The rows that are not held out, encoded."""
        return self.encoder.transform(self.training_frame)


@dataclass(frozen=True)
class KernelChoice:
    """The kernel, α, the encoder of the rows, and the search that found them, if there was one."""

    kernel: Kernel
    alpha: float | None
    """None if the method chooses its regularisation in the fit."""
    encoder: TableEncoder | SequenceEncoder
    search: RidgeSearch | None = None
    way: Joined | None = None
    """The parts of the kernel, for a table with texts."""
    given: Kernel | None = None
    """The kernel as the user gave it, for a table with texts."""
    notes: tuple[str, ...] = ()
    method: Method = RIDGE

    @property
    def said(self) -> str:
        """The kernel, and α if it is known."""
        return f"{self.kernel!r}" + ("" if self.alpha is None else f", α = {self.alpha:.4g}")

    @property
    def named(self) -> Kernel:
        """The kernel as it can be given again: with names of columns, because indices count only those in use."""
        return self.way.named if self.way is not None else self.given or self.kernel


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
    text: str | None = None,
    whole: Path | None = None,
) -> TrainingTable:
    """Split the target off, choose the columns, find the task, and hold a quarter of the rows out."""
    rest, column = table.split(target)
    name = target or table.default_target or ""
    # From the whole table: without the rows that have no target, a counter of rows would have gaps.
    chosen = chosen_columns(table.path, table.frame, columns, drop, name, text, rest.frame)
    notes = rest.notes if whole is None else _of_the_sample(table.notes, rest.notes)
    rest = replace(rest, frame=rest.frame[chosen.names], notes=notes)
    as_written = _as_labels(column, table.written.get(name))
    found, why = infer_task(column, task, as_written)
    if len(column) < FEWEST:
        given = f"{counted(len(column), 'row')} with a target"
        raise InvalidInput(message(table.path, given, f"give {FEWEST} or more"))
    if found == "classification":
        column = as_written
    y = as_target(table.path, column, found)
    held = holdout_rows(y, found, seed) if holdout else np.zeros(len(y), bool)
    form = form_of_dates(column) if found == "regression" else None
    encoder = fitted_encoder(rest, rest.frame[~held], columns is not None, text, name, form)
    total = None if whole is None else _with_target(whole, name)
    return TrainingTable(rest, name, y, found, why, held, tuple(chosen.said), encoder, whole, total)


def _of_the_sample(known: tuple[str, ...], notes: tuple[str, ...]) -> tuple[str, ...]:
    """The notes, of which those that are not known yet count rows of the sample."""
    return (*known, *(f"of the sample, {note}" for note in notes[len(known) :]))


def _with_target(path: Path, target: str) -> int:
    """How many rows of a file have a target that a fit can use."""
    import pandas as pd

    column = pd.Series(COLUMNAR[path.suffix.lower()].column(path, target))
    infinite = np.isinf(column.to_numpy()) if column.dtype.kind == "f" else np.zeros(len(column), bool)
    return int((column.notna().to_numpy(bool) & ~infinite).sum())


def labels(target: str | None) -> tuple[str, ...]:
    """The columns of a table to keep as they are written: labels such as 001, if the target has them."""
    return () if target is None else (target,)


def _as_labels(column: Any, written: Any) -> Any:
    """The target as it is written if labels begin with 0 or have many digits, which numbers would lose."""
    if written is None or not written.str.fullmatch(r"0\d+|\d{16,}").any():
        return column
    return written.loc[column.index]


def fitted_encoder(
    table: Table, rows: Any, named: bool, text: str | None, target: str = "", form: str | None = None
) -> TableEncoder | SequenceEncoder:
    """The encoder of the rows. It keeps sequences, and keeps text if it is named or if there are no other columns.

    It also keeps how the numbers of the target were written, and the form of its dates, for later tables.
    """
    if table.of_sequences:
        return SequenceEncoder().fit(rows)
    wanted = () if text is None else tuple(named_columns("--text", text, table.path, table.columns))
    # A word among numbers may stand in rows that are held out alone: all rows tell which words mean missing.
    encoder = TableEncoder(keep_text=True, text=wanted).fit(rows).knowing(table.frame, table.marks, target, form)
    kinds = zip(encoder.columns_, encoder.kinds_, strict=True)
    unread = [name for name, kind in kinds if kind == "text" and name not in wanted]
    if named or not unread or len(unread) == len(encoder.columns_):
        return encoder
    return encoder.without(*unread, why=f"left out, as text; --text {shlex.quote(','.join(unread))} reads it")


def choose(data: TrainingTable, kernel: str | None, alpha: float | None, seed: int) -> KernelChoice:
    """Choose the kernel and α by cross-validation on the training rows, unless they are given."""
    if kernel is not None:
        given, encoder = given_kernel(kernel, data)
        as_given = as_kernel(kernel) if data.has_texts else None
        if alpha is not None:
            return KernelChoice(given, alpha, encoder, given=as_given)
        search = _searched(data, encoder.transform(data.training_frame), [given], None, seed, SCREEN)
        return KernelChoice(search.best_kernel, search.best_alpha, encoder, search, given=as_given)
    if data.has_texts:
        assert isinstance(data.encoder, TableEncoder)
        return _choose_joined(data, data.encoder, alpha, seed)
    X = data.training
    search = _searched(data, X, _defaults(data, X, seed), alpha, seed, SCREEN)
    return KernelChoice(search.best_kernel, search.best_alpha, data.encoder, search)


def _choose_joined(data: TrainingTable, encoder: TableEncoder, alpha: float | None, seed: int) -> KernelChoice:
    """Choose the best kernel of each part of a table with texts, then the best way to join them."""
    X = data.training
    parts = best_parts(encoder, X, data.y[~data.held], data.task, SCREEN, FOLDS, seed)
    ways = joined(parts)
    kernels = [way.kernel(way.own(encoder)) for way in ways]
    # Kernels of numbers alone take vectors, so they have a search of their own, on the same folds.
    groups = [[i for i, one in enumerate(kernels) if (one.space.vectors) == numbers] for numbers in (True, False)]
    found = []
    for group in filter(None, groups):
        own = encoder.with_features(*(feature for i in group for feature in ways[i].features))
        rows = own.transform(data.training_frame)
        kernels = [ways[i].kernel(own) for i in group]
        search = _searched(data, rows, kernels, alpha, seed, None)
        found.append((search, ways[group[kernels.index(search.best_kernel)]]))
    search, way = max(found, key=lambda one: one[0].best_score)
    table = sorted((row for one, _ in found for row in one.table), key=lambda row: -row.mean)
    own = way.own(encoder)
    notes = tuple(part.said for part in parts)
    search = replace(search, table=(search.table[0], *(row for row in table if row != search.table[0])))
    return KernelChoice(way.kernel(own), search.best_alpha, own, search, way, None, notes)


def chosen(data: TrainingTable, kernel: str | None, alpha: float | None, name: str, seed: int) -> KernelChoice:
    """Choose what is not given of the kernel and α, for the method of a name."""
    method = method_named(name, data.task)
    if alpha is not None and not (np.isfinite(alpha) and alpha > 0):
        raise InvalidInput(message("--alpha", f"{alpha}", "give a positive number"))
    if method.shares_alpha:
        return replace(choose(data, kernel, alpha, seed), method=method)
    if data.whole is not None:
        given = f"{name} for a table that is read by chunks"
        raise InvalidInput(message("--method", given, "leave it out: ridge regression is fitted by chunks"))
    # The search over kernels is by ridge regression: it is quick, and bandwidths that suit it suit others.
    start = choose(data, kernel, None if kernel is None else 1.0, seed)
    return by_method(start, method, data, alpha, seed)


def by_method(
    choice: KernelChoice, method: Method, data: TrainingTable, given: float | None, seed: int
) -> KernelChoice:
    """Another method with the same kernel and the α given, or with its own α and the kernel or one that is as good."""
    if method.shares_alpha:
        return replace(choice, method=method)
    if given is not None:
        return replace(choice, method=method, alpha=given)
    X, y = choice.encoder.transform(data.training_frame), data.y[~data.held]
    kernels: tuple[Kernel, ...] = (choice.kernel,)
    if method.compares_kernels and choice.search is not None and choice.way is None:
        kernels = choice.search.rivals  # ridge regression cannot tell them apart
    found = best_penalty(method, data.task, kernels, X, y, seed)
    if found is None:
        return replace(choice, method=method, alpha=None)
    told = f"{method.name} with {found}"
    return replace(choice, method=method, kernel=found.kernel, alpha=found.alpha, notes=(*choice.notes, told))


def _searched(
    data: TrainingTable, X: Any, kernels: list[Kernel], alpha: float | None, seed: int, screen: int | None
) -> RidgeSearch:
    return cross_validate_ridge(
        X,
        data.y[~data.held],
        kernels,
        default_alphas() if alpha is None else [alpha],
        folds=FOLDS,
        task=data.task,
        sample=SAMPLE,
        random_state=seed,
        screen=screen,
    )


def _defaults(data: TrainingTable, X: Any, seed: int) -> list[Kernel]:
    return default_sequence_kernels(X) if data.of_sequences else default_kernels(X, random_state=seed)


def given_kernel(text: str, data: TrainingTable) -> tuple[Kernel, TableEncoder | SequenceEncoder]:
    """The kernel that the user gave, resolved on the training rows, and the encoder of the columns that it reads."""
    kernel, encoder = as_kernel(text), data.encoder
    if isinstance(encoder, TableEncoder):
        kernel, encoder = placed(kernel, encoder, "--kernel")
    elif not kernel.space.objects:
        advice = "choose a kernel of those, such as spectrum(k=3); others are for mercer in Python"
        raise InvalidInput(message("--kernel", f"{text} is not a kernel of sequences", advice))
    X = encoder.transform(data.training_frame)
    kernel = kernel.resolve(X, feature_names=encoder.feature_names_out_)
    kernel.check_data(X)
    return kernel, encoder


def fit(
    data: TrainingTable,
    choice: KernelChoice,
    memory: str | None,
    *,
    refit: bool,
    scored: Callable[[TableModel], object] | None = None,
) -> Outcome:
    """Fit the training rows, score those held out, and pass the model to `scored`; with `refit`, then fit all rows."""
    train = ~data.held
    model = fitted_model(data, choice, memory, train)
    if not data.held.any():
        return Outcome(_fitted_to_all(data, choice, memory) if refit and data.whole else model, None, None)
    held = data.frame[data.held]
    y, classes = data.y[data.held], data.task == "classification"
    scores = model.confidences(held) if classes else None
    own = hasattr(model.estimator, "predict_proba")
    temperature = None if scores is None or own else model.fitted_temperature(scores, y)
    # Labels depend on this number too, and it is fitted to the rows that they are scored on. But a quarter more or less
    # of it changes less than one label in a hundred (letters, 26 classes).
    if temperature is not None:
        model = model.with_temperature(temperature)
    predicted = model.predict(held)
    held_out = score(y, predicted, data.task, scores, deviations(model, held))
    guessing = guess(data.y[train], y, data.task)
    if scored is not None:
        scored(model)
    if refit:
        del model  # frees its rows before the next fit copies its own
        model = _fitted_to_all(data, choice, memory)
    if temperature is not None:
        model = model.with_temperature(temperature)
    whose = "the rows, held out before the fit"
    if data.sample is not None:
        whose = f"a sample of {data.sample} rows, by a model of the rest of it"
    told = f"on a quarter of {whose}: {held_out}; guessing: {guessing}"
    model.set_params(notes=(*model.notes, told))
    return Outcome(model, held_out, guessing, Confusion.of(y, predicted) if classes else None)


def _fitted_to_all(data: TrainingTable, choice: KernelChoice, memory: str | None) -> TableModel:
    """The model of all rows: on landmarks, by chunks, if the table is a sample."""
    if data.whole is None:
        return fitted_model(data, choice, memory, np.ones(len(data.y), bool))
    rows, present, column = all_rows(data.whole, data.target, choice.encoder, memory)
    y = as_target(data.table.path, column[present], data.task)
    estimator = choice.method.estimator(data.task, choice.kernel, choice.alpha, y, memory)
    model = estimator.set_params(solver="nystroem").fit(rows, y)
    return TableModel.of(choice.encoder, model, data.target, len(y)).set_params(notes=data.left_out)


def fitted_model(data: TrainingTable, choice: KernelChoice, memory: str | None, rows: NDArray[np.bool_]) -> TableModel:
    """The model of some rows."""
    y = data.y[rows]
    estimator = choice.method.estimator(data.task, choice.kernel, choice.alpha, y, memory)
    encoded = on_workers(choice.encoder.transform(data.frame[rows]))
    try:
        fitted = estimator.fit(encoded, y)
    except MemoryExceeded as error:
        if not (choice.method.shares_alpha and choice.kernel.space.vectors):
            raise
        # A table that does not fit in memory is fitted on landmarks, and so is one that fits, but not its solver.
        fitted = estimator.set_params(solver="nystroem").fit(encoded, y)
        fitted.report_.notes.append(f"on landmarks, because {str(error).partition(';')[0]}")
    model = TableModel.of(choice.encoder, fitted, data.target, int(rows.sum()))
    return model.set_params(notes=data.left_out)
