"""Points: what the rows of a data set are, and which of them a kernel takes."""

from mercer.points.base import Points, VectorPoints
from mercer.points.dense import DensePoints
from mercer.points.kinds import points_of
from mercer.points.objects import ObjectPoints
from mercer.points.precomputed import Numbers, Precomputed
from mercer.points.spaces import KERNEL_VALUES, OBJECTS, VECTORS, Space, space_named
from mercer.points.sparse import SparsePoints
from mercer.points.table import TablePoints
from mercer.points.tensors import TensorPoints

__all__ = [
    "KERNEL_VALUES",
    "OBJECTS",
    "VECTORS",
    "DensePoints",
    "Numbers",
    "ObjectPoints",
    "Points",
    "Precomputed",
    "Space",
    "SparsePoints",
    "TablePoints",
    "TensorPoints",
    "VectorPoints",
    "points_of",
    "space_named",
]


def __dir__() -> list[str]:
    return sorted(__all__)
