"""Kernel herding: few points whose mean in feature space is near that of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.gram import KernelOperator
from mercer.hypotheses.permutations import Floats, checked_count, sample_kernel, sampled
from mercer.kernels import Kernel
from mercer.numerals import counted

__all__ = ["Herd", "herd"]


@dataclass(frozen=True, eq=False)
class Herd:
    """Selected points in their order, and the distance of their mean from that of all.

    Attributes
    ----------
    indices : array of int
        Rows of X.
    mmd : array
        ‖mean of the first t − mean of all‖ in feature space, t = 1, 2, …
    kernel : Kernel
    """

    indices: NDArray[np.intp]
    mmd: Floats
    kernel: Kernel


def herd(
    X: Any,
    n_points: int,
    kernel: Kernel | str | Any = "gaussian(gamma='median')",
    *,
    sample_weight: Any = None,
    replace: bool = False,
) -> Herd:
    """Rows x₁, x₂, … of X, each chosen to bring the mean of the features nearest to μ = Σ wᵢφ(xᵢ)/Σ wᵢ.

    xₜ₊₁ = argmin ‖(φ(x₁) + … + φ(xₜ) + φ(x))/(t + 1) − μ‖. If k(x, x) is constant this is kernel herding:
    argmax ⟨μ, φ(x)⟩ − Σ k(x, xₛ)/(t + 1).

    Parameters
    ----------
    X : array-like of shape (n, d), or a sequence of objects
    n_points : int
        Number of rows to take.
    kernel : Kernel, str or callable, default "gaussian(gamma='median')"
    sample_weight : array of shape (n,), optional
        Weights of the rows in μ, and in parameters that depend on data. A row of weight 0 counts as absent.
    replace : bool, default False
        Whether a row may be taken more than once.

    Returns
    -------
    Herd

    Raises
    ------
    InvalidInput
        For more points than rows (without `replace`), and for weights that are negative, not finite, or all 0.

    Notes
    -----
    It takes one product with the kernel matrix (n² entries) for μ, and one row of the matrix for each point.

    References
    ----------
    Y. Chen, M. Welling, A. Smola (2010). Super-samples from kernel herding. UAI.

    Examples
    --------
    >>> import numpy as np, mercer
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> found = mercer.herd(X, 20)
    >>> found.indices[:3].tolist(), bool(found.mmd[-1] < 0.1)
    ([418, 413, 263], True)
    """
    given, count = sample_kernel("herd", kernel), checked_count("herd", "n_points", n_points)
    if sample_weight is None:
        K = sampled("herd", given, X)
        present, w = np.arange(K.shape[0]), np.full(K.shape[0], 1 / max(K.shape[0], 1))
    else:
        x = KernelOperator(given, X).x
        w = _weights(sample_weight, len(x))
        present = np.flatnonzero(w)
        w = w[present]
        K = sampled("herd", given, x.take(present).rows, w)
    n = len(present)
    if count > n and not replace:
        few = f"n_points={count} of {counted(n, 'row')}"
        raise InvalidInput(message("herd", few, "give fewer points, or replace=True"))
    mean = np.asarray(K @ w, np.float64)
    half, norm = np.asarray(K.diagonal(), np.float64) / 2, float(w @ mean)
    taken, total, closed = np.empty(count, np.intp), np.zeros(n), np.zeros(n)
    mmd, inner, reach = np.empty(count), 0.0, 0.0
    for t in range(count):
        # Twice the cost is (t + 1)²·MMD², up to terms that do not depend on x.
        cost = half + total - (t + 1) * mean + closed
        chosen = int(np.argmin(cost))
        inner += 2 * (total[chosen] + half[chosen])
        reach += mean[chosen]
        total += np.asarray(K.rows([chosen])[0], np.float64)
        taken[t], mmd[t] = chosen, np.sqrt(max(inner / (t + 1) ** 2 - 2 * reach / (t + 1) + norm, 0.0))
        if not replace:
            closed[chosen] = np.inf
    return Herd(present[taken], mmd, K.kernel)


def _weights(sample_weight: Any, n: int) -> Floats:
    """Weights that sum to 1."""
    w = np.asarray(sample_weight, np.float64)
    if w.shape != (n,) or not np.all(np.isfinite(w) & (w >= 0)) or not np.any(w > 0):
        given = f"sample_weight of shape {w.shape}, from {np.min(w, initial=np.inf)}"
        raise InvalidInput(message("herd", given, f"give {counted(n, 'number')} ≥ 0, not all 0"))
    return np.asarray(w / w.sum())
