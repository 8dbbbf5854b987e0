"""Which kind of points a data set is."""

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
    """X as points, unchecked: to count, take and join what was checked before, or will be.

    Points are returned as they are. A table of numbers holds its rows, a data frame too, and anything else its items.

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
    """The rows of points; anything else as it is."""
    return X.rows if isinstance(X, Points) else X


def count(rows: Any) -> int:
    """How many points the rows are."""
    return len(points_of(rows))


def take(rows: Any, index: Index) -> Any:
    """Some of the rows, in memory, as rows of that kind.

    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    return points_of(rows).take(index).rows


def joined(first: Any, second: Any) -> Any:
    """The rows of both, as rows of that kind; of two kinds of objects in a list.

    >>> joined(np.zeros((1, 2)), np.ones((1, 2)))
    array([[0., 0.],
           [1., 1.]])
    """
    x, y = points_of(first), points_of(second)
    if type(x) is not type(y) and not (isinstance(x, VectorPoints) and isinstance(y, VectorPoints)):
        x, y = ObjectPoints(list(x.items)), ObjectPoints(list(y.items))
    return x.join(y).rows


def vectors_of(rows: Any) -> VectorPoints:
    """Validated rows of numbers as points: an array, a CSR matrix, or a tensor."""
    found = points_of(rows)
    assert isinstance(found, VectorPoints), type(rows)
    return found
