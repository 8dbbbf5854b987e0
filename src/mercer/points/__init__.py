"""Points: what the rows of a data set are, which of them a kernel takes, and what is checked where they enter."""

from mercer.points.base import Points, VectorPoints
from mercer.points.budget import available_memory, human, parse_memory, require
from mercer.points.dense import DensePoints
from mercer.points.fingerprint import fingerprint
from mercer.points.kinds import points_of
from mercer.points.objects import ObjectPoints
from mercer.points.precomputed import Numbers, Precomputed
from mercer.points.randomness import as_seed
from mercer.points.spaces import KERNEL_VALUES, OBJECTS, VECTORS, Space, space_named
from mercer.points.sparse import SparsePoints
from mercer.points.table import TablePoints
from mercer.points.tensors import TensorPoints
from mercer.points.validate import as_rows, is_torch, require_collection, require_table, same_columns

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
    "as_rows",
    "as_seed",
    "available_memory",
    "fingerprint",
    "human",
    "is_torch",
    "parse_memory",
    "points_of",
    "require",
    "require_collection",
    "require_table",
    "same_columns",
    "space_named",
]


def __dir__() -> list[str]:
    return sorted(__all__)
