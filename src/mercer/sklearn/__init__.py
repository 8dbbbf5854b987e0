"""scikit-learn's estimators with its parameters, attributes, warnings and errors, and our computations."""

from importlib import import_module
from typing import TYPE_CHECKING

# What each module gives to users, imported when a name of it is first used: one face does not import all estimators.
_MODULES = {
    "mercer.sklearn.decomposition": ["KernelPCA"],
    "mercer.sklearn.gaussian_process": ["GaussianProcessClassifier", "GaussianProcessRegressor"],
    "mercer.sklearn.kernel_approximation": ["Nystroem"],
    "mercer.sklearn.kernel_ridge": ["KernelRidge"],
    "mercer.sklearn.svm": ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"],
}

if TYPE_CHECKING:  # the same for type checkers and editors
    from mercer.sklearn.decomposition import KernelPCA as KernelPCA
    from mercer.sklearn.gaussian_process import GaussianProcessClassifier as GaussianProcessClassifier
    from mercer.sklearn.gaussian_process import GaussianProcessRegressor as GaussianProcessRegressor
    from mercer.sklearn.kernel_approximation import Nystroem as Nystroem
    from mercer.sklearn.kernel_ridge import KernelRidge as KernelRidge
    from mercer.sklearn.svm import SVC as SVC
    from mercer.sklearn.svm import SVR as SVR
    from mercer.sklearn.svm import NuSVC as NuSVC
    from mercer.sklearn.svm import NuSVR as NuSVR
    from mercer.sklearn.svm import OneClassSVM as OneClassSVM
else:
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
    __all__ = sorted(_MODULE_OF)

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'mercer.sklearn' has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(_MODULE_OF[name]), name)
        return found

    def __dir__() -> list[str]:
        return __all__
