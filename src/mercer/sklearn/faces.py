"""What all faces share: kernels by scikit-learn's words, fits without warnings of ours, and what is left to it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.errors import DelegatedWarning, InvalidInput, NotAKernel, warn
from mercer.gram import KernelOperator
from mercer.kernels import (
    Chi2,
    Constant,
    Cosine,
    Formula,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)

__all__ = ["REFUSALS", "Face", "gram", "kernel_of", "left", "precision", "quietly"]

REFUSALS = (InvalidInput, NotAKernel)
"""What we refuse and scikit-learn may have an answer to. A lack of memory or a lost device is not left to it."""


class Face:
    """A class of scikit-learn whose computations are ours."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any

    def _delegated(self, why: str) -> None:
        """Called before scikit-learn's own code does what was asked."""
        left(type(self).__name__, why)

    def _named_kernel(self, columns: int, gamma: float | None = None) -> Kernel | None:
        """The kernel of the parameters; None of matrices, of functions, and as for `kernel_of`."""
        if callable(self.kernel) or self.kernel == "precomputed":
            return None
        gamma = self.gamma if gamma is None else gamma
        if gamma is None:
            gamma = 1.0 if self.kernel == "chi2" else 1.0 / columns
        degree, coef0 = (3 if self.degree is None else self.degree), (1.0 if self.coef0 is None else self.coef0)
        return kernel_of(self.kernel, gamma, degree, coef0)

    def _gram(self, kernel: Kernel, X: Any, Z: Any = None) -> KernelOperator | None:
        """`gram`; None, after a warning, if float64 does not hold the values as we compute them."""
        try:
            return gram(kernel, X, Z)
        except REFUSALS as error:
            self._delegated(str(error))
            return None


def left(who: str, why: str) -> None:
    """Warn that scikit-learn's own code does what was asked."""
    warn(f"{who}: scikit-learn's own code runs, because mercer has this to say: {why}", DelegatedWarning)


def kernel_of(name: str, gamma: float, degree: float, coef0: float) -> Kernel | None:
    """The kernel of one of scikit-learn's names; None if only scikit-learn has it, or has it with such parameters.

    >>> kernel_of("poly", 0.5, 2, 1.0), kernel_of("sigmoid", 0.0, 3, 1.0)
    (Polynomial(degree=2, gamma=0.5), None)
    """
    try:
        return _kernel_of("poly" if name == "polynomial" else name, gamma, degree, coef0)
    except (*REFUSALS, ArithmeticError):  # a parameter that no Mercer kernel has, or a power beyond float64
        return None


def _kernel_of(name: str, gamma: float, degree: float, coef0: float) -> Kernel | None:
    if gamma == 0 and name in ("rbf", "laplacian"):  # that of χ² refuses negative rows all the same
        return Constant(1.0)
    if name == "poly" and (degree == 0 or gamma == 0):
        return Constant(float(coef0) ** degree)
    made: dict[str, Callable[[], Kernel]] = {
        "linear": Linear,
        "cosine": Cosine,
        "rbf": lambda: Gaussian(float(gamma)),
        "laplacian": lambda: Laplace(float(gamma), 1),
        "chi2": lambda: Chi2(float(gamma)),
        "sigmoid": lambda: Sigmoid(float(gamma), float(coef0)),
        "precomputed": Precomputed,
    }
    if int(degree) == degree and coef0 >= 0:
        made["poly"] = lambda: Polynomial(int(degree), float(gamma), float(coef0))
    elif int(degree) == degree:  # not a Mercer kernel
        made["poly"] = lambda: Formula(f"({float(gamma)!r}*dot - {-float(coef0)!r})**{int(degree)}")
    return made[name]() if name in made else None


def gram(kernel: Kernel, X: Any, Z: Any = None) -> KernelOperator:
    """K(X, Z) of rows that scikit-learn has checked, with entries in float64."""
    return KernelOperator(kernel, *(_floats(one) for one in (X, Z) if one is not None), dtype=np.float64)


def _floats(X: Any) -> Any:
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def precision(*rows: Any) -> Any:
    """scikit-learn's dtype of what it computes from these rows: float32 if all of them have it, else float64."""
    return np.float32 if all(one.dtype == np.float32 for one in rows) else np.float64


def quietly(fit: Callable[..., Any], *data: Any) -> Any:
    """A fit of ours without its warnings: the face gives scikit-learn's, and `report_` keeps ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*data)
