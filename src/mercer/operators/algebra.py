"""What operators become under +, @, scaling, transposition and rounding: operators."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from mercer.errors import InvalidInput, message
from mercer.operators.base import Array, Operator
from mercer.operators.dense import Dense

__all__ = ["Cast", "Foreign", "Product", "Scaled", "Sum", "Transposed", "as_operator"]


class Transposed(Operator):
    """V ↦ Aᵀ V."""

    def __init__(self, A: Operator) -> None:
        self.A = A
        super().__init__((A.shape[1], A.shape[0]), A.dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        return self.A._rmatmat(V)

    def _transpose(self) -> Operator:
        return self.A

    def diagonal(self) -> Array:
        return self.A.diagonal()

    def fill(self, out: Array) -> Array:
        self._check_out(out)
        self.A.fill(out.T)
        return out

    def add_to(self, out: Array) -> Array:
        self._check_out(out)
        self.A.add_to(out.T)
        return out


class Cast(Operator):
    """V ↦ A V, with entries rounded to another dtype where entries are asked for."""

    def __init__(self, A: Operator, dtype: DTypeLike) -> None:
        self.A = A
        super().__init__(A.shape, dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        return self.A._matmat(V)

    def _transpose(self) -> Operator:
        return self if self.symmetric else Cast(self.A.T, self.dtype)

    def diagonal(self) -> Array:
        return np.asarray(self.A.diagonal(), self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.asarray(self.A.rows(I), self.dtype)

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        return self.A._rows_times(index, V)

    def fill(self, out: Array) -> Array:
        return self.A.fill(out)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return self.A.astype(dtype)


class Foreign(Operator):
    """V ↦ A V for a SciPy LinearOperator or sparse matrix A that is not ours."""

    def __init__(self, A: Any) -> None:
        self.A = aslinearoperator(A)
        dtype = np.float32 if self.A.dtype == np.float32 else np.float64
        super().__init__(self.A.shape, dtype)

    def _matmat(self, V: Array) -> Array:
        if V.shape[1] == 0:  # SciPy stacks the products with the columns, of which there must be one
            return np.empty((self.shape[0], 0), V.dtype)
        return np.asarray(self.A.matmat(V), V.dtype)

    def _rmatmat(self, U: Array) -> Array:
        if U.shape[1] == 0:
            return np.empty((self.shape[1], 0), U.dtype)
        try:
            return np.asarray(self.A.rmatmat(U), U.dtype)
        except (NotImplementedError, TypeError):  # SciPy's two ways to say that no adjoint was given
            return super()._rmatmat(U)


class Sum(Operator):
    """V ↦ Σᵢ Aᵢ V."""

    def __init__(self, *terms: Operator) -> None:
        self.terms: tuple[Operator, ...] = tuple(
            t for term in terms for t in (term.terms if isinstance(term, Sum) else (term,))
        )
        shapes = [t.shape for t in self.terms]
        if not shapes or len(set(shapes)) > 1:
            raise InvalidInput(
                message(
                    "Sum",
                    f"terms of shapes {shapes}",
                    "give one or more terms of one shape",
                )
            )
        dtype = np.result_type(*(t.dtype for t in self.terms))
        super().__init__(shapes[0], dtype, symmetric=all(t.symmetric for t in self.terms))

    def _matmat(self, V: Array) -> Array:
        out = np.array(self.terms[0]._matmat(V))
        for term in self.terms[1:]:
            out += term._matmat(V)
        return out

    def _transpose(self) -> Operator:
        return self if self.symmetric else Sum(*(t.T for t in self.terms))

    def diagonal(self) -> Array:
        return np.asarray(sum(t.diagonal() for t in self.terms), self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.asarray(sum(t.rows(I) for t in self.terms), self.dtype)

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        return np.asarray(sum(t._rows_times(index, V) for t in self.terms), V.dtype)

    def fill(self, out: Array) -> Array:
        self.terms[0].fill(out)
        for term in self.terms[1:]:
            term.add_to(out)
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Sum(*(t.astype(dtype) for t in self.terms))


class Scaled(Operator):
    """V ↦ c A V."""

    def __init__(self, A: Operator, c: float) -> None:
        self.A: Operator = A.A if isinstance(A, Scaled) else A
        self.c: float = float(c) * (A.c if isinstance(A, Scaled) else 1.0)
        super().__init__(A.shape, A.dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        return np.asarray(self.c * self.A._matmat(V), V.dtype)

    def _transpose(self) -> Operator:
        return self if self.symmetric else Scaled(self.A.T, self.c)

    def diagonal(self) -> Array:
        return np.asarray(self.c * self.A.diagonal(), self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.asarray(self.c * self.A.rows(I), self.dtype)

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        return np.asarray(self.c * self.A._rows_times(index, V), V.dtype)

    def fill(self, out: Array) -> Array:
        self.A.fill(out)
        out *= self.c
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Scaled(self.A.astype(dtype), self.c)


class Product(Operator):
    """V ↦ A₁ (A₂ (… V)); known to be symmetric when the factors read the same transposed and backwards."""

    def __init__(self, *factors: Operator) -> None:
        self.factors: tuple[Operator, ...] = tuple(
            f for factor in factors for f in (factor.factors if isinstance(factor, Product) else (factor,))
        )
        shapes = [f.shape for f in self.factors]
        if not shapes or any(a[1] != b[0] for a, b in pairwise(shapes)):
            raise InvalidInput(
                message(
                    "Product",
                    f"factors of shapes {shapes}",
                    "make the inner sizes equal",
                )
            )
        mirrored = all(_transposes(f, g) for f, g in zip(self.factors, reversed(self.factors), strict=True))
        dtype = np.result_type(*(f.dtype for f in self.factors))
        super().__init__((shapes[0][0], shapes[-1][1]), dtype, symmetric=mirrored)

    def _matmat(self, V: Array) -> Array:
        for factor in reversed(self.factors):
            V = factor._matmat(V)
        return V

    def _transpose(self) -> Operator:
        return self if self.symmetric else Product(*(f.T for f in reversed(self.factors)))

    def rows(self, I: ArrayLike | slice) -> Array:
        product = self.factors[0].rows(I)
        for factor in self.factors[1:]:
            product = factor.T._matmat(np.asarray(product.T, self.dtype)).T
        return np.asarray(product, self.dtype, order="C")

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Product(*(f.astype(dtype) for f in self.factors))


def as_operator(A: Any) -> Operator:
    """Ours as it is; a SciPy operator or sparse matrix wrapped; a 2-D array as ``Dense``."""
    if isinstance(A, Operator):
        return A
    if isinstance(A, LinearOperator) or issparse(A):
        return Foreign(A)
    return Dense(A)


def _transposes(f: Operator, g: Operator) -> bool:
    """Whether g is fᵀ, as far as identity of objects tells."""
    if f is g:
        return f.symmetric
    return (isinstance(f, Transposed) and f.A is g) or (isinstance(g, Transposed) and g.A is f)
