"""Points: the kinds of rows that data sets have, the spaces of points that kernels take, and the checks of input."""

from mercer.points.base import Points, VectorPoints
from mercer.points.budget import apart, available_memory, human, parse_memory, require
from mercer.points.dense import DensePoints
from mercer.points.disk import DiskPoints, FilePoints, RowSource, ahead, read_points
from mercer.points.fingerprint import fingerprint
from mercer.points.kinds import count, joined, points_of, rows_of, take, vectors_of
from mercer.points.objects import ObjectPoints
from mercer.points.precomputed import Numbers, Precomputed
from mercer.points.randomness import as_seed, sample_rows
from mercer.points.spaces import KERNEL_VALUES, OBJECTS, VECTORS, Space, space_named
from mercer.points.sparse import SparsePoints
from mercer.points.table import TablePoints
from mercer.points.tensors import DevicePoints, FarPoints, TensorPoints
from mercer.points.validate import (
    as_rows,
    given_back,
    is_away,
    is_torch,
    on_host,
    require_collection,
    require_table,
    same_columns,
    same_names,
)

__all__ = [
    "KERNEL_VALUES",
    "OBJECTS",
    "VECTORS",
    "DensePoints",
    "DevicePoints",
    "DiskPoints",
    "FarPoints",
    "FilePoints",
    "Numbers",
    "ObjectPoints",
    "Points",
    "Precomputed",
    "RowSource",
    "Space",
    "SparsePoints",
    "TablePoints",
    "TensorPoints",
    "VectorPoints",
    "ahead",
    "apart",
    "as_rows",
    "as_seed",
    "available_memory",
    "count",
    "fingerprint",
    "given_back",
    "human",
    "is_away",
    "is_torch",
    "joined",
    "on_host",
    "parse_memory",
    "points_of",
    "read_points",
    "require",
    "require_collection",
    "require_table",
    "rows_of",
    "same_columns",
    "same_names",
    "sample_rows",
    "space_named",
    "take",
    "vectors_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
