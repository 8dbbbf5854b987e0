"""The search over kernels and parameters that shares work between candidates."""

from mercer.estimators.search.kernel_search import KernelSearchCV

__all__ = ["KernelSearchCV"]
