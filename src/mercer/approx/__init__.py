"""Approximations of kernel matrices and feature spaces, and what they are good for."""

from mercer.approx.monomials import MonomialFeatures
from mercer.approx.restricted import RestrictedSystem, restricted_factor
from mercer.factorizations.pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.factorizations.preconditioner import LowRankInverse, SpectralInverse, preconditioner

__all__ = [
    "LowRankInverse",
    "MonomialFeatures",
    "PivotedCholesky",
    "RestrictedSystem",
    "SpectralInverse",
    "pivoted_cholesky",
    "preconditioner",
    "restricted_factor",
]


def __dir__() -> list[str]:
    return sorted(__all__)
