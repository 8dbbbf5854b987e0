"""Solvers of eigenproblems: leading eigenpairs, pencils, latent scores."""

from mercer.solvers.eigen.dense import DenseEigen, DenseEigenState, Eigenpairs, Eigenproblem

__all__ = ["DenseEigen", "DenseEigenState", "Eigenpairs", "Eigenproblem"]
