"""The kernel matrix of a picture's rows: of a model, of a kernel and rows, or as given."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.kernels import as_kernel
from mercer.plots.drawing.display import places_drawn
from mercer.points import count, take

__all__ = ["kernel_of", "matrix_drawn", "matrix_of"]


def kernel_of(model: Any, who: str) -> Any:
    """The kernel of a fitted model, as it was resolved."""
    check_is_fitted(model)
    if not hasattr(model, "kernel_"):
        given = f"{type(model).__name__}, which has no kernel_"
        raise InvalidInput(message(who, given, "give an estimator of mercer, or a kernel and rows to from_kernel"))
    return model.kernel_


def matrix_of(kernel: Any, X: Any, most: int, who: str) -> tuple[np.ndarray, np.ndarray]:
    """K of the rows that are drawn, with finite entries, and their places."""
    drawn = places_drawn(count(X), most)
    rows = take(X, drawn) if len(drawn) < count(X) else X
    k = as_kernel(kernel)
    if k.space.numbered:
        return matrix_drawn(X, most, who)
    return _finite(np.asarray(k.resolve(rows)(rows)), who), drawn


def matrix_drawn(K: Any, most: int, who: str) -> tuple[np.ndarray, np.ndarray]:
    """Some rows and columns of a matrix that is given, and their places."""
    matrix = np.asarray(K)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        given = f"a matrix of shape {matrix.shape}"
        raise InvalidInput(message(who, given, "give k(X, X), which is square, or a kernel and rows to from_kernel"))
    drawn = places_drawn(len(matrix), most)
    return _finite(matrix[np.ix_(drawn, drawn)], who), drawn


def _finite(K: np.ndarray, who: str) -> np.ndarray:
    if not np.all(np.isfinite(K)):
        i, j = np.argwhere(~np.isfinite(K))[0]
        given = f"K[{i}, {j}] = {K[i, j]}"
        raise InvalidInput(message(who, given, "standardise the columns, or choose a kernel that is finite there"))
    return K
