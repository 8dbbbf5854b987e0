"""Centring in feature space without a centred matrix, and weights of rows and columns."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators.arrays import Array, as_floats, row_blocks
from mercer.operators.base import Operator

__all__ = ["Centered", "Weighted", "center_cross"]

Floats = NDArray[np.float64]


class Centered(Operator):
    r"""V ↦ H A Hᵀ V with H = I − 1wᵀ/Σw, for a square A; without weights H v = v − mean(v).

    H is not stored. Means are computed and subtracted in float64, because in float32 the rounding of a large common
    offset would exceed small eigenvalues.

    Parameters
    ----------
    A : Operator of shape (n, n)
    weights : array-like of shape (n,), optional
        Non-negative weights of the mean, by default 1.

    Attributes
    ----------
    row_means, column_means : array of shape (n,)
        A w/Σw and Aᵀ w/Σw in float64, computed when they are first read.
    grand_mean : float
        wᵀ A w/(Σw)².

    Raises
    ------
    InvalidInput
        If the operator is not square, or empty.

    References
    ----------
    B. Schölkopf, A. Smola, K.-R. Müller (1998). Nonlinear component analysis as a kernel eigenvalue problem.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> Centered(Dense([[4.0, 2.0], [2.0, 2.0]])).toarray()
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    def __init__(self, A: Operator, weights: ArrayLike | None = None) -> None:
        n = A.shape[0]
        if A.shape != (n, n) or n == 0:
            raise InvalidInput(
                message("Centered", f"an operator of shape {A.shape}", "give a square one that is not empty")
            )
        self.A = A
        self.weights = None if weights is None else _weights(weights, n)
        self._share: Floats = np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()
        super().__init__(A.shape, A.dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        return self._left(self.A._matmat(self._right(V)))

    def _left(self, Y: Array) -> Array:
        """H Y = Y − 1 (wᵀY)/Σw in the dtype of Y, with means in float64."""
        mean = Y.mean(axis=0, dtype=np.float64) if self.weights is None else self._share @ Y
        return np.asarray(Y - mean.astype(Y.dtype))

    def _right(self, V: Array) -> Array:
        """Hᵀ V = V − w (1ᵀV)/Σw, which is H V if all weights are equal."""
        if self.weights is None:
            return self._left(V)
        return np.asarray(V - self._share[:, None] * V.sum(axis=0), V.dtype)

    def _transpose(self) -> Operator:
        return self if self.symmetric else Centered(self.A.T, self.weights)

    @cached_property
    def row_means(self) -> Floats:
        return np.asarray(self.A.matvec(self._share))

    @cached_property
    def column_means(self) -> Floats:
        return self.row_means if self.symmetric else np.asarray(self.A.T.matvec(self._share))

    @cached_property
    def grand_mean(self) -> float:
        return float(self._share @ self.row_means)

    def diagonal(self) -> Array:
        d = self.A.diagonal() - (self.row_means + self.column_means - self.grand_mean)
        return np.asarray(d, self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        index = self._index(I, 0)
        return self._subtract(np.array(self.A.rows(index), np.float64), self.row_means[index]).astype(
            self.dtype, copy=False
        )

    def row_space(self, I: ArrayLike | slice) -> Array:
        """(eᵢ − m)ᵀ A H with the mean m of the eᵢ. These are in the row space of H A H, because the entries of eᵢ − m
        sum to 0, and they do not need the column means, which cost a product.
        """
        if self.weights is not None:
            return self.rows(I)
        rows = self.A.rows(I)
        rows = rows - rows.mean(axis=0)
        return np.asarray(rows - rows.mean(axis=1, keepdims=True))

    def fill(self, out: Array) -> Array:
        self.A.fill(out)
        for r in row_blocks(*self.shape):
            out[r] = self._subtract(out[r].astype(np.float64), self.row_means[r])
        return out

    def _subtract(self, rows: Floats, row_means: Floats) -> Floats:
        rows -= row_means[:, None]
        rows -= self.column_means - self.grand_mean
        return rows

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Centered(self.A.astype(dtype), self.weights)


class Weighted(Operator):
    """V ↦ diag(s) A diag(s) V for a square A: the system of a weighted ridge regression with s = √(sample weight).

    Parameters
    ----------
    A : Operator of shape (n, n)
    s : array-like of shape (n,)

    Raises
    ------
    InvalidInput
        If A does not have the shape (n, n).

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> Weighted(Dense([[1.0, 1.0], [1.0, 1.0]]), [1.0, 2.0]).toarray()
    array([[1., 2.],
           [2., 4.]])
    """

    def __init__(self, A: Operator, s: ArrayLike) -> None:
        self.A, self.s = A, as_floats(s, "Weighted", 1)
        if A.shape != (len(self.s), len(self.s)):
            given = f"an operator of shape {A.shape} and {len(self.s)} weights"
            raise InvalidInput(message("Weighted", given, "give a square operator and one weight a row"))
        super().__init__(A.shape, A.dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        s = self.s.astype(V.dtype, copy=False)[:, None]
        return np.asarray(s * self.A._matmat(s * V))

    def _transpose(self) -> Operator:
        return self if self.symmetric else Weighted(self.A.T, self.s)

    def diagonal(self) -> Array:
        return np.asarray(self.s**2 * self.A.diagonal(), self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        index = self._index(I, 0)
        return np.asarray(self.s[index, None] * self.A.rows(index) * self.s, self.dtype)

    def fill(self, out: Array) -> Array:
        self.A.fill(out)
        out *= self.s[:, None]
        out *= self.s
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Weighted(self.A.astype(dtype), self.s)


def center_cross(
    K_rows: ArrayLike, column_means: ArrayLike, grand_mean: float, weights: ArrayLike | None = None
) -> Array:
    """k̃(x, xⱼ) = k(x, xⱼ) − meanⱼ k(x, xⱼ) − column_meansⱼ + grand_mean, in float64, returned in the rows' dtype.

    Parameters
    ----------
    K_rows : array-like of shape (m, n)
        Kernel values of m new rows with all n training rows.
    column_means : array-like of shape (n,)
        ``Centered.column_means`` of the training matrix.
    grand_mean : float
        ``Centered.grand_mean`` of the training matrix.
    weights : array-like of shape (n,), optional
        The weights of ``Centered``.

    Raises
    ------
    InvalidInput
        If the rows and the column means have different numbers of training rows.

    Examples
    --------
    >>> from mercer.operators import Centered, Dense
    >>> A = Centered(Dense([[4.0, 2.0], [2.0, 2.0]]))
    >>> center_cross([[4.0, 2.0]], A.column_means, A.grand_mean)
    array([[ 0.5, -0.5]])
    """
    rows, means = (as_floats(K_rows, "center_cross", 2), np.asarray(column_means, np.float64))
    m, n = rows.shape
    if means.shape != (n,) or n == 0:
        given = f"rows of shape {rows.shape} and column means of shape {means.shape}"
        raise InvalidInput(message("center_cross", given, "give one column mean for each training row"))
    w = None if weights is None else _weights(weights, n)
    share: Floats = np.full(n, 1.0 / n) if w is None else w / w.sum()
    out = np.empty_like(rows)
    for r in row_blocks(m, n):
        wide = rows[r].astype(np.float64)
        wide -= (wide @ share)[:, None]
        wide -= means - grand_mean
        out[r] = wide
    return out


def _weights(weights: ArrayLike, n: int) -> Floats:
    w = np.asarray(weights, np.float64)
    if w.shape != (n,) or not np.all(np.isfinite(w)) or np.any(w < 0) or not np.any(w > 0):
        given = f"weights of shape {w.shape} for {n} rows, or negative, not finite, or all 0"
        raise InvalidInput(message("Centered", given, "give one non-negative weight for each row, not all 0"))
    return w
