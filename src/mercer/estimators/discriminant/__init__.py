"""Kernel Fisher discriminant analysis."""

# Pickles of earlier versions name this folder, which was a module.
from mercer.estimators.discriminant.analysis import KernelDiscriminantAnalysis as KernelDiscriminantAnalysis
