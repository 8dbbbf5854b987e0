"""Rules that choose γ from the training rows: "scale", "median" and "auto"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from mercer.errors import InvalidInput, message
from mercer.kernels.symbolic import distances
from mercer.points import DevicePoints, sample_rows, vectors_of

__all__ = [
    "MEASURES",
    "RULES",
    "distance_quantiles",
    "from_data",
    "from_distance",
    "is_rule",
    "median_distance",
    "spread",
]

RULES = ("scale", "median", "auto")
_SAMPLE = 1000
_WORK = 2e9
"""How many differences of entries the median may take: for very many columns the sample has fewer rows."""


class Measure(NamedTuple):
    """The quantity that γ multiplies, such as a squared distance, and its growth with the entries and the columns."""

    degree: int
    """2 if it grows with the square of the entries, 1 if it grows with the entries, 0 for counts."""
    of_distance: str
    """The pairing for the median distance."""
    columns: float
    """The power of the number of columns with which it grows."""


MEASURES = {
    "sqdist": Measure(2, "sqdist", 1.0),
    "dist": Measure(1, "sqdist", 0.5),
    "l1": Measure(1, "l1", 1.0),
    "chi2": Measure(1, "chi2", 1.0),
    "mismatches": Measure(0, "mismatches", 1.0),
}


def is_rule(value: Any) -> bool:
    """Whether a parameter's value is one of the rules."""
    return isinstance(value, str) and value in RULES


def from_data(rule: str, measure: str, X: Any, weights: Any = None, *, seed: int = 0) -> float:
    r"""γ by a rule, for a kernel whose γ multiplies a measure of the pair.

    Parameters
    ----------
    rule : {"scale", "median", "auto"}
        "scale" is 1/(d·Var(X)) for squared distances and inner products (scikit-learn's rule), 1/√(d·Var(X)) for the
        Euclidean distance, 1/(d·std(X)) for city-block and χ² distances, 1/d for mismatches. "median" is 1/(2m²) for
        squared distances and 1/m for the others, with the median m of the kernel's own distance over distinct rows.
        "auto" is 1/d, the default of scikit-learn's pairwise functions.
    measure : str
        A key of `MEASURES`.
    X : array or CSR matrix of shape (n, d)
    weights : array of shape (n,), optional
        A row of weight 2 counts as two rows.
    seed : int
        Draws the sample of rows for "median".

    Raises
    ------
    InvalidInput
        If X is empty, or the result is not a positive number.

    Examples
    --------
    >>> from_data("scale", "sqdist", np.array([[0.0], [4.0]]))
    0.25
    >>> from_data("median", "sqdist", np.array([[0.0], [0.0], [0.0], [2.0]]))
    0.125
    >>> from_data("auto", "sqdist", np.ones((3, 4)))
    0.25
    """
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise InvalidInput(message("gamma", f"the rule {rule!r} for data of shape {X.shape}", "give rows, or a number"))
    if rule == "auto":
        return 1.0 / X.shape[1]
    with np.errstate(all="ignore"):
        median = _median(MEASURES[measure], X, weights, seed) if rule == "median" else None
        gamma = _scale(MEASURES[measure], X, weights) if median is None else median
    if not (np.isfinite(gamma) and gamma > 0):
        given = f"the rule {rule!r} gives {gamma}: the data are too large or too small"
        raise InvalidInput(message("gamma", given, "rescale the columns (StandardScaler), or give a number"))
    return float(gamma)


def spread(X: Any, weights: Any = None) -> float:
    """The standard deviation of all entries of X about their common mean, in float64 and without overflow.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    weights : array of shape (n,), optional
        Weights of the rows, by default 1.

    Examples
    --------
    >>> spread(np.array([[1e200, -1e200]]))
    1e+200
    """
    points = vectors_of(X)
    size = points.largest()
    if not size:
        return 0.0
    w = np.ones(X.shape[0]) if weights is None else np.asarray(weights, np.float64)
    if isinstance(points, DevicePoints):
        mean = float(w @ points.sums() / w.sum() / X.shape[1])
        std = float(np.sqrt(w @ points.squared_distances(np.full(X.shape[1], mean)) / w.sum() / X.shape[1]))
        return std if std > 4 * np.finfo(float).eps * size else 0.0
    parts = [slice(0, X.shape[0])] if points.sparse else _runs(X)
    sums = [_sums(X[part], w[part], size, 0.0) for part in parts]
    present = sum(count for count, _, _ in sums)
    total = float(X.shape[0] if weights is None else np.sum(weights)) * X.shape[1]
    mean = sum(first for _, first, _ in sums) / total
    squares = sum(_sums(X[part], w[part], size, mean)[2] for part in parts)
    # The entries that a sparse matrix does not store are zeros, each at the distance `mean` from the mean.
    variance = (squares + (total - present) * mean**2) / total
    # A smaller variance is only the rounding of the mean: all entries are equal.
    return float(size * np.sqrt(variance)) if variance > (4 * np.finfo(float).eps) ** 2 else 0.0


def _runs(X: Any) -> list[slice]:
    """Runs of rows of a few megabytes each, since temporary arrays of all rows would be copies of X."""
    height = max(1, (1 << 17) // X.shape[1])
    return [slice(i, i + height) for i in range(0, X.shape[0], height)]


def _sums(X: Any, w: Any, size: float, mean: float) -> tuple[float, float, float]:
    """Σw, Σwv and Σw(v − mean)² over the stored entries v = x/size."""
    points = vectors_of(X)
    # In C order always, because the last bits of the sums depend on the order.
    values = points.values.astype(np.float64, order="C") / size
    own, columns = (np.repeat(w, np.diff(X.indptr)), 1) if points.sparse else (w[:, None], X.shape[1])
    return float(own.sum()) * columns, float((own * values).sum()), float((own * np.square(values - mean)).sum())


def _scale(measure: Measure, X: Any, weights: Any) -> float:
    if measure.degree == 0:
        return 1.0 / float(X.shape[1])
    std = np.float64(spread(X, weights))
    if std == 0.0:
        return 1.0
    return float(1.0 / (std**measure.degree * X.shape[1] ** measure.columns))


def _median(measure: Measure, X: Any, weights: Any, seed: int) -> float | None:
    m = median_distance(measure.of_distance, X, weights, seed)
    return None if m is None else from_distance(measure, m)


def from_distance(measure: Measure, distance: float) -> float:
    """The γ for a typical distance m: 1/(2m²) if γ multiplies squared distances, else 1/m.

    Examples
    --------
    >>> from_distance(MEASURES["sqdist"], 2.0), from_distance(MEASURES["l1"], 2.0)
    (0.125, 0.5)
    """
    return 1.0 / (2.0 * distance * distance) if measure.degree == 2 else 1.0 / distance


def median_distance(kind: str, X: Any, weights: Any = None, seed: int = 0) -> float | None:
    """The median of the non-zero distances in a random sample of rows; None if all distances are zero."""
    found = distance_quantiles(kind, X, (0.5,), weights, seed)
    return None if found is None else found[0]


def distance_quantiles(
    kind: str, X: Any, quantiles: Sequence[float], weights: Any = None, seed: int = 0
) -> list[float] | None:
    """Quantiles of the non-zero distances in a random sample of rows; None if all distances are zero.

    Zeros are ignored, because many equal rows would make the median 0. The sample is random, because the first rows of
    a table are often similar.

    Parameters
    ----------
    kind : str
        The pairing; for "sqdist" the distance is its square root.
    X : array or CSR matrix of shape (n, d)
    quantiles : sequence of float
    weights : array of shape (n,), optional
        The weight of a pair is the product of its rows' weights.
    seed : int

    Examples
    --------
    >>> distance_quantiles("sqdist", np.array([[0.0], [0.0], [1.0], [4.0]]), (0.0, 0.5, 1.0))
    [1.0, 3.0, 4.0]
    """
    count = int(min(X.shape[0], _SAMPLE, max(2.0, (_WORK / X.shape[1]) ** 0.5)))
    chosen = sample_rows(X.shape[0], count, seed)
    values = _distances(kind, X[chosen].astype(np.float64))
    w = np.ones(count) if weights is None else np.asarray(weights, np.float64)[chosen]
    i, j = np.triu_indices(count, 1)
    counts = (w[i] * w[j])[values > 0]
    values = values[values > 0]
    return [_weighted_quantile(values, counts, q) for q in quantiles] if len(values) else None


def _weighted_quantile(values: Any, counts: Any, q: float = 0.5) -> float:
    """The q-quantile of values with weights `counts`; between two values it is their mean.

    >>> _weighted_quantile(np.array([3.0, 1.0]), np.array([1.0, 1.0]))
    2.0
    >>> _weighted_quantile(np.array([3.0, 1.0]), np.array([2.0, 1.0]))
    3.0
    """
    order = np.argsort(values)
    below = np.cumsum(counts[order])
    place = below[-1] * q
    low, high = np.searchsorted(below, place, "left"), np.searchsorted(below, place, "right")
    last = len(values) - 1
    return float((values[order[min(low, last)]] + values[order[min(high, last)]]) / 2)


def _distances(kind: str, X: Any) -> Any:
    if kind == "sqdist" and not vectors_of(X).sparse:
        return pdist(X, "euclidean")
    table = getattr(distances, kind)(X, X)
    values = table[np.triu_indices(X.shape[0], 1)]
    return np.sqrt(values) if kind == "sqdist" else values
