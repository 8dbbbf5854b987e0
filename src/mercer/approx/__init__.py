"""Approximations of kernel matrices and feature spaces, and what they are good for."""

from mercer.approx.monomials import MonomialFeatures
from mercer.approx.pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.approx.preconditioner import LowRankInverse, preconditioner

__all__ = ["LowRankInverse", "MonomialFeatures", "PivotedCholesky", "pivoted_cholesky", "preconditioner"]
