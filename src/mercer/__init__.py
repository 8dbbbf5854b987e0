"""mercer: kernel methods, exact and at any size.

One kernel algebra for every method, a fused native engine, and answers that carry their certificate.
"""

from mercer import errors, kernels
from mercer.estimators import KernelDiscriminantAnalysis, KernelPCA, KernelRidge, KernelRidgeClassifier, Report
from mercer.events import Cancel, Log, Progress, observe
from mercer.gram import KernelOperator

__version__ = "0.1.0"

__all__ = [
    "Cancel",
    "KernelDiscriminantAnalysis",
    "KernelOperator",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeClassifier",
    "Log",
    "Progress",
    "Report",
    "errors",
    "kernels",
    "observe",
]
