"""What is proved about a kernel, and what the closure theorems prove about compositions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

__all__ = [
    "Definiteness", "Properties", "of_normalized", "of_on_columns", "of_power", "of_product", "of_rescaled_columns",
    "of_scaled", "of_sum",
]  # fmt: skip


class Definiteness(Enum):
    """The sign of Σᵢⱼ cᵢcⱼ k(xᵢ, xⱼ) for distinct points, as far as it is proved."""

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
    """What a kernel declares: definiteness; whether k(x, z) depends on x − z only; whether it is bounded.

    `infinitely_divisible`: every positive power of the kernel is a kernel.
    """

    definiteness: Definiteness = UNKNOWN
    stationary: bool = False
    bounded: bool = False
    infinitely_divisible: bool = False


def of_sum(a: Properties, b: Properties) -> Properties:
    """Convex cone: kernels are closed under sums, and a strictly positive term makes the sum strictly positive."""
    pair = {a.definiteness, b.definiteness}
    mercer = PD if PD in pair else PSD
    definiteness = mercer if pair <= {PD, PSD} else CPD if pair <= {PD, PSD, CPD} else UNKNOWN
    return Properties(definiteness, a.stationary and b.stationary, a.bounded and b.bounded)


def of_product(a: Properties, b: Properties) -> Properties:
    """Schur's product theorem: the entrywise product of positive (semi-)definite matrices is one."""
    pair = {a.definiteness, b.definiteness}
    definiteness = PD if pair == {PD} else PSD if pair <= {PD, PSD} else UNKNOWN
    return Properties(
        definiteness,
        a.stationary and b.stationary,
        a.bounded and b.bounded,
        a.infinitely_divisible and b.infinitely_divisible,
    )


def of_scaled(a: Properties, scale: float) -> Properties:
    """Convex cone: kernels are closed under non-negative factors; the factor 0 leaves the zero kernel."""
    if scale == 0:
        return Properties(PSD, stationary=True, bounded=True, infinitely_divisible=a.infinitely_divisible)
    return a


def of_power(a: Properties, exponent: float) -> Properties:
    """Schur's product theorem, repeated; for a fractional power, infinite divisibility (Schoenberg; Horn)."""
    if exponent == 1:
        return a
    fractional = exponent != int(exponent)
    definiteness = a.definiteness if a.definiteness in (PD, PSD) else UNKNOWN
    # A fractional power of a strictly positive kernel is proved to be semi-definite only.
    return replace(a, definiteness=PSD if fractional and definiteness is PD else definiteness)


def of_normalized(a: Properties) -> Properties:
    """Congruence by a diagonal matrix keeps the inertia; Cauchy–Schwarz bounds the result by 1."""
    kept = a.definiteness if a.definiteness in (PD, PSD, Definiteness.INDEFINITE) else UNKNOWN
    return Properties(kept, a.stationary, kept.is_mercer, a.infinitely_divisible)


def of_on_columns(a: Properties) -> Properties:
    """Pull-back along a map: a kernel stays a kernel; strictness is lost where two rows agree on the columns."""
    return replace(a, definiteness=PSD) if a.definiteness is PD else a


def of_rescaled_columns(a: Properties) -> Properties:
    """Pull-back along a one-to-one linear map: everything is kept."""
    return a
