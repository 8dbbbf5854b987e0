"""The leaderboard of a comparison: intervals of scores and of their differences, calibration, and advice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from mercer.cli.compare.trials import GUESSING, LINEAR, Candidate, Trials
from mercer.numerals import ratio

__all__ = ["Interval", "Leaderboard", "Row", "calibration_error", "corrected_interval", "leaderboard"]

LEVEL = 0.95
CHEAPER = 2.0
"""The factor in seconds from which advice mentions a cheaper method."""


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval.

    >>> str(Interval(0.5, 0.25, 0.75)), Interval(0.1, -0.1, 0.3).has(0.0)
    ('0.5000 (0.2500 to 0.7500)', True)
    """

    mean: float
    low: float
    high: float

    def has(self, value: float) -> bool:
        """Whether a value lies in the interval."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{ratio(self.mean)} ({ratio(self.low)} to {ratio(self.high)})"


@dataclass(frozen=True, eq=False)
class Row:
    """A candidate with its score, how far it is behind the best, and what it costs."""

    candidate: Candidate
    scores: NDArray[np.float64]
    score: Interval
    behind: Interval | None
    """Of the best minus this one, fold by fold; None for the best itself."""
    fit_seconds: float
    predict_seconds: float
    brier: float | None
    calibration_error: float | None
    kernels: dict[str, int]
    """In how many folds each kernel was chosen."""


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """The rows, the best score first, and a sentence."""

    metric: str
    folds: int
    repeats: int
    rows: list[Row]
    advice: str

    @property
    def winner(self) -> Row:
        """The best row that is not guessing."""
        return next(row for row in self.rows if row.candidate.method != GUESSING)


def corrected_interval(scores: NDArray[np.float64], ratio: float, floor: float = 0.0) -> Interval:
    r"""mean ± t_{J−1} √((1/J + n₂/n₁) s²) of J scores, of n₁ training and n₂ test rows: `ratio` is n₂/n₁.

    The training sets of the folds overlap, so that the scores are not independent: n₂/n₁ stands for their covariance.
    s² is the variance of the scores, but at least `floor`, the variance that so few test rows alone would give.

    References
    ----------
    C. Nadeau, Y. Bengio (2003). Inference for the generalization error. Machine Learning 52.

    Examples
    --------
    >>> print(corrected_interval(np.array([0.8, 0.9, 0.85, 0.85]), ratio=1 / 3))
    0.8500 (0.7508 to 0.9492)
    """
    J = len(scores)
    spread = np.sqrt((1 / J + ratio) * max(float(np.var(scores, ddof=1)), floor))
    half = float(t.ppf((1 + LEVEL) / 2, J - 1)) * spread
    mean = float(scores.mean())
    return Interval(mean, mean - half, mean + half)


def calibration_error(bins: NDArray[np.float64]) -> float:
    """Σ_b n_b/n |mean confidence − share of hits|, of rows, sums of confidences and hits by bins of the confidence.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks. ICML.

    Examples
    --------
    >>> float(calibration_error(np.array([[2.0, 2.0], [1.0, 1.8], [1.0, 1.0]])))
    0.2
    """
    rows, confidences, hits = bins
    return float(np.abs(confidences - hits).sum() / rows.sum())


def leaderboard(found: list[Trials], rows: int, folds: int, repeats: int, task: str) -> Leaderboard:
    """Rank the candidates by their mean scores, and say what to take."""
    test = rows / folds
    ratio = test / (rows - test)
    best = max((one for one in found if one.candidate.method != GUESSING), key=lambda one: one.scores.mean())
    ranked = sorted(found, key=lambda one: (-one.scores.mean(), one is not best))
    floor_of = None if task == "regression" else (rows, test)
    table = [_row(one, best, ratio, floor_of) for one in ranked]
    metric = "accuracy" if task == "classification" else "R²"
    return Leaderboard(metric, folds, repeats, table, _advice(table, metric))


def _row(one: Trials, best: Trials, ratio: float, floor_of: tuple[float, float] | None) -> Row:
    score = _score(one.scores, ratio, floor_of)
    behind = None if one is best else _difference(best.scores, one.scores, ratio, floor_of)
    brier = None if one.briers is None else float(one.briers.mean())
    error = None if one.bins is None else calibration_error(one.bins)
    kernels = dict(Counter(one.kernels).most_common())
    return Row(one.candidate, one.scores, score, behind, one.fit_seconds, one.predict_seconds, brier, error, kernels)


def _difference(
    best: NDArray[np.float64], scores: NDArray[np.float64], ratio: float, floor_of: tuple[float, float] | None
) -> Interval:
    """The interval of the differences, in which what is only the rounding of their sums is 0.

    Of accuracies at least as many rows differ as the scores say. As if one row more had differed (Agresti and Min):
    folds with the same difference have no variance.

    >>> _difference(np.array([0.1, 0.2, 0.3, 0.7]), np.array([0.2, 0.7, 0.1, 0.3]), 0.0, None).mean
    0.0
    """
    change, floor = best - scores, 0.0
    if floor_of is not None:
        rows, test = floor_of
        differ, mean = (float(np.abs(change).mean()) * rows + 1) / (rows + 2), float(change.mean()) * rows / (rows + 2)
        floor = (differ - mean**2) / test
    found = corrected_interval(change, ratio, floor)
    rounding = 4 * np.finfo(float).eps * float(np.maximum(np.abs(best), np.abs(scores)).max())
    mean, low, high = (0.0 if abs(one) <= rounding else one for one in (found.mean, found.low, found.high))
    return Interval(mean, low, high)


def _score(scores: NDArray[np.float64], ratio: float, floor_of: tuple[float, float] | None) -> Interval:
    """The interval of R², which is at most 1, or of an accuracy in [0, 1], on so many rows in all and in a fold."""
    if floor_of is None:
        found = corrected_interval(scores, ratio)
        return Interval(found.mean, found.low, min(found.high, 1.0))
    rows, test = floor_of
    # As if two hits and two misses more had been seen (Agresti and Coull): folds without an error have no variance.
    share = (float(scores.mean()) * rows + 2) / (rows + 4)
    found = corrected_interval(scores, ratio, share * (1 - share) / test)
    return Interval(found.mean, max(found.low, 0.0), min(found.high, 1.0))


def _advice(table: list[Row], metric: str) -> str:
    """A sentence of advice: the best candidate, and simpler or faster ones that are not measurably worse."""
    best = next(row for row in table if row.candidate.method != GUESSING)
    guessing = next(row for row in table if row.candidate.method == GUESSING)
    if guessing.score.mean >= best.score.mean:
        return "no method is better than guessing: the columns say little about the target"
    if _as_good(guessing):
        told = f"{best.candidate.name} ({ratio(best.score.mean)}) is not measurably better than guessing"
        told += f" ({ratio(guessing.score.mean)})"
        return f"{told}: the columns say little about the target, or there are too few rows or repeats to tell"
    said = f"take {best.candidate.name}: {metric} {best.score}"
    line = next((row for row in table if row.candidate.kernel == LINEAR), None)
    if best is line or set(best.kernels) == {"Linear()"}:
        return f"{said}; no kernel does better than a linear model"
    if line is not None and _as_good(line):
        return f"{said}; but a linear model ({ratio(line.score.mean)}) is not measurably worse, and simpler"
    others = [row for row in table if row not in (best, guessing) and _as_good(row)]
    cheap = min(others, key=lambda row: row.fit_seconds, default=None)
    if cheap is not None and cheap.fit_seconds * CHEAPER < best.fit_seconds:
        factor = best.fit_seconds / cheap.fit_seconds
        said += f"; {cheap.candidate.name} ({ratio(cheap.score.mean)}) is not measurably worse and {factor:.0f} times"
        return said + " as fast to fit"
    names = " and ".join(row.candidate.name for row in others)
    return f"{said}; {names} {'is' if len(others) == 1 else 'are'} not measurably worse" if others else said


def _as_good(row: Row) -> bool:
    """Whether the difference to the best may be 0."""
    return row.behind is not None and row.behind.has(0.0)


def as_result(board: Leaderboard) -> dict[str, Any]:
    """The leaderboard as a JSON object."""
    return {
        "metric": board.metric,
        "folds": board.folds,
        "repeats": board.repeats,
        "level": LEVEL,
        "leaderboard": [_row_as_result(row) for row in board.rows],
        "recommendation": board.advice,
        "winner": board.winner.candidate.name,
    }


def _row_as_result(row: Row) -> dict[str, Any]:
    return {
        "name": row.candidate.name,
        "method": row.candidate.method,
        "kernel": row.candidate.kernel,
        **vars(row.score),
        "behind": None if row.behind is None else vars(row.behind),
        "scores": row.scores,
        "fit_seconds": row.fit_seconds,
        "predict_seconds": row.predict_seconds,
        "brier": row.brier,
        "calibration_error": row.calibration_error,
        "kernels": row.kernels,
    }
