"""Kernels of the inner product of two rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import NotAKernel, message
from mercer.kernels.base import Array, Kernel, Scaled
from mercer.kernels.factors import Factors, in_float64, some_vectors
from mercer.kernels.parameters import checks
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.symbolic.functions import sqrt, tanh, where

__all__ = ["Cosine", "Linear", "MonomialSum", "Polynomial", "Sigmoid"]

HIGHEST_SUM = 1000
"""The highest degree of a `MonomialSum`: each power is a step of the formula."""

_SEMI = Properties(Definiteness.POSITIVE_SEMIDEFINITE)


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    """k(x, z) = ⟨x, z⟩.

    It is positive semi-definite: Σᵢⱼ cᵢcⱼ⟨xᵢ, xⱼ⟩ = ‖Σᵢ cᵢxᵢ‖².

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def formula(self, pair: Any) -> Any:
        return pair.dot

    @property
    def has_fast_matmul(self) -> bool:
        return True

    def matmul(self, X: Array, Z: Array, V: Array) -> Array:
        out = np.empty((X.shape[0], V.shape[1]))
        for some in some_vectors(V, Z.shape[1]):
            W = sum((rows.T @ V[part, some] for part, rows in in_float64(Z)), np.zeros((Z.shape[1], 1)))
            for part, rows in in_float64(X):
                out[part, some] = rows @ W
        return out

    def factors(self, X: Array, Z: Array, room: float) -> Factors | None:
        return Factors.of_rows(X, None if Z is X else Z, room)

    @property
    def properties(self) -> Properties:
        return _SEMI


@dataclass(frozen=True, repr=False)
class Polynomial(Kernel):
    """k(x, z) = (γ⟨x, z⟩ + c)^degree.

    It is positive semi-definite, as sums and products of kernels are (Schölkopf & Smola 2002, 2.1).

    Parameters
    ----------
    degree : int ≥ 1, default 3
    gamma : float > 0, "scale", "median" or "auto", default 1.0
        The rules are those for squared distances, which grow with the data as inner products do.
    coef0 : float ≥ 0, default 1.0
        c; with a negative c the expansion has negative coefficients and is not a kernel.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 3
    gamma: float | str = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        self._set("degree", checks.degree("Polynomial", self.degree))
        self._set("gamma", checks.bandwidth("Polynomial", "gamma", self.gamma))
        self._set("coef0", checks.non_negative("Polynomial", "coef0", self.coef0))

    def formula(self, pair: Any) -> Any:
        return (self.gamma * pair.dot + self.coef0) ** self.degree

    @property
    def properties(self) -> Properties:
        return _SEMI


@dataclass(frozen=True, repr=False)
class MonomialSum(Kernel):
    """k(x, z) = 1 + s + s² + … + s^degree, s = ⟨x, z⟩.

    All powers have the weight 1, unlike in the polynomial kernel. It is positive semi-definite: a power series with
    non-negative coefficients (Schölkopf & Smola 2002, 4.6).

    Parameters
    ----------
    degree : int from 1 to 1000, default 3

    Raises
    ------
    NotAKernel
        If the degree is too large.

    Examples
    --------
    >>> MonomialSum(degree=2)([[2.0]], [[1.0]])
    array([[7.]])
    """

    degree: int = 3

    def __post_init__(self) -> None:
        self._set("degree", checks.degree("MonomialSum", self.degree))
        if self.degree > HIGHEST_SUM:
            raise NotAKernel(message("MonomialSum", f"degree={self.degree}", f"give at most {HIGHEST_SUM}"))

    def formula(self, pair: Any) -> Any:
        s = pair.dot
        total = 1 + s
        for _ in range(self.degree - 1):
            total = 1 + s * total
        return total

    @property
    def properties(self) -> Properties:
        return _SEMI


@dataclass(frozen=True, repr=False)
class Sigmoid(Kernel):
    """k(x, z) = tanh(γ⟨x, z⟩ + c), which is not a Mercer kernel in general.

    It is not positive semi-definite on the whole space for any γ and c (Smola, Óvári & Williamson 2000).

    Parameters
    ----------
    gamma : float > 0, "scale", "median" or "auto", default 1.0
    coef0 : float, default 0.0

    Examples
    --------
    >>> Sigmoid(gamma=1.0)([[0.5]], [[1.0]]).round(4)
    array([[0.4621]])
    >>> Sigmoid().properties.definiteness.value
    'indefinite in general'
    """

    gamma: float | str = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        self._set("gamma", checks.bandwidth("Sigmoid", "gamma", self.gamma))
        self._set("coef0", checks.number("Sigmoid", "coef0", self.coef0))

    def formula(self, pair: Any) -> Any:
        return tanh(self.gamma * pair.dot + self.coef0)

    def __repr__(self) -> str:
        # With all parameters, because "sigmoid" in a text has scikit-learn's defaults.
        return f"{type(self).__name__}(gamma={self.gamma!r}, coef0={self.coef0!r})"

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.INDEFINITE, bounded=True)


@dataclass(frozen=True, repr=False)
class Cosine(Kernel):
    """k(x, z) = ⟨x, z⟩/(‖x‖‖z‖), and 0 for a row of zeros.

    It is positive semi-definite: the inner product of rows that are scaled to unit length.

    Examples
    --------
    >>> Cosine()([[3.0, 4.0], [0.0, 0.0]], [[1.0, 0.0]])
    array([[0.6],
           [0. ]])
    """

    def formula(self, pair: Any) -> Any:
        return pair.dot * _inverse(sqrt(pair.xx)) * _inverse(sqrt(pair.zz))

    def block(self, X: Array, Z: Array) -> Array:
        if np.float32 not in (getattr(X, "dtype", None), getattr(Z, "dtype", None)):
            return super().block(X, Z)
        # In float64, because float32 loses the squares of small rows.
        wide = X.astype(np.float64)
        values = super().block(wide, wide if Z is X else Z.astype(np.float64))
        return values.astype(np.result_type(X.dtype, Z.dtype))

    def diagonal(self, X: Array) -> Array:
        X = self._rows(X)
        if X.dtype != np.float32:
            return super().diagonal(X)
        out = np.empty(X.shape[0], X.dtype)
        for part, rows in in_float64(X):
            out[part] = super().diagonal(rows)
        return out

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE, bounded=True)


def _inverse(length: Any) -> Any:
    return where(length > 0, 1 / where(length > 0, length, 1.0), 0.0)


def is_linear(kernel: Kernel) -> bool:
    """Whether the feature map φ is a multiple of the identity, so that Σ γᵢ xᵢ is the pre-image of Σ γᵢ φ(xᵢ).

    >>> is_linear(0.5 * Linear()), is_linear(Polynomial(degree=2))
    (True, False)
    """
    return isinstance(kernel, Linear) or (isinstance(kernel, Scaled) and is_linear(kernel.kernel))
