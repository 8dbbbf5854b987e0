"""Kernels of counts, fingerprints and categories: χ², intersection, Tanimoto, Dice, mismatches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.kernels.base import Array, Kernel, refuse_negative
from mercer.kernels.parameters import checks
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.symbolic.functions import exp, where

__all__ = ["AdditiveChi2", "Chi2", "Dice", "Hamming", "Intersection", "Tanimoto"]


@dataclass(frozen=True, repr=False)
class _NonNegative(Kernel):
    """A kernel on rows without negative entries."""

    def check_data(self, X: Array) -> None:
        refuse_negative(type(self).__name__, X)


@dataclass(frozen=True, repr=False)
class Chi2(_NonNegative):
    """k(x, z) = exp(−γ Σᵢ (xᵢ − zᵢ)²/(xᵢ + zᵢ)), for non-negative data, where 0/0 = 0.

    It is strictly positive definite: a Gaussian of the metric √χ², which embeds in a Hilbert space (Fuglede & Topsøe
    2004; Zhang et al. 2007, IJCV 73, 213).

    Parameters
    ----------
    gamma : float > 0, "scale", "median" or "auto", default 1.0
        "scale" is 1/(d·std(X)), and "median" is 1/(median χ² distance).

    Examples
    --------
    >>> Chi2(gamma=1.0)([[1.0, 0.0]], [[0.0, 1.0]]).round(6)
    array([[0.135335]])
    """

    gamma: float | str = 1.0

    def __post_init__(self) -> None:
        self._set("gamma", checks.bandwidth("Chi2", "gamma", self.gamma))

    def formula(self, pair: Any) -> Any:
        return exp(-self.gamma * pair.chi2)  # type: ignore[operator]

    @property
    def measure(self) -> str:
        return "chi2"

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_DEFINITE, bounded=True, infinitely_divisible=True)


@dataclass(frozen=True, repr=False)
class AdditiveChi2(_NonNegative):
    """k(x, z) = Σᵢ 2xᵢzᵢ/(xᵢ + zᵢ) = (Σx + Σz − χ²(x, z))/2, for non-negative data.

    It is positive semi-definite (Vedaldi & Zisserman 2012, TPAMI 34, 480). scikit-learn's additive_chi2_kernel is
    −χ²(x, z), which is only conditionally positive definite.

    Examples
    --------
    >>> AdditiveChi2()([[1.0, 2.0]], [[1.0, 0.0]])
    array([[1.]])
    """

    def formula(self, pair: Any) -> Any:
        # min_sum of a row with itself is the sum of its entries.
        return 0.5 * (pair.x.min_sum + pair.z.min_sum - pair.chi2)

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE)


@dataclass(frozen=True, repr=False)
class Intersection(_NonNegative):
    """k(x, z) = Σᵢ min(xᵢ, zᵢ), for non-negative data.

    It is positive semi-definite: a sum of overlaps of the intervals [0, xᵢ] and [0, zᵢ] (Swain & Ballard 1991; Barla et
    al. 2003).

    Examples
    --------
    >>> Intersection()([[1.0, 5.0]], [[2.0, 3.0]])
    array([[4.]])
    """

    def formula(self, pair: Any) -> Any:
        return pair.min_sum

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE)


@dataclass(frozen=True, repr=False)
class Tanimoto(_NonNegative):
    """k(x, z) = Σᵢ min(xᵢ, zᵢ)/Σᵢ max(xᵢ, zᵢ), for non-negative data, where 0/0 = 1.

    For fingerprints, rows of 0 and 1, it is Jaccard's index: the number of common bits over the number of bits that are
    set in x or z. For counts it is also called MinMax. It is positive semi-definite (Gower 1971, Biometrics 27, 857;
    Ralaivola et al. 2005, Neural Networks 18, 1093).

    Examples
    --------
    >>> Tanimoto()([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]).round(6)
    array([[0.333333, 0.      ],
           [0.      , 1.      ]])
    """

    def formula(self, pair: Any) -> Any:
        # min_sum of a row with itself is the sum of its entries.
        return _share(pair.min_sum, pair.x.min_sum + pair.z.min_sum - pair.min_sum)

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE, bounded=True)


@dataclass(frozen=True, repr=False)
class Dice(_NonNegative):
    """k(x, z) = 2 Σᵢ min(xᵢ, zᵢ)/Σᵢ(xᵢ + zᵢ), for non-negative data, where 0/0 = 1.

    For fingerprints, rows of 0 and 1, it is Dice's (Sørensen's) coefficient. It is positive semi-definite: the product
    of `Intersection` and the kernel 1/(a + b) = ∫ exp(−ta) exp(−tb) dt of the sums a and b of the rows.

    Examples
    --------
    >>> Dice()([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 1. ]])
    """

    def formula(self, pair: Any) -> Any:
        return _share(2 * pair.min_sum, pair.x.min_sum + pair.z.min_sum)

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE, bounded=True)


def _share(part: Any, whole: Any) -> Any:
    """part/whole, and 1 where whole = 0."""
    return where(whole > 0, part / where(whole > 0, whole, 1.0), 1.0)


@dataclass(frozen=True, repr=False)
class Hamming(Kernel):
    """k(x, z) = exp(−γ · #{i: xᵢ ≠ zᵢ}), for categories coded as numbers.

    Codes are compared in float64, in which neighbours above 2⁵³ are equal: number the categories from 0.

    It is strictly positive definite: a tensor product of e^(−γ) + (1 − e^(−γ))·[xᵢ = zᵢ] (Kondor & Lafferty 2002).

    Parameters
    ----------
    gamma : float > 0, "scale", "median" or "auto", default 1.0
        "scale" is 1/d, and "median" is 1/(median number of mismatches).

    Examples
    --------
    >>> Hamming(gamma=1.0)([[1.0, 2.0, 3.0]], [[1.0, 0.0, 3.0]]).round(6)
    array([[0.367879]])
    """

    gamma: float | str = 1.0

    def __post_init__(self) -> None:
        self._set("gamma", checks.bandwidth("Hamming", "gamma", self.gamma))

    def formula(self, pair: Any) -> Any:
        return exp(-self.gamma * pair.mismatches)  # type: ignore[operator]

    @property
    def measure(self) -> str:
        return "mismatches"

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_DEFINITE, stationary=True, bounded=True, infinitely_divisible=True)
