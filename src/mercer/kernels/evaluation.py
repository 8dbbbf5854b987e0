"""The one hook through which dense kernel matrices are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Engine", "dense", "set_engine"]

Engine = Callable[[Any, Any, Any], Any]
"""engine(kernel, X, Z): the dense matrix (Z is None for X with itself), or NotImplemented to leave it to `block`."""

_engine: Engine | None = None


def set_engine(engine: Engine | None) -> Engine | None:
    """Compute dense matrices with this engine from now on; returns the previous one. None: the kernel's own block."""
    global _engine
    previous, _engine = _engine, engine
    return previous


def dense(kernel: Any, X: Any, Z: Any = None) -> Any:
    """The matrix of all k(x, z); Z=None is X with itself. The kernel is resolved and the rows are validated."""
    if _engine is not None:
        result = _engine(kernel, X, Z)
        if result is not NotImplemented:
            return result
    return kernel.block(X, X if Z is None else Z)
