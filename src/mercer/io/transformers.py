"""The parts of scikit-learn that a model file may hold: a closed list, by their parameters and fitted arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["FUNCTIONS", "TYPES", "broken_part", "is_peer", "peers", "refused_parameter", "version"]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in ("abs", "cbrt", "cos", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "sqrt", "square")
}
"""Functions of `FunctionTransformer` and `TransformedTargetRegressor` that can be saved, by their name."""

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
"""Parameters that reach beyond the model: the one value that is saved and loaded, and what the others would do."""


@functools.cache
def peers() -> dict[str, type]:
    """The classes by their names."""
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
    """Whether an object is one of scikit-learn's on the list, and of no class derived from it."""
    return peers().get(type(value).__name__) is type(value)


def version() -> str:
    """The first two numbers of scikit-learn's version, within which what it keeps does not change."""
    import sklearn

    return ".".join(sklearn.__version__.split(".")[:2])


def refused_parameter(name: str, params: dict[str, Any]) -> tuple[str, str] | None:
    """A parameter of a class of the list that neither a file may have nor `save` writes, and why."""
    if name not in peers():
        return None
    for key, (allowed, why) in _ONLY.items():
        if key in params and params[key] != allowed:
            return f"{key}={params[key]!r:.60}", f"{why}: set {key}={allowed!r}"
    return None


def broken_part(model: BaseEstimator) -> str | None:
    """What does not fit together in a fitted transformer, in words: arrays by column, steps, vocabularies."""
    state = vars(model)
    columns = state.get("n_features_in_")
    for name in _BY_COLUMN.get(type(model).__name__, ()):
        value = state.get(name)
        if value is not None and _length(value, name) != columns:
            return f"{type(model).__name__}.{name} is not of the {columns} columns"
    for name in ("steps", "transformer_list", "transformers", "transformers_"):
        if name in state and not _named_steps(state[name]):
            return f"{type(model).__name__}.{name} is not a list of named steps"
    words = state.get("vocabulary_")
    if "vocabulary_" in state and not _is_vocabulary(words):
        return f"{type(model).__name__}.vocabulary_ does not number its words"
    return None


_BY_COLUMN: dict[str, tuple[str, ...]] = {
    "StandardScaler": ("mean_", "scale_", "var_"),
    "MinMaxScaler": ("min_", "scale_", "data_min_", "data_max_", "data_range_"),
    "MaxAbsScaler": ("scale_", "max_abs_"),
    "RobustScaler": ("center_", "scale_"),
    "PowerTransformer": ("lambdas_",),
    "QuantileTransformer": ("quantiles_",),
    "OneHotEncoder": ("categories_",),
    "OrdinalEncoder": ("categories_",),
    "SimpleImputer": ("statistics_",),
    "KNNImputer": ("_fit_X", "_mask_fit_X", "_valid_mask"),
    "PCA": ("mean_", "components_"),
    "TruncatedSVD": ("components_",),
    "VarianceThreshold": ("variances_",),
    "TfidfTransformer": ("idf_",),
}
"""Fitted attributes with one entry, or one column, for each column of the data."""
_TABLES = ("quantiles_", "_fit_X", "_mask_fit_X", "components_")


def _length(value: Any, name: str) -> int:
    if isinstance(value, np.ndarray) and value.ndim:
        return int(value.shape[-1]) if name in _TABLES else len(value)
    return len(value) if isinstance(value, list) and name not in _TABLES else -1


def _named_steps(steps: Any) -> bool:
    return isinstance(steps, list) and all(
        isinstance(step, tuple)
        and len(step) in (2, 3)
        and isinstance(step[0], str)
        and (step[1] is None or isinstance(step[1], str | BaseEstimator))
        for step in steps
    )


def _is_vocabulary(words: Any) -> bool:
    """Columns beyond the last would be written to by native code."""
    return (
        isinstance(words, dict)
        and all(isinstance(word, str) for word in words)
        and sorted(map(str, words.values())) == sorted(map(str, range(len(words))))
        and all(isinstance(place, int | np.integer) for place in words.values())
    )
