"""What makes kernels values: two of them are equal exactly if their parameters are."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message

__all__ = ["comparable", "require_value"]

DECORATE = "decorate it with @dataclass(frozen=True, repr=False), and give its parameters as annotated fields"


def require_value(kind: type, root: type) -> None:
    """Refuse a kernel's class, below `root`, with an `__init__` of its own whose parameters equality does not see.

    Copies by scikit-learn, searches and reports would take one of its kernels for another. Without parameters of its
    own a class needs no decorator.
    """
    for base in kind.__mro__[: kind.__mro__.index(root)]:
        own = vars(base)
        if "__init__" in own and not ("__dataclass_fields__" in own and "__eq__" in own):
            given = "its parameters are not fields of a dataclass that compares them, so that all its kernels are equal"
            raise InvalidInput(message(base.__name__, given, DECORATE))


def comparable(value: Any) -> Any:
    """A key that equal parameters share and different ones do not: lists and arrays have no hash, and texts are cut.

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
