"""Points as the rows of a data frame, whose columns have names."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.points.base import Index, Points
from mercer.points.fingerprint import fingerprint

__all__ = ["TablePoints"]

FRAME = ("columns", "shape", "dtypes")


@dataclass(frozen=True, eq=False, slots=True)
class TablePoints(Points):
    """The rows of a data frame, or the items of a series, of pandas or polars.

    Parameters
    ----------
    rows : data frame or series

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> points = TablePoints(pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]}))
    >>> points.names, points.take(np.array([1])).rows["colour"].tolist()
    (['size', 'colour'], ['blue'])
    """

    rows: Any

    @classmethod
    def holds(cls, X: object) -> bool:
        """Whether X is such a frame or series, or a similar frame of another library; the check imports nothing."""
        return isinstance(X, tuple(_kinds("DataFrame", "Series"))) or all(hasattr(X, name) for name in FRAME)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def columns(self) -> int:
        return len(self.names or ())

    @property
    def names(self) -> list[str] | None:
        named = getattr(self.rows, "columns", None)
        return None if named is None else [str(name) for name in named]

    @property
    def items(self) -> Any:
        return self.rows.to_numpy()

    def validate(self, who: str) -> TablePoints:
        if not len(self):
            raise InvalidInput(message(who, "a table without rows", "give at least one row"))
        twice = sorted({name for name in self.names or () if (self.names or []).count(name) > 1})
        if twice:
            raise InvalidInput(message(who, f"two columns named {twice[0]!r}", "rename one of them"))
        return self

    def take(self, index: Index, *, copy: bool = True) -> TablePoints:
        by_position = getattr(self.rows, "iloc", self.rows)  # polars always indexes by position
        return TablePoints(by_position[index])

    def run(self, first: int, last: int) -> TablePoints:
        return TablePoints(getattr(self.rows, "iloc", self.rows)[first:last])

    def join(self, other: Points) -> TablePoints:
        library = sys.modules[type(self.rows).__module__.partition(".")[0]]
        return TablePoints(library.concat([self.rows, other.rows]))

    def fingerprint(self) -> str:
        labelled = hasattr(self.rows, "reset_index")  # pandas' labels of rows are not part of the points
        return fingerprint(self.rows.reset_index(drop=True) if labelled else self.rows)


def _kinds(*names: str) -> list[type]:
    """The classes with these names in pandas and polars, if they are imported."""
    loaded = (sys.modules.get(library) for library in ("pandas", "polars"))
    return [getattr(library, name) for library in loaded if library is not None for name in names]
