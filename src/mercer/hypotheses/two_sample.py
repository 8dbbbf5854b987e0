"""Test whether two samples come from one distribution, by the distance of their means in feature space."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.gram import KernelOperator
from mercer.hypotheses.permutations import (
    Floats,
    TestResult,
    checked_count,
    permutation_p,
    pooled,
    rounding,
    sample_kernel,
    sampled,
)
from mercer.kernels import Kernel
from mercer.numerals import counted
from mercer.points import parse_memory, require

__all__ = ["mmd_test"]

COLUMNS = 256
"""Permutations per product with the kernel matrix."""

SIGNS = 1 << 21
"""Signs in memory at a time: 16 MB."""


def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel | str | Any = "gaussian(gamma='median')",
    *,
    estimator: Literal["unbiased", "biased", "linear"] = "unbiased",
    n_permutations: int = 999,
    memory: float | str | None = None,
    random_state: int = 0,
) -> TestResult:
    r"""MMD² = ‖E φ(x) − E φ(y)‖²: a permutation test of the hypothesis that two samples come from one distribution.

    Parameters
    ----------
    X, Y : array-like of shapes (m, d) and (n, d), or sequences of objects
        Arrays of shapes (m,) and (n,) are one column.
    kernel : Kernel, str or callable, default "gaussian(gamma='median')"
        Parameters that depend on data are resolved on both samples together, so that the test is exact. With a
        characteristic kernel, such as Gaussian, Laplace or Matérn, the test can detect any difference.
    estimator : {"unbiased", "biased", "linear"}, default "unbiased"
        "unbiased" is Σ_{i≠j} k(xᵢ,xⱼ)/m(m−1) + Σ_{i≠j} k(yᵢ,yⱼ)/n(n−1) − 2Σ k(xᵢ,yⱼ)/mn; "biased" includes i = j;
        "linear" is the mean of k(x₁,x₂) + k(y₁,y₂) − k(x₁,y₂) − k(x₂,y₁) over disjoint pairs in the order of the rows,
        with O(m + n) kernel values, for large samples whose order has no meaning.
    n_permutations : int, default 999
        B; the p-value is a multiple of 1/(B + 1). The permutations are columns of one product with the kernel matrix,
        which is not stored. "linear" uses B choices of the signs of the terms, or all 2ᵖ for p pairs if those are
        fewer.
    memory : int, str or None
        Memory budget for the permutations, which take 8(m + n)(B + 513) bytes; None means half of the free memory.
    random_state : int
        Seed for the permutations.

    Returns
    -------
    TestResult

    Raises
    ------
    InvalidInput
        For samples of fewer than two points (four for "linear"), and for precomputed kernels.
    MemoryExceeded
        If the permutations do not fit.

    Notes
    -----
    Under the hypothesis x₁ and y₁ can be exchanged, which changes the sign of the term k(x₁,x₂) + k(y₁,y₂) − k(x₁,y₂) −
    k(x₂,y₁). So the signs of the terms are independent and fair for terms of any size, and the p-value of "linear" is
    exact for any number of pairs. A p-value by the normal law would be too small for few pairs or heavy tails.

    References
    ----------
    A. Gretton, K. Borgwardt, M. Rasch, B. Schölkopf, A. Smola (2012). A kernel two-sample test. JMLR 13, 723.

    Examples
    --------
    >>> import numpy as np, mercer
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) * [1.0, 3.0]
    >>> mercer.mmd_test(X, Y).p_value
    0.001
    """
    who = "mmd_test"
    if estimator not in ("unbiased", "biased", "linear"):
        raise InvalidInput(message(who, f"estimator={estimator!r}", 'choose "unbiased", "biased" or "linear"'))
    count = checked_count(who, "n_permutations", n_permutations)
    given, X, Y = sample_kernel(who, kernel).prepared(X, Y)
    both, m, n = pooled(who, given, X, Y)
    least = 4 if estimator == "linear" else 2
    if min(m, n) < least:
        sizes = f"samples of {m} and {counted(n, 'point')}"
        raise InvalidInput(message(who, sizes, f"give at least {least} points in each"))
    K = sampled(who, given, both)
    name = (repr(K.kernel),)
    if estimator == "linear":
        return _linear(K, m, n, count, random_state)
    need, do = 8 * (m + n) * (1 + count + 2 * COLUMNS), ["fewer permutations", 'estimator="linear"']
    require(need, parse_memory(memory), f"{who} of {m + n} points and {count} permutations", do)
    rng = np.random.default_rng(random_state)
    first = np.zeros((m + n, 1 + count))
    first[:m, 0] = 1.0
    for column in range(1, 1 + count):
        first[rng.permutation(m + n)[:m], column] = 1.0
    values = _values(K, first, m, n, estimator == "unbiased")
    observed, null = float(values[0]), values[1:]
    # |k(x, z)| ≤ (k(x, x) + k(z, z))/2 bounds the means whose difference is MMD².
    size = float(np.abs(K.diagonal()).sum(dtype=np.float64)) * (1 / m + 1 / n)
    p_value = permutation_p(observed, null, rounding(K, size))
    return TestResult(observed, p_value, f"MMD², {estimator}, {count} permutations", name, null)


def _values(K: KernelOperator, first: Floats, m: int, n: int, unbiased: bool) -> Floats:
    """MMD² for each column of indicators of the first sample, from the sums of K over the two samples."""
    ones = np.ones((len(first), 1))
    sums = np.asarray(K @ ones, np.float64)[:, 0]
    diagonal = np.asarray(K.diagonal(), np.float64)
    own = np.empty(first.shape[1])
    for start in range(0, first.shape[1], COLUMNS):
        part = np.ascontiguousarray(first[:, start : start + COLUMNS])
        own[start : start + COLUMNS] = np.einsum("ij,ij->j", part, np.asarray(K @ part, np.float64))
    cross = sums @ first - own
    other = sums.sum() - 2 * cross - own
    if not unbiased:
        return np.asarray(own / m**2 + other / n**2 - 2 * cross / (m * n))
    traces = diagonal @ first
    within = (own - traces) / (m * (m - 1)) + (other - diagonal.sum() + traces) / (n * (n - 1))
    return np.asarray(within - 2 * cross / (m * n))


def _linear(K: KernelOperator, m: int, n: int, count: int, random_state: int) -> TestResult:
    """The test by the mean of the terms h over disjoint pairs, with random signs of the terms."""
    pairs = min(m, n) // 2
    x, y = np.arange(2 * pairs), m + np.arange(2 * pairs)
    values = [_paired(K, x[::2], x[1::2]), _paired(K, y[::2], y[1::2]), _paired(K, x[::2], y[1::2])]
    values.append(_paired(K, x[1::2], y[::2]))
    h = (values[0] + values[1]) - (values[2] + values[3])
    size = float(np.mean(np.abs(values).sum(axis=0)))
    statistic = float(h.mean())
    null = statistic - 2 * _flipped_sums(h, count, random_state) / pairs
    method = f"MMD², linear time, {pairs} pairs, {len(null)} choices of signs"
    p_value = permutation_p(statistic, null, rounding(K, size))
    return TestResult(statistic, p_value, method, (repr(K.kernel),), null)


def _flipped_sums(h: Floats, count: int, random_state: int) -> Floats:
    """The sum of the terms whose sign changes, for each choice of signs.

    The choices are all 2ᵖ except the given one if these are at most `count`, and `count` random ones otherwise.
    """
    if len(h) < 63 and 2 ** len(h) - 1 <= count:
        choices = np.arange(1, 2 ** len(h))
        return np.asarray((choices[:, None] >> np.arange(len(h)) & 1) @ h)
    rng, sums = np.random.default_rng(random_state), np.zeros(count)
    step = max(8, SIGNS // count // 8 * 8)
    for start in range(0, len(h), step):
        some = h[start : start + step]
        bits = rng.integers(0, 256, (count, -(-len(some) // 8)), np.uint8)
        sums += np.unpackbits(bits, axis=1, count=len(some)) @ some
    return sums


def _paired(K: KernelOperator, rows: Any, columns: Any, step: int = 64) -> Floats:
    """k(rows[i], columns[i]) for each i, from the diagonals of small blocks."""
    parts = [np.diagonal(K.block(rows[i : i + step], columns[i : i + step])) for i in range(0, len(rows), step)]
    return np.concatenate(parts).astype(np.float64)
