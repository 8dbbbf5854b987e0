"""Kernel canonical correlation and kernel partial least squares."""

from mercer.estimators.correlation.kernel_cca import KernelCCA
from mercer.estimators.correlation.kernel_pls import KernelPLS

__all__ = ["KernelCCA", "KernelPLS"]
