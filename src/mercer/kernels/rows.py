"""What else the kernels ask of a table of rows, beside `mercer.points`."""

from __future__ import annotations

from typing import Any

from mercer.points import is_torch

__all__ = ["to_numpy"]


def to_numpy(X: Any) -> Any:
    """A tensor as a NumPy array; arrays and CSR as they are."""
    return X.detach().cpu().numpy() if is_torch(X) else X
