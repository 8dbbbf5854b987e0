"""The gap-weighted subsequence kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.engine.opcodes import LONGEST_SUBSEQUENCE
from mercer.errors import NotAKernel, message
from mercer.kernels.base import Array
from mercer.kernels.parameters import checks
from mercer.kernels.sequences.base import SequenceKernel, integer
from mercer.kernels.sequences.corpus import Corpus
from mercer.kernels.sequences.pairs import by_pairs, own_pairs

__all__ = ["Subsequence"]


@dataclass(frozen=True, repr=False)
class Subsequence(SequenceKernel):
    """k(x, z) = Σ_u (Σ λ^span over occurrences of u in x) (Σ λ^span over occurrences of u in z).

    u runs over all subsequences of up to `length` symbols, or of exactly `length` symbols if `exact`. An occurrence is
    a choice of positions i₁ < … < i_q with the symbols of u, and its span is i_q − i₁ + 1, so that gaps reduce its
    weight.

    Parameters
    ----------
    length : int from 1 to 8, default 3
        The length of the longest subsequences.
    decay : float, default 0.5
        λ with 0 < λ ≤ 1; small values give little weight to gaps.
    unit : {"character", "word"}, default "character"
        As for `Spectrum`.
    exact : bool, default False
        Count subsequences of exactly `length` symbols, as textbooks do, instead of those of up to `length` symbols. A
        shorter sequence x then has no features, and k(x, x) = 0.

    Raises
    ------
    NotAKernel
        For a length or a decay out of range.

    Notes
    -----
    A pair takes O(length · |x| · |z|) operations of dynamic programming in float64, and as many pairs are computed at
    once as fit into a vector register. All terms are positive, so the relative error is a few rounding errors for each
    position. k(x, x) grows with the length of x: use `normalized` for sequences of different lengths.

    References
    ----------
    H. Lodhi, C. Saunders, J. Shawe-Taylor, N. Cristianini, C. Watkins (2002). Text classification using string kernels.
    Journal of Machine Learning Research 2.
    J. Shawe-Taylor, N. Cristianini (2004). Kernel methods for pattern analysis, section 11.5. Both use ``exact=True``.

    Examples
    --------
    >>> from mercer.kernels import Subsequence
    >>> K = Subsequence(length=2, decay=0.5)(["cat", "car"])
    >>> bool(K[0, 1] == 2 * 0.5**2 + 0.5**4)  # c, a, and ca
    True
    >>> bool(Subsequence(2, 0.5, exact=True)(["cat", "car"])[0, 1] == 0.5**4)  # ca
    True
    """

    length: int = 3
    decay: float = field(default=0.5, metadata={"at_most": 1.0})
    unit: str = "character"
    exact: bool = False

    def __post_init__(self) -> None:
        self._set("length", integer("Subsequence", "length", self.length))
        if self.length > LONGEST_SUBSEQUENCE:
            raise NotAKernel(message("Subsequence", f"length={self.length}", f"give at most {LONGEST_SUBSEQUENCE}"))
        self._set("decay", checks.positive("Subsequence", "decay", self.decay))
        if self.decay > 1:
            raise NotAKernel(message("Subsequence", f"decay={self.decay}", "give a number in (0, 1]"))
        if not isinstance(self.exact, bool | np.bool_):
            raise NotAKernel(message("Subsequence", f"exact={self.exact!r}", "give True or False"))
        self._set("exact", bool(self.exact))
        self._check_unit()

    def block(self, X: Array, Z: Array) -> NDArray[np.float64]:
        """All k(x, z)."""
        x, z = self._corpora(X, Z)
        return by_pairs(x, z, float(self.length), self._fill)

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        x, _ = self._corpora(X, X)
        return own_pairs((x.part(i, i + 1) for i in range(x.count)), self._fill)

    def _fill(self, x: Corpus, z: Corpus, same: bool, i0: int, i1: int, out: NDArray[np.float64]) -> None:
        backend.engine().subsequence_kernel(
            x=x.symbols,
            x_starts=x.starts,
            z=z.symbols,
            z_starts=z.starts,
            length=self.length,
            decay=self.decay,
            triangle=same,
            i0=i0,
            i1=i1,
            out=out,
            exact=self.exact,
        )
