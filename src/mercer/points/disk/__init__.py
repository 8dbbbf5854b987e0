"""Points in files that may be larger than memory: what is read many times is packed once."""

from mercer.points.disk.ahead import ahead
from mercer.points.disk.arrow import ArrowSource
from mercer.points.disk.names import header, named
from mercer.points.disk.packed import FilePoints
from mercer.points.disk.parquet import ParquetSource
from mercer.points.disk.points import DiskPoints
from mercer.points.disk.read import read_points
from mercer.points.disk.sources import ChunkSource, NpySource, RowSource

__all__ = [
    "ArrowSource",
    "ChunkSource",
    "DiskPoints",
    "FilePoints",
    "NpySource",
    "ParquetSource",
    "RowSource",
    "ahead",
    "header",
    "named",
    "read_points",
]
