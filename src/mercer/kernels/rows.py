"""Conversion of rows for kernels."""

from __future__ import annotations

from typing import Any

from mercer.points import is_torch

__all__ = ["to_numpy"]


def to_numpy(X: Any) -> Any:
    """A tensor as a NumPy array; other rows unchanged."""
    return X.detach().cpu().numpy() if is_torch(X) else X
