"""Model files, tables and sequences: what goes in and out of mercer by file."""

from mercer.io.encoder import TableEncoder
from mercer.io.models import load, save
from mercer.io.sequences import SequenceEncoder, SequenceFile, read_sequences
from mercer.io.table_model import TableModel
from mercer.io.tables import Table, read_table

__all__ = [
    "SequenceEncoder",
    "SequenceFile",
    "Table",
    "TableEncoder",
    "TableModel",
    "load",
    "read_sequences",
    "read_table",
    "save",
]


def __dir__() -> list[str]:
    return sorted(__all__)
