"""Kernels are values: two kernels are equal if and only if their classes and parameters are."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message

__all__ = ["comparable", "require_value"]

DECORATE = "decorate it with @dataclass(frozen=True, repr=False), and give its parameters as annotated fields"


def require_value(kind: type, root: type) -> None:
    """Raise InvalidInput for a class below `root` whose own `__init__` has parameters that equality ignores.

    scikit-learn's copies, searches and reports would confuse its kernels. A class without parameters of its own needs
    no decorator.
    """
    for base in kind.__mro__[: kind.__mro__.index(root)]:
        own = vars(base)
        if "__init__" in own and not ("__dataclass_fields__" in own and "__eq__" in own):
            given = "its parameters are not fields of a dataclass that compares them, so that all its kernels are equal"
            raise InvalidInput(message(base.__name__, given, DECORATE))


def comparable(value: Any) -> Any:
    """A hashable key for a parameter: equal parameters, lists and arrays among them, have equal keys.

    >>> comparable([1, np.arange(2)]) == comparable([1, np.arange(2)]) != comparable([1, np.arange(3)])
    True
    """
    if isinstance(value, np.ndarray):
        return comparable(value.tolist()) if value.dtype == object else (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, list | tuple):
        return type(value), *map(comparable, value)
    if isinstance(value, dict):
        return dict, *((comparable(name), comparable(one)) for name, one in value.items())
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), *(comparable(getattr(value, one.name)) for one in fields(value))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value
