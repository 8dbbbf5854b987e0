"""Factorisations of kernel matrices: Cholesky, pivoted Cholesky, and decompositions that serve many shifts."""

from mercer.factorizations.band import RidgeBand
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.factorizations.inverse import RidgeInverse
from mercer.factorizations.pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.factorizations.preconditioner import LowRankInverse, SpectralInverse, preconditioner
from mercer.factorizations.spectrum import RidgeSpectrum

__all__ = [
    "CholeskyFactor",
    "LowRankInverse",
    "PivotedCholesky",
    "RidgeBand",
    "RidgeInverse",
    "RidgeSpectrum",
    "SpectralInverse",
    "pivoted_cholesky",
    "preconditioner",
]


def __dir__() -> list[str]:
    return sorted(__all__)
