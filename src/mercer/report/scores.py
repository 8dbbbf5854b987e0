"""How good a model is on rows that it has not seen, beside guessing and beside a linear model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.numerals import of_metric
from mercer.points import sample_rows

__all__ = ["Baseline", "Score", "accuracy", "baselines", "number", "r2", "scores"]

Metric = Callable[[Any, Any], float]

TAIL = 0.025
"""The probability of what is beyond each end of an interval."""
RESAMPLED = 1000
"""Bootstrap samples: their 2.5 % point then has a standard error of half a percent point of probability."""
MOST_ROWS = 5000
"""Rows on which the linear model is fitted: its error hardly changes with more."""
MOST_LETTERS = 5_000_000
"""Letters of texts that are counted for it, about three seconds of work."""
LEAST_TEXTS = 20
"""Fewer texts than these, with all letters that may be counted, are too long for it."""


@dataclass(frozen=True)
class Score:
    """A metric with its 95 % interval: the exact one of an accuracy, or by the bootstrap over the rows."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Baseline:
    """The score of a simpler model by the first metric, and how it was measured."""

    name: str
    value: float
    how: str


def scores(y: NDArray[Any], predicted: NDArray[Any], decision: NDArray[Any] | None, *, classes: bool) -> list[Score]:
    """The metrics of a task, the one that matters most first.

    >>> [one.name for one in scores(np.array([1.0, 2.0]), np.array([1.0, 2.5]), None, classes=False)]
    ['R²', 'mean absolute error', 'root mean squared error']
    """
    if not classes:
        metrics: dict[str, Metric] = {"R²": r2, "mean absolute error": _mae, "root mean squared error": _rmse}
        return [_with_interval(name, metric, y, predicted) for name, metric in metrics.items()]
    names = np.unique(y)
    curve = []
    if decision is not None and decision.ndim == 1 and len(names) == 2:
        second = y == names[1]
        curve = [_widened(_with_interval("area under the ROC curve", _auc, second, decision), second)]
    # Numbers are counted much faster than names.
    y, predicted = np.split(np.unique(np.concatenate([y, predicted]), return_inverse=True)[1], 2)
    balanced = _widened(_with_interval("balanced accuracy", _balanced_accuracy, y, predicted), y)
    return [_of_accuracy(y, predicted), balanced, *curve]


def number(value: float, metric: str = "") -> str:
    """A value of a metric as the page shows it.

    >>> number(0.82), number(32784.2), number(0.044, "accuracy")
    ('0.8200', '32,780', '0.0440')
    """
    return of_metric(value, metric, ",")


def baselines(train: tuple[Any, Any], test: tuple[Any, Any] | None, *, classes: bool) -> list[Baseline]:
    """Guessing and a linear model by the first metric: fitted on `train` and scored on `test`, or cross-validated.

    The linear model of numbers has standardised columns; that of texts has the weighted counts of the 2000
    most frequent runs of one to three letters. It is left out without numbers or texts (X is None) or a second class.
    """
    metric: Metric = accuracy if classes else r2
    X, y = _some(*train)
    texts = X is not None and X.dtype == object
    if test is not None and texts:
        test = _some(*test)
    folds = min(5, int(np.unique(y, return_counts=True)[1].min()) if classes else len(y))
    if test is None and folds < 2:
        return []
    how = f"fitted on {len(y):,} training rows" if test is not None else f"by {folds} folds of these rows"

    @np.errstate(all="ignore")  # where columns or targets are constant
    def reached(model: Any, X: Any, unseen: Any) -> float:
        if test is None:
            return float(metric(y, cross_val_predict(model, X, y, cv=folds)))
        return float(metric(test[1], model.fit(X, y).predict(unseen)))

    dummy: Any = DummyClassifier() if classes else DummyRegressor()
    nothing = None if test is None else np.zeros((len(test[1]), 1))
    found = [Baseline("guessing", reached(dummy, np.zeros((len(y), 1)), nothing), how)]
    known = X is not None and (test is None or test[0] is not None)
    if known and not (classes and len(np.unique(y)) < 2):
        line: Any = LogisticRegression(max_iter=1000) if classes else RidgeCV(np.logspace(-3, 3, 13))
        model = make_pipeline(_letters() if texts else StandardScaler(), line)
        name = ("logistic" if classes else "linear") + " regression" + " on letters" * texts
        found.append(Baseline(name, reached(model, X, None if test is None else test[0]), how))
    return found


def _letters() -> TfidfVectorizer:
    return TfidfVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False, sublinear_tf=True, max_features=2000)


def _some(X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """At most 5000 rows, of long texts fewer, always the same; of texts too long to count none."""
    most = MOST_ROWS
    if X is not None and X.dtype == object:
        most = min(MOST_ROWS, MOST_LETTERS * len(y) // max(sum(map(len, X)), 1))
        if most < LEAST_TEXTS:
            X, most = None, MOST_ROWS
    if len(y) <= most:
        return X, y
    chosen = sample_rows(len(y), most, 0)
    return None if X is None else X[chosen], y[chosen]


def accuracy(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """The share of the rows whose class is predicted."""
    return float(np.mean(y == predicted))


def _balanced_accuracy(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """The mean over the classes of the share that is found."""
    times, hits = np.bincount(y), np.bincount(y, y == predicted)
    return float(np.mean(hits[times > 0] / times[times > 0]))


def r2(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """1 − Σ(y − f)²/Σ(y − ȳ)²; of constant targets 1 or 0."""
    lost, spread = float(np.sum((y - predicted) ** 2)), float(np.sum((y - y.mean()) ** 2))
    return 1 - lost / spread if spread > 0 else float(lost == 0)


def _mae(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    return float(np.mean(np.abs(y - predicted)))


def _rmse(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def _auc(y: NDArray[Any], decision: NDArray[Any]) -> float:
    """(Σ ranks of the second class − m(m + 1)/2) / (m(n − m)), m of n rows; several times as fast as scikit-learn."""
    m, n = int(np.count_nonzero(y)), len(y)
    return float((rankdata(decision)[y].sum() - m * (m + 1) / 2) / (m * (n - m)))


def _of_accuracy(y: NDArray[Any], predicted: NDArray[Any]) -> Score:
    """The accuracy with its exact interval, that of Clopper and Pearson: it has a width without an error, too."""
    found = binomtest(int(np.count_nonzero(y == predicted)), len(y)).proportion_ci(1 - 2 * TAIL)
    return Score("accuracy", accuracy(y, predicted), float(found.low), float(found.high))


def _widened(score: Score, y: NDArray[Any]) -> Score:
    """A score of 1 or 0, which all bootstrap samples have, with the exact interval of as many hits, or misses.

    Classes count alike, so that a rare one leaves more open: m classes of nᵢ rows say as much as m² / Σ 1/nᵢ rows.
    """
    sizes = np.unique(y, return_counts=True)[1]
    least = float(TAIL ** (np.sum(1 / sizes) / len(sizes) ** 2))
    if score.value == 1:
        return replace(score, low=least)
    return replace(score, high=1 - least) if score.value == 0 else score


def _with_interval(name: str, metric: Metric, y: NDArray[Any], predicted: NDArray[Any]) -> Score:
    """The metric, and where it is in 95 % of bootstrap samples.

    Of many rows samples are smaller, and the interval is as much narrower as √n says.
    """
    rng, value, found, size = np.random.default_rng(0), float(metric(y, predicted)), [], min(len(y), MOST_ROWS)
    several = y.dtype.kind != "f" and not np.all(y == y[0])
    for _ in range(RESAMPLED):
        rows = rng.integers(len(y), size=size)
        if not several or np.any(y[rows] != y[rows[0]]):  # one class has no ROC curve
            found.append(metric(y[rows], predicted[rows]))
    low, high = np.nanquantile(found, [TAIL, 1 - TAIL]) if found else (value, value)
    shrink = np.sqrt(size / len(y))
    return Score(name, value, value + shrink * (float(low) - value), value + shrink * (float(high) - value))
