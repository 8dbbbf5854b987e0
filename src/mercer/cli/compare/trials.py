"""The trials of a comparison: each candidate chooses on the training rows of a fold, and is scored on the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer.cli.fitting import KernelChoice, TrainingTable, by_method, choose, fitted_model
from mercer.cli.methods.supervised import METHODS, Method, method_named
from mercer.cli.scores import guess, score
from mercer.errors import InvalidInput, message
from mercer.estimators.search.ledger import Ledger
from mercer.events import TilesDone, emit
from mercer.io import TableEncoder, TableModel
from mercer.kernels import Kernel
from mercer.points import fingerprint
from mercer.tables.numbers import number_columns
from mercer.tables.targets import holdout_rows, random_folds, stratified_order
from mercer.version import __version__

__all__ = ["GUESSING", "LINEAR", "Candidate", "Trials", "candidates", "final_model", "sampled", "trials"]

GUESSING, LINEAR = "guessing", "linear"
BINS = 10
"""Bins of confidence: the calibration error compares the mean confidence in each with the share of right answers."""


@dataclass(frozen=True)
class Candidate:
    """A method with a kernel: one of those that are given, or None for the one that each fold chooses."""

    method: str
    kernel: str | None = None

    @property
    def name(self) -> str:
        """The name in the leaderboard.

        >>> Candidate("svm", "gaussian").name, Candidate("svm").name
        ('svm, gaussian', 'svm')
        """
        return self.method if self.kernel is None else f"{self.method}, {self.kernel}"


@dataclass(frozen=True, eq=False)
class Trials:
    """The result of a candidate in each fold."""

    candidate: Candidate
    scores: NDArray[np.float64]
    fit_seconds: float = 0.0
    """Means over the folds, the choices included."""
    predict_seconds: float = 0.0
    briers: NDArray[np.float64] | None = None
    bins: NDArray[np.float64] | None = None
    """(3, bins) over all folds: rows, sums of confidences, and hits."""
    kernels: tuple[str, ...] = ()
    """The kernel of each fold."""


def candidates(data: TrainingTable, methods: str | None, kernels: list[str]) -> list[Candidate]:
    """The methods that are named, or all quick ones for the task, with each kernel; and the linear baseline."""
    quick = [one.name for one in METHODS.values() if data.task in one.make and one.name != "gp"]
    names = quick if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise InvalidInput(message("--methods", f"{methods!r}", f"name some, such as {','.join(quick)}"))
    for name in names:
        method_named(name, data.task, "--methods")
    given: list[str | None] = [*kernels] or [None]
    found = [Candidate(name, kernel) for name in dict.fromkeys(names) for kernel in given]
    if not (data.of_sequences or data.has_texts):
        found.append(Candidate("ridge", LINEAR))
    return list(dict.fromkeys(found))


def sampled(data: TrainingTable, most: int, seed: int) -> TrainingTable:
    """At most so many rows, drawn at random with the classes in their proportions."""
    n = len(data.y)
    if n <= most:
        return data
    places = np.linspace(0, n - 1, most).round().astype(np.intp)
    kept = np.sort(stratified_order(data.y, data.task, seed)[places])
    table = replace(data.table, frame=data.frame.iloc[kept])
    return replace(data, table=table, y=data.y[kept], held=data.held[kept])


def trials(
    data: TrainingTable, tried: list[Candidate], folds: int, repeats: int, resume: Any, seed: int, memory: str | None
) -> list[Trials]:
    """Every candidate on each fold of each repeat, and guessing; scores that are in the file `resume` are not made."""
    splits = [
        split for turn in range(repeats) for split in random_folds(data.y, data.task, seed + 1 + turn, folds)
    ]  # fmt: skip
    ledger = _ledger(data, tried, splits, resume, seed)
    done, total = 0, len(splits) * len(tried)
    for fold, (_, test) in enumerate(splits):
        missing = [one for one in tried if ledger.get(f"{fold} {one.name}") is None]
        done += len(tried) - len(missing)
        for one, found in _of_fold(data, test, missing, seed, memory) if missing else ():
            ledger.put(f"{fold} {one.name}", found)
            ledger.save()
            done += 1
            emit(TilesDone("compare", done, total))
    rows = [_gathered(one, [ledger.get(f"{fold} {one.name}") or {} for fold in range(len(splits))]) for one in tried]
    guesses = np.array([guess(data.y[train], data.y[test], data.task).main for train, test in splits])
    return [*rows, Trials(Candidate(GUESSING), guesses)]


def _ledger(data: TrainingTable, tried: list[Candidate], splits: Any, resume: Any, seed: int) -> Ledger:
    """The scores of earlier runs on the same rows and folds. Candidates may be added to them."""
    if resume is None:
        return Ledger(None, "", "compare")
    numbers = number_columns(data.frame.dtypes)
    X = data.frame.iloc[:, np.flatnonzero(numbers)].to_numpy(np.float64)
    others = [values.astype(str).tolist() for _, values in data.frame.iloc[:, np.flatnonzero(~numbers)].items()]
    names = data.frame.columns.tolist()
    rows = names, numbers, X, others, data.y, data.task
    read = sorted(data.texts), sorted(data.table.marks.items()), sorted(map(repr, data.encoder.get_params().items()))
    key = fingerprint(__version__, *rows, *read, [test for _, test in splits], seed)
    return Ledger(resume, key, "compare")


def _of_fold(
    data: TrainingTable, test: NDArray[np.intp], tried: list[Candidate], seed: int, memory: str | None
) -> Iterator[tuple[Candidate, dict[str, Any]]]:
    """The scores of candidates on the rows of a fold. Those with the same kernel share its choice."""
    held = np.zeros(len(data.y), bool)
    held[test] = True
    part = _encoded_anew(replace(data, held=held))
    for kernel in dict.fromkeys(one.kernel for one in tried):
        start = perf_counter()
        choice = choose(part, kernel, None, seed)
        shared = perf_counter() - start
        for one in tried:
            if one.kernel == kernel:
                yield one, _trial(part, choice, METHODS[one.method], shared, seed, memory)


def _encoded_anew(data: TrainingTable) -> TrainingTable:
    """The same columns, encoded by what the training rows of this fold say alone."""
    encoder = clone(data.encoder)
    if not isinstance(data.encoder, TableEncoder):
        return replace(data, encoder=encoder.fit(data.training_frame))
    encoder.set_params(keep_text=data.has_texts)
    encoder.fit(data.training_frame[data.encoder.columns_])
    return replace(data, encoder=encoder.knowing(data.frame, data.table.marks))


def _trial(
    data: TrainingTable, choice: KernelChoice, method: Method, shared: float, seed: int, memory: str | None
) -> dict[str, Any]:
    start = perf_counter()
    own = by_method(choice, method, data, None, seed)
    model = _calibrated(data, own, fitted_model(data, own, memory, ~data.held), seed, memory)
    seconds = shared + perf_counter() - start
    rows, y = data.frame[data.held], data.y[data.held]
    start = perf_counter()
    predicted = model.predict(rows)
    found: dict[str, Any] = {"test_score": [score(y, predicted, data.task).main], "fit_seconds": [seconds]}
    found |= {"predict_seconds": [perf_counter() - start], "kernel": [_family(own.kernel)]}
    if data.task == "classification" and model.has_probabilities:
        found |= _calibration(model.predict_proba(rows), model.classes_, y)
    return found


def _family(kernel: Kernel) -> str:
    """The kernel without its bandwidth and its factor, which each fold chooses anew.

    >>> from mercer.kernels import Laplace, Linear
    >>> _family(0.25 * Linear()), _family(Laplace(gamma=0.5, norm=1))
    ('Linear()', 'Laplace(norm=1)')
    """
    return re.sub(r"^[\d.e+-]+ \* |(?:gamma|length_scale)=[\d.e+-]+(?:, )?", "", repr(kernel))


def _calibrated(
    data: TrainingTable, choice: KernelChoice, model: TableModel, seed: int, memory: str | None
) -> TableModel:
    """The model with the temperature of its probabilities, by a fit without a quarter of its rows."""
    if data.task == "regression" or hasattr(model.estimator, "predict_proba"):
        return model
    rows = np.flatnonzero(~data.held)
    quarter = holdout_rows(data.y[rows], data.task, seed)
    if not quarter.any():
        return model
    kept = np.zeros(len(data.y), bool)
    kept[rows[~quarter]] = True
    without, left = fitted_model(data, choice, memory, kept), rows[quarter]
    confidences = without.confidences(data.frame.iloc[left])
    return model.with_temperature(without.fitted_temperature(confidences, data.y[left]))


def _calibration(P: NDArray[np.float64], classes: NDArray[Any], y: NDArray[Any]) -> dict[str, Any]:
    """The Brier score Σ (P(c) − 1[y = c])², mean over the rows, and sums by bins of the largest probability."""
    true = y[:, None] == classes
    # A class that the training rows lack has probability 0, and costs 1.
    brier = float(np.mean(((P - true) ** 2).sum(axis=1) + ~true.any(axis=1)))
    top = P.argmax(axis=1)
    confidence, hits = P.max(axis=1), classes[top] == y
    place = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
    sums = [np.bincount(place, weights, minlength=BINS) for weights in (None, confidence, hits)]
    return {"brier": [brier], "bins": np.concatenate(sums)}


def _gathered(candidate: Candidate, found: list[dict[str, Any]]) -> Trials:
    def column(name: str) -> NDArray[np.float64]:
        return np.array([one[name][0] for one in found])

    calibrated = all("brier" in one for one in found)
    return Trials(
        candidate,
        column("test_score"),
        float(column("fit_seconds").mean()),
        float(column("predict_seconds").mean()),
        column("brier") if calibrated else None,
        np.sum([one["bins"] for one in found], axis=0).reshape(3, BINS) if calibrated else None,
        tuple(one["kernel"][0] for one in found),
    )


def final_model(
    data: TrainingTable, candidate: Candidate, memory: str | None, seed: int
) -> tuple[KernelChoice, TableModel]:
    """The candidate chosen and fitted on all rows."""
    part = _encoded_anew(replace(data, held=np.zeros(len(data.y), bool)))
    choice = by_method(choose(part, candidate.kernel, None, seed), METHODS[candidate.method], part, None, seed)
    model = fitted_model(part, choice, memory, ~part.held)
    return choice, _calibrated(part, choice, model, seed, memory)
