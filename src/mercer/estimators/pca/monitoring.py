"""Process monitoring by kernel PCA: limits of Hotelling's T² within the components and of SPE (Q) outside of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.stats

from mercer.errors import InvalidInput, message
from mercer.numerals import counted

__all__ = ["ControlLimits", "spe_limit", "t2_limit"]


class ControlLimits(NamedTuple):
    """Values of T² and of SPE that a row in control exceeds with probability 1 − level each.

    >>> ControlLimits(hotelling_t2=7.4, spe=0.2, level=0.95).level
    0.95
    """

    hotelling_t2: float
    spe: float
    level: float


def t2_limit(k: int, n: int, level: float) -> float:
    """k(n + 1)/(n − k) F(level; k, n − k), for a new row's Σ yⱼ²/λⱼ with λⱼ = Σ yᵢⱼ²/n of n training rows.

    The textbook's k(n² − 1)/(n(n − k)) F is for variances over n − 1.

    >>> round(t2_limit(2, 10**6, 0.95), 2)  # χ² of 2 degrees of freedom
    5.99
    """
    if n <= k:
        given = f"{counted(k, 'component')} of {counted(n, 'row')}"
        raise InvalidInput(message("control_limits", given, "keep fewer components than there are rows"))
    return float(k * (n + 1) / (n - k) * scipy.stats.f.ppf(level, k, n - k)) if k else 0.0


def spe_limit(spe: np.ndarray, level: float) -> float:
    """g χ²(level; h) with g = s²/2m and h = 2m²/s², m and s² the mean and the variance of SPE in control.

    >>> round(spe_limit(np.random.default_rng(0).chisquare(3, 10**5), 0.95), 1)
    7.8
    """
    mean, variance = float(np.mean(spe)), float(np.var(spe))
    if mean <= 0 or variance <= (4 * np.finfo(float).eps * mean) ** 2:
        return mean
    return float(variance / (2 * mean) * scipy.stats.chi2.ppf(level, 2 * mean**2 / variance))
