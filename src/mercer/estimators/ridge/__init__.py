"""Kernel ridge regression and classification, and the choice of kernel and penalty."""

from mercer.estimators.ridge.kernel_ridge import KernelRidge, KernelRidgeClassifier
from mercer.estimators.ridge.kernel_ridge_cv import KernelRidgeClassifierCV, KernelRidgeCV

__all__ = ["KernelRidge", "KernelRidgeCV", "KernelRidgeClassifier", "KernelRidgeClassifierCV"]
