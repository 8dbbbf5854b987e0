"""Estimators for rows that are elsewhere: Dask's arrays and data frames, and tensors of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import isfunction
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.points import DevicePoints, given_back, is_away, on_host
from mercer.shards import ShardedPoints, is_dask, lazily, local, together

__all__ = ["Elsewhere", "ForeignArrays"]

METHODS = ("predict", "decision_function", "predict_proba", "transform", "score_samples", "reconstruction_error")
"""The methods whose outputs for Dask's data are arrays of Dask's."""


READERS = (
    *METHODS,
    "fit",
    "partial_fit",
    "fit_transform",
    "fit_predict",
    "score",
    "predict_log_proba",
    "inverse_transform",
)
"""The methods that read arrays of other libraries; those that these call get NumPy's."""


FITS = ("fit", "partial_fit", "fit_transform", "fit_predict")


class ForeignArrays:
    """An estimator that reads tensors of PyTorch, and what else has DLPack's protocol, as NumPy's arrays.

    They are not copied if they are in the memory of the processor, nor, for a class that `_reads_devices`, are rows on
    the device that computes. Outputs are NumPy's arrays; with scikit-learn's `array_api_dispatch=True` those for rows
    on the device are arrays there, of their library. What scikit-learn sees are NumPy's arrays always. The methods of a
    subclass, and those that it inherits from other classes, are wrapped when the subclass is defined.
    """

    def _reads_devices(self) -> bool:
        """Whether rows on the device that computes may stay there."""
        return False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in READERS:
            owner = next((base for base in cls.__mro__ if name in vars(base)), ForeignArrays)
            if isfunction(vars(owner).get(name)) and (owner is cls or not issubclass(owner, ForeignArrays)):
                setattr(cls, name, _reading(vars(owner)[name]))


def _reading(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which gets NumPy's arrays, or rows on the device that computes, for arrays of other libraries."""

    @wraps(method)
    def reading(self: Any, *args: Any, **kwargs: Any) -> Any:
        who, X = type(self).__name__, args[0] if args else kwargs.get("X")
        away = is_away(X)
        held = DevicePoints.of(X) if away and self._reads_devices() else None
        first = on_host(X, who) if held is None else held
        given = [first, *(on_host(one, who) for one in args[1:])] if args else []
        named = {name: first if name == "X" else on_host(one, who) for name, one in kwargs.items()}
        weights = [*given[2:], *(one for name, one in named.items() if name not in ("X", "y"))]
        if method.__name__ in FITS and any(map(is_dask, weights)):  # rows and targets are read together in any case
            read = together(*given, *named.values())
            given, named = [*read[: len(given)]], dict(zip(named, read[len(given) :], strict=True))
        out = method(self, *given, **named)
        return _returned(out, X) if away and get_config()["array_api_dispatch"] else out

    return reading


def _returned(out: Any, X: Any) -> Any:
    """Arrays of numbers among the outputs as arrays where X is; anything else, such as names of classes, as it is."""
    if isinstance(out, tuple):
        return tuple(_returned(one, X) for one in out)
    return given_back(out, X) if isinstance(out, np.ndarray) and out.dtype.kind in "biuf" else out


class Elsewhere(ForeignArrays):
    """An estimator that takes Dask's arrays and data frames, and gives arrays of Dask's for them.

    `fit` computes where the rows are if there is a client, and otherwise computes the rows first. The fitted model has
    the rows that it keeps in this process, if this may hold them. What a method of `METHODS` gives for Dask's data is
    computed when asked. The methods of a subclass, and those that it inherits from other classes, are wrapped when the
    subclass is defined.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in METHODS:
            owner = next((base for base in cls.__mro__ if name in vars(base)), Elsewhere)
            if isfunction(vars(owner).get(name)) and (owner is cls or not issubclass(owner, Elsewhere)):
                setattr(cls, name, _lazy(vars(owner)[name]))
        for name in {"fit", "fit_predict", "fit_transform"} & set(vars(cls)):
            setattr(cls, name, _settled(vars(cls)[name]))
        score = next((vars(base)["score"] for base in cls.__mro__ if "score" in vars(base)), None)
        if isfunction(score) and not hasattr(score, "of_dask"):
            cls.score = _scored(score)  # type: ignore[attr-defined]

    def to_local(self) -> Self:
        """The same model with all that it has in this process.

        Examples
        --------
        >>> from mercer import KernelRidge
        >>> KernelRidge("linear").fit([[1.0], [2.0]], [1.0, 2.0]).to_local().X_fit_
        array([[1.],
               [2.]])
        """
        model = copy(self)
        there = ShardedPoints, DevicePoints
        model.__dict__ = {name: np.asarray(v) if isinstance(v, there) else v for name, v in vars(self).items()}
        return model


def _settled(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, after which the model has its rows in this process: a fit on landmarks never needs all of them."""

    @wraps(method)
    def settled(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = method(self, *args, **kwargs)
        rows = getattr(self, "X_fit_", None)
        if isinstance(rows, ShardedPoints) and rows.shards.affordable:
            self.X_fit_ = rows.dense()
        return out

    return settled


def _lazy(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which gives an array of Dask's for Dask's data."""

    @wraps(method)
    def lazy(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        check_is_fitted(self)
        if args or kwargs or not self._space().vectors:
            return method(self, local(X), *args, **kwargs)
        frame = hasattr(X, "to_dask_array")
        validate_data(self, X._meta if frame else X, reset=False, skip_check_array=True)
        model = self.to_local()
        model.__dict__.pop("feature_names_in_", None)  # chunks are arrays, whose columns have no names
        out = lazily(method, model, X)
        return out.compute() if "_at_once" in vars(self) else out

    return lazy


def _scored(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, for which outputs and targets of Dask's are computed: a score needs their numbers of rows."""

    @wraps(method)
    def scored(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(map(is_dask, (X, *args, *kwargs.values()))):
            return method(self, X, *args, **kwargs)
        model = copy(self)
        model._at_once = True
        X, *given = together(X, *args, *kwargs.values())
        args, kwargs = given[: len(args)], dict(zip(kwargs, given[len(args) :], strict=True))  # type: ignore[assignment]
        return method(model, X, *map(local, args), **{name: local(one) for name, one in kwargs.items()})

    scored.of_dask = True  # type: ignore[attr-defined]
    return scored
