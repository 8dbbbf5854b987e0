"""Dense kernel matrices, by the installed engine or by the kernel's own `block`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mercer.errors import InvalidInput, MercerError, message
from mercer.kernels.symbolic.expression import WRITE_WHERE

__all__ = ["Engine", "dense", "on_arrays", "set_engine"]

Engine = Callable[[Any, Any, Any], Any]
"""(kernel, X, Z) ↦ the dense matrix, or NotImplemented if `block` has to compute it; Z is None for X with itself."""


def _tiles(kernel: Any, X: Any, Z: Any) -> Any:
    """The tile engine. It is on a higher floor, which is found by name and imported when a matrix is first computed."""
    return import_module("mercer.gram.dense").dense(kernel, X, Z)


_engine: Engine | None = _tiles


def set_engine(engine: Engine | None) -> Engine | None:
    """Compute dense matrices with this engine from now on, or with the kernels' `block` if None.

    Parameters
    ----------
    engine : callable or None
        (kernel, X, Z) ↦ the dense matrix, or NotImplemented if `block` has to compute it; Z is None for X with itself.

    Returns
    -------
    callable or None
        The previous engine.

    Examples
    --------
    >>> installed = set_engine(None)  # from now on `block` computes matrices
    >>> set_engine(installed) is None
    True
    """
    global _engine
    previous, _engine = _engine, engine
    return previous


def dense(kernel: Any, X: Any, Z: Any = None) -> Any:
    """The matrix of all k(x, z) of validated rows, for a kernel without parameters that depend on data.

    Parameters
    ----------
    kernel : Kernel
    X : rows of the kernel's space
    Z : rows of the kernel's space, optional
        By default X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> dense(Linear(), np.array([[1.0, 2.0]]))
    array([[5.]])
    """
    if _engine is not None:
        result = _engine(kernel, X, Z)
        if result is not NotImplemented:
            return result
    return kernel.block(X, X if Z is None else Z)


_NO_NUMBERS = "use NumPy's functions or those of mercer.kernels.functions, not math's, round() or float()"
_HINTS = {
    "ruth value": WRITE_WHERE,
    "Boolean value": WRITE_WHERE,
    "converted to Python scalars": _NO_NUMBERS,
    "doesn't define __": _NO_NUMBERS,  # of round() and math.trunc()
}
"""Advice, by a part of the message with which Python, NumPy or PyTorch refuses an array where one number is needed."""


def on_arrays(kernel: Any, pair: Any) -> Any:
    """The kernel's formula on arrays of pairs; if it only works for one pair, the error says what to write instead."""
    try:
        return kernel.formula(pair)
    except (TypeError, ValueError, RuntimeError) as error:
        advice = next((advice for sign, advice in _HINTS.items() if sign in str(error)), None)
        if advice is None or isinstance(error, MercerError):
            raise
        given = f"the formula fails on arrays of pairs ({error})"
        raise InvalidInput(message(type(kernel).__name__, given, advice)) from error
