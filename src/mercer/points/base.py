"""The contract of points: all that the rest of the package asks of the rows of a data set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from mercer.points.fingerprint import fingerprint

__all__ = ["Points", "VectorPoints"]

Index = NDArray[np.intp]
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)


class Points(ABC):
    """Points x₁, …, xₙ of one kind, never changed.

    A kind owes `rows`, `validate`, `take`, `run` and `join`; the other methods follow from these, and are overridden
    where there is a faster way. To make points copies nothing and checks nothing. `mercer.testing.check_points` is the
    contract.
    """

    __slots__ = ()

    rows: Any
    """The points as kernels read them and users get them back: an array, a CSR matrix, a list, a data frame."""

    @abstractmethod
    def validate(self, who: str) -> Points:
        """The same points, checked; raise InvalidInput, which begins with `who`, if no kernel has values for them."""

    @abstractmethod
    def take(self, index: Index, *, copy: bool = True) -> Points:
        """The points of these numbers, in this order, in memory.

        With copy=False they are only read, and may share the memory of these points.
        """

    @abstractmethod
    def run(self, first: int, last: int) -> Points:
        """The points from `first` up to but not including `last`, to be read; nothing is copied."""

    @abstractmethod
    def join(self, other: Points) -> Points:
        """These points, and then the other ones."""

    # ---- what follows -----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def items(self) -> Any:
        """The points one by one, as a sequence or an array."""
        return self.rows

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: what kernel values of these points are computed in."""
        return FLOAT64

    @property
    def columns(self) -> int:
        """Columns of the table that the points are rows of; 0 if they are not."""
        return 0

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, columns), or (n,) for points that are no rows of a table."""
        return (len(self), self.columns) if self.columns else (len(self),)

    @property
    def sparse(self) -> bool:
        """Whether zeros are left out."""
        return False

    @property
    def names(self) -> Sequence[str] | None:
        """The names of the columns, None if they have none."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes that a copy takes; 0 for objects, which are not copied."""
        return 0

    @property
    def symmetric(self) -> bool:
        """Whether k(xᵢ, xⱼ) = k(xⱼ, xᵢ) for every symmetric function k; values that are given may differ."""
        return True

    def blocks(self, size: int) -> Iterator[Points]:
        """Runs of at most `size` bytes, or of one point, in order; at least one run."""
        n, total = len(self), self.nbytes
        step = max(1, size * n // total if total else n)
        for first in range(0, max(n, 1), step):
            yield self.run(first, min(first + step, n))

    def fingerprint(self) -> str:
        """A digest of all that matters: values, their order, dtype and shape, and the structure of sparse rows.

        It is the same in another process.
        """
        return fingerprint(self.rows)

    def anchors(self) -> Points:
        """The points that the values of these are with, if no others are named: what a fitted model keeps."""
        return self

    def among(self, index: Index, others: Index | None = None) -> Points:
        """Some of the points as a data set, with the values among themselves, or with the points `others`."""
        return self.take(index)

    def widened(self, dtype: DTypeLike) -> Points:
        """The points in this dtype if they are vectors in a narrower one."""
        return self

    def readable(self, who: str) -> Self:
        """The points themselves, unless NumPy cannot read them where they are: then raise InvalidInput."""
        return self


class VectorPoints(Points):
    """Points of ℝᵈ, the rows of a table of numbers. A kind owes `dense`, `astype` and `stack` instead of `join`."""

    __slots__ = ()

    @abstractmethod
    def dense(self) -> NDArray[Any]:
        """The table as an array, all zeros written out; the array itself if it is one."""

    @abstractmethod
    def astype(self, dtype: DTypeLike) -> VectorPoints:
        """The points in this dtype; the points themselves if they are in it."""

    @abstractmethod
    def stack(self, first: VectorPoints, second: VectorPoints) -> VectorPoints:
        """The points of the first and of the second, as this kind keeps them in memory."""

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT32 if self.rows.dtype == FLOAT32 else FLOAT64

    @property
    def columns(self) -> int:
        return int(self.rows.shape[1])

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)

    @property
    def may_be_dense(self) -> bool:
        """Whether the tile engine may have the points as an array, all zeros written out."""
        return True

    @property
    def written(self) -> int:
        """Bytes of the array that `dense` makes; 0 if it makes none."""
        return 0

    @property
    def values(self) -> NDArray[Any]:
        """The numbers that are kept, in an array of any shape."""
        return self.dense()

    def csr(self) -> Any:
        """The table as a CSR array."""
        return sp.csr_array(self.dense())

    def largest(self) -> float:
        """The largest |number|."""
        values = self.values
        # Not of |values|, which would be a copy of the data.
        return float(max(np.max(values, initial=0.0), -np.min(values, initial=0.0)))

    def squared_norms(self) -> NDArray[Any]:
        """‖x‖² of each point, in the dtype of the rows."""
        table = self.dense()
        return np.asarray(np.einsum("ij,ij->i", table, table))

    def join(self, other: Points) -> VectorPoints:
        """These points, and then the other ones; zeros are left out if one of the two leaves them out."""
        if not isinstance(other, VectorPoints):
            raise TypeError(f"{type(other).__name__} after {type(self).__name__}")
        return (other if other.sparse else self).stack(self, other)

    def widened(self, dtype: DTypeLike) -> VectorPoints:
        return self.astype(dtype) if self.rows.dtype.itemsize < np.dtype(dtype).itemsize else self
