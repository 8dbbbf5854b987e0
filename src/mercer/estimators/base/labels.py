"""The labels of rows: of pandas' own types as NumPy's, and what is no label."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput, message

__all__ = ["labelled", "plain_labels", "require_labels"]


def labelled(model: Any, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
    """The checked rows and labels of a fit of `model`."""
    X, y = model._validate_both(X, y, **options)
    require_labels(y, type(model).__name__)
    return X, y


def plain_labels(y: Any, who: str) -> Any:
    """Labels of pandas' own integers and truth values, and truth values among objects, as NumPy's; others unchanged.

    scikit-learn makes numbers of pandas' own types float64, in which neighbours above 2⁵³ are one class.

    Raises
    ------
    InvalidInput
        For missing labels, and for texts beside numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> plain_labels(pd.Series([2**60, 2**60 + 1], dtype="Int64"), "SVC") - 2**60
    array([0, 1])
    >>> plain_labels(np.array([True, False], dtype=object), "SVC")
    array([ True, False])
    """
    series = _is_of_pandas(y)
    if not (series or isinstance(y, np.ndarray)):
        return y
    kind, own = y.dtype.kind, series and not isinstance(y.dtype, np.dtype)
    if not (kind == "O" or (kind in ("i", "u", "b") and own)):
        return y
    absent = np.asarray(y.isna()) if series else np.array([one is None or one != one for one in y.ravel()], bool)
    if absent.any():
        given = f"Input y contains NaN: {int(absent.sum())} of {len(y)} labels are missing"
        raise InvalidInput(message(who, given, "leave such rows out, or give their labels"))
    if own and kind != "O":
        return y.to_numpy(y.dtype.numpy_dtype)
    kinds = {type(one) for one in np.asarray(y, dtype=object).ravel()}
    if len(kinds) > 1 and any(issubclass(one, str | bytes) for one in kinds):
        named = ", ".join(sorted(one.__name__ for one in kinds))
        raise InvalidInput(message(who, f"labels of the types {named}", "make them of one type, as by y.astype(str)"))
    return np.asarray(y, dtype=bool) if kinds == {bool} else y


def require_labels(y: Any, who: str) -> None:
    """Refuse targets that are no classes, as scikit-learn does."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        if "unknown" not in str(error):
            raise
        kinds = sorted({type(one).__name__ for one in np.ravel(np.asarray(y, dtype=object))[:1000]})
        given = f"Unknown label type: labels of the type{'s' * (len(kinds) > 1)} {', '.join(kinds)}"
        do = "give whole numbers, truth values or texts, as by y.astype(str)"
        raise InvalidInput(message(who, given, do)) from error


def _is_of_pandas(y: Any) -> bool:
    """Whether y is a series, an index or an array of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(y, pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray)
