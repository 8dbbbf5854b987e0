"""All or nothing: what a fit changes of an estimator is there when it returns, or nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from copy import deepcopy
from functools import wraps
from inspect import isfunction
from typing import Any

import numpy as np

__all__ = ["Atomic"]

METHODS = ("fit", "partial_fit", "fit_transform", "fit_predict")
"""What changes the fitted state of an estimator."""

_drafts: ContextVar[tuple[int, ...]] = ContextVar("mercer_drafts", default=())
"""The identities of the drafts under way: a method that calls another one of the same draft goes on with it."""


class Atomic:
    """An estimator whose `fit`, `partial_fit`, `fit_transform` and `fit_predict` work on a draft of it.

    The draft's attributes become the estimator's in one assignment when the method returns. A method that is cut off
    (an error, `Cancelled`, Ctrl-C) leaves the estimator as it was: the former model, or an unfitted one. The methods of
    subclasses, and those that are inherited from elsewhere, are wrapped when the class is made.

    The draft of a `partial_fit`, or with `warm_start`, has the attributes of the former fit; any other has none.
    The draft is a shallow copy, so methods replace the arrays and objects that the estimator has, and never change
    them in place. A generator in a parameter is copied, and advanced when the method returns.

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
                setattr(cls, name, _whole(vars(owner)[name]))


def _unfitted(estimator: Any) -> dict[str, Any]:
    """The attributes but for those of a former fit, of which one with other parameters would leave some behind."""
    declared = getattr(getattr(estimator, "fitted", None), "names", ())
    return {
        name: one
        for name, one in vars(estimator).items()
        if name not in declared and (name[:1] == "_" or name[-1:] != "_")
    }


def _whole(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method on a draft, whose attributes become the estimator's when it returns."""
    goes_on = method.__name__ == "partial_fit"

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        under_way = _drafts.get()
        if id(self) in under_way:
            return method(self, *args, **kwargs)
        draft = object.__new__(type(self))
        draft.__dict__.update(vars(self) if goes_on or getattr(self, "warm_start", False) else _unfitted(self))
        generators = {name: one for name, one in vars(self).items() if isinstance(one, np.random.RandomState)}
        draft.__dict__.update(deepcopy(generators))
        token = _drafts.set((*under_way, id(draft)))
        try:
            result = method(draft, *args, **kwargs)
        finally:
            _drafts.reset(token)
        for name, one in generators.items():
            one.set_state(getattr(draft, name).get_state(legacy=False))
        draft.__dict__.update(generators)
        self.__dict__ = draft.__dict__
        return self if result is draft else result

    return whole
