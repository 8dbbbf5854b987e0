"""A symmetric operator with entries in 16 bits, stored once for each pair: a quarter of the memory of float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.engine import backend
from mercer.engine.opcodes import QUANTISED_GROUP, QUANTISED_ROWS, QUANTISED_STRIP
from mercer.errors import InvalidInput, message
from mercer.operators.arrays import Array
from mercer.operators.base import Operator

__all__ = ["Quantised"]

PIECE = 4e8
"""Products of an entry and a vector's component that a thread computes between two interrupt checks."""


class Quantised(Operator):
    r"""V ↦ Ã V, Ãᵢⱼ = c + s q with 16-bit integers q, c and s by blocks of 192 rows, and the diagonal of A exactly.

    q = ⌊(Aᵢⱼ − c)/s + u⌋ with a u drawn evenly from [0, 1) for each pair, so that Ã − A has independent entries of mean
    0 and a variance of s²/6 on average, whatever structure A has. Its spectral norm is then close to 2 √(n s²/6),
    hundreds of times below the bound n s for arbitrary errors.

    A product reads n² bytes, which bounds its time. Vectors are rounded to float32, and sums over runs of at most 1024
    columns or 192 rows are in float32.

    Parameters
    ----------
    A : Operator of shape (n, n)
        A symmetric operator. Each pair of entries is computed once.
    most : float
        The largest useful ‖Ã − A‖. If the noise exceeds it, the computation stops.

    Attributes
    ----------
    noise : float
        2 √max_i Σⱼ s²/6, which ‖Ã − A‖₂ hardly exceeds; NaN if an entry of A is not finite. Unless it is at most
        `most`, Ã is incomplete, and products are refused.

    Raises
    ------
    InvalidInput
        If the operator is not symmetric, or `most` is negative.

    References
    ----------
    A. S. Bandeira, R. van Handel (2016). Sharp nonasymptotic bounds on the norm of random matrices with independent
    entries. Annals of Probability 44.
    M. P. Connolly, N. J. Higham, T. Mary (2021). Stochastic rounding and its probabilistic backward error analysis.
    SIAM Journal on Scientific Computing 43.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> A = Quantised(Dense([[2.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 1.0]]))
    >>> (A @ [1.0, 1.0, 1.0]).round(3), A.noise < 1e-4
    (array([3.5 , 4.25, 1.75]), True)
    """

    def __init__(self, A: Operator, most: float = np.inf) -> None:
        if not A.symmetric or not most >= 0:
            given = f"an operator of shape {A.shape}, symmetric={A.symmetric}, most={most}"
            raise InvalidInput(message("Quantised", given, "give a symmetric one, and most ≥ 0"))
        super().__init__(A.shape, np.float32, symmetric=True)
        engine, n = backend.engine(), A.shape[0]
        self._begin = np.arange(0, n, QUANTISED_ROWS)
        rows = np.minimum(QUANTISED_ROWS, n - self._begin)
        sizes = _padded(rows, QUANTISED_STRIP) * _padded(n - self._begin, QUANTISED_GROUP)
        self._start = np.append(0, np.cumsum(sizes)).astype(np.int64)
        self._steps, self._centres = np.zeros(len(rows)), np.zeros(len(rows))
        self._entries, self._diagonal = np.empty(int(self._start[-1]), np.int16), np.array(A.diagonal(), np.float64)
        self.noise = self._round(A, engine, most)
        self._complete = self.noise <= most

    @staticmethod
    def bytes(n: int) -> int:
        """Memory for n rows.

        >>> Quantised.bytes(20_000)
        403840000
        """
        return n * n + QUANTISED_ROWS * n

    @staticmethod
    def expected_noise(n: int, spread: float) -> float:
        """2 √(n/6) s, the noise of n rows whose entries differ by `spread`, s = spread/65534.

        >>> 1e-3 < Quantised.expected_noise(10_000, 1.0) < 1.5e-3
        True
        """
        return float(2 * np.sqrt(n / 6) * spread / 65534)

    def _round(self, A: Operator, engine: Any, most: float) -> float:
        """Fill the blocks until the noise exceeds `most`, and return the noise."""
        n = self.shape[0]
        seeds = np.random.default_rng(0).integers(0, 1 << 32, n, np.uint32)
        left = above = largest = 0.0  # variances of a row's entries: Σ over former blocks, and the largest of all rows
        if not np.all(np.isfinite(self._diagonal)):
            return float("nan")
        for b, i0 in enumerate(self._begin):
            i1 = min(i0 + QUANTISED_ROWS, n)
            x = np.ascontiguousarray(A.block(np.arange(i0, i1), np.arange(i0, n)), np.float32)
            out = self._entries[self._start[b] : self._start[b + 1]]
            self._centres[b], self._steps[b] = engine.quantise(x, seeds[i0:], out)
            above = self._steps[b] ** 2 / 6
            largest = max(largest, left + above * (n - i0)) if above == above else above
            left += above * (i1 - i0)
            if not 2 * largest**0.5 <= most:
                break
        return float(2 * largest**0.5)

    def _matmat(self, V: Array) -> Array:
        if not self._complete:
            raise self._invalid(f"noise={self.noise:.1e}", "raise `most`, or take A itself")
        # Each column is scaled by a power of two into the range of float32.
        scale = np.frexp(np.max(np.abs(V), axis=0, initial=0.0))[1]
        v = np.ascontiguousarray(np.ldexp(np.asarray(V, np.float64), -scale), np.float32)
        out = self._constants(v)
        engine, blocks = backend.engine(), len(self._begin)
        step = max(1, int(PIECE * engine.threads() / (QUANTISED_ROWS * max(v.size, 1))))
        for first in range(0, blocks if v.size else 0, step):
            last = min(first + step, blocks)
            engine.quantised_product(
                entries=self._entries, start=self._start, step=self._steps, first=first, last=last, v=v, out=out
            )
        return np.ldexp(out, scale, out=out).astype(V.dtype, copy=False)

    def _constants(self, v: Array) -> Array:
        """C V for the centres C: on the diagonal that of K, and for i < j the centre of the block of row i."""
        wide = v.astype(np.float64)
        sums = np.add.reduceat(wide, self._begin, axis=0)
        after, c = np.cumsum(sums[::-1], axis=0)[::-1], self._centres[:, None]
        before = np.cumsum(c * sums, axis=0) - c * sums
        per_block = c * after + before
        block = np.arange(len(v)) // QUANTISED_ROWS
        return np.ascontiguousarray(per_block[block] + (self._diagonal - self._centres[block])[:, None] * wide)

    def diagonal(self) -> Array:
        return self._diagonal.astype(np.float32)


def _padded(sizes: Array, to: int) -> Array:
    return -(-sizes // to) * to
