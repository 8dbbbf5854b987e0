"""What else the kernels ask of a table of rows, beside `mercer.points`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mercer.points import is_torch

__all__ = ["column_names", "rows_of", "to_numpy"]


def column_names(X: Any) -> Sequence[str] | None:
    """The column names of a data frame, None for anything else."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def to_numpy(X: Any) -> Any:
    """A tensor as a NumPy array; arrays and CSR as they are."""
    return X.detach().cpu().numpy() if is_torch(X) else X


def rows_of(X: Any) -> int:
    """The number of rows of an array, or of objects in a sequence."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
