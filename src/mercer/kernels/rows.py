"""What counts as rows of data: dense, CSR or tensor, floating, finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput, message
from mercer.kernels.functions import is_tensor

__all__ = ["as_rows", "column_names", "to_numpy"]


def as_rows(X: Any, who: str = "kernel") -> Any:
    """X as a 2-D floating NumPy array, CSR matrix or tensor with finite entries; float32 and float64 are kept.

    >>> as_rows([[1, 2]])
    array([[1., 2.]])
    """
    X = _floating(X, who)
    if X.ndim != 2:
        given = f"data with {X.ndim} dimension(s)"
        raise InvalidInput(message(who, given, "give a table of rows; X.reshape(-1, 1) makes one column of a vector"))
    if not _all_finite(X.data if sp.issparse(X) else X):
        raise InvalidInput(message(who, "NaN or infinity in the data", "impute or drop these entries first"))
    return X


def _floating(X: Any, who: str) -> Any:
    if is_tensor(X):
        if X.is_complex():
            raise InvalidInput(message(who, "complex data", "give real and imaginary parts as columns"))
        return X if X.is_floating_point() and X.element_size() >= 4 else X.double()
    X = sp.csr_array(X) if sp.issparse(X) else _dense(X, who)
    if X.dtype.kind == "c":
        raise InvalidInput(message(who, "complex data", "give real and imaginary parts as columns"))
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _dense(X: Any, who: str) -> Any:
    try:
        X = np.asarray(X)
        return X if X.dtype.kind in "fiubc" else X.astype(np.float64)
    except (TypeError, ValueError) as error:
        advice = "give numbers, or a kernel for such objects: Function(f, mode='pair')"
        raise InvalidInput(message(who, f"data that are not numbers ({error})", advice)) from error


def _all_finite(values: Any) -> bool:
    # A finite sum proves finite entries in one pass; an infinite one may be an overflow, so it is looked at again.
    if is_tensor(values):
        return bool(values.isfinite().all())
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all())


def column_names(X: Any) -> Sequence[str] | None:
    """The column names of a data frame, None for anything else."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def to_numpy(X: Any) -> Any:
    """A tensor as a NumPy array; arrays and CSR as they are."""
    return X.detach().cpu().numpy() if is_tensor(X) else X
