"""Properties of the entries of arrays of any shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["NON_NEGATIVE", "POSITIVE", "SORTED", "Rule"]


@dataclass(frozen=True)
class Rule:
    """A property of the entries of an array.

    Parameters
    ----------
    words : str
        The property, as it is said in messages.
    holds : callable
        array ↦ whether it has the property.
    spoiled : callable
        array ↦ a copy without the property, for tests.
    """

    words: str
    holds: Callable[[Any], Any]
    spoiled: Callable[[Any], Any]


def _with_first(entry: float) -> Callable[[Any], Any]:
    def spoiled(value: Any) -> Any:
        out = np.array(value, np.float64)
        out.reshape(-1)[:1] = entry
        return out if np.ndim(value) else out[()]

    return spoiled


NON_NEGATIVE = Rule("non-negative", lambda a: np.all(np.asarray(a) >= 0), _with_first(-1.0))
POSITIVE = Rule("positive", lambda a: np.all(np.asarray(a) > 0), _with_first(-1.0))
SORTED = Rule("sorted, each entry once", lambda a: np.all(a[:-1] < a[1:]), lambda a: a[::-1].copy())
