"""Rows with the names of their columns, for scikit-learn, which reads names from data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.points.disk.arrow import needed

__all__ = ["header", "named"]


def named(rows: NDArray[Any], names: Sequence[str]) -> Any:
    """The rows as a data frame with these names: of pandas, or where that is not installed a table of Arrow.

    Parameters
    ----------
    rows : array of shape (n, d)
    names : sequence of d texts
    """
    try:
        import pandas as pd
    except ImportError:
        return needed("pyarrow").table(dict(zip(names, rows.T, strict=True)))
    return pd.DataFrame(rows, columns=list(names))


def header(names: Sequence[str]) -> Any:
    """A data frame without rows, whose columns have these names."""
    return named(np.empty((0, len(names))), names)
