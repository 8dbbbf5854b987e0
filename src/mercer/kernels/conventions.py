"""scikit-learn's names of kernels, with its defaults, which differ between its estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeAlias

from mercer.kernels.base import Kernel
from mercer.kernels.vectors.products import Polynomial, Sigmoid
from mercer.kernels.vectors.stationary import Gaussian, Laplace

__all__ = ["AFFINITIES", "MACHINES", "PAIRWISE", "Names", "completed"]

Names: TypeAlias = Mapping[str, Kernel]
"""The kernels of the names "rbf", "poly", "sigmoid" and "laplacian". Other names mean the same in both libraries."""

PAIRWISE: Names = MappingProxyType({
    "rbf": Gaussian("auto"),
    "poly": Polynomial(3, "auto", 1.0),
    "sigmoid": Sigmoid("auto", 1.0),
    "laplacian": Laplace("auto", 1),
})  # fmt: skip
"""The defaults of `sklearn.metrics.pairwise`, which `KernelRidge`, `KernelPCA` and `Nystroem` use."""

MACHINES: Names = MappingProxyType({
    **PAIRWISE,
    "rbf": Gaussian("scale"),
    "poly": Polynomial(3, "scale", 0.0),
    "sigmoid": Sigmoid("scale", 0.0),
})  # fmt: skip
"""The defaults of `sklearn.svm`."""

AFFINITIES: Names = MappingProxyType({name: kernel.replace(gamma=1.0) for name, kernel in PAIRWISE.items()})
"""The defaults of `sklearn.cluster.SpectralClustering`."""


def completed(default: Kernel) -> Callable[..., Kernel]:
    """A function that makes kernels of the class of `default`; parameters that are not given are those of `default`.

    >>> completed(Polynomial(3, "scale", 0.0))(degree=2)
    Polynomial(degree=2, gamma='scale', coef0=0.0)
    """
    parameters = signature(type(default))

    def build(*args: Any, **kwargs: Any) -> Kernel:
        return default.replace(**parameters.bind_partial(*args, **kwargs).arguments)

    build.__signature__ = parameters  # type: ignore[attr-defined]
    return build
