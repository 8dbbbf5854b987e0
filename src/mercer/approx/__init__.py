"""Approximations of kernel matrices and of feature spaces, and their applications."""

from typing import TYPE_CHECKING

from mercer.approx.monomials import MonomialFeatures
from mercer.approx.nystroem_ridge import NystroemRidgeSystem, nystroem_ridge_factor
from mercer.factorizations.pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.factorizations.preconditioner import LowRankInverse, SpectralInverse, preconditioner
from mercer.former_names import deprecated_names

__all__ = [
    "LowRankInverse",
    "MonomialFeatures",
    "NystroemRidgeSystem",
    "PivotedCholesky",
    "SpectralInverse",
    "nystroem_ridge_factor",
    "pivoted_cholesky",
    "preconditioner",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # it would hide misspelt names from type checkers
    __getattr__ = deprecated_names(__name__)
