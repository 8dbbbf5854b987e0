"""mercer: kernel methods, exact and at any size.

One kernel algebra for every method, a fused native engine, and answers that carry their certificate.
"""

from mercer import errors, estimators, former_names, kernels
from mercer.approx import MonomialFeatures
from mercer.estimators import *
from mercer.events import Cancel, Log, Progress, observe
from mercer.gram import KernelOperator
from mercer.hypotheses import herd, hsic_test, mmd_test, thin
from mercer.io import load, save
from mercer.kernels import table_kernel
from mercer.validity import KernelReport, RepairedKernel, check_kernel, repair_kernel
from mercer.version import __version__ as __version__

__all__ = [
    "Cancel",
    "KernelOperator",
    "KernelReport",
    "Log",
    "MonomialFeatures",
    "Progress",
    "RepairedKernel",
    "check_kernel",
    "errors",
    "herd",
    "hsic_test",
    "kernels",
    "load",
    "mmd_test",
    "observe",
    "repair_kernel",
    "save",
    "table_kernel",
    "thin",
]
__all__ += estimators.__all__

PACKAGES = (
    "approx",
    "estimators",
    "events",
    "hypotheses",
    "io",
    "operators",
    "plots",
    "select",
    "solvers",
    "testing",
    "validity",
)

former_names.install()


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", *(name for name in PACKAGES if name in globals())])
