"""Points as the rows of arrays that are not NumPy's: PyTorch's tensors, and tables that are in other memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.engine import backend
from mercer.numerals import counted
from mercer.points.base import FLOAT32, FLOAT64, Index, VectorPoints
from mercer.points.dense import DensePoints
from mercer.points.runs import run_ends
from mercer.points.validate import as_rows, is_away, is_torch, on_host

__all__ = ["DevicePoints", "FarPoints", "TensorPoints"]


@dataclass(frozen=True, eq=False, slots=True)
class TensorPoints(VectorPoints):
    """The rows of a tensor. Kernels compute values and gradients for them; all others read them as arrays.

    Parameters
    ----------
    rows : tensor of shape (n, d)

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> len(TensorPoints(torch.zeros(3, 2)))  # doctest: +SKIP
    3
    """

    rows: Any

    def validate(self, who: str) -> TensorPoints:
        return TensorPoints(as_rows(self.rows, who=who))

    def take(self, index: Index, *, copy: bool = True) -> TensorPoints:
        return TensorPoints(self.rows[np.asarray(index).tolist()])

    def run(self, first: int, last: int) -> TensorPoints:
        return TensorPoints(self.rows[first:last])

    def dense(self) -> NDArray[Any]:
        return np.asarray(self.rows.detach().cpu().numpy())

    def astype(self, dtype: DTypeLike) -> TensorPoints:
        if self.dtype == dtype:
            return self
        return TensorPoints(self.rows.float() if np.dtype(dtype) == FLOAT32 else self.rows.double())

    def stack(self, first: VectorPoints, second: VectorPoints) -> TensorPoints:
        import torch

        return TensorPoints(torch.cat([torch.as_tensor(one.rows) for one in (first, second)]))

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT64 if self.rows.element_size() == 8 else FLOAT32

    @property
    def nbytes(self) -> int:
        return int(self.rows.numel() * self.rows.element_size())

    def widened(self, dtype: DTypeLike) -> TensorPoints:
        return self.astype(dtype) if self.rows.element_size() < np.dtype(dtype).itemsize else self

    def readable(self, who: str) -> DensePoints:  # type: ignore[override]
        return DensePoints(on_host(self.rows, who)).validate(who)


class FarPoints(VectorPoints):
    """The rows of a table that this process cannot read where it is. They are their own `rows`: `dense` copies them.

    A pickle has the copy, because another process may not reach the table.
    """

    kind: np.dtype[Any]
    """The dtype in which kernel values are computed."""

    @property
    def rows(self) -> Any:
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.kind

    @property
    def ndim(self) -> int:
        return 2

    @property
    def nbytes(self) -> int:
        return len(self) * self.columns * self.kind.itemsize

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.dense(), dtype, copy=copy)

    def __reduce__(self) -> Any:
        return np.asarray, (self.dense(),)

    def stack(self, first: VectorPoints, second: VectorPoints) -> DensePoints:
        return DensePoints(np.concatenate([first.dense(), second.dense()]))

    def widened(self, dtype: DTypeLike) -> VectorPoints:
        return self.astype(dtype) if self.kind.itemsize < np.dtype(dtype).itemsize else self

    def fingerprint(self) -> str:
        return DensePoints(self.dense()).fingerprint()


@dataclass(frozen=True, eq=False)
class DevicePoints(FarPoints):
    """The rows of an array on the device that computes, where they stay. `DevicePoints.of` makes them.

    Parameters
    ----------
    held : rows that an engine has adopted
    kind : float32 or float64
        The dtype in which kernel values are computed.

    Examples
    --------
    >>> DevicePoints.of(np.ones((2, 2))) is None  # in the memory of the processor
    True
    """

    held: Any
    kind: np.dtype[Any]

    @classmethod
    def of(cls, X: Any) -> DevicePoints | None:
        """The rows of a table of floats on the device that computes; None for anything else."""
        if not is_away(X):
            return None
        held = backend.engine().adopted(X.detach() if is_torch(X) else X)
        return None if held is None else cls(held, held.dtype)

    @property
    def columns(self) -> int:
        return int(self.held.shape[1])

    @property
    def written(self) -> int:
        return 0 if backend.engine().reads(self.held) else self.nbytes

    def __len__(self) -> int:
        return len(self.held)

    def __repr__(self) -> str:
        return f"DevicePoints({counted(len(self), 'row')} of {self.columns} {self.kind}s)"

    def __getitem__(self, place: Any) -> NDArray[Any]:
        if isinstance(place, tuple):
            return np.asarray(self.dense()[place])
        index = np.arange(len(self))[place]
        found = self.held[np.atleast_1d(index)].astype(self.kind, copy=False)
        return np.asarray(found.reshape((*np.shape(index), self.columns)))

    def validate(self, who: str) -> DevicePoints:
        if not (self.nbytes and np.all(np.isfinite(4 * self.squared_norms()))):
            as_rows(self.dense(), who=who)  # raises, and says what is wrong
        return self

    def take(self, index: Index, *, copy: bool = True) -> DevicePoints:
        if not copy and len(index) and run_ends(index) == [len(index) - 1]:
            return self.run(int(index[0]), int(index[-1]) + 1)
        return replace(self, held=self.held.take(np.arange(len(self))[index]))

    def run(self, first: int, last: int) -> DevicePoints:
        return replace(self, held=self.held[first:last])

    def dense(self) -> NDArray[Any]:
        return np.asarray(self.held, self.kind)

    def chunks(self) -> Iterator[DensePoints]:
        yield self.here()

    def here(self) -> DensePoints:
        return DensePoints(self.dense())

    def for_engine(self) -> Any:
        return self.held if backend.engine().reads(self.held) else self.dense()

    def astype(self, dtype: DTypeLike, copy: bool = False) -> DevicePoints | DensePoints:  # type: ignore[override]
        wider = np.dtype(dtype).itemsize >= self.held.dtype.itemsize
        return replace(self, kind=np.dtype(dtype)) if wider else self.here().astype(dtype)

    def largest(self) -> float:
        return float(self.held.largest())

    def sums(self) -> NDArray[np.float64]:
        """Σ xₖ of each row."""
        return np.asarray(self.held.own_sums[1])

    def squared_distances(self, origin: NDArray[np.float64]) -> NDArray[np.float64]:
        """‖x − o‖² of each row."""
        return np.asarray(self.held.row_sums(origin, FLOAT64)[0])

    def squared_norms(self) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            return np.asarray(self.held.own_sums[0], self.kind)
