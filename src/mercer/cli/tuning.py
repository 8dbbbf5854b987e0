"""What ``mercer tune`` does, without a word on the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.cli.fitting import SAMPLE, Choice, Data
from mercer.errors import InvalidInput, message
from mercer.estimators import KernelRidge, KernelRidgeClassifier, KernelSearchCV
from mercer.io import TableEncoder
from mercer.kernels import Kernel, parse
from mercer.kernels.derivatives import tunable_parameters
from mercer.select import MarginalLikelihood, Suggestions, default_alphas, maximise_marginal_likelihood, suggest

__all__ = ["Tuned", "tune"]

BANDWIDTHS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
PENALTIES = np.array([0.1, 0.3, 1.0, 3.0, 10.0])


@dataclass(frozen=True, eq=False)
class Tuned:
    """The choice, and what led to it."""

    choice: Choice
    shortlist: Suggestions | None
    search: KernelSearchCV | None
    likelihood: MarginalLikelihood | None
    features: list[str]


def tune(data: Data, kernel: str | None, per_column: bool, halving: int | None, resume: Any, seed: int) -> Tuned:
    """A kernel from the shortlist, or the one given, and its parameters by a search or by the marginal likelihood."""
    encoder = TableEncoder()
    X, y = encoder.fit_transform(data.frame[~data.held]), data.y[~data.held]
    names = list(encoder.feature_names_out_)
    shortlist, alphas = None, default_alphas()
    if kernel is None:
        shortlist = suggest(X, y, task=data.task, random_state=seed)
        start, alphas = shortlist[0].kernel, shortlist[0].alpha * PENALTIES
    else:
        start = parse(kernel).resolve(X, feature_names=names)
    if start.domain != "vectors":
        given = f"{kernel} is no kernel of the rows of a table"
        raise InvalidInput(message("--kernel", given, "choose a kernel of vectors; others are for mercer in Python"))
    if per_column:
        if data.task == "classification":
            given = "--per-column for classes"
            raise InvalidInput(message("tune", given, "the marginal likelihood is that of a regression: leave it out"))
        found = maximise_marginal_likelihood(start, X, y, per_column=True, sample=SAMPLE // 2, random_state=seed)
        return Tuned(Choice(_short(found.kernel), found.noise, None), shortlist, None, found, names)
    estimator = KernelRidgeClassifier if data.task == "classification" else KernelRidge
    grid = {"kernel": _around(start), "alpha": [float(f"{alpha:.3g}") for alpha in alphas]}
    chosen = np.sort(np.random.default_rng(seed).permutation(len(y))[:SAMPLE])
    search = KernelSearchCV(
        estimator(fit_intercept=True), grid, halving=halving, resume=resume, random_state=seed, refit=False
    ).fit(X[chosen], y[chosen])
    best = search.best_params_
    return Tuned(Choice(best["kernel"], best["alpha"], None), shortlist, search, None, names)


def _around(kernel: Kernel) -> list[Kernel]:
    """The kernel with all of its bandwidths multiplied by a factor."""
    names = [name for name in tunable_parameters(kernel) if name.split("__")[-1] in ("gamma", "length_scale")]
    values = {name: tunable_parameters(kernel)[name] for name in names}
    if not names:
        return [kernel]
    return [kernel.replace(**{name: _six(value * f) for name, value in values.items()}) for f in BANDWIDTHS]


def _short(kernel: Kernel) -> Kernel:
    """Six digits of every parameter: a kernel that can be typed again."""
    out = kernel.replace(**{name: _six(value) for name, value in tunable_parameters(kernel).items() if "[" not in name})
    scales = {name: value for name, value in out.get_params().items() if name.split("__")[-1] == "scales"}
    return out.replace(**{name: tuple(map(_six, value)) for name, value in scales.items()})


def _six(value: float) -> float:
    return float(f"{value:.6g}")
