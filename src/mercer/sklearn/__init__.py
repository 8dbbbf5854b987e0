"""scikit-learn's estimators with its parameters, attributes, warnings and errors, and our computations."""

from __future__ import annotations

from mercer.sklearn.decomposition import KernelPCA
from mercer.sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.sklearn.kernel_approximation import Nystroem
from mercer.sklearn.kernel_ridge import KernelRidge
from mercer.sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelPCA",
    "KernelRidge",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
]

FACES: tuple[type, ...] = (
    *(SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelPCA, KernelRidge, Nystroem),
    *(GaussianProcessClassifier, GaussianProcessRegressor),
)
"""All faces."""


def home(face: type) -> str:
    """The public module of scikit-learn that has a class of this name."""
    theirs = next(one for one in face.__mro__ if one.__module__.startswith("sklearn."))
    return ".".join(part for part in theirs.__module__.split(".") if part[0] != "_")


def __dir__() -> list[str]:
    return sorted(__all__)
