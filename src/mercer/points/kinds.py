"""Which kind of points a data set is."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.points.base import Points, VectorPoints
from mercer.points.dense import DensePoints
from mercer.points.objects import ObjectPoints
from mercer.points.sparse import SparsePoints
from mercer.points.table import TablePoints
from mercer.points.tensors import TensorPoints
from mercer.points.validate import is_torch

__all__ = ["points_of", "vectors_of"]


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


def vectors_of(rows: Any) -> VectorPoints:
    """Validated rows of numbers as points: an array, a CSR matrix, or a tensor."""
    found = points_of(rows)
    assert isinstance(found, VectorPoints), type(rows)
    return found
