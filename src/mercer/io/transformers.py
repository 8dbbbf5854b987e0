"""The closed list of scikit-learn classes that a model file may hold, by their parameters and fitted arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.schemas import Array, Check, Count, Elements, Schema

__all__ = ["FUNCTIONS", "TYPES", "is_peer", "peers", "refused_parameter", "schema_of_peer", "version"]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in ("abs", "cbrt", "cos", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "sqrt", "square")
}
"""Functions of `FunctionTransformer` and `TransformedTargetRegressor` that can be saved, by name."""

TYPES: dict[str, Any] = {one.__name__: one for one in (bool, int, float, str, object)} | {
    one.__name__: one
    for one in (
        np.number, np.integer, np.floating, np.inexact, np.int8, np.int16, np.int32, np.int64, np.uint8, np.float16,
        np.float32, np.float64, np.bool_, np.object_, np.str_,
    )
    if one.__name__ not in ("bool", "str", "object")
}  # fmt: skip
"""Types that parameters such as `dtype` may name."""

_ONLY: dict[str, tuple[Any, str]] = {
    "memory": (None, "a cache that a loaded pipeline would read from disk"),
    "input": ("content", "files that a loaded model would open"),
}
"""Parameters with effects outside the model: the only value that is saved and loaded, and the effect of others."""


@functools.cache
def peers() -> dict[str, type]:
    """The classes of the list by name."""
    from sklearn import compose, decomposition, impute, pipeline, preprocessing
    from sklearn.feature_extraction import text
    from sklearn.feature_selection import VarianceThreshold

    modules: dict[Any, tuple[str, ...]] = {
        pipeline: ("Pipeline", "FeatureUnion"),
        compose: ("ColumnTransformer", "TransformedTargetRegressor"),
        impute: ("SimpleImputer", "KNNImputer", "MissingIndicator"),
        decomposition: ("PCA", "TruncatedSVD"),
        text: ("CountVectorizer", "TfidfTransformer", "TfidfVectorizer"),
        preprocessing: (
            "Binarizer", "FunctionTransformer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "OneHotEncoder",
            "OrdinalEncoder", "PolynomialFeatures", "PowerTransformer", "QuantileTransformer", "RobustScaler",
            "StandardScaler",
        ),
    }  # fmt: skip
    found = {name: getattr(module, name) for module, names in modules.items() for name in names}
    return {**found, "VarianceThreshold": VarianceThreshold}


def is_peer(value: Any) -> bool:
    """Whether an object's class is on the list; subclasses are not."""
    return peers().get(type(value).__name__) is type(value)


def version() -> str:
    """The first two numbers of scikit-learn's version; fitted attributes do not change within them."""
    import sklearn

    return ".".join(sklearn.__version__.split(".")[:2])


def refused_parameter(name: str, params: dict[str, Any]) -> tuple[str, str] | None:
    """A parameter value that may not be saved or loaded, and the reason; None if there is none."""
    if name not in peers():
        return None
    for key, (allowed, why) in _ONLY.items():
        if key in params and params[key] != allowed:
            return f"{key}={params[key]!r:.60}", f"{why}: set {key}={allowed!r}"
    return None


def _named_steps(steps: Any) -> bool:
    return isinstance(steps, list) and all(
        isinstance(step, tuple)
        and len(step) in (2, 3)
        and isinstance(step[0], str)
        and (step[1] is None or isinstance(step[1], str | BaseEstimator))
        for step in steps
    )


def _is_vocabulary(words: Any) -> bool:
    """Whether a vocabulary numbers its words 0, 1, …; native code would write outside the array otherwise."""
    return (
        isinstance(words, dict)
        and all(isinstance(word, str) for word in words)
        and sorted(map(str, words.values())) == sorted(map(str, range(len(words))))
        and all(isinstance(place, int | np.integer) for place in words.values())
    )


def _schema(*names: str, tables: tuple[str, ...] = (), lists: tuple[str, ...] = ()) -> Schema:
    """A schema of arrays with one entry, tables with one column, and lists with one element per column of the data."""
    return Schema(
        Count("n_features_in_", "d"),
        *(Array(name, "d", np.generic, optional=True, nullable=True, finite=False) for name in names),
        *(Array(name, "rows d", np.generic, optional=True, nullable=True, finite=False) for name in tables),
        *(Elements(name, "d", optional=True) for name in lists),
        closed=False,
    )


def _steps(*names: str) -> Schema:
    """A schema of parameters or fitted attributes that are lists of named steps."""

    def holds(model: Any) -> bool:
        return all(_named_steps(getattr(model, name, [])) for name in names)

    return Schema(Check(f"{names[0]} is not a list of named steps", holds, unfitted=True), closed=False)


def _numbers_words(model: Any) -> bool:
    return not hasattr(model, "vocabulary_") or _is_vocabulary(model.vocabulary_)


_WORDS = Schema(Check("vocabulary_ does not number its words", _numbers_words, unfitted=True), closed=False)
_SCHEMAS: dict[str, Schema] = {
    "StandardScaler": _schema("mean_", "scale_", "var_"),
    "MinMaxScaler": _schema("min_", "scale_", "data_min_", "data_max_", "data_range_"),
    "MaxAbsScaler": _schema("scale_", "max_abs_"),
    "RobustScaler": _schema("center_", "scale_"),
    "PowerTransformer": _schema("lambdas_"),
    "QuantileTransformer": _schema(tables=("quantiles_",)),
    "OneHotEncoder": _schema(lists=("categories_",)),
    "OrdinalEncoder": _schema(lists=("categories_",)),
    "SimpleImputer": _schema("statistics_"),
    "KNNImputer": _schema("_valid_mask", tables=("_fit_X", "_mask_fit_X")),
    "PCA": _schema("mean_", tables=("components_",)),
    "TruncatedSVD": _schema(tables=("components_",)),
    "VarianceThreshold": _schema("variances_"),
    "TfidfTransformer": _schema("idf_"),
    "CountVectorizer": _WORDS,
    "TfidfVectorizer": _WORDS,
    "Pipeline": _steps("steps"),
    "FeatureUnion": _steps("transformer_list"),
    "ColumnTransformer": _steps("transformers", "transformers_"),
}
"""Schemas of fitted attributes of scikit-learn's classes, which may have other attributes too."""


def schema_of_peer(name: str) -> Schema:
    """The schema of a class of the list.

    >>> schema_of_peer("StandardScaler").names >= {"mean_", "scale_"}
    True
    """
    return _SCHEMAS.get(name, Schema(closed=False))
