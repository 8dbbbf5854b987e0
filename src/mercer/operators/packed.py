"""A symmetric matrix that stores each pair of entries once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators.arrays import Array, product, row_blocks
from mercer.operators.base import Operator

__all__ = ["Packed"]


class Packed(Operator):
    """V ↦ A V for a symmetric A, stored by block rows from the diagonal on: about half the memory of `Dense`.

    A product reads some rows at a time twice, the second time from the cache, and uses SciPy's BLAS (see `product`).

    Parameters
    ----------
    values : array of shape (size,)
        Block rows one after the other, each row-major: rows i, …, i + height − 1 from column i on. They are not copied.
    n : int
        The number of rows of A.
    height : int
        The number of rows of a block row.

    Raises
    ------
    InvalidInput
        If the values do not have the length of the block rows.

    Examples
    --------
    >>> import numpy as np
    >>> A = Packed(np.array([2.0, 1.0, 0.5, 1.0, 3.0, 0.25, 1.0]), n=3, height=2)
    >>> A.toarray()
    array([[2.  , 1.  , 0.5 ],
           [1.  , 3.  , 0.25],
           [0.5 , 0.25, 1.  ]])
    >>> A @ [1.0, 1.0, 0.0]
    array([3.  , 4.  , 0.75])
    """

    def __init__(self, values: NDArray[Any], n: int, height: int) -> None:
        if n < 0 or height < 1 or values.shape != (self.size(n, height),) or not values.flags.c_contiguous:
            given = f"values of shape {values.shape}, n={n}, height={height}"
            raise InvalidInput(message("Packed", given, "give the block rows, one after the other"))
        super().__init__((n, n), values.dtype, symmetric=True)
        self._values, self._height = values, height

    @staticmethod
    def size(n: int, height: int) -> int:
        """The number of stored entries.

        >>> Packed.size(3, 2), Packed.size(7000, 192)
        (7, 25167424)
        """
        whole, last = divmod(n, height)
        return height * (whole * n - height * whole * (whole - 1) // 2) + last * last

    def _block_rows(self) -> Iterator[tuple[slice, Array]]:
        """Each block of rows, with its entries from the first row's number on."""
        n, start = self.shape[0], 0
        for i in range(0, n, self._height):
            rows = slice(i, min(i + self._height, n))
            end = start + (rows.stop - i) * (n - i)
            yield rows, self._values[start:end].reshape(rows.stop - i, n - i)
            start = end

    def _matmat(self, V: Array) -> Array:
        wide = np.result_type(self.dtype, V.dtype)
        X, out = np.ascontiguousarray(V, wide), np.zeros(V.shape, wide)
        for rows, entries in self._block_rows():
            for some in row_blocks(*entries.shape):
                A, own = entries[some].astype(wide, copy=False), slice(rows.start + some.start, rows.start + some.stop)
                out[own] += product(A, X[rows.start :])
                out[rows.stop :] += product(A.T, X[own])[rows.stop - rows.start :]
        return out.astype(V.dtype, copy=False)

    def diagonal(self) -> Array:
        return np.concatenate([np.empty(0, self.dtype), *(np.diagonal(entries) for _, entries in self._block_rows())])

    def rows(self, I: ArrayLike | slice) -> Array:
        index = self._index(I, 0)
        out = np.empty((len(index), self.shape[1]), self.dtype)
        for rows, entries in self._block_rows():
            inside, below = (index >= rows.start) & (index < rows.stop), index >= rows.stop
            out[inside, rows.start :] = entries[index[inside] - rows.start]
            out[below, rows] = entries[:, index[below] - rows.start].T
        return out

    def fill(self, out: Array) -> Array:
        self._check_out(out)
        for rows, entries in self._block_rows():
            out[rows, rows.start :] = entries
            out[rows.stop :, rows] = entries[:, rows.stop - rows.start :].T
        return out

    def fill_upper(self, out: Array, threads: int = 1) -> Array:
        """Write the upper triangle into `out`; most entries below the diagonal are not changed.

        Several threads share the rows. They gain where `out` is new memory, whose first touch takes most of the time.
        """
        self._check_out(out)

        def write(block: tuple[slice, Array]) -> None:
            rows, entries = block
            out[rows, rows.start :] = entries

        with ThreadPoolExecutor(threads) as pool:
            deque(pool.map(write, self._block_rows()), maxlen=0)
        return out
