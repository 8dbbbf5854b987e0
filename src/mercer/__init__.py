"""mercer: kernel methods, exact and at any size.

One kernel algebra for every method, a fused native engine, and answers that carry their certificate.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mercer import former_names
from mercer.version import __version__ as __version__

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

# What packages give to users here, beside the estimators.
_NOT_ESTIMATORS = {
    "mercer.approx": ["MonomialFeatures"],
    "mercer.engine": ["show_versions", "use"],
    "mercer.events": ["Cancel", "Log", "Progress", "observe"],
    "mercer.gram": ["KernelOperator"],
    "mercer.hypotheses": ["herd", "hsic_test", "mmd_test", "thin"],
    "mercer.io": ["checkpoint", "load", "save"],
    "mercer.kernels": ["table_kernel"],
    "mercer.validity": ["KernelReport", "RepairedKernel", "check_kernel", "repair_kernel"],
}

_OF_KERNLAB = {
    "gausspr": "GaussianProcessRegressor or GaussianProcessClassifier",
    "kcca": "KernelCCA",
    "kha": "KernelPCA",
    "kkmeans": "KernelKMeans",
    "kmmd": "mmd_test",
    "kpca": "KernelPCA",
    "kqr": "KernelRidge, for the mean, or SVR, for the median",
    "ksvm": "SVC, SVR or OneClassSVM",
    "lssvm": "KernelRidgeClassifier",
    "onlearn": "OnlineKernelClassifier or OnlineKernelRegressor",
    "rvm": "GaussianProcessRegressor",
    "specc": "KernelSpectralClustering",
}

former_names.install()

if TYPE_CHECKING:  # what type checkers and editors see
    from mercer import approx as approx
    from mercer import errors as errors
    from mercer import estimators as estimators
    from mercer import events as events
    from mercer import hypotheses as hypotheses
    from mercer import io as io
    from mercer import kernels as kernels
    from mercer import operators as operators
    from mercer import plots as plots
    from mercer import report as report
    from mercer import select as select
    from mercer import solvers as solvers
    from mercer import testing as testing
    from mercer import validity as validity
    from mercer.approx import MonomialFeatures as MonomialFeatures
    from mercer.engine import show_versions as show_versions
    from mercer.engine import use as use
    from mercer.estimators import *
    from mercer.events import Cancel as Cancel
    from mercer.events import Log as Log
    from mercer.events import Progress as Progress
    from mercer.events import observe as observe
    from mercer.gram import KernelOperator as KernelOperator
    from mercer.hypotheses import herd as herd
    from mercer.hypotheses import hsic_test as hsic_test
    from mercer.hypotheses import mmd_test as mmd_test
    from mercer.hypotheses import thin as thin
    from mercer.io import checkpoint as checkpoint
    from mercer.io import load as load
    from mercer.io import save as save
    from mercer.kernels import table_kernel as table_kernel
    from mercer.validity import KernelReport as KernelReport
    from mercer.validity import RepairedKernel as RepairedKernel
    from mercer.validity import check_kernel as check_kernel
    from mercer.validity import repair_kernel as repair_kernel
else:
    from mercer import estimators

    _MODULE_OF = {name: module for module, names in _NOT_ESTIMATORS.items() for name in names} | estimators._MODULE_OF
    __all__ = sorted([*_MODULE_OF, "errors", "kernels"])

    def __getattr__(name: str) -> object:
        # Modules are imported when a name of theirs is first used, because scikit-learn and SciPy are slow to import.
        if name in PACKAGES:
            try:
                return import_module(f"mercer.{name}")
            except ModuleNotFoundError as error:  # plots without matplotlib; "from mercer import plots" raises it
                raise AttributeError(str(error)) from error
        if name in _MODULE_OF:
            globals()[name] = found = getattr(import_module(_MODULE_OF[name]), name)
            return found
        raise AttributeError(f"module 'mercer' has no attribute {name!r}" + _meant(name))

    def _meant(name: str) -> str:
        """The name that may be meant, ours for one of R's kernlab."""
        if name.startswith("_"):
            return ""
        from difflib import get_close_matches

        ours = {one.lower(): one for one in __all__}
        near = _OF_KERNLAB.get(name) or next((ours[one] for one in get_close_matches(name.lower(), ours, 1)), "")
        return near and f"; did you mean {near}?"

    def __dir__() -> list[str]:
        return sorted({*__all__, *PACKAGES, "__version__"})
