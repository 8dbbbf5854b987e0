"""Kernel thinning: a sample is halved repeatedly, and then its points are exchanged for better ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.gram import KernelOperator
from mercer.hypotheses.herding import Herd
from mercer.hypotheses.permutations import Floats, checked_count, sample_kernel, sampled
from mercer.kernels import Kernel
from mercer.numerals import counted

__all__ = ["thin"]

PAIRS = 32
"""Number of pairs whose rows of K are computed together."""


def thin(
    X: Any,
    n_points: int,
    kernel: Kernel | str | Any = "gaussian(gamma='median')",
    *,
    delta: float = 0.5,
    random_state: int = 0,
) -> Herd:
    """n_points rows of X whose mean in feature space is near that of all, by kernel thinning.

    A halving keeps one row x or x′ of each pair, at random but in favour of balance. With D = Σ_dropped φ − Σ_kept φ
    and α = ⟨D, φ(x) − φ(x′)⟩, x is kept with probability 1 − ½(1 − α/a)₊, where a = max(bσ√(2 log(2/δ′)), b²),
    b = ‖φ(x) − φ(x′)‖, and σ grows with the steps. After the halvings each point is exchanged for the row of X that
    lowers the distance of the means most. The error falls nearly as 1/n_points; that of a random sample falls as
    1/√n_points.

    Parameters
    ----------
    X : array-like of shape (n, d), or a sequence of objects
    n_points : int
        Number of rows to keep.
    kernel : Kernel, str or callable, default "gaussian(gamma='median')"
    delta : float from 0 to 1, default 0.5
        The probability that the bound of the paper fails.
    random_state : int
        Seed for the order of the rows and for the halvings.

    Returns
    -------
    Herd
        Its `mmd` has one entry, for all points together.

    Raises
    ------
    InvalidInput
        For more points than rows, and for delta outside (0, 1).

    Notes
    -----
    It computes O(n²) entries of the kernel matrix and stores none.

    References
    ----------
    R. Dwivedi, L. Mackey (2021). Kernel thinning. COLT. (Algorithms 1a and 1b.)

    Examples
    --------
    >>> import numpy as np, mercer
    >>> X = np.random.default_rng(0).normal(size=(512, 2))
    >>> bool(mercer.thin(X, 16).mmd[-1] < 0.1)
    True
    """
    K = sampled("thin", sample_kernel("thin", kernel), X)
    n, count = K.shape[0], checked_count("thin", "n_points", n_points)
    if count > n or not 0 < delta < 1:
        given = f"n_points={count} of {counted(n, 'row')}, delta={delta!r}"
        raise InvalidInput(message("thin", given, "give no more points than rows, and delta between 0 and 1"))
    rng = np.random.default_rng(random_state)
    rounds = int(np.log2(n / count))
    kept = rng.permutation(n)[: count << rounds]
    for _ in range(rounds):
        kept = _halved(K, kept, delta / max(rounds, 1), rng)
    mean = np.asarray(K @ np.full(n, 1 / n), np.float64)
    kept = _exchanged(K, kept, mean)
    inside = float(np.asarray(K.block(kept, kept), np.float64).mean())
    left = np.sqrt(max(inside - 2 * float(mean[kept].mean()) + float(mean.mean()), 0.0))
    return Herd(kept, np.array([left]), K.kernel)


def _halved(K: KernelOperator, rows: NDArray[np.intp], delta: float, rng: Any) -> NDArray[np.intp]:
    """One row of each pair of consecutive rows."""
    pairs = rows.reshape(-1, 2)
    kept = np.empty(len(pairs), np.intp)
    where = np.empty(K.shape[0], np.intp)
    where[rows] = np.arange(len(rows))
    D, sigma2 = np.zeros(len(rows)), 0.0
    scale = np.sqrt(2 * np.log(4 * len(pairs) / delta))
    for start in range(0, len(pairs), PAIRS):
        some = pairs[start : start + PAIRS]
        block = np.asarray(K.block(some.ravel(), rows), np.float64)
        for step, (x, other) in enumerate(some):
            left, right = block[2 * step], block[2 * step + 1]
            i, j = where[x], where[other]
            b2 = max(left[i] + right[j] - 2 * left[j], 0.0)
            a = max(np.sqrt(b2 * sigma2) * scale, b2)
            if a > 0:
                sigma2 += b2 * max(1 + (b2 - 2 * a) * sigma2 / a**2, 0.0)
            lean = float(D[i] - D[j])
            swap = rng.random() < (0.5 * max(1 - lean / a, 0.0) if a > 0 else 0.5)
            kept[start + step] = other if swap else x
            D += (left - right) if swap else (right - left)
    return kept


def _exchanged(K: KernelOperator, kept: NDArray[np.intp], mean: Floats) -> NDArray[np.intp]:
    """Exchange each point in turn for the row that brings the mean nearest, which can be the point itself."""
    kept, m = kept.copy(), len(kept)
    half = np.asarray(K.diagonal(), np.float64) / 2
    total = np.asarray(K @ np.bincount(kept, minlength=K.shape[0]).astype(np.float64), np.float64)
    free = np.ones(K.shape[0], bool)
    free[kept] = False
    for place in range(m):
        old = kept[place]
        total -= np.asarray(K.rows([old])[0], np.float64)
        free[old] = True
        new = int(np.argmin(np.where(free, half + total - m * mean, np.inf)))
        total += np.asarray(K.rows([new])[0], np.float64)
        free[new], kept[place] = False, new
    return kept
