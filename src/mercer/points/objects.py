"""Points that are objects, such as sequences, sets and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.points.base import FLOAT32, FLOAT64, Index, Points
from mercer.points.validate import require_collection

__all__ = ["ObjectPoints"]


@dataclass(frozen=True, eq=False, slots=True)
class ObjectPoints(Points):
    """The items of a sequence or of an array: any objects that the kernel can read.

    Parameters
    ----------
    rows : sequence or array
        The points are the items along the first axis: a row of an array of two dimensions is one point.

    Examples
    --------
    >>> ObjectPoints(["gatt", "aca", "tt"]).take(np.array([2, 2])).rows
    ['tt', 'tt']
    """

    rows: Any

    def __len__(self) -> int:
        return int(self.rows.shape[0]) if hasattr(self.rows, "shape") else len(self.rows)

    @property
    def items(self) -> Any:
        return self.rows.to_numpy() if hasattr(self.rows, "to_numpy") else self.rows  # a column of Arrow, for example

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT32 if getattr(self.rows, "dtype", None) == FLOAT32 else FLOAT64

    @property
    def columns(self) -> int:
        shape: tuple[int, ...] = getattr(self.rows, "shape", ())
        return int(shape[1]) if len(shape) == 2 else 0

    @property
    def nbytes(self) -> int:
        return int(getattr(self.rows, "nbytes", 0))

    def validate(self, who: str) -> ObjectPoints:
        require_collection(self.rows, who)
        return self

    def take(self, index: Index, *, copy: bool = True) -> ObjectPoints:
        rows = self.rows
        return ObjectPoints(rows[index] if hasattr(rows, "shape") else [rows[i] for i in index])

    def run(self, first: int, last: int) -> ObjectPoints:
        return ObjectPoints(self.rows[first:last])

    def join(self, other: Points) -> ObjectPoints:
        if isinstance(self.rows, np.ndarray) and isinstance(other.rows, np.ndarray):
            return ObjectPoints(np.concatenate([self.rows, other.rows]))
        return ObjectPoints([*self.rows, *other.rows])
