"""Cholesky factors of a matrix of tiles, in the memory of a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt, sqrt

import numpy as np
import scipy.linalg

from mercer.engine.cuda.arrays import TOGETHER, DeviceArray
from mercer.engine.cuda.devices import Array, Device
from mercer.engine.cuda.tall import dots
from mercer.engine.cuda.tiles import CudaTiles

__all__ = ["DeviceFactors", "Triangle"]

BLOCK = 1024
"""Rows that the host factors at a time, in float64."""
SHARE = 0.8
"""The share of the free memory that factors may take."""
PART = 4
"""Rows that are multiplied take at most this part of the free memory besides."""
WIDE = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class Triangle:
    """An upper triangular T. Its products are summed in float64, so that T⁻¹ and T⁻ᵀ are those of what is stored.

    Parameters
    ----------
    above : DeviceArray of shape (m, m)
        T in the blocks above the diagonal.
    inverses : DeviceArray of shape (m, BLOCK)
        T_kk⁻ᵀ for the blocks on the diagonal, one above the other.
    """

    above: DeviceArray
    inverses: DeviceArray

    @classmethod
    def of(
        cls, upper: DeviceArray, shift: float, largest: float, rows: Callable[[int, int], DeviceArray] | None = None
    ) -> Triangle | None:
        """T in the place of the upper triangle of A, TᵀT = A + shift·I; None if that is not positive definite.

        By rows of blocks, T_kj = T_kk⁻ᵀ (A_kj − Σ_{i<k} T_ikᵀ T_ij). Blocks on the diagonal are factored on the host;
        all else are dot products. `largest` bounds the entries of A, which `rows` gives if they are not there yet.
        """
        m, device = len(upper), upper.device
        upper = replace(upper, known=sqrt(largest + shift))
        made = cls(upper, DeviceArray.empty(device, (m, min(BLOCK, m)), upper.dtype))
        for first, last in _blocks(m):
            row = upper[first:last]
            if rows is not None:
                row.write(rows(first, last))
            made._subtract_known(first, first, last)
            diagonal = np.asarray(row.columns(first, last), WIDE)
            made._subtract_known(first, last, m)  # while the host factors
            factor = _factored(diagonal + shift * np.eye(last - first))
            if factor is None:
                return None
            inverse = made._inverse(first, last)
            for place, values in ((row.columns(first, last), factor.T), (inverse, _inverse(factor))):
                place.write(DeviceArray.of(device, np.ascontiguousarray(values, upper.dtype)))
            if last < m:
                rest = replace(row.columns(last, m), known=largest + shift)
                rest.write(dots(inverse, rest.T).held(0, last - first))
        return made

    def _subtract_known(self, first: int, j0: int, j1: int) -> None:
        """A_kj − Σ_{i<k} T_ikᵀ T_ij for the block k that begins at `first` and columns [j0, j1), some at a time."""
        above, last = self.above[:first], min(first + BLOCK, len(self.above))
        for start, end in _parts(j0, j1, above) if first else ():
            known = dots(above.columns(first, last).T, above.columns(start, end).T).held(0, last - first)
            self.above[first:last].columns(start, end).subtract(known)

    def solve(self, X: DeviceArray) -> DeviceArray:
        """T⁻¹ X from the last block to the first; X is used up."""
        out = DeviceArray.empty(X.device, X.shape, X.dtype)
        for first, last, above, _, inverse in reversed(self._steps):
            inverse.T.times(X[first:last], out[first:last])
            above.times(out[first:last], X[:first], X[:first])
        return out

    def solve_transposed(self, X: DeviceArray) -> DeviceArray:
        """T⁻ᵀ X from the first block to the last; X is used up."""
        out = DeviceArray.empty(X.device, X.shape, X.dtype)
        for first, last, _, right, inverse in self._steps:
            inverse.times(X[first:last], out[first:last])
            right.T.times(out[first:last], X[last:], X[last:])
        return out

    @cached_property
    def _steps(self) -> list[tuple[int, int, DeviceArray, DeviceArray, DeviceArray]]:
        """Where each block on the diagonal begins and ends, what is above it and right of it, and T_kk⁻ᵀ.

        What is solved is taken from all that is not, so that products have many rows, one for each thread.
        """
        T, m = self.above, len(self.above)
        return [(i, j, T[:i].columns(i, j), T[i:j].columns(j, m), self._inverse(i, j)) for i, j in _blocks(m)]

    def _inverse(self, first: int, last: int) -> DeviceArray:
        return self.inverses[first:last].columns(0, last - first)


@dataclass(frozen=True, eq=False)
class DeviceFactors:
    """T and U with TᵀT = A and UᵀU = TTᵀ + sI, in the two triangles of one array.

    Parameters
    ----------
    T, U : Triangle
    """

    T: Triangle
    U: Triangle

    @staticmethod
    def most_rows(device: Device) -> int:
        """The most rows for which there is room, in float32."""
        return isqrt(int(SHARE * device.free() / 4))

    @classmethod
    def of(cls, tiles: CudaTiles, jitter: float, shift: float, largest: float) -> DeviceFactors | None:
        """Factor the matrix of the tiles plus jitter·I; its entries are at most `largest`."""
        both = DeviceArray.empty(tiles.device, (tiles.rows, tiles.rows), tiles.dtype)
        T = Triangle.of(both, jitter, largest, tiles.held)
        if T is None:
            return None
        U = Triangle.of(both.T, shift, _square(T.above))
        return None if U is None else cls(T, U)

    def solve(self, B: Array) -> Array:
        """(U T)⁻¹ B."""
        return self._each(B, lambda X: self.T.solve(self.U.solve(X)))

    def solve_transposed(self, B: Array) -> Array:
        """(U T)⁻ᵀ B."""
        return self._each(B, lambda X: self.U.solve_transposed(self.T.solve_transposed(X)))

    def inverse(self, B: Array) -> Array:
        """A⁻¹ B."""
        return self._each(B, lambda X: self.T.solve(self.T.solve_transposed(X)))

    def _each(self, B: Array, solved: Callable[[DeviceArray], DeviceArray]) -> Array:
        """The solutions in float64, for some columns at a time."""
        out = np.empty(B.shape)
        for c in range(0, B.shape[1], TOGETHER):
            some = B[:, c : c + TOGETHER]
            X = np.zeros((len(B), TOGETHER))
            X[:, : some.shape[1]] = some
            out[:, c : c + TOGETHER] = np.asarray(solved(DeviceArray.of(self.T.above.device, X)))[:, : some.shape[1]]
        return out


def _square(T: DeviceArray) -> float:
    """TTᵀ in the place of the lower triangle and the diagonal, and its largest number.

    Row i has the columns from i on of T only, so its diagonal block is not needed after it.
    """
    largest = 0.0
    for first, last in _blocks(len(T)):
        right = T.columns(first, len(T))
        for start, end in _parts(0, last, right.T):
            T[first:last].columns(start, end).write(dots(right[first:last], right[start:end]).held(0, last - first))
        largest = max(largest, float(np.diagonal(np.asarray(T[first:last].columns(first, last))).max()))
    return largest


def _blocks(m: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + BLOCK, m)) for first in range(0, m, BLOCK))


def _parts(first: int, last: int, table: DeviceArray) -> Iterator[tuple[int, int]]:
    """Runs of whole blocks of the columns of a table, of which a copy has room."""
    free = table.device.free() // (PART * len(table) * table.dtype.itemsize)
    width = max(1, free // BLOCK) * BLOCK
    return ((start, min(start + width, last)) for start in range(first, last, width))


def _factored(A: Array) -> Array | None:
    L, info = scipy.linalg.lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
    return L if info == 0 and np.all(np.isfinite(np.diagonal(L))) else None


def _inverse(L: Array) -> Array:
    return np.asarray(scipy.linalg.lapack.dtrtri(L, lower=1)[0])
