"""Do two samples come from one distribution? The distance of their means in feature space."""

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
from mercer.points import parse_memory, require

__all__ = ["mmd_test"]

COLUMNS = 256
"""Permutations of one product with the kernel matrix."""

SIGNS = 1 << 21
"""Signs that are there at a time: 16 MB."""


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
    r"""MMD² = ‖E φ(x) − E φ(y)‖² of two samples, against the hypothesis that they come from one distribution.

    Parameters
    ----------
    X, Y : array-like of shapes (m, d) and (n, d), or sequences of objects
        Of shapes (m,) and (n,) they are one column.
    kernel : Kernel, str or callable, default "gaussian(gamma='median')"
        What depends on data is found in both samples together, so that the permutations are exact. The test sees every
        difference where the kernel is characteristic, as Gaussian, Laplace and Matérn are.
    estimator : {"unbiased", "biased", "linear"}, default "unbiased"
        "unbiased" is Σ_{i≠j} k(xᵢ,xⱼ)/m(m−1) + Σ_{i≠j} k(yᵢ,yⱼ)/n(n−1) − 2Σ k(xᵢ,yⱼ)/mn; "biased" includes i = j;
        "linear" is the mean of k(x₁,x₂) + k(y₁,y₂) − k(x₁,y₂) − k(x₂,y₁) over disjoint pairs in the order of the rows,
        with O(m + n) kernel values: for large samples in no particular order.
    n_permutations : int, default 999
        B; the p-value is a multiple of 1/(B + 1). All of them are products with one kernel matrix, which is not formed.
        Of "linear", B choices of the signs of the terms, or all 2ᵖ of p pairs where those are fewer.
    memory : int, str or None
        Budget for the permutations, 8(m + n)(B + 513) bytes; None is half of what is free.
    random_state : int

    Returns
    -------
    TestResult

    Raises
    ------
    InvalidInput
        For samples of fewer than two points (four for "linear"), and for precomputed kernels.
    MemoryExceeded
        Where the permutations do not fit.

    Notes
    -----
    Under the hypothesis x₁ and y₁ can be exchanged, which changes the sign of the term k(x₁,x₂) + k(y₁,y₂) − k(x₁,y₂) −
    k(x₂,y₁). So the signs of the terms are independent and fair, whatever their sizes, and the p-value of "linear" is
    exact for every number of pairs; that of a normal law is too small for few pairs or heavy tails.

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
        raise InvalidInput(message(who, f"samples of {m} and {n} points", f"give {least} of each, or more"))
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
    # |k(x, z)| ≤ (k(x, x) + k(z, z))/2 bounds the means of which MMD² is a difference.
    size = float(np.abs(K.diagonal()).sum(dtype=np.float64)) * (1 / m + 1 / n)
    p_value = permutation_p(observed, null, rounding(K, size))
    return TestResult(observed, p_value, f"MMD², {estimator}, {count} permutations", name, null)


def _values(K: KernelOperator, first: Floats, m: int, n: int, unbiased: bool) -> Floats:
    """MMD² of each column of indicators of the first sample, from the sums of K over the two samples."""
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
    """The mean of h over disjoint pairs, and how often one with other signs is as large."""
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
    """Σ of the terms whose sign changes, for all 2ᵖ choices but the given one where these are no more than `count`, and
    for `count` random ones else.
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
    """k of the i-th of the rows and the i-th of the columns: the diagonals of small blocks."""
    parts = [np.diagonal(K.block(rows[i : i + step], columns[i : i + step])) for i in range(0, len(rows), step)]
    return np.concatenate(parts).astype(np.float64)
