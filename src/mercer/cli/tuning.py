"""The work of ``mercer tune``. It prints nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.fitting import FOLDS, SAMPLE, SCREEN, KernelChoice, TrainingTable, choose, given_kernel
from mercer.errors import InvalidInput, message
from mercer.estimators import KernelRidge, KernelRidgeClassifier, KernelSearchCV
from mercer.io import TableEncoder
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.derivatives import tunable_parameters
from mercer.kernels.parameters.comparable import comparable
from mercer.select import (
    MarginalLikelihood,
    Suggestions,
    default_alphas,
    default_kernels,
    default_sequence_kernels,
    maximise_marginal_likelihood,
    suggest,
)
from mercer.tables.targets import Task, random_folds, stratified_order

__all__ = ["Tuned", "refuse_contradictions", "tune"]

BANDWIDTHS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
FEW = 3
"""How many kernels of sequences the search goes on with."""
PENALTIES = np.array([0.1, 0.3, 1.0, 3.0, 10.0])


@dataclass(frozen=True, eq=False)
class Tuned:
    """The choice, and the searches that led to it."""

    choice: KernelChoice
    shortlist: Suggestions | None
    families: KernelSearchCV | None
    """The search over one kernel of each family, if there is a shortlist."""
    search: KernelSearchCV | None
    likelihood: MarginalLikelihood | None
    features: list[str]
    notes: tuple[str, ...] = ()


def tune(
    data: TrainingTable, kernel: str | None, per_column: bool, halving: int | None, resume: Any, seed: int
) -> Tuned:
    """Take a kernel from the shortlist or as given; tune its parameters by a search or by the marginal likelihood."""
    _refuse_per_column(data, per_column)
    if kernel is None and data.has_texts:
        return _tune_joined(data, halving, resume, seed)
    y, chosen = data.y[~data.held], _sampled(data.y[~data.held], data.task, seed)
    given, encoder = (None, data.encoder) if kernel is None else given_kernel(kernel, data)
    named = as_kernel(kernel) if kernel is not None and data.has_texts else None
    X, names = encoder.transform(data.training_frame), list(encoder.feature_names_out_)
    shortlist, families = None, None
    if given is None and not data.of_sequences:
        shortlist = suggest(X, y, task=data.task, random_state=seed)
    if per_column:
        start = shortlist[0].kernel if shortlist is not None else given
        assert start is not None
        found = maximise_marginal_likelihood(start, X, y, per_column=True, sample=SAMPLE // 2, random_state=seed)
        return Tuned(KernelChoice(_short(found.kernel), found.noise, encoder), shortlist, None, None, found, names)
    if given is not None:
        grid = [_grid(_around(given), default_alphas())]
    else:
        families = _tried_families(data, shortlist, X, y, seed)
        grid = [_grid(_near_the_best(families), families.best_params_["alpha"] * PENALTIES)]
    search = _search(data, X[chosen], y[chosen], grid, seed, halving=halving, resume=resume)
    best = search.best_params_
    notes = [] if len(grid[0]["kernel"]) > 1 else ["the kernel has no bandwidth to vary: only α was searched"]
    notes += _no_race(search, len(chosen))
    choice = KernelChoice(best["kernel"], best["alpha"], encoder, given=named if len(grid[0]["kernel"]) == 1 else None)
    return Tuned(choice, shortlist, families, search, None, names, tuple(notes))


def _tune_joined(data: TrainingTable, halving: int | None, resume: Any, seed: int) -> Tuned:
    """Tune a kernel of a table with texts: the choice of a fit, then a search over bandwidths and weights around it."""
    start = choose(data, None, None, seed)
    assert start.way is not None
    assert isinstance(start.encoder, TableEncoder)
    y = data.y[~data.held]
    chosen = _sampled(y, data.task, seed)
    X = start.encoder.transform(data.training_frame)[chosen]
    ways = start.way.varied(_around)
    kernels = [way.kernel(start.encoder) for way in ways]
    grid = [_grid(kernels, start.alpha * PENALTIES)]
    search = _search(data, X, y[chosen], grid, seed, halving=halving, resume=resume)
    way = ways[kernels.index(search.best_params_["kernel"])]
    best = KernelChoice(search.best_params_["kernel"], search.best_params_["alpha"], start.encoder, way=way)
    notes = (*start.notes, *_no_race(search, len(chosen)))
    return Tuned(best, None, None, search, None, list(start.encoder.feature_names_out_), notes)


def refuse_contradictions(per_column: bool, halving: int | None, resume: Any) -> None:
    """Raise InvalidInput for options of a search with --per-column, which maximises the marginal likelihood instead.

    >>> refuse_contradictions(per_column=False, halving=3, resume="scores.json")
    """
    idle = [name for name, value in (("--halving", halving), ("--resume", resume)) if value is not None]
    if per_column and idle:
        given = f"--per-column with {' and '.join(idle)}"
        advice = "leave the one or the other out: length-scales of columns come from no search"
        raise InvalidInput(message("tune", given, advice))


def _no_race(search: KernelSearchCV, rows: int) -> list[str]:
    """A note with the reason if `halving` had no effect."""
    if search.halving is None or max(search.cv_results_["iter"]) > 0:
        return []
    candidates = len(search.cv_results_["params"])
    if candidates < search.halving:
        why = f"{candidates} candidates are too few for a round that keeps 1/{search.halving}"
    else:
        why = f"a race begins with {search.min_rows} rows or more, and 1/{search.halving} of these {rows} is fewer"
    return [f"--halving {search.halving} had no effect: {why}"]


def _refuse_per_column(data: TrainingTable, per_column: bool) -> None:
    if not per_column:
        return
    if data.of_sequences:
        given = "--per-column for sequences"
        raise InvalidInput(message("tune", given, "sequences have no columns: leave it out"))
    if data.has_texts:
        given = f"--per-column for a table with texts ({', '.join(data.texts)})"
        raise InvalidInput(message("tune", given, "leave them out: --drop names them"))
    if data.task == "classification":
        given = "--per-column for classes"
        raise InvalidInput(message("tune", given, "the marginal likelihood is that of a regression: leave it out"))


def _tried_families(
    data: TrainingTable, shortlist: Suggestions | None, X: Any, y: NDArray[Any], seed: int
) -> KernelSearchCV:
    """Score one kernel of each family on the sample, or all kernels of sequences on as many rows as a screen has."""
    if shortlist is None:
        rows = _sampled(y, data.task, seed, SCREEN)
        grid = [_grid(default_sequence_kernels(X), default_alphas())]
    else:
        rows, grid = _sampled(y, data.task, seed), _families(shortlist, X, seed)
    return _search(data, X[rows], y[rows], grid, seed)


def _near_the_best(search: KernelSearchCV) -> list[Kernel]:
    """The best kernel with other bandwidths, or the best few kernels if it has none, as on sequences."""
    around = _around(search.best_params_["kernel"])
    if len(around) > 1:
        return around
    order = np.argsort(search.cv_results_["rank_test_score"], kind="stable")
    return list(dict.fromkeys(search.cv_results_["params"][i]["kernel"] for i in order))[:FEW]


def _search(data: TrainingTable, X: Any, y: NDArray[Any], grid: list[dict[str, Any]], seed: int, **options: Any) -> Any:
    """The scores of a grid on folds drawn by the seed."""
    estimator = KernelRidgeClassifier if data.task == "classification" else KernelRidge
    folds = random_folds(y, data.task, seed + 1, FOLDS)
    ridge = estimator(fit_intercept=True)
    return KernelSearchCV(ridge, grid, cv=folds, random_state=seed, refit=False, **options).fit(X, y)


def _grid(kernels: list[Kernel], alphas: Any) -> dict[str, Any]:
    return {"kernel": kernels, "alpha": [float(f"{alpha:.3g}") for alpha in alphas]}


def _families(shortlist: Suggestions, X: Any, seed: int) -> list[dict[str, Any]]:
    """The best of each family in the shortlist, and the roughest of each that it left out.

    A shortlist is made from few rows, and rough kernels gain more from more rows than smooth ones.
    """
    found = {_family(one.kernel): (one.kernel, one.alpha) for one in reversed(shortlist.ranked)}
    left = {_family(kernel): (kernel, shortlist[0].alpha) for kernel in default_kernels(X, random_state=seed)}
    both = {**left, **found}
    return [_grid([kernel], alpha * PENALTIES) for kernel, alpha in both.values()]


def _family(kernel: Kernel) -> Any:
    """A key that two kernels share if they differ in their bandwidth only."""
    params = kernel.get_params(deep=False)
    params.pop(kernel.rule_parameter, None)
    return type(kernel), comparable(params)


def _sampled(y: NDArray[Any], task: Task, seed: int, most: int = SAMPLE) -> NDArray[np.intp]:
    """At most `most` rows, with the classes in their proportions."""
    order = stratified_order(y, task, seed)
    places = np.linspace(0, len(y) - 1, min(len(y), most)).round().astype(np.intp)
    return np.sort(order[places])


def _around(kernel: Kernel) -> list[Kernel]:
    """The kernel with its bandwidths multiplied by each factor of `BANDWIDTHS`."""
    names = [name for name in tunable_parameters(kernel) if name.split("__")[-1] in ("gamma", "length_scale")]
    values = {name: tunable_parameters(kernel)[name] for name in names}
    if not names:
        return [kernel]
    return [kernel.replace(**{name: _six(value * f) for name, value in values.items()}) for f in BANDWIDTHS]


def _short(kernel: Kernel) -> Kernel:
    """The kernel with parameters of six digits, which can be typed again."""
    out = kernel.replace(**{name: _six(value) for name, value in tunable_parameters(kernel).items() if "[" not in name})
    scales = {name: value for name, value in out.get_params().items() if name.split("__")[-1] == "scales"}
    return out.replace(**{name: tuple(map(_six, value)) for name, value in scales.items()})


def _six(value: float) -> float:
    return float(f"{value:.6g}")
