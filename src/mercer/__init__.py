"""mercer: kernel methods, exact and at any size.

One kernel algebra for every method, a fused native engine, and answers that carry their certificate.
"""

from mercer import errors, kernels
from mercer.approx import MonomialFeatures
from mercer.estimators import (
    KernelCCA,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLMS,
    KernelPCA,
    KernelPLS,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    KernelSearchCV,
    KernelSpectralClustering,
    Nystroem,
    PolynomialSketch,
    RandomFourierFeatures,
    Report,
)
from mercer.events import Cancel, Log, Progress, observe
from mercer.gram import KernelOperator
from mercer.io import load, save
from mercer.kernels import table_kernel

__version__ = "0.1.0"

__all__ = [
    "Cancel",
    "KernelCCA",
    "KernelDiscriminantAnalysis",
    "KernelKMeans",
    "KernelLMS",
    "KernelOperator",
    "KernelPCA",
    "KernelPLS",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "KernelSearchCV",
    "KernelSpectralClustering",
    "Log",
    "MonomialFeatures",
    "Nystroem",
    "PolynomialSketch",
    "Progress",
    "RandomFourierFeatures",
    "Report",
    "errors",
    "kernels",
    "load",
    "observe",
    "save",
    "table_kernel",
]
