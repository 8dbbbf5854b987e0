"""Model files, tables and sequences: all that mercer reads from and writes to files."""

from mercer.io.checkpoints import checkpoint
from mercer.io.models import load, save
from mercer.io.onnx import to_onnx
from mercer.io.streams import Streamed, stream
from mercer.io.table_model import TableModel
from mercer.tables.encoder import TableEncoder
from mercer.tables.reader import Table, read_table
from mercer.tables.sequences import SequenceEncoder, SequenceFile, read_sequences

__all__ = [
    "SequenceEncoder",
    "SequenceFile",
    "Streamed",
    "Table",
    "TableEncoder",
    "TableModel",
    "checkpoint",
    "load",
    "read_sequences",
    "read_table",
    "save",
    "stream",
    "to_onnx",
]


def __dir__() -> list[str]:
    return sorted(__all__)
