"""What comes in: rows as one kind of array, and how much memory may be used for what follows."""

from mercer.arrays.budget import available_memory, human, parse_memory, require
from mercer.arrays.fingerprint import fingerprint
from mercer.arrays.randomness import as_seed
from mercer.arrays.validate import as_rows, is_torch, require_collection, require_table, same_columns

__all__ = [
    "as_rows",
    "as_seed",
    "available_memory",
    "fingerprint",
    "human",
    "is_torch",
    "parse_memory",
    "require",
    "require_collection",
    "require_table",
    "same_columns",
]


def __dir__() -> list[str]:
    return sorted(__all__)
