"""mercer: kernel methods, exact and at any size.

One kernel algebra for every method, a fused native engine, and answers that carry their certificate.
"""

from mercer import errors, former_names, kernels
from mercer.approx import MonomialFeatures
from mercer.estimators import (
    SVC,
    SVR,
    EmpiricalKernelMap,
    Explanation,
    KernelCCA,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLMS,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelPLS,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    KernelSearchCV,
    KernelSpectralClustering,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
    PolynomialSketch,
    RandomFourierFeatures,
    Report,
    explain,
    position_weights,
)
from mercer.events import Cancel, Log, Progress, observe
from mercer.gram import KernelOperator
from mercer.hypotheses import herd, hsic_test, mmd_test, thin
from mercer.io import load, save
from mercer.kernels import table_kernel
from mercer.validity import KernelReport, RepairedKernel, check_kernel, repair_kernel
from mercer.version import __version__ as __version__

__all__ = [
    "SVC",
    "SVR",
    "Cancel",
    "EmpiricalKernelMap",
    "Explanation",
    "KernelCCA",
    "KernelDiscriminantAnalysis",
    "KernelKMeans",
    "KernelLMS",
    "KernelLogisticRegression",
    "KernelOperator",
    "KernelPCA",
    "KernelPLS",
    "KernelPerceptron",
    "KernelReport",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "KernelSearchCV",
    "KernelSpectralClustering",
    "Log",
    "MonomialFeatures",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "OnlineKernelClassifier",
    "OnlineKernelRegressor",
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
    "position_weights",
    "repair_kernel",
    "save",
    "table_kernel",
    "thin",
]

PACKAGES = (
    "approx",
    "estimators",
    "events",
    "hypotheses",
    "io",
    "operators",
    "select",
    "solvers",
    "testing",
    "validity",
)

former_names.install()


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", *(name for name in PACKAGES if name in globals())])
