"""A symmetric operator with entries in 16 bits, stored once for each pair: a quarter of the memory of float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    _centres: NDArray[np.float64]

    def __init__(self, A: Operator, most: float = np.inf) -> None:
        if not A.symmetric or not most >= 0:
            given = f"an operator of shape {A.shape}, symmetric={A.symmetric}, most={most}"
            raise InvalidInput(message("Quantised", given, "give a symmetric one, and most ≥ 0"))
        super().__init__(A.shape, np.float32, symmetric=True)
        self._diagonal = np.array(A.diagonal(), np.float64)
        sound = bool(np.all(np.isfinite(self._diagonal)))
        self._centres, steps = self._round(A, most) if sound else (np.empty(0), np.full(1, np.nan))
        self.noise = noise(self.shape[0], steps)
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

    def _round(self, A: Operator, most: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Keep the entries, and return c and s of each block."""
        self._run = Run.of(A, 0, -(-self.shape[0] // QUANTISED_ROWS), most)
        return self._run.centres, self._run.steps

    def _matmat(self, V: Array) -> Array:
        if not self._complete:
            raise self._invalid(f"noise={self.noise:.1e}", "raise `most`, or take A itself")
        # Each column is scaled by a power of two into the range of float32.
        scale = np.frexp(np.max(np.abs(V), axis=0, initial=0.0))[1]
        v = np.ascontiguousarray(np.ldexp(np.asarray(V, np.float64), -scale), np.float32)
        out = self._constants(v)
        if v.size:
            self._add_products(v, out)
        return np.ldexp(out, scale, out=out).astype(V.dtype, copy=False)

    def _add_products(self, v: Array, out: Array) -> None:
        """out += (Ã − C) v for the centres C."""
        self._run.add_products(v, out)

    def _constants(self, v: Array) -> Array:
        """C V for the centres C: on the diagonal that of K, and for i < j the centre of the block of row i."""
        wide = v.astype(np.float64)
        sums = np.add.reduceat(wide, np.arange(0, len(v), QUANTISED_ROWS), axis=0)
        after, c = np.cumsum(sums[::-1], axis=0)[::-1], self._centres[:, None]
        before = np.cumsum(c * sums, axis=0) - c * sums
        per_block = c * after + before
        block = np.arange(len(v)) // QUANTISED_ROWS
        return np.ascontiguousarray(per_block[block] + (self._diagonal - self._centres[block])[:, None] * wide)

    def diagonal(self) -> Array:
        return self._diagonal.astype(np.float32)


@dataclass(frozen=True)
class Run:
    """Blocks of rows of Ã, from the block `first` on: their entries q, and c and s of each block.

    Where that is too noisy, the last blocks have no entries, and c and s of the block before.
    """

    first: int
    last: int
    entries: NDArray[np.int16]
    centres: NDArray[np.float64]
    steps: NDArray[np.float64]

    def __sizeof__(self) -> int:
        """With the entries: Dask weighs by it whether to send a run to another worker."""
        return object.__sizeof__(self) + self.entries.nbytes

    @classmethod
    def of(cls, A: Operator, first: int, last: int, most: float) -> Run:
        """The blocks `first` to `last` − 1 of A, or fewer where these alone have more noise than `most`."""
        n, engine, scales = A.shape[0], backend.engine(), list[tuple[float, float]]()
        seeds, starts = np.random.default_rng(0).integers(0, 1 << 32, n, np.uint32), block_starts(n)
        starts = starts - starts[first]
        entries = np.empty(int(starts[last]), np.int16)
        for b in range(first, last):
            i0, i1 = b * QUANTISED_ROWS, min((b + 1) * QUANTISED_ROWS, n)
            x = np.ascontiguousarray(A.block(np.arange(i0, i1), np.arange(i0, n)), np.float32)
            scales.append(engine.quantise(x, seeds[i0:], entries[starts[b] : starts[b + 1]]))
            if not noise(n, np.array(scales)[:, 1], first) <= most:
                break
        scales += scales[-1:] * (last - first - len(scales))
        centres, steps = np.array(scales).reshape(-1, 2).T
        return cls(first, last, entries, centres, steps)

    def add_products(self, v: Array, out: Array) -> None:
        """out += Q v for the entries Q = s q of these blocks, and of their transposes."""
        engine, starts = backend.engine(), block_starts(len(v))
        steps = np.zeros(len(starts) - 1)
        steps[self.first : self.last] = self.steps
        own = {"entries": self.entries, "start": starts - starts[self.first], "step": steps, "v": v, "out": out}
        count = max(1, int(PIECE * engine.threads() / (QUANTISED_ROWS * max(v.size, 1))))
        for first in range(self.first, self.last, count):
            engine.quantised_product(**own, first=first, last=min(first + count, self.last))


def block_starts(n: int) -> NDArray[np.int64]:
    """Where each block of n rows begins among the entries, and where the last one ends.

    >>> block_starts(200).tolist()
    [0, 39936, 40064]
    """
    begin = np.arange(0, n, QUANTISED_ROWS)
    sizes = _padded(np.minimum(QUANTISED_ROWS, n - begin), QUANTISED_STRIP) * _padded(n - begin, QUANTISED_GROUP)
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def noise(n: int, steps: Array, first: int = 0) -> float:
    """2 √max_i Σⱼ s²/6 over the blocks with these steps, from the block `first` on; NaN if a step is."""
    variances, begin = np.asarray(steps) ** 2 / 6, QUANTISED_ROWS * np.arange(first, first + len(steps))
    rows = np.minimum(QUANTISED_ROWS, n - begin)
    before = np.cumsum(variances * rows) - variances * rows
    return float(2 * np.max(before + variances * (n - begin), initial=0.0) ** 0.5)


def _padded(sizes: Array, to: int) -> Array:
    return -(-sizes // to) * to
