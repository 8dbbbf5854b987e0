"""Permutation p-values, which are valid for any distribution and any number of rows and permutations."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message, warn
from mercer.gram import KernelOperator, lost_when_centred
from mercer.gram.remainder import about_the_mean, require_values
from mercer.kernels import Kernel, as_kernel
from mercer.points import as_rows, count, joined, points_of, same_columns, same_names, vectors_of

__all__ = [
    "TestResult", "as_sample", "checked_count", "permutation_p", "pooled", "rounding", "sample_kernel", "sampled",
]  # fmt: skip

Floats = NDArray[np.float64]

EQUAL = 1e-10
"""Statistics within this share of the largest one count as equal, so that rounding does not lower a p-value."""

DECIDES = 0.1
"""The share of a statistic's spread from which a bound on its rounding may decide a test."""


@dataclass(frozen=True, eq=False)
class TestResult:
    """The result of a test: the statistic, its p-value, and the statistics of the permutations.

    Attributes
    ----------
    statistic : float
    p_value : float
        Under the null hypothesis P(p_value ≤ a) ≤ a.
    null : array
        The statistic of each permutation, or of each choice of signs.
    method : str
        The name of the statistic, and the number of permutations.
    kernels : tuple of str
        The kernels with their parameters as resolved from the data.
    """

    __test__ = False  # pytest would collect a class of this name.

    statistic: float
    p_value: float
    method: str
    kernels: tuple[str, ...]
    null: Floats = field(repr=False, default_factory=lambda: np.empty(0))

    def __str__(self) -> str:
        return f"{self.method}: {self.statistic:.6g}, p = {self.p_value:.4g} ({'; '.join(self.kernels)})"


def permutation_p(observed: float, null: Floats, rounding: float = 0.0) -> float:
    """(1 + #{null ≥ observed})/(1 + B), because the observed order is one of the permutations.

    Statistics that differ by at most `rounding`, a bound on their errors, count as equal.

    >>> permutation_p(2.0, np.array([0.0, 1.0, 2.0])), permutation_p(2.0, np.array([0.0, 1.0, 1.9]), rounding=0.2)
    (0.5, 0.5)
    """
    slack = max(EQUAL * max(abs(observed), float(np.max(np.abs(null), initial=0.0))), rounding)
    return float((1 + np.count_nonzero(null >= observed - slack)) / (1 + len(null)))


def rounding(K: KernelOperator, size: float) -> float:
    """A bound on the rounding error of a difference of means of K's entries that are at most `size` in magnitude.

    If many rows are equal, statistics differ by such errors only.
    """
    return float(size * _roundings(K.shape[0]) * np.finfo(np.float64).eps)


def _roundings(n: int) -> int:
    """The number of roundings of an entry and of a sum of n of them."""
    return 8 + 2 * n


def checked_count(who: str, name: str, value: Any, least: int = 1) -> int:
    """The value as an int, which must be at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(message(who, f"{name}={value!r}", f"give an integer ≥ {least}"))
    return int(value)


def sample_kernel(who: str, kernel: Any) -> Kernel:
    """The kernel, which must not be precomputed, because samples are rows or objects."""
    found = as_kernel(kernel)
    if found.space.numbered:
        raise InvalidInput(message(who, f"{found!r}", "give the rows and their kernel, or a Function of objects"))
    return found


def sampled(who: str, kernel: Kernel, X: Any, weights: Floats | None = None) -> KernelOperator:
    """The kernel matrix of a sample, in float64, because statistics are differences of its sums, or such a matrix with
    the same differences. Rules for parameters count rows by their positive weights.

    Warns if rounding dominates these differences, or a bound on it, by which p would be 1.
    """
    K = KernelOperator(kernel, X, dtype=np.float64)
    if weights is not None and not kernel.is_resolved:
        K = KernelOperator(kernel.resolve(K.X, sample_weight=weights), K.X, dtype=np.float64)
    require_values(K, who)
    K = about_the_mean(K)
    n = max(K.shape[0], 1)  # by chance a statistic is one n-th of the values' spread
    lost = lost_when_centred(K, who, DECIDES / (n * _roundings(n)))
    if lost:
        warn(lost)
    return K


def as_sample(kernel: Kernel, X: Any) -> Any:
    """The rows of a sample. For a kernel of vectors, single numbers become rows of one column.

    >>> from mercer.kernels import Gaussian
    >>> as_sample(Gaussian(), [1.0, 2.0])
    array([[1.],
           [2.]])
    """
    listed = isinstance(X, list | tuple | range) and all(isinstance(one, Real | np.bool_ | str) for one in X)
    if not kernel.space.vectors or not (listed or len(getattr(X, "shape", ())) == 1):
        return X
    return np.asarray(X).reshape(-1, 1)


def pooled(who: str, kernel: Kernel, X: Any, Y: Any) -> tuple[Any, int, int]:
    """The two samples joined, and their sizes."""
    if kernel.space.vectors:
        x, y = (vectors_of(as_rows(as_sample(kernel, rows), who=who)) for rows in (X, Y))
        same_columns(x.rows, y.rows, who)
        same_names(points_of(X).names, points_of(Y).names, who)
        both = x.join(y)
        return both.rows if both.sparse else both.dense(), len(x), len(y)
    return joined(X, Y), count(X), count(Y)
