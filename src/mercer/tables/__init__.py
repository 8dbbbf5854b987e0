"""Tables and sequences from files: readers, and plans that encode columns as numbers."""

from mercer.tables.columns import ColumnPlan
from mercer.tables.encoder import TableEncoder
from mercer.tables.reader import Table, read_table
from mercer.tables.sequences import SequenceEncoder, SequenceFile, read_sequences

__all__ = ["ColumnPlan", "SequenceEncoder", "SequenceFile", "Table", "TableEncoder", "read_sequences", "read_table"]


def __dir__() -> list[str]:
    return sorted(__all__)
