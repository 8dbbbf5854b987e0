"""Sequences: strings, or lists of tokens, that users give become one array of objects."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.points.kinds import points_of
from mercer.points.validate import require_collection

__all__ = ["as_array", "as_sequences"]


def as_sequences(X: Any, who: str = "sequences") -> NDArray[Any]:
    """X as a one-dimensional array of objects, each a string or a tuple of tokens (strings or integers).

    Parameters
    ----------
    X : list, array, pandas or polars Series of strings or of token lists; or a table of one column of strings
    who : str
        The name in error messages.

    Raises
    ------
    InvalidInput
        For one string instead of several, for numbers, bytes and missing values, for a data frame of several columns,
        and if there are no sequences.

    Examples
    --------
    >>> as_sequences(["abc", ["to", "be"]])
    array(['abc', ('to', 'be')], dtype=object)
    """
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1 and all(type(x) in (str, tuple) for x in X):
        found = X
    else:
        items = [_sequence(x, who) for x in _items(X, who)]
        found = as_array(items)
    if not len(found):
        raise InvalidInput(message(who, "no sequences", "give at least one"))
    _check_tokens(found, who)
    return found


def as_array(items: Sequence[Any]) -> NDArray[Any]:
    """A one-dimensional array of these objects; np.array would make a table if all are tuples of one length."""
    out = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        out[place] = item
    return out


def _items(X: Any, who: str) -> Iterable[Any]:
    if isinstance(X, str | bytes):
        raise InvalidInput(message(who, "one string instead of several", "give a list of strings"))
    require_collection(X, who)
    points = points_of(X)
    if points.names is not None and len(points.names) > 1:
        given = f"a data frame with {counted(len(points.names), 'column')}"
        name = points.names[-1]
        raise InvalidInput(message(who, given, f"give one of them, df[{name!r}], or the kernel .on([{name!r}])"))
    X = points.items
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUT" and X.shape[1] == 1:
        X = X[:, 0]
    if isinstance(X, np.ndarray) and (X.ndim == 0 or (X.ndim == 1 and X.dtype.kind not in "OUT")):
        given = f"an array of {X.dtype} with {counted(X.ndim, 'dimension')}"
        raise InvalidInput(message(who, given, "give strings or lists of tokens"))
    if not hasattr(X, "__iter__"):
        raise InvalidInput(message(who, f"a {type(X).__name__}", "give a list of strings or of token lists"))
    return X  # type: ignore[no-any-return]


def _sequence(x: Any, who: str) -> str | tuple[Any, ...]:
    if isinstance(x, str):
        return str(x)
    if isinstance(x, np.ndarray) and x.ndim != 1:
        given = f"an array of shape {x.shape} among the sequences"
        do = "give strings or lists of tokens; GlobalAlignment takes series of numbers"
        raise InvalidInput(message(who, given, do))
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if not isinstance(x, list | tuple):
        given = f"{x!r:.60} of type {type(x).__name__} among the sequences"
        raise InvalidInput(message(who, given, "give strings (bytes.decode()) or lists of tokens, none missing"))
    return tuple(token.item() if isinstance(token, np.generic) else token for token in x)


def _check_tokens(found: NDArray[Any], who: str) -> None:
    for x in found:
        if type(x) is tuple:
            for token in x:
                if isinstance(token, bool) or not isinstance(token, str | numbers.Integral):
                    given = f"the token {token!r:.60} of type {type(token).__name__}"
                    raise InvalidInput(message(who, given, "give strings or integers for tokens"))
