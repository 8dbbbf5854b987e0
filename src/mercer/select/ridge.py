"""Cross-validated kernel ridge regression: one eigendecomposition per kernel serves all folds and all penalties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.engine.backend import spare_threads
from mercer.errors import InvalidInput, message, warn
from mercer.events import StageDone, emit
from mercer.factorizations import RidgeSpectrum
from mercer.gram import KernelOperator, lost_when_centred
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.parameters.comparable import comparable
from mercer.numerals import counted
from mercer.points import as_rows, as_seed, available_memory, require, sample_rows
from mercer.select.held_out import Split, held_out_bytes, held_out_predictions
from mercer.select.scorers import Scorer, accuracy, r2

__all__ = ["Candidate", "RidgeSearch", "cross_validate_ridge"]

Floats = NDArray[np.float64]
Task = Literal["regression", "classification"]
WHO = "cross_validate_ridge"
FINALISTS = 4
NEAR = 30.0
TIE = 1e-4
"""Scores within this distance of the best are ties: the first kernel wins, then its largest α."""


@dataclass(frozen=True)
class Candidate:
    """One kernel with one α, and its scores on the folds.

    Attributes
    ----------
    kernel : str
        The expression of the kernel.
    alpha : float
        λ.
    mean, std : float
        Mean and standard deviation of the score over the folds.
    rows : int
        Rows of the screening in which it was eliminated; 0 if it was not.

    Examples
    --------
    >>> Candidate("Linear()", 1.0, mean=0.5, std=0.02)
    Candidate(kernel='Linear()', alpha=1.0, mean=0.5, std=0.02, rows=0)
    """

    kernel: str
    alpha: float
    mean: float
    std: float
    rows: int = 0
    """Number of rows that were scored."""


@dataclass(frozen=True)
class RidgeSearch:
    """The result of `cross_validate_ridge`.

    Attributes
    ----------
    best_kernel : Kernel
        The kernel with all parameters resolved to numbers.
    best_alpha : float
    best_score : float
        The mean R² or accuracy over the folds.
    table : tuple of Candidate
        All candidates, the best first. Those that `screen` eliminated come last.
    sample_size : int
        Number of rows used.
    folds : int
    metric : "R²" or "accuracy"
    notes : tuple of str
        Notes on the best candidate, for example that it lies on the border of the grid.
    rivals : tuple of Kernel
        The best kernel, and after it those with a mean score within one standard deviation, over the folds, of its own;
        empty in a pickle of an earlier version.
    screened : tuple of Candidate
        How the kernels that `screen` left scored on its rows.
    """

    best_kernel: Kernel
    best_alpha: float
    best_score: float
    table: tuple[Candidate, ...]
    sample_size: int
    folds: int
    metric: str
    notes: tuple[str, ...] = ()
    rivals: tuple[Kernel, ...] = field(default=(), repr=False)  # the table names them
    screened: tuple[Candidate, ...] = field(default=(), repr=False)

    def best_of_each_kernel(self) -> tuple[Candidate, ...]:
        """The best α of each kernel, best kernel first."""
        seen: dict[str, Candidate] = {}
        for row in self.table:
            seen.setdefault(row.kernel, row)
        return tuple(seen.values())


@spare_threads()
def cross_validate_ridge(
    X: Any,
    y: ArrayLike,
    kernels: Iterable[Kernel | str],
    alphas: ArrayLike,
    *,
    folds: int = 5,
    task: Task = "regression",
    sample: int = 3000,
    random_state: Any = 0,
    fit_intercept: bool = True,
    screen: int | None = None,
) -> RidgeSearch:
    r"""e_S = (P_SS)⁻¹ (P y)_S with P = G − G11ᵀG/1ᵀG1 and G = (K + αI)⁻¹: the residuals on a held-out fold S.

    These are the residuals of ridge regression (with an unpenalised intercept) fitted without S, but no such fit is
    made: one decomposition of K in float64 gives G for all folds and all α. Where that takes longer, as for more than
    some 1500 rows, the systems of all folds and α are solved together, to 1e-6 of the scores or better.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,) or (n, outputs), or labels
    kernels : iterable of Kernel or str
        The first one wins a tie, so give the smoothest first. Parameters that depend on data are resolved on the
        sample.
    alphas : array-like of positive numbers
        α in K + αI. It is not scaled by the number of rows: see Notes.
    folds : int
        Number of random folds; they are stratified by class.
    task : "regression" or "classification"
        Scores are R², or the accuracy of the least-squares classifier on class indicators.
    sample : int
        Most rows to use, drawn at random; for classes, in their proportions.
    random_state : int, RandomState or None, default 0
    fit_intercept : bool
        Whether the final estimator has an intercept.
    screen : int, optional
        If given, all kernels are first scored on that many rows. The best kernel of each family (kernels that differ
        only in their bandwidth) stays, and the four best of these are scored on the whole sample, with the α within a
        factor of 30 of their best. Each family keeps a kernel, because more rows help rough kernels more than smooth
        ones.

    Returns
    -------
    RidgeSearch

    Raises
    ------
    InvalidInput
        For fewer than two rows per fold, one class only, α that are not positive, or no kernel.

    Warns
    -----
    UserWarning
        If there is an intercept, and float64 keeps too few digits of a kernel's values less their means.

    Notes
    -----
    The α found on a sample of m rows is used for all n rows without scaling. α is the ratio of the variances of noise
    and signal, which does not depend on n; the relative penalty α/n then falls with n, as it should. Scaling α by n/m
    was measured and is worse. On the California housing table (city-block Laplace) α = 0.1 is best for 1000, 2000 and
    8000 rows; with 8000 rows its R² is 0.802, and that of α·n/m for m = 1000 is 0.783. On scikit-learn's digits
    (Gaussian) 300 rows choose α = 0.3; with 1300 rows its accuracy is 0.992, and that of α·n/m is 0.990.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 6, 120)[:, None]
    >>> search = cross_validate_ridge(x, np.sin(x[:, 0]), ["linear", "gaussian(gamma=0.5)"], [1e-3, 1e-1, 10.0])
    >>> search.best_kernel, search.best_alpha, search.best_score > 0.99
    (Gaussian(gamma=0.5), 0.001, True)
    """
    seed = as_seed(random_state, WHO)
    grid = _checked_alphas(alphas)
    chosen = [as_kernel(kernel) for kernel in kernels]
    rows, targets, groups = _sampled(_rows(X, chosen), y, task, sample, folds, seed)
    m = len(targets)
    require(held_out_bytes(m), max(available_memory() // 2, 1), f"cross-validation on {m} rows", "set sample= lower")
    tried = [_Trial(kernel.resolve(rows), grid) for kernel in chosen]
    if not tried:
        raise InvalidInput(message(WHO, "no kernel to choose from", "give at least one kernel"))
    left, finalists = list[_Trial](), list[_Trial]()
    if screen is not None and 2 * folds <= screen < m and len(tried) > FINALISTS:
        part = _sampled(rows, targets if groups is None else groups, task, screen, folds, seed)
        left = [_tried(trial, *part, folds, seed, fit_intercept) for trial in tried]
        finalists = _finalists(left)
        left = [trial for trial in left if trial not in finalists]
        tried = [trial.narrowed() for trial in finalists]
    tried = [_tried(trial, rows, targets, groups, folds, seed, fit_intercept) for trial in tried]
    screened = tuple(min(trial.candidates(), key=_rank) for trial in finalists)
    return replace(_search(tried, left, grid, m, folds, task), screened=screened)


@dataclass(frozen=True, eq=False)
class _Trial:
    """A kernel, the α to try, and the scores (α × folds)."""

    kernel: Kernel
    alphas: Floats
    scores: Floats | None = None
    rows: int = 0

    @property
    def best(self) -> float:
        return float(self.mean.max())

    @property
    def mean(self) -> Floats:
        assert self.scores is not None
        return np.asarray(self.scores.mean(axis=1))

    def narrowed(self) -> _Trial:
        """A new trial of the α near the best one."""
        best = self.alphas[int(self.mean.argmax())]
        near = (self.alphas >= best / NEAR) & (self.alphas <= best * NEAR)
        return _Trial(self.kernel, self.alphas[near])

    def candidates(self) -> list[Candidate]:
        assert self.scores is not None
        columns = zip(self.alphas.tolist(), self.mean.tolist(), self.scores.std(axis=1).tolist(), strict=True)
        return [Candidate(repr(self.kernel), alpha, mean, std, self.rows) for alpha, mean, std in columns]


def _finalists(trials: list[_Trial]) -> list[_Trial]:
    """The best trials, at most one of each family, in the given order, which breaks ties."""
    families: dict[Any, _Trial] = {}
    for trial in sorted(trials, key=lambda trial: -trial.best):
        params = trial.kernel.get_params(deep=False)
        params.pop(trial.kernel.rule_parameter, None)
        families.setdefault((type(trial.kernel), comparable(params)), trial)
    best = list(families.values())[:FINALISTS]
    return [trial for trial in trials if trial in best]


def _tried(
    trial: _Trial, X: Any, Y: Floats, groups: NDArray[np.intp] | None, folds: int, seed: int, intercept: bool
) -> _Trial:
    start = perf_counter()
    scorer = r2 if groups is None else accuracy
    scores = _scores(trial.kernel, X, Y, trial.alphas, _folds(groups, len(Y), folds, seed), scorer, intercept)
    emit(StageDone(f"cross-validation of {trial.kernel!r}", perf_counter() - start))
    return _Trial(trial.kernel, trial.alphas, scores, len(Y))


# ---- the mathematics ------------------------------------------------------------------------------------------------


def _scores(
    kernel: Kernel,
    X: Any,
    Y: Floats,
    alphas: Floats,
    parts: Sequence[NDArray[np.intp]],
    scorer: Scorer,
    intercept: bool,
) -> Floats:
    """The score of each α (rows) on each fold (columns)."""
    A = KernelOperator(kernel, X).astype(np.float64)
    if intercept and (lost := lost_when_centred(A, f"{WHO} with {kernel!r}")):
        warn(lost)
    K = np.ascontiguousarray(A.toarray())
    found = _predictions(K, Y, alphas, parts, intercept, kernel.properties.definiteness.is_mercer)
    scores = [scorer(Y[fold], predicted, None).mean(axis=1) for fold, predicted in zip(parts, found, strict=True)]
    return np.stack(scores, axis=1)


def _predictions(
    K: Floats, Y: Floats, alphas: Floats, parts: Sequence[NDArray[np.intp]], intercept: bool, mercer: bool
) -> list[Floats]:
    """Those of each fold by the other rows; an indefinite matrix gives way to the nearest semi-definite one."""
    if mercer:
        rows = np.arange(len(K))
        splits = [Split(np.setdiff1d(rows, fold), fold) for fold in parts]
        found = held_out_predictions(K, Y, splits, alphas, intercept=intercept)
        if all(np.isfinite(predicted).all() for predicted in found):
            return found
    spectrum = RidgeSpectrum.of(K, intercept=intercept)
    spectrum = replace(spectrum, values=np.maximum(spectrum.values, 0.0))
    solved = spectrum.solve(Y, alphas)
    return [spectrum.leave_out(fold, Y, alphas, solved) for fold in parts]


# ---- checks and preparation of the input ----------------------------------------------------------------------------


def _checked_alphas(alphas: ArrayLike) -> Floats:
    grid = np.unique(np.asarray(alphas, np.float64))
    if grid.size == 0 or not (np.isfinite(grid).all() and grid[0] > 0):
        raise InvalidInput(message(WHO, f"alphas={alphas!r}", "give positive numbers"))
    return grid


def _rows(X: Any, kernels: Sequence[Kernel]) -> Any:
    """A table of numbers, or an array of the objects that the kernels take."""
    if all(not kernel.space.objects for kernel in kernels):
        return as_rows(X)
    for kernel in kernels:
        X = kernel.as_objects(X)
    return X


def _sampled(
    X: Any, y: ArrayLike, task: Task, sample: int, folds: int, seed: int
) -> tuple[Any, Floats, NDArray[np.intp] | None]:
    """At most `sample` rows, their targets as columns (indicators for classes), and the class of each row."""
    n = X.shape[0]
    if folds < 2 or min(n, sample) < 2 * folds:
        given = f"{counted(folds, 'fold')} of {counted(n, 'row')} (sample={sample})"
        raise InvalidInput(message(WHO, given, "give at least two folds and two rows for each"))
    values = np.asarray(y)
    if len(values) != n:
        given = f"{counted(n, 'row')} and {counted(len(values), 'target')}"
        raise InvalidInput(message(WHO, given, "give one target for each row"))
    if task == "regression":
        targets = _finite(values).reshape(n, -1)
        chosen = sample_rows(n, sample, seed)
        return X[chosen], targets[chosen], None
    indicators, codes = _indicators(values)
    chosen = _proportional(codes, sample, np.random.default_rng(seed)) if n > sample else np.arange(n)
    return X[chosen], indicators[codes[chosen]], codes[chosen]


def _finite(values: NDArray[Any]) -> Floats:
    targets = values.astype(np.float64)
    if not np.isfinite(targets).all():
        raise InvalidInput(message(WHO, "a target that is not finite", "remove those rows"))
    return targets


def _indicators(values: NDArray[Any]) -> tuple[Floats, NDArray[np.intp]]:
    """The targets ±1 of each class, and the class of each row."""
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        given = f"one class, {classes[:1].tolist()[0]!r}"
        raise InvalidInput(message(WHO, given, "give targets of at least two classes"))
    return 2.0 * np.eye(len(classes)) - 1.0, codes


def _proportional(codes: NDArray[np.intp], size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices of `size` rows with the classes in their proportions: evenly spaced in the rows ordered by class."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    places = ((np.arange(size) + rng.random()) * len(codes) / size).astype(np.intp)
    return np.sort(order[np.minimum(places, len(codes) - 1)])


def _folds(groups: NDArray[np.intp] | None, m: int, folds: int, seed: int) -> list[NDArray[np.intp]]:
    """Seeded folds, stratified: the rows of each class go to the folds in turn."""
    order = np.random.default_rng(seed + 1).permutation(m)
    if groups is not None:
        order = order[np.argsort(groups[order], kind="stable")]
    return [np.sort(order[start::folds]) for start in range(folds)]


# ---- the verdict ----------------------------------------------------------------------------------------------------


def _search(tried: list[_Trial], left: list[_Trial], grid: Floats, m: int, folds: int, task: Task) -> RidgeSearch:
    """The search with the best mean; a tie goes to the first kernel and its largest α."""
    top = max(trial.best for trial in tried)
    winner = next(trial for trial in tried if trial.best >= top - TIE)
    chosen = [row for row in winner.candidates() if row.mean >= top - TIE][-1]
    best_first = [sorted((row for trial in group for row in trial.candidates()), key=_rank) for group in (tried, left)]
    table = [chosen, *(row for row in best_first[0] if row != chosen), *best_first[1]]
    notes = []
    if len(grid) > 1 and chosen.alpha in (grid[0], grid[-1]):
        side, way = ("smallest", "smaller") if chosen.alpha == grid[0] else ("largest", "larger")
        notes.append(f"α = {chosen.alpha:g} is the {side} value that was tried: a {way} one may be better")
    metric = "accuracy" if task == "classification" else "R²"
    close = [trial for trial in tried if trial is not winner and trial.best >= chosen.mean - chosen.std]
    rivals = [winner.kernel, *(trial.kernel for trial in sorted(close, key=lambda trial: -trial.best))]
    return RidgeSearch(
        winner.kernel, chosen.alpha, chosen.mean, tuple(table), m, folds, metric, tuple(notes), tuple(rivals)
    )


def _rank(row: Candidate) -> tuple[float, float]:
    return -row.mean, -row.alpha
