"""The declaration of a class's fitted attributes, and the check of a model against it."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.schemas.fields import Array, Check, Count, Entry, Field
from mercer.schemas.sizes import SchemaError, Sizes

__all__ = ["COLUMNS", "Schema"]

CONFIGURATION = frozenset({"_sklearn_output_config"})
"""Attributes that users set, and not fits: every model may have them."""


@functools.cache
def _parameters(cls: type) -> frozenset[str]:
    """The names of the parameters; `get_params` inspects the signature at each call."""
    return frozenset(inspect.signature(cls).parameters)


class Schema:
    """The attributes of fitted models of a class; entries share the symbols of their shapes.

    An estimator declares it as its class attribute `fitted`, often as the base class's schema plus entries of its own.
    A model may have no other attributes, unless the schema is open, as the schemas of other libraries' classes are.

    Parameters
    ----------
    *entries : Entry
        They are checked in this order.
    closed : bool
        Whether attributes that are not declared are refused.

    Examples
    --------
    >>> from mercer.schemas import Array, Count
    >>> class Mean(BaseEstimator):
    ...     fitted = Schema(Count("n_features_in_", "d"), Array("mean_", "d"))
    >>> model = Mean()
    >>> _ = Mean.fitted.check(model)  # not fitted yet
    >>> model.n_features_in_, model.mean_ = 3, np.zeros(2)
    >>> Mean.fitted.check(model)
    Traceback (most recent call last):
        ...
    mercer.schemas.sizes.SchemaError: mean_: d is 2, and by n_features_in_ it is 3
    """

    def __init__(self, *entries: Entry, closed: bool = True) -> None:
        self.entries, self.closed = entries, closed
        self.fields = tuple(one for one in entries if isinstance(one, Field))
        self.names = frozenset(one.name for one in self.fields)

    def __add__(self, other: Schema) -> Schema:
        """A schema with the entries of both."""
        return Schema(*self.entries, *other.entries, closed=self.closed and other.closed)

    def allows(self, name: str) -> bool:
        """Whether a fitted model may have an attribute of that name; an open schema demands an underscore in it."""
        if self.closed:
            return name in self.names or name in CONFIGURATION
        return (name[:1] == "_" or name[-1:] == "_") and name[:2] != "__"

    def contents(self, model: BaseEstimator) -> dict[str, Any]:
        """The attributes of a model without its parameters."""
        cls: type = type(model)
        parameters = _parameters(cls)
        return {name: value for name, value in vars(model).items() if name not in parameters}

    def results(self, model: BaseEstimator) -> dict[str, Any]:
        """The declared attributes that a fit of the same data on another day would give again."""
        return {one.name: vars(model)[one.name] for one in self.fields if not one.varies and one.name in vars(model)}

    def check(self, model: BaseEstimator) -> Sizes:
        """The sizes of the symbols; raise SchemaError if a fitted model differs from the declaration."""
        state = self.contents(model)
        strange = next((name for name in state if not self.allows(name)), None)
        if strange is not None:
            raise SchemaError(f"the attribute {strange!r}, which no fitted {type(model).__name__} has")
        sizes, unfitted = Sizes(), self.names.isdisjoint(state)
        for entry in self.entries:
            if not unfitted or (isinstance(entry, Check) and entry.unfitted):
                entry.check(model, state, sizes)
        return sizes


COLUMNS = Schema(
    Count("n_features_in_", "d", optional=True), Array("feature_names_in_", "d", (np.object_, np.str_), optional=True)
)
"""The number and the names of the columns, as scikit-learn keeps them; objects, such as sequences, have none."""
