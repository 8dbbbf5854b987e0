"""Elementwise functions for formulas; they take symbols, NumPy arrays and PyTorch tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.kernels.symbolic.expression import Expression, node
from mercer.points import is_torch

__all__ = ["abs", "cos", "exp", "log", "maximum", "minimum", "sin", "sqrt", "tanh", "where"]


def _numpy(function: Callable[..., Any], *args: Any) -> Any:
    # Python numbers stay Python numbers, because a float64 scalar of NumPy would widen float32 arrays.
    result = function(*args)
    return result.item() if all(isinstance(arg, (int, float)) for arg in args) else result


def _unary(name: str, x: Any) -> Any:
    if isinstance(x, Expression):
        return node(name, x)
    if is_torch(x):
        return getattr(sys.modules["torch"], name)(x)
    return _numpy(getattr(np, name), x)


def _tensors(*args: Any) -> tuple[Any, ...]:
    """Every argument as a tensor, with the dtype and device of the last tensor; tensors keep their own."""
    torch = sys.modules["torch"]
    like = next(arg for arg in reversed(args) if is_torch(arg))
    return tuple(arg if is_torch(arg) else torch.as_tensor(arg, dtype=like.dtype, device=like.device) for arg in args)


def _several(name: str, *args: Any) -> Any:
    if any(isinstance(arg, Expression) for arg in args):
        return node(name, *args)
    if any(map(is_torch, args)):
        return getattr(sys.modules["torch"], name)(*_tensors(*args))
    return _numpy(getattr(np, name), *args)


def exp(x: Any) -> Any:
    """eˣ for a number, an array or a symbol x."""
    return _unary("exp", x)


def log(x: Any) -> Any:
    """The natural logarithm of x."""
    return _unary("log", x)


def sqrt(x: Any) -> Any:
    """The square root of x."""
    return _unary("sqrt", x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent of x."""
    return _unary("tanh", x)


def sin(x: Any) -> Any:
    """The sine of x."""
    return _unary("sin", x)


def cos(x: Any) -> Any:
    """The cosine of x."""
    return _unary("cos", x)


def abs(x: Any) -> Any:
    """The absolute value of x."""
    return _unary("abs", x)


def minimum(x: Any, y: Any) -> Any:
    """The smaller of x and y."""
    return _several("minimum", x, y)


def maximum(x: Any, y: Any) -> Any:
    """The larger of x and y."""
    return _several("maximum", x, y)


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y.

    Parameters
    ----------
    condition : array of bool, or Expression
    x, y : number, array or Expression

    Examples
    --------
    >>> where(np.array([True, False]), 1.0, 2.0)
    array([1., 2.])
    """
    if isinstance(condition, Expression) or not (is_torch(x) or is_torch(y) or is_torch(condition)):
        return _several("where", condition, x, y)
    torch = sys.modules["torch"]
    mask = torch.as_tensor(condition).bool()
    if not (is_torch(x) or is_torch(y)):
        return torch.where(mask, x, y)
    x, y = _tensors(x, y)
    return torch.where(mask.to(x.device), x, y)
