"""Test whether two views of the same rows are independent, by the norm of their cross-covariance in feature space."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.hypotheses.permutations import (
    Floats,
    TestResult,
    as_sample,
    checked_count,
    permutation_p,
    sample_kernel,
    sampled,
)
from mercer.kernels import Hamming, Kernel
from mercer.numerals import counted
from mercer.points import parse_memory
from mercer.points.budget import require
from mercer.shards import local, together

__all__ = ["hsic_test"]

ENTRIES = 8.0
"""Roundings of an entry, and of the means that are subtracted from it."""


def hsic_test(
    X: Any,
    Y: Any,
    kernel_x: Kernel | str | Any = "gaussian(gamma='median')",
    kernel_y: Kernel | str | Any = "gaussian(gamma='median')",
    *,
    estimator: Literal["biased", "unbiased"] = "biased",
    n_permutations: int = 499,
    memory: float | str | None = None,
    random_state: int = 0,
) -> TestResult:
    r"""HSIC = ‖E φ(x)ψ(y)ᵀ − E φ(x) E ψ(y)ᵀ‖²: a permutation test of the hypothesis that x and y are independent.

    Parameters
    ----------
    X, Y : array-like of shapes (n, p) and (n, q), or sequences of n objects
        Row i of X belongs to row i of Y. An array of shape (n,) is one column.
    kernel_x, kernel_y : Kernel, str or callable, default "gaussian(gamma='median')"
        If Y are classes, use ``"hamming"`` or a kernel of objects.
    estimator : {"biased", "unbiased"}, default "biased"
        "biased" is tr(KHLH)/n²; "unbiased" is (tr K̃L̃ + 1ᵀK̃1 1ᵀL̃1/((n−1)(n−2)) − 2·1ᵀK̃L̃1/(n−2))/(n(n−3)) with the
        diagonals of K̃, L̃ set to 0. Both rank permutations of Y nearly alike, so that the p-values hardly differ.
    n_permutations : int, default 499
        Each permutation costs a pass over the two stored matrices.
    memory : int, str or None
        Memory budget for the matrices, which take 24n² bytes.
    random_state : int
        Seed for the permutations.

    Returns
    -------
    TestResult

    Raises
    ------
    InvalidInput
        For views of different lengths, and for fewer than four rows.
    MemoryExceeded
        If the matrices do not fit.

    References
    ----------
    A. Gretton, K. Fukumizu, C. Teo, L. Song, B. Schölkopf, A. Smola (2007). A kernel statistical test of independence.
    NIPS. L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt (2012). Feature selection via dependence maximization.
    JMLR 13, 1393.

    Examples
    --------
    >>> import numpy as np, mercer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 1))
    >>> mercer.hsic_test(X, X**2 + 0.1 * rng.normal(size=(80, 1))).p_value
    0.002
    """
    who = "hsic_test"
    if estimator not in ("biased", "unbiased"):
        raise InvalidInput(message(who, f"estimator={estimator!r}", 'choose "biased" or "unbiased"'))
    count = checked_count(who, "n_permutations", n_permutations)
    X, Y = map(local, together(X, Y))
    given = ((sample_kernel(who, k), rows) for k, rows in ((kernel_x, X), (kernel_y, Y)))
    views = [sampled(who, k, _coded(k, as_sample(k, rows))) for k, rows in given]
    n = views[0].shape[0]
    if n != views[1].shape[0] or n < 4:
        sizes = f"views of {n} and {counted(views[1].shape[0], 'row')}"
        raise InvalidInput(message(who, sizes, "give two views of the same rows, at least four"))
    require(24 * n * n, parse_memory(memory), f"{who} of {n} rows", ["test a sample of the rows", "give memory="])
    K, L = (np.asarray(view.toarray(), np.float64) for view in views)
    norms = [float(np.linalg.norm(A)) for A in (K, L)]
    for A in (K, L):
        _centre(A, estimator == "unbiased")
    rng = np.random.default_rng(random_state)
    orders = [np.arange(n), *(rng.permutation(n) for _ in range(count))]
    pairs = n * (n - 3) if estimator == "unbiased" else n * n
    values = np.array([np.vdot(K, L[order][:, order]) for order in orders]) / pairs
    observed, null = float(values[0]), values[1:]
    names = tuple(repr(view.kernel) for view in views)
    p_value = permutation_p(observed, null, _slack(K, L, norms) / pairs)
    return TestResult(observed, p_value, f"HSIC, {estimator}, {count} permutations", names, null)


def _coded(kernel: Kernel, rows: Any) -> Any:
    """Names of classes as numbers, for a kernel that only asks which are equal; other rows unchanged.

    >>> _coded(Hamming(), np.array([["a"], ["b"], ["a"]])).ravel()
    array([0, 1, 0])
    """
    named = isinstance(kernel, Hamming) and isinstance(rows, np.ndarray) and rows.shape[1:] == (1,)
    if not named or not all(isinstance(one, str) for one in rows.flat):
        return rows
    return np.unique(rows.astype(str), return_inverse=True)[1].reshape(-1, 1)


def _centre(A: Floats, unbiased: bool) -> None:
    """A becomes HAH, or for the unbiased statistic the matrix of diagonal 0 whose other entries sum to 0 in each row.

    Both matrices are centred, because sums of values of 10¹² that differ by 1 would leave nothing of the differences.
    """
    n = len(A)
    A -= A.mean(axis=0)
    A -= A.mean(axis=1, keepdims=True)
    if unbiased:
        np.fill_diagonal(A, 0.0)
        rows = A.sum(axis=1) / (n - 2)
        A += rows.sum() / (n - 1) - rows - rows[:, None]
        np.fill_diagonal(A, 0.0)


def _slack(K: Floats, L: Floats, norms: list[float]) -> float:
    """A bound on the rounding error of ⟨K, PLPᵀ⟩ for centred matrices, whose entries were rounded at their full size.

    `norms` are those before they were centred.
    """
    left, right = float(np.linalg.norm(K)), float(np.linalg.norm(L))
    eps = float(np.finfo(np.float64).eps)
    return eps * (2 * len(K) * left * right + ENTRIES * (norms[0] * right + left * norms[1]))
