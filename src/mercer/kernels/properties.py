"""The properties that are proved for kernels, and those that closure theorems prove for compositions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

__all__ = [
    "Definiteness", "Properties", "of_normalized", "of_on_columns", "of_power", "of_product", "of_rescaled_columns",
    "of_scaled", "of_sum",
]  # fmt: skip


class Definiteness(Enum):
    """The sign of Σᵢⱼ cᵢcⱼ k(xᵢ, xⱼ) for distinct points xᵢ, if it is proved."""

    POSITIVE_DEFINITE = "positive definite"
    POSITIVE_SEMIDEFINITE = "positive semi-definite"
    CONDITIONALLY_POSITIVE = "conditionally positive definite (where the coefficients sum to zero)"
    INDEFINITE = "indefinite in general"
    UNKNOWN = "unknown"

    @property
    def is_mercer(self) -> bool:
        """Whether every Gram matrix is proved to be positive semi-definite."""
        return self in (Definiteness.POSITIVE_DEFINITE, Definiteness.POSITIVE_SEMIDEFINITE)


PD, PSD = Definiteness.POSITIVE_DEFINITE, Definiteness.POSITIVE_SEMIDEFINITE
CPD, UNKNOWN = Definiteness.CONDITIONALLY_POSITIVE, Definiteness.UNKNOWN


@dataclass(frozen=True)
class Properties:
    """The properties of a kernel that are proved.

    Parameters
    ----------
    definiteness : Definiteness
    stationary : bool
        Whether k(x, z) depends on x − z only.
    bounded : bool
        Whether the values of k are bounded.
    infinitely_divisible : bool
        Whether every positive power of k is a kernel.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> Gaussian().properties.stationary
    True
    """

    definiteness: Definiteness = UNKNOWN
    stationary: bool = False
    bounded: bool = False
    infinitely_divisible: bool = False


def of_sum(a: Properties, b: Properties) -> Properties:
    """Kernels form a convex cone: a sum of kernels is a kernel, and strictly positive if one of its terms is."""
    pair = {a.definiteness, b.definiteness}
    mercer = PD if PD in pair else PSD
    definiteness = mercer if pair <= {PD, PSD} else CPD if pair <= {PD, PSD, CPD} else UNKNOWN
    return Properties(definiteness, a.stationary and b.stationary, a.bounded and b.bounded)


def of_product(a: Properties, b: Properties) -> Properties:
    """Schur's product theorem: the entrywise product of positive definite matrices is positive definite."""
    pair = {a.definiteness, b.definiteness}
    definiteness = PD if pair == {PD} else PSD if pair <= {PD, PSD} else UNKNOWN
    return Properties(
        definiteness,
        a.stationary and b.stationary,
        a.bounded and b.bounded,
        a.infinitely_divisible and b.infinitely_divisible,
    )


def of_scaled(a: Properties, scale: float) -> Properties:
    """Kernels form a convex cone: a non-negative multiple of a kernel is a kernel; the multiple 0 is the kernel 0."""
    if scale == 0:
        return Properties(PSD, stationary=True, bounded=True, infinitely_divisible=a.infinitely_divisible)
    return a


def of_power(a: Properties, exponent: float) -> Properties:
    """Schur's product theorem for integer powers; infinite divisibility for fractional powers (Schoenberg; Horn)."""
    if exponent == 1:
        return a
    fractional = exponent != int(exponent)
    definiteness = a.definiteness if a.definiteness in (PD, PSD) else UNKNOWN
    # A fractional power of a strictly positive definite kernel is only proved to be semi-definite.
    return replace(a, definiteness=PSD if fractional and definiteness is PD else definiteness)


def of_normalized(a: Properties) -> Properties:
    """Congruence with a diagonal matrix keeps the signs of eigenvalues; by Cauchy–Schwarz the values are at most 1."""
    kept = a.definiteness if a.definiteness in (PD, PSD, Definiteness.INDEFINITE) else UNKNOWN
    return Properties(kept, a.stationary, kept.is_mercer, a.infinitely_divisible)


def of_on_columns(a: Properties) -> Properties:
    """k(f(x), f(z)) is a kernel for every map f; it is not strictly positive, as rows may agree on the columns."""
    return replace(a, definiteness=PSD) if a.definiteness is PD else a


def of_rescaled_columns(a: Properties) -> Properties:
    """k(Ax, Az) with an invertible matrix A has the properties of k."""
    return a
