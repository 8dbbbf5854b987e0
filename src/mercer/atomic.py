"""All or nothing: an estimator has all results of a fit when the fit returns, and is unchanged if the fit fails."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from copy import deepcopy
from functools import wraps
from inspect import isfunction, signature
from typing import Any

import numpy as np

from mercer.keeping import keeper

__all__ = ["Atomic"]

METHODS = ("fit", "partial_fit", "fit_transform", "fit_predict")
"""The methods that change the fitted state of an estimator."""

_drafts: ContextVar[tuple[int, ...]] = ContextVar("mercer_drafts", default=())
"""The identities of the drafts in use: a method that another method of the same draft calls makes no second draft."""


class Atomic:
    """An estimator whose `fit`, `partial_fit`, `fit_transform` and `fit_predict` work on a draft of it.

    The draft's attributes become the estimator's in one assignment when the method returns. If an error, `Cancelled` or
    Ctrl-C ends the method early, the estimator keeps its former model, or stays unfitted. The methods of a subclass,
    and those that it inherits from other classes, are wrapped when the subclass is defined.

    For `partial_fit`, and for `warm_start=True`, the draft starts with the attributes of the former fit, otherwise
    without them. The draft is a shallow copy, so methods must replace the estimator's arrays and objects, and never
    change them in place. A generator in a parameter is copied, and advanced when the method returns.

    Examples
    --------
    >>> class Torn(Atomic):
    ...     def fit(self, number):
    ...         self.number_ = number
    ...         self.inverse_ = 1 / number
    ...         return self
    >>> model = Torn().fit(2)
    >>> model.fit(0)
    Traceback (most recent call last):
        ...
    ZeroDivisionError: division by zero
    >>> model.number_, model.inverse_
    (2, 0.5)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in METHODS:
            owner = next((base for base in cls.__mro__ if name in vars(base)), Atomic)
            if isfunction(vars(owner).get(name)) and (owner is cls or not issubclass(owner, Atomic)):
                setattr(cls, name, _on_draft(vars(owner)[name]))


def _unfitted(estimator: Any) -> dict[str, Any]:
    """The attributes without those of a former fit: a new fit with other parameters might not replace them all."""
    declared = getattr(getattr(estimator, "fitted", None), "names", ())
    return {
        name: value
        for name, value in vars(estimator).items()
        if name not in declared and (name[:1] == "_" or name[-1:] != "_")
    }


def _on_draft(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method on a draft, whose attributes become the estimator's when it returns."""
    continues = method.__name__ == "partial_fit"

    @wraps(method)
    def on_draft(self: Any, *args: Any, **kwargs: Any) -> Any:
        drafts = _drafts.get()
        if id(self) in drafts:
            return method(self, *args, **kwargs)
        if not (drafts or continues) and (own := keeper()) is not None:
            own.begin(self, method.__name__, _named(method, self, args, kwargs))
        draft = object.__new__(type(self))
        draft.__dict__.update(vars(self) if continues or getattr(self, "warm_start", False) else _unfitted(self))
        generators = {name: value for name, value in vars(self).items() if isinstance(value, np.random.RandomState)}
        draft.__dict__.update(deepcopy(generators))
        token = _drafts.set((*drafts, id(draft)))
        try:
            result = method(draft, *args, **kwargs)
        finally:
            _drafts.reset(token)
        for name, value in generators.items():
            value.set_state(getattr(draft, name).get_state(legacy=False))
        draft.__dict__.update(generators)
        self.__dict__ = draft.__dict__
        return self if result is draft else result

    return on_draft


def _named(method: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by their names, without self; none if the call will be refused."""
    try:
        given = signature(method).bind(self, *args, **kwargs).arguments
    except TypeError:
        return {}
    return {name: value for name, value in list(given.items())[1:] if value is not None}
