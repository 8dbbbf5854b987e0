"""A ranked shortlist of kernels for given data, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.events import TilesDone, emit
from mercer.factorizations.spectrum import RidgeSpectrum
from mercer.gram import KernelOperator
from mercer.kernels import (
    AdditiveChi2,
    Chi2,
    Gaussian,
    Hamming,
    Intersection,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    TableKernel,
    table_kernel,
)
from mercer.numerals import counted
from mercer.points import as_rows, as_seed, available_memory, count, points_of, require, sample_rows, vectors_of
from mercer.select.alignment import all_equal, centred, cosine, less_mean, target_columns, to_unit
from mercer.select.candidates import default_alphas, default_kernels
from mercer.select.scorers import accuracy

__all__ = ["Suggestion", "Suggestions", "suggest"]

Floats = NDArray[np.float64]
WHO = "suggest"
FINALISTS = 6
NOISE = 1.0
"""A kernel within this many standard errors of the best is as good as the best."""

CHARACTER: dict[type, str] = {
    Linear: "linear functions: the simplest, and the fastest to predict with",
    Polynomial: "curves and products of columns",
    Gaussian: "smooth functions of one length-scale",
    Matern: "less smooth than Gaussian, once differentiable",
    Laplace: "rough functions with kinks",
    Chi2: "histograms: counts and shares",
    AdditiveChi2: "histograms, bin by bin",
    Intersection: "histograms, by their common part",
    Hamming: "categories coded as numbers",
    TableKernel: "each kind of column by its own kernel",
}


@dataclass(frozen=True)
class Suggestion:
    """One kernel and the evidence for it.

    Attributes
    ----------
    kernel : Kernel
    alpha : float
        The λ with the best leave-one-out score.
    score : float
        Leave-one-out R², or accuracy for classes.
    behind : float
        Distance from the best score in standard errors of the paired difference over the rows; 0 for the best.
    alignment : float
        Centred alignment with the targets.
    seconds : float
        Time to score the kernel on the sample.
    why : str
        The kind of functions that the kernel suits, and its rank.
    """

    kernel: Kernel
    alpha: float
    score: float
    behind: float
    alignment: float
    seconds: float
    why: str

    @property
    def as_good(self) -> bool:
        """Whether the difference from the best is within the noise."""
        return self.behind <= NOISE


@dataclass(frozen=True)
class Suggestions:
    """The shortlist, the best first. `str` gives a table, and indexing a `Suggestion`.

    Attributes
    ----------
    ranked : tuple of Suggestion
    metric : "R²" or "accuracy"
    sample_size : int
        Number of rows used.
    notes : tuple of str
    """

    ranked: tuple[Suggestion, ...]
    metric: str
    sample_size: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, index: int) -> Suggestion:
        return self.ranked[index]

    def __len__(self) -> int:
        return len(self.ranked)

    def __str__(self) -> str:
        lines = [f"leave-one-out {self.metric} on {counted(self.sample_size, 'row')}"]
        for one in self.ranked:
            mark = "=" if one.as_good else " "
            lines.append(f"{mark} {one.score:.4f}  α = {one.alpha:<8.3g} alignment {one.alignment:.2f}  {one.kernel!r}")
            lines.append(f"            {one.why}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def suggest(
    X: Any,
    y: ArrayLike,
    *,
    task: Literal["auto", "regression", "classification"] = "auto",
    top: int = 5,
    sample: int = 1000,
    random_state: Any = 0,
) -> Suggestions:
    r"""Kernels for the given data, each with its best λ, ranked by exact leave-one-out scores and explained.

    The candidates are `default_kernels`, polynomials, and, if no number is negative, kernels of histograms. For a data
    frame with columns that are not numbers they are `table_kernel` as a product and as a sum over the kinds of columns.
    All are scored on a third of the sample, and the best six on all of it, by one eigendecomposition each
    (`RidgeSpectrum`). So `sample` bounds the time for any number of rows: a few seconds for 1000.

    Parameters
    ----------
    X : array-like of shape (n, d), CSR matrix or data frame
    y : array-like of shape (n,) or (n, targets), or labels
    task : "auto", "regression" or "classification"
        "auto" treats text, booleans, and integers with up to 20 distinct values as classes.
    top : int
        Number of suggestions to return.
    sample : int
        Most rows to use, drawn at random.
    random_state : int, RandomState or None, default 0

    Returns
    -------
    Suggestions

    Raises
    ------
    InvalidInput
        For fewer than ten rows, targets that do not vary, and rows that are neither numbers nor a data frame.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(200, 2))
    >>> found = suggest(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=200))
    >>> found[0].score > 0.95, found.metric
    (True, 'R²')
    """
    seed = as_seed(random_state, "suggest")
    rows, Y, classes, kernels = _prepared(X, y, task, sample, seed)
    m = len(Y)
    require(4 * 8 * m * m, max(available_memory() // 2, 1), f"suggestions from {m} rows", "set sample= lower")
    part = sample_rows(m, max(10, m // 3), seed)
    first = [_tried(kernel, rows[part], Y[part], classes) for kernel in kernels] if m >= 60 else None
    emit(TilesDone(f"{WHO}: first round", len(kernels), len(kernels)))
    if first is not None:
        order = np.argsort([-trial.score for trial in first], kind="stable")
        kernels = [kernels[i] for i in sorted(order[:FINALISTS])]
    trials = []
    for kernel in kernels:
        trials.append(_tried(kernel, rows, Y, classes))
        emit(TilesDone(f"{WHO}: second round", len(trials), len(kernels)))
    trials.sort(key=lambda trial: -trial.score)
    ranked = tuple(_explained(trial, trials[0]) for trial in trials[:top])
    return Suggestions(ranked, "accuracy" if classes else "R²", m, _notes(ranked, classes))


@dataclass(frozen=True, eq=False)
class _Trial:
    kernel: Kernel
    alpha: float
    score: float
    losses: Floats
    """The squared error of each row, or whether its class is wrong."""
    alignment: float
    seconds: float


def _tried(kernel: Kernel, rows: Any, Y: Floats, classes: bool) -> _Trial:
    start = perf_counter()
    inner = kernel.vector_kernel if isinstance(kernel, TableKernel) else kernel
    K = KernelOperator(inner, rows, dtype=np.float64).toarray()
    alignment = cosine(centred(K), less_mean(Y))
    # λ is relative to the variance of the kernel, tr(HKH)/n, so that one grid suits all kernels.
    unit = max(float(np.trace(centred(K))) / len(K), 1e-300)
    grid = default_alphas() * unit
    spectrum = RidgeSpectrum.of(np.ascontiguousarray(K), intercept=True)
    grid = grid[spectrum.solvable(grid)]
    if not len(grid):
        return _Trial(kernel, np.inf, -np.inf, np.full(len(Y), np.inf), alignment, perf_counter() - start)
    best, score, losses = (_best_of_classes if classes else _best_of_values)(Y, spectrum.leave_one_out(Y, grid))
    return _Trial(kernel, float(f"{grid[best]:.3g}"), score, losses, alignment, perf_counter() - start)


def _best_of_classes(Y: Floats, predicted: Floats) -> tuple[int, float, Floats]:
    """The place of the α with the best accuracy (the largest of equals), the accuracy, and which rows it has wrong."""
    scores = accuracy(Y, predicted)[:, 0]
    best = int(len(scores) - 1 - np.argmax(scores[::-1]))
    found = predicted[:, best]
    wrong = (Y > 0)[:, 0] != (found > 0)[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1) != found.argmax(axis=1)
    return best, float(scores[best]), np.asarray(wrong, np.float64)


def _best_of_values(Y: Floats, predicted: Floats) -> tuple[int, float, Floats]:
    """The place of the α with the best R², the R², and the squared error of each row over the variance."""
    errors = np.mean((predicted - Y[:, None]) ** 2 / Y.var(axis=0), axis=2)
    scores = 1 - errors.mean(axis=0)
    best = int(scores.argmax())
    return best, float(scores[best]), errors[:, best]


def _explained(trial: _Trial, best: _Trial) -> Suggestion:
    """The suggestion of a trial, with its distance from the best and the kind of functions that it suits."""
    gap = trial.losses - best.losses
    error = float(gap.std(ddof=1)) / np.sqrt(len(gap)) if np.isfinite(gap).all() else np.inf
    mean = float(gap.mean())
    behind = 0.0 if trial is best or mean <= 0 else mean / error if error > 0 else np.inf
    character = CHARACTER.get(type(_core(trial.kernel)), "")
    if trial is best:
        place = "the best score"
    elif behind <= NOISE:
        place = f"as good as the best within the noise ({behind:.1f} standard errors behind)"
    else:
        place = f"{behind:.1f} standard errors behind the best"
    return Suggestion(
        trial.kernel, trial.alpha, trial.score, behind, trial.alignment, trial.seconds, f"{character}; {place}"
    )


def _core(kernel: Kernel) -> Kernel:
    while "kernel" in kernel.get_params(deep=False):
        kernel = kernel.get_params(deep=False)["kernel"]
    return kernel


def _notes(ranked: tuple[Suggestion, ...], classes: bool) -> tuple[str, ...]:
    notes = []
    simple = [one for one in ranked[1:] if one.as_good and isinstance(_core(one.kernel), Linear)]
    if simple:
        notes.append("the linear kernel is as good: prefer it, because it is simpler")
    if not classes and ranked[0].score < 0.05:
        notes.append("no kernel predicts well: the targets may not depend on these columns, or need more rows")
    notes.append("next: KernelSearchCV around the best, or maximise_marginal_likelihood(per_column=True)")
    return tuple(notes)


# ---- checks and preparation of the input ----------------------------------------------------------------------------


def _prepared(X: Any, y: ArrayLike, task: str, sample: int, seed: int) -> tuple[Any, Floats, bool, list[Kernel]]:
    """The sampled rows as numbers, the targets as columns, whether they are classes, and the candidate kernels."""
    if _are_texts(X):
        do = "use a kernel such as spectrum(k=3), or try several by "
        do += "cross_validate_ridge(X, y, default_sequence_kernels(X), default_alphas())"
        raise InvalidInput(message(WHO, "texts, which need kernels of sequences", do))
    n = count(X)
    Y, classes = _targets(y, task, n)
    chosen = sample_rows(n, sample, seed)
    if _is_mixed(X):
        kernel = table_kernel(X, random_state=seed)
        return kernel.rows(X)[chosen], Y[chosen], classes, [kernel, kernel.combined_by("sum")]
    rows = as_rows(X)[chosen]
    return rows, Y[chosen], classes, _candidates(rows, seed)


def _targets(y: ArrayLike, task: str, n: int) -> tuple[Floats, bool]:
    """The targets of n rows as columns, and whether they are classes."""
    if task not in ("auto", "regression", "classification"):
        raise InvalidInput(message(WHO, f"task={task!r}", 'give "auto", "regression" or "classification"'))
    values = np.asarray(y)
    classes = task == "classification" or (task == "auto" and _are_labels(values))
    if task != "auto":
        values = values.astype(str if classes else np.float64)
    Y = to_unit(target_columns(values))  # neither R² nor the alignment depends on the unit
    if len(Y) != n or n < 10:
        do = "give ten or more rows, with one target for each"
        raise InvalidInput(message(WHO, f"{counted(n, 'row')} and {counted(len(Y), 'target')}", do))
    if np.any(all_equal(Y)) or not np.all(Y.var(axis=0) > 0):
        raise InvalidInput(message(WHO, "targets that are all the same", "give targets that vary"))
    return Y, classes


def _are_labels(values: NDArray[Any]) -> bool:
    few = values.ndim == 1 and values.dtype.kind in "iu" and len(np.unique(values)) <= 20
    return values.dtype.kind in "OUSb" or bool(few)


def _are_texts(X: Any) -> bool:
    """Whether each row is a single text instead of a row of a table."""
    points = points_of(X)
    return not points.columns and len(points) > 0 and all(isinstance(x, str) for x in points.items)


def _is_mixed(X: Any) -> bool:
    """Whether a data frame has columns that are not numbers, or missing values."""
    if points_of(X).names is None:
        return False
    plain = np.asarray(X)
    return plain.dtype.kind not in "biuf" or bool(np.isnan(plain.astype(np.float64)).any())


def _candidates(rows: Any, seed: int) -> list[Kernel]:
    points = vectors_of(rows)
    rows, values = points.rows, points.values
    kernels = default_kernels(rows, random_state=seed)
    scale = float(f"{1 / max(float(np.mean(np.square(values))) * rows.shape[1], 1e-300):.6g}")
    kernels.insert(1, Polynomial(2, scale, 1.0))
    if not points.sparse and float(np.min(values)) >= 0 and rows.shape[1] > 2:
        kernels += [Chi2("median").resolve(rows, random_state=seed), Intersection()]
    return kernels
