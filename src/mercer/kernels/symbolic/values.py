"""Values of expressions on arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from mercer.kernels.symbolic.expression import LEAVES, Expression, power
from mercer.kernels.symbolic.functions import abs, cos, exp, log, maximum, minimum, sin, sqrt, tanh, where

__all__ = ["evaluate"]

_BY_OP: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "exp": exp, "log": log, "sqrt": sqrt, "tanh": tanh, "sin": sin, "cos": cos, "abs": abs,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "minimum": minimum, "maximum": maximum, "less": operator.lt, "less_equal": operator.le, "where": where,
}  # fmt: skip


def evaluate(
    expression: Expression, leaves: Callable[[Expression], Any], done: dict[Expression, Any] | None = None
) -> Any:
    """The value of an expression; shared nodes are computed once.

    Parameters
    ----------
    expression : Expression
    leaves : callable
        leaf ↦ its array.
    done : dict, optional
        It gets the values of all nodes, in the order of computation.

    Examples
    --------
    >>> import numpy as np
    >>> s = Expression("pairing", (), ("dot", ()))
    >>> evaluate(1 + s**2, lambda leaf: np.array([2.0, 3.0]))
    array([ 5., 10.])
    """
    done = {} if done is None else done
    # A recursive closure would be a cycle of references, and keep the rows until the next garbage collection.
    if expression not in done:
        args = [*map(partial(evaluate, leaves=leaves, done=done), expression.args)]
        done[expression] = _apply(expression, leaves, args)
    return done[expression]


def _apply(e: Expression, leaves: Callable[[Expression], Any], args: list[Any]) -> Any:
    if e.op in LEAVES:
        return e.value if e.op == "const" else leaves(e)
    if e.op == "pow":
        return power(args[0], e.value)
    return _BY_OP[e.op](*args)
