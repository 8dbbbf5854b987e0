"""The one hook through which dense kernel matrices are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.errors import InvalidInput, MercerError, message
from mercer.kernels.symbolic.expression import WRITE_WHERE

__all__ = ["Engine", "dense", "on_arrays", "set_engine"]

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


_HINTS = {
    "ruth value": WRITE_WHERE,
    "Boolean value": WRITE_WHERE,
    "converted to Python scalars": "use NumPy's functions or those of mercer.kernels.functions, not math's or float()",
}
"""By what Python, NumPy or PyTorch says where a formula expects one number."""


def on_arrays(kernel: Any, pair: Any) -> Any:
    """The kernel's formula on arrays of pairs; where it is written for one pair, the error says what to write."""
    try:
        return kernel.formula(pair)
    except (TypeError, ValueError, RuntimeError) as error:
        advice = next((advice for sign, advice in _HINTS.items() if sign in str(error)), None)
        if advice is None or isinstance(error, MercerError):
            raise
        given = f"the formula fails on arrays of pairs ({error})"
        raise InvalidInput(message(type(kernel).__name__, given, advice)) from error
