"""Whether rows are those that a model was fitted to: errors on these say little."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from mercer.points import count

__all__ = ["said_of_seen", "share_of_the_fit"]


def share_of_the_fit(estimator: Any, rows: Any, n: int) -> float:
    """The share of rows that are equal to rows of the fit, which had n.

    An estimator that keeps some rows of the fit, such as support vectors, is taken to have seen as many others for
    each of them as it has in its fit.

    Parameters
    ----------
    estimator : fitted estimator
    rows : array of shape (m, d), or objects
        In the form that the estimator takes. Of sparse rows, and of objects that cannot be hashed, nothing is known.
    n : int

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.kernels import Spectrum
    >>> model = SVC(kernel=Spectrum(1)).fit(["aab", "bba", "ab", "b"], [0, 1, 0, 1])
    >>> share_of_the_fit(model, ["aab", "bba"], 4), share_of_the_fit(model, ["c"], 4)
    (1.0, 0.0)
    """
    kept = getattr(estimator, "X_fit_", None)
    try:
        known = set(_marks(kept, getattr(kept, "dtype", None)))
        found = sum(mark in known for mark in _marks(rows, getattr(kept, "dtype", None)))
    except TypeError:
        return 0.0
    return float(min(1.0, found * n / max(count(kept) * count(rows), 1)))


def said_of_seen(share: float) -> list[str]:
    """A note if half of the rows, or more, are those of the fit.

    >>> said_of_seen(1.0), said_of_seen(0.4)
    (['all rows are rows of the fit, whose errors say little: give rows that were held out'], [])
    """
    if share < 0.5:
        return []
    which = "all rows" if share == 1 else f"{int(100 * share)} % of the rows"
    return [f"{which} are rows of the fit, whose errors say little: give rows that were held out"]


def _marks(rows: Any, dtype: Any) -> list[Hashable]:
    """What is equal for equal rows; TypeError for rows of which that is not known."""
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        if np.dtype(object) in (dtype, rows.dtype):
            return [tuple(row) for row in rows.tolist()]
        return [row.tobytes() for row in rows.astype(dtype)]
    if isinstance(rows, np.ndarray | list | tuple):
        return list(rows)
    raise TypeError
