"""mercer: kernel methods, exact and at any size.

One kernel algebra for every method, a fused native engine, and answers that carry their certificate.
"""

from mercer import errors, kernels
from mercer.approx import MonomialFeatures
from mercer.estimators import (
    Explanation,
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
    KernelSpectralClustering,
    Nystroem,
    PolynomialSketch,
    RandomFourierFeatures,
    Report,
    explain,
)
from mercer.events import Cancel, Log, Progress, observe
from mercer.gram import KernelOperator
from mercer.hypotheses import herd, hsic_test, mmd_test, thin
from mercer.io import load, save
from mercer.validity import KernelReport, RepairedKernel, check_kernel, repair_kernel

__version__ = "0.1.0"

__all__ = [
    "Cancel",
    "Explanation",
    "KernelCCA",
    "KernelDiscriminantAnalysis",
    "KernelKMeans",
    "KernelLMS",
    "KernelOperator",
    "KernelPCA",
    "KernelPLS",
    "KernelReport",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "KernelSpectralClustering",
    "Log",
    "MonomialFeatures",
    "Nystroem",
    "PolynomialSketch",
    "Progress",
    "RandomFourierFeatures",
    "RepairedKernel",
    "Report",
    "check_kernel",
    "errors",
    "explain",
    "herd",
    "hsic_test",
    "kernels",
    "load",
    "mmd_test",
    "observe",
    "repair_kernel",
    "save",
    "thin",
]
