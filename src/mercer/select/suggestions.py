"""A ranked, explained shortlist of kernels for given data."""

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
from mercer.points import as_rows, as_seed, available_memory, count, points_of, require, vectors_of
from mercer.select.alignment import centred, cosine, target_columns
from mercer.select.candidates import default_alphas, default_kernels
from mercer.select.scorers import accuracy

__all__ = ["Suggestion", "Suggestions", "suggest"]

Floats = NDArray[np.float64]
WHO = "suggest"
FINALISTS = 6
NOISE = 1.0
"""Standard errors of the difference from the best within which a kernel is as good as it."""

CHARACTER: dict[type, str] = {
    Linear: "straight lines: the simplest, and the quickest to predict with",
    Polynomial: "curves and products of columns",
    Gaussian: "smooth functions of one length-scale",
    Matern: "less smooth than Gaussian, once differentiable",
    Laplace: "rough functions with kinks",
    Chi2: "histograms: counts and shares",
    AdditiveChi2: "histograms, bin by bin",
    Intersection: "histograms, by what they have in common",
    Hamming: "categories coded as numbers",
    TableKernel: "each kind of column by a kernel of its own",
}


@dataclass(frozen=True)
class Suggestion:
    """One kernel, and the evidence for it.

    Attributes
    ----------
    kernel : Kernel
    alpha : float
        The λ of the best leave-one-out score.
    score : float
        Leave-one-out R², or accuracy for classes.
    behind : float
        How far behind the best, in standard errors of the paired difference over the rows; 0 for the best.
    alignment : float
        Centred alignment with the targets.
    seconds : float
        What the evidence took on the sample.
    why : str
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
        """Whether the data cannot tell it from the best."""
        return self.behind <= NOISE


@dataclass(frozen=True)
class Suggestions:
    """The shortlist, best first; `str` is a table, and indexing gives a `Suggestion`.

    Attributes
    ----------
    ranked : tuple of Suggestion
    metric : "R²" or "accuracy"
    sample_size : int
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
        lines = [f"leave-one-out {self.metric} on {self.sample_size} rows"]
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
    r"""Kernels for these data, each with the best λ, ranked by exact leave-one-out scores and explained.

    Candidates are `default_kernels`, polynomials, and where no number is negative kernels of histograms; for a data
    frame with columns that are no numbers, `table_kernel` and what is left of it. All are scored on a third of the
    sample, the best six on all of it: one eigendecomposition each (`RidgeSpectrum`). The time is bounded by `sample`,
    whatever the number of rows: some seconds for 1000.

    Parameters
    ----------
    X : array-like of shape (n, d), CSR matrix or data frame
    y : array-like of shape (n,) or (n, targets), or labels
    task : "auto", "regression" or "classification"
        "auto" takes text, booleans and whole numbers of up to 20 values for classes.
    top : int
        How many to return.
    sample : int
        At most so many rows are used, drawn at random.
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
    part = np.sort(np.random.default_rng(seed).choice(m, max(10, m // 3), replace=False))
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
    """Of each row: squared error, or whether the class is wrong."""
    alignment: float
    seconds: float


def _tried(kernel: Kernel, rows: Any, Y: Floats, classes: bool) -> _Trial:
    start = perf_counter()
    inner = kernel.vector_kernel if isinstance(kernel, TableKernel) else kernel
    K = KernelOperator(inner, rows, dtype=np.float64).toarray()
    alignment = cosine(centred(K), Y - Y.mean(axis=0))
    # λ is relative to the size of the kernel's own variation, so that one grid suits all kernels.
    unit = max(float(np.trace(centred(K))) / len(K), 1e-300)
    grid = default_alphas() * unit
    spectrum = RidgeSpectrum.of(np.ascontiguousarray(K), intercept=True)
    grid = grid[spectrum.solvable(grid)]
    if not len(grid):
        return _Trial(kernel, np.inf, -np.inf, np.full(len(Y), np.inf), alignment, perf_counter() - start)
    predicted = spectrum.leave_one_out(Y, grid)
    if classes:
        scores = accuracy(Y, predicted)[:, 0]
        best = int(len(grid) - 1 - np.argmax(scores[::-1]))
        hits = (Y > 0) == (predicted[:, best] > 0) if Y.shape[1] == 1 else None
        wrong = ~hits[:, 0] if hits is not None else Y.argmax(axis=1) != predicted[:, best].argmax(axis=1)
        losses = np.asarray(wrong, np.float64)
    else:
        errors = np.mean((predicted - Y[:, None]) ** 2 / Y.var(axis=0), axis=2)
        scores = 1 - errors.mean(axis=0)
        best = int(scores.argmax())
        losses = errors[:, best]
    alpha = float(f"{grid[best]:.3g}")
    return _Trial(kernel, alpha, float(scores[best]), losses, alignment, perf_counter() - start)


def _explained(trial: _Trial, best: _Trial) -> Suggestion:
    """With how far it is behind the best, and what kind of function it stands for."""
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
        notes.append("the linear kernel is as good: take it, and look for what it misses")
    if not classes and ranked[0].score < 0.05:
        notes.append("no kernel predicts much: the targets may not depend on these columns, or need more rows")
    notes.append("next: KernelSearchCV around the best, or maximise_marginal_likelihood(per_column=True)")
    return tuple(notes)


# ---- what it works on -----------------------------------------------------------------------------------------------


def _prepared(X: Any, y: ArrayLike, task: str, sample: int, seed: int) -> tuple[Any, Floats, bool, list[Kernel]]:
    """The sampled rows as numbers, targets as columns, whether these are classes, and the candidates."""
    values = np.asarray(y)
    if task not in ("auto", "regression", "classification"):
        raise InvalidInput(message(WHO, f"task={task!r}", 'give "auto", "regression" or "classification"'))
    if task == "regression":
        values = values.astype(np.float64)
    if _are_texts(X):
        do = (
            "take spectrum(k=3) or its like; cross_validate_ridge(X, y, default_sequence_kernels(X), default_alphas()) "
        )
        raise InvalidInput(message(WHO, "texts, which ask for kernels of sequences", f"{do}tries several"))
    Y = target_columns(values.astype(str) if task == "classification" else values)
    classes = task == "classification" or (task == "auto" and _are_labels(values))
    n = count(X)
    if len(Y) != n or n < 10:
        raise InvalidInput(message(WHO, f"{n} rows and {len(Y)} targets", "give one target for each of ten or more"))
    if not np.all(Y.var(axis=0) > 0):
        raise InvalidInput(message(WHO, "targets that are all the same", "there is nothing to predict"))
    chosen = np.sort(np.random.default_rng(seed).choice(n, sample, replace=False)) if n > sample else np.arange(n)
    if _is_mixed(X):
        kernel = table_kernel(X, random_state=seed)
        return kernel.rows(X)[chosen], Y[chosen], classes, [kernel, kernel.combined_by("sum")]
    rows = as_rows(X)[chosen]
    return rows, Y[chosen], classes, _candidates(rows, seed)


def _are_labels(values: NDArray[Any]) -> bool:
    few = values.ndim == 1 and values.dtype.kind in "iu" and len(np.unique(values)) <= 20
    return values.dtype.kind in "OUSb" or bool(few)


def _are_texts(X: Any) -> bool:
    """Whether each row is one text, rather than a row of a table."""
    points = points_of(X)
    return not points.columns and len(points) > 0 and all(isinstance(x, str) for x in points.items)


def _is_mixed(X: Any) -> bool:
    """Whether a data frame has columns that are no numbers, or missing values."""
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
