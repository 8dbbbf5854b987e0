"""Kernel Fisher discriminant analysis."""

from mercer.estimators.discriminant.analysis import KernelDiscriminantAnalysis

__all__ = ["KernelDiscriminantAnalysis"]
