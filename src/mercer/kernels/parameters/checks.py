"""Checks of parameters: InvalidInput for values of a wrong type, NotAKernel for values that give no kernel."""

from __future__ import annotations

import math
import numbers
from typing import Any

from mercer.errors import InvalidInput, NotAKernel, message
from mercer.kernels.parameters.bandwidth import RULES, is_rule

__all__ = ["bandwidth", "degree", "divisor", "non_negative", "number", "one_of", "positive"]

LEAST = 1e-150


def number(who: str, name: str, value: Any, *, finite: bool = True) -> float:
    """The value as a Python float; a NumPy scalar would widen float32 arrays."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(message(who, f"{name}={value!r} is not a number", "give a number"))
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if math.isnan(result) or (finite and math.isinf(result)):
        raise NotAKernel(message(who, f"{name}={result} is not finite", "give a finite number"))
    return result


def positive(who: str, name: str, value: Any, *, finite: bool = True) -> float:
    """The value as a number > 0."""
    result = number(who, name, value, finite=finite)
    if result <= 0:
        raise NotAKernel(message(who, f"{name}={result} is not positive", "give a positive number"))
    return result


def divisor(who: str, name: str, value: Any) -> float:
    """The value as a number > 0 by whose square float64 can divide."""
    result = positive(who, name, value)
    if result < LEAST:
        given = f"{name}={result!r}, by whose square float64 cannot divide"
        raise InvalidInput(message(who, given, f"give {LEAST:g} or more, and the rows in another unit"))
    return result


def non_negative(who: str, name: str, value: Any, why: str = "give a number ≥ 0") -> float:
    """The value as a number ≥ 0."""
    result = number(who, name, value)
    if result < 0:
        raise NotAKernel(message(who, f"{name}={result} is negative", why))
    return result


def bandwidth(who: str, name: str, value: Any) -> float | str:
    """The value as a number > 0, or as one of the rules that `resolve` replaces by a number."""
    if is_rule(value):
        return str(value)
    if isinstance(value, str):
        do = f"give a positive number or one of {RULES}"
        raise InvalidInput(message(who, f"{name}={value!r} is not a rule", do))
    return positive(who, name, value)


def degree(who: str, value: Any) -> int:
    """The value as an integer ≥ 1."""
    result = number(who, "degree", value)
    if result < 1 or result != int(result):
        raise NotAKernel(message(who, f"degree={value!r:.60} is not a positive integer", "give 1, 2, 3, …"))
    return int(result)


def one_of(who: str, name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """The value, if it is one of the choices."""
    if isinstance(value, bool) or value not in choices:
        raise InvalidInput(message(who, f"{name}={value!r}", f"give one of {choices}"))
    choice = choices[choices.index(value)]
    # scikit-learn's clone asks for the very object that was given, and an unpickled text is another one than ours.
    return value if type(value) is type(choice) else choice
