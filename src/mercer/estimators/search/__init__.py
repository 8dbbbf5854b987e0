"""The search over kernels and parameters that shares work between candidates."""

# Pickles of earlier versions name this folder, which was a module.
from mercer.estimators.search.kernel_search import KernelSearchCV as KernelSearchCV
