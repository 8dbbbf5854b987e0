"""The contract of points: everything that the rest of the package needs to know about the rows of a data set."""

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
    """Points x₁, …, xₙ of one kind; they are immutable.

    A subclass must have `rows`, `validate`, `take`, `run` and `join`. The other methods follow from these, and a
    subclass overrides them if it knows a faster way. The constructor copies nothing and checks nothing.
    `mercer.testing.check_points` tests the contract.

    Attributes
    ----------
    rows : array, CSR matrix, list or data frame
        The points as kernels read them and users get them back.
    """

    __slots__ = ()

    rows: Any

    @abstractmethod
    def validate(self, who: str) -> Points:
        """The same points, checked; raise InvalidInput, which names `who`, if no kernel has values for them."""

    @abstractmethod
    def take(self, index: Index, *, copy: bool = True) -> Points:
        """The points with these indices, in this order, in memory.

        With copy=False the result may share the memory of these points, so that the caller must not change it.
        """

    @abstractmethod
    def run(self, first: int, last: int) -> Points:
        """The points from `first` up to but not including `last`. They share the memory of these points."""

    @abstractmethod
    def join(self, other: Points) -> Points:
        """These points, followed by the other ones."""

    # ---- methods that follow from these -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def items(self) -> Any:
        """The points one by one, as a sequence or an array."""
        return self.rows

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision in which kernel values of these points are computed: float32 or float64."""
        return FLOAT64

    @property
    def columns(self) -> int:
        """How many columns the table of the points has; 0 if the points are not rows of a table."""
        return 0

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, columns), or (n,) if the points are not rows of a table."""
        return (len(self), self.columns) if self.columns else (len(self),)

    @property
    def sparse(self) -> bool:
        """Whether the points are stored without their zeros."""
        return False

    @property
    def names(self) -> Sequence[str] | None:
        """The names of the columns, None if they have none."""
        return None

    @property
    def nbytes(self) -> int:
        """How many bytes a copy takes; 0 for objects, which are not copied."""
        return 0

    @property
    def window(self) -> int:
        """Bytes of a run that may be in memory at a time; 0 if all points are in memory."""
        return 0

    @property
    def reading(self) -> dict[str, float]:
        """What was read from a file until now: rows, bytes and seconds waited; empty for points in memory."""
        return {}

    def scratch(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array without values for results about the points, kept where the points are: in memory, or in a file."""
        return np.empty(shape, dtype)

    def kept(self, array: NDArray[Any]) -> NDArray[Any]:
        """An array about the points, kept where the points are: the array itself, or its copy in a file."""
        return array

    def within(self, memory: Any) -> Points:
        """The points, to be used within a memory budget (see `parse_memory`)."""
        return self

    def chunks(self) -> Iterator[Points]:
        """The points in memory, a run at a time; the points themselves if they are there."""
        yield self

    @property
    def symmetric(self) -> bool:
        """Whether k(xᵢ, xⱼ) = k(xⱼ, xᵢ) for every symmetric function k; False only for some precomputed values."""
        return True

    def blocks(self, size: int) -> Iterator[Points]:
        """Consecutive runs of at most `size` bytes, or of one point; at least one run."""
        n, total = len(self), self.nbytes
        step = max(1, size * n // total if total else n)
        for first in range(0, max(n, 1), step):
            yield self.run(first, min(first + step, n))

    def fingerprint(self) -> str:
        """A digest of the values, their order, dtype and shape, and of the structure of sparse rows.

        Equal points have equal digests in all processes.
        """
        return fingerprint(self.rows)

    def anchors(self) -> Points:
        """The points that a fitted model keeps, for kernel values of new points with them."""
        return self

    def among(self, index: Index, others: Index | None = None) -> Points:
        """Some of the points as a data set of their own, with kernel values among them, or with the points `others`."""
        return self.take(index)

    def widened(self, dtype: DTypeLike) -> Points:
        """The points in this dtype if they are vectors of a narrower dtype, otherwise the points themselves."""
        return self

    def here(self) -> Points:
        """The points where kernels without a formula read them: in the memory of this process, or in a file."""
        return self

    def readable(self, who: str) -> Self:
        """The points themselves; raise InvalidInput if NumPy cannot read their memory."""
        return self


class VectorPoints(Points):
    """Points of ℝᵈ: rows of a table of numbers. A subclass must have `dense`, `astype` and `stack`, but no `join`."""

    __slots__ = ()

    @abstractmethod
    def dense(self) -> NDArray[Any]:
        """The table as an array with all its zeros; the array itself if the points have one."""

    @abstractmethod
    def astype(self, dtype: DTypeLike) -> VectorPoints:
        """The points in this dtype; the points themselves if they have it."""

    @abstractmethod
    def stack(self, first: VectorPoints, second: VectorPoints) -> VectorPoints:
        """The points of the first and of the second, as points of this class."""

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

    def for_engine(self) -> Any:
        """The table as the engine reads it: as an array, or where the engine has adopted it."""
        return self.dense()

    @property
    def may_be_dense(self) -> bool:
        """Whether the points may be converted to an array for the tile engine."""
        return True

    @property
    def written(self) -> int:
        """Bytes of the array that `dense` allocates; 0 if it returns an existing one."""
        return 0

    @property
    def values(self) -> NDArray[Any]:
        """The stored numbers, in an array of any shape."""
        return self.dense()

    def csr(self) -> Any:
        """The table as a CSR array."""
        return sp.csr_array(self.dense())

    def largest(self) -> float:
        """The largest |number|."""
        values = self.values
        # |values| would be a copy of the data.
        return float(max(np.max(values, initial=0.0), -np.min(values, initial=0.0)))

    def squared_norms(self) -> NDArray[Any]:
        """‖x‖² of each point, in the dtype of the rows."""
        table = self.dense()
        return np.asarray(np.einsum("ij,ij->i", table, table))

    def join(self, other: Points) -> VectorPoints:
        """These points, followed by the other ones; the result is sparse if one of the two is."""
        if not isinstance(other, VectorPoints):
            raise TypeError(f"{type(other).__name__} after {type(self).__name__}")
        return (other if other.sparse else self).stack(self, other)

    def widened(self, dtype: DTypeLike) -> VectorPoints:
        return self.astype(dtype) if self.rows.dtype.itemsize < np.dtype(dtype).itemsize else self
