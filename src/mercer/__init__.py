"""mercer: kernel methods, exact and at any size.

One kernel algebra for every method, a fused native engine, and answers that carry their certificate.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mercer import former_names
from mercer.version import __version__ as __version__

__all__ = [
    "SVC",
    "SVR",
    "Cancel",
    "EmpiricalKernelMap",
    "Explanation",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
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
    "checkpoint",
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
    "show_versions",
    "table_kernel",
    "thin",
    "use",
]  # fmt: skip

PACKAGES = (
    "approx",
    "errors",
    "estimators",
    "events",
    "hypotheses",
    "io",
    "kernels",
    "operators",
    "plots",
    "report",
    "select",
    "solvers",
    "testing",
    "validity",
)

_NOT_ESTIMATORS = {
    "approx": ("MonomialFeatures",),
    "engine": ("show_versions", "use"),
    "events": ("Cancel", "Log", "Progress", "observe"),
    "gram": ("KernelOperator",),
    "hypotheses": ("herd", "hsic_test", "mmd_test", "thin"),
    "io": ("checkpoint", "load", "save"),
    "kernels": ("table_kernel",),
    "validity": ("KernelReport", "RepairedKernel", "check_kernel", "repair_kernel"),
}
_PACKAGE_OF = dict.fromkeys(__all__, "estimators") | {
    name: package for package, names in _NOT_ESTIMATORS.items() for name in names
}

former_names.install()

if TYPE_CHECKING:  # what type checkers and editors see
    from mercer import approx as approx
    from mercer import errors, kernels
    from mercer import estimators as estimators
    from mercer import events as events
    from mercer import hypotheses as hypotheses
    from mercer import io as io
    from mercer import operators as operators
    from mercer import plots as plots
    from mercer import report as report
    from mercer import select as select
    from mercer import solvers as solvers
    from mercer import testing as testing
    from mercer import validity as validity
    from mercer.approx import MonomialFeatures
    from mercer.engine import show_versions, use
    from mercer.estimators import *
    from mercer.events import Cancel, Log, Progress, observe
    from mercer.gram import KernelOperator
    from mercer.hypotheses import herd, hsic_test, mmd_test, thin
    from mercer.io import checkpoint, load, save
    from mercer.kernels import table_kernel
    from mercer.validity import KernelReport, RepairedKernel, check_kernel, repair_kernel
else:

    def __getattr__(name: str) -> object:
        # Packages are imported when a name of theirs is first used, because scikit-learn and SciPy are slow to import.
        if name in PACKAGES:
            try:
                return import_module(f"mercer.{name}")
            except ModuleNotFoundError as error:  # plots without matplotlib; "from mercer import plots" raises it
                raise AttributeError(str(error)) from error
        if name in _PACKAGE_OF:
            globals()[name] = found = getattr(import_module(f"mercer.{_PACKAGE_OF[name]}"), name)
            return found
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *PACKAGES, "__version__"})
