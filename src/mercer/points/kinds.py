"""The kind of points for each kind of data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.points.base import Index, Points, VectorPoints
from mercer.points.dense import DensePoints
from mercer.points.objects import ObjectPoints
from mercer.points.sparse import SparsePoints
from mercer.points.table import TablePoints
from mercer.points.tensors import TensorPoints
from mercer.points.validate import is_torch

__all__ = ["count", "joined", "points_of", "rows_of", "take", "vectors_of"]


def points_of(X: Any) -> Points:
    """X as points, without any check: to count, take and join rows that are checked elsewhere.

    Parameters
    ----------
    X : points, array, sparse matrix, tensor, data frame, or sequence of objects
        Points are returned unchanged. The points of a table are its rows, those of a sequence its items.

    Examples
    --------
    >>> points_of(np.ones((3, 2))), len(points_of(["a", "b"]))
    (DensePoints(rows=array([[1., 1.],
           [1., 1.],
           [1., 1.]])), 2)
    """
    if isinstance(X, Points):
        return X
    if isinstance(X, np.ndarray):
        return DensePoints(X) if X.ndim == 2 and X.dtype.kind in "fiub" else ObjectPoints(X)
    if sp.issparse(X):
        return SparsePoints(X if X.format == "csr" else X.tocsr())
    if is_torch(X):
        return TensorPoints(X)
    return TablePoints(X) if TablePoints.holds(X) else ObjectPoints(X)


def rows_of(X: Any) -> Any:
    """The rows of points; anything else unchanged.

    Parameters
    ----------
    X : object

    Examples
    --------
    >>> from mercer.points import ObjectPoints
    >>> rows_of(ObjectPoints(["ab"])), rows_of(["ab"])
    (['ab'], ['ab'])
    """
    return X.rows if isinstance(X, Points) else X


def count(rows: Any) -> int:
    """The number of points.

    Parameters
    ----------
    rows : points, array, CSR matrix, tensor, data frame or list

    Examples
    --------
    >>> count(["a", "b"])
    2
    """
    return len(points_of(rows))


def take(rows: Any, index: Index) -> Any:
    """The rows with these indices, in memory, as rows of the same kind.

    Parameters
    ----------
    rows : array, CSR matrix, tensor, data frame or list
    index : integers of shape (m,)

    Examples
    --------
    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    return points_of(rows).take(index).rows


def joined(first: Any, second: Any) -> Any:
    """The rows of both, as rows of the same kind; rows of different kinds become a list.

    Parameters
    ----------
    first, second : array, CSR matrix, tensor, data frame or list

    Examples
    --------
    >>> joined(np.zeros((1, 2)), np.ones((1, 2)))
    array([[0., 0.],
           [1., 1.]])
    """
    x, y = points_of(first), points_of(second)
    if type(x) is not type(y) and not (isinstance(x, VectorPoints) and isinstance(y, VectorPoints)):
        x, y = ObjectPoints(list(x.items)), ObjectPoints(list(y.items))
    return x.join(y).rows


def vectors_of(rows: Any) -> VectorPoints:
    """Validated rows of numbers as points: an array, a CSR matrix, or a tensor.

    Parameters
    ----------
    rows : array, CSR matrix or tensor of shape (n, d)

    Examples
    --------
    >>> vectors_of(np.ones((2, 3))).columns
    3
    """
    found = points_of(rows)
    assert isinstance(found, VectorPoints), type(rows)
    return found
