"""Checks that a model is consistent, so that a damaged file fails when it is read, not in a prediction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import BaseEstimator

from mercer.io.transformers import peers, schema_of_peer
from mercer.schemas import Schema, SchemaError

__all__ = ["check_consistent", "schema_of"]

NOTHING = Schema(closed=False)
"""The schema of other classes, which are not saved."""


def schema_of(cls: type) -> Schema:
    """The schema of a fitted model: the one that the class declares, or that of the list for scikit-learn's classes.

    >>> from mercer import KernelRidge
    >>> "dual_coef_" in schema_of(KernelRidge).names
    True
    """
    return schema_of_peer(cls.__name__) if peers().get(cls.__name__) is cls else getattr(cls, "fitted", NOTHING)


def check_consistent(model: BaseEstimator) -> None:
    """Raise SchemaError unless the model and the models in it match the schemas of their classes."""
    for one in vars(model).values():
        for part in _parts(one):
            check_consistent(part)
    try:
        schema_of(type(model)).check(model)
    except SchemaError as error:
        raise SchemaError(f"{type(model).__name__}: {error}") from None


def _parts(value: Any) -> Iterator[BaseEstimator]:
    """The models in an attribute, and in its lists of steps."""
    if isinstance(value, BaseEstimator):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _parts(one)
