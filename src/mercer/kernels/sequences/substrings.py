"""The kernel of all substrings."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.errors import NotAKernel, message
from mercer.kernels.base import Array
from mercer.kernels.parameters import checks
from mercer.kernels.sequences.base import SequenceKernel
from mercer.kernels.sequences.corpus import Corpus
from mercer.kernels.sequences.counts import mirrored
from mercer.kernels.sequences.pairs import own_pairs

__all__ = ["AllSubstrings"]

PIECE = 2e7
"""How many symbols a thread reads between two interrupt checks."""


@dataclass(frozen=True, repr=False)
class AllSubstrings(SequenceKernel):
    """k(x, z) = Σᵤ λ^|u| |x|ᵤ |z|ᵤ over all substrings u of at least one symbol; |x|ᵤ counts the occurrences of u in x.

    Parameters
    ----------
    decay : float, default 0.5
        λ with 0 < λ ≤ 1. With λ = 1 values are whole numbers, exact below 2⁵³; but a sequence shares so many long
        substrings with itself that the normalised matrix is nearly the identity.
    unit : {"character", "word"}, default "character"
        As for `Spectrum`.

    Raises
    ------
    NotAKernel
        If the decay is not in (0, 1].

    Notes
    -----
    The substrings of z are the paths of its suffix automaton, which has at most 2|z| states. One pass of x through the
    automaton gives k(x, z), in O(|x| + |z|). A product K(X, Z) v needs one automaton of all of Z, and linear time.

    References
    ----------
    S. V. N. Vishwanathan, A. J. Smola (2003). Fast kernels for string and tree matching. NeurIPS 15.

    Examples
    --------
    >>> from mercer.kernels import AllSubstrings
    >>> AllSubstrings(decay=1.0)(["aba", "ab"])  # a twice, b, ab, ba, aba; a, b, ab
    array([[8., 4.],
           [4., 3.]])
    """

    decay: float = field(default=0.5, metadata={"at_most": 1.0})
    unit: str = "character"

    def __post_init__(self) -> None:
        self._set("decay", checks.positive("AllSubstrings", "decay", self.decay))
        if self.decay > 1:
            raise NotAKernel(message("AllSubstrings", f"decay={self.decay}", "give a number in (0, 1]"))
        self._check_unit()

    def block(self, X: Array, Z: Array) -> NDArray[np.float64]:
        """All k(x, z)."""
        x, given = self._corpora(X, Z)
        same, z = given is None, x if given is None else given
        out = np.zeros((x.count, z.count))
        step = max(1, int(PIECE * backend.engine().threads() / max(int(x.starts[-1]), 1)))
        for j in range(0, z.count, step):
            self._fill(x, z, same, j, min(j + step, z.count), out)
        return mirrored(out) if same else out

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        x, _ = self._corpora(X, X)
        return own_pairs((x.part(i, i + 1) for i in range(x.count)), self._fill)

    @property
    def has_fast_matmul(self) -> bool:
        return True

    def matmul(self, X: Array, Z: Array, V: Array) -> NDArray[np.float64]:
        """K(X, Z) V in linear time: one automaton of all of Z, whose states have weights from V."""
        x, given = self._corpora(X, Z)
        z, v = x if given is None else given, np.ascontiguousarray(V, np.float64)
        out = np.zeros((x.count, v.shape[1]))
        backend.engine().substring_product(
            x=x.symbols,
            x_starts=x.starts,
            z=z.symbols,
            z_starts=z.starts,
            alphabet=x.alphabet,
            decay=self.decay,
            v=v,
            out=out,
        )
        return out

    def _fill(self, x: Corpus, z: Corpus, same: bool, j0: int, j1: int, out: NDArray[np.float64]) -> None:
        backend.engine().substring_kernel(
            x=x.symbols,
            x_starts=x.starts,
            z=z.symbols,
            z_starts=z.starts,
            alphabet=x.alphabet,
            decay=self.decay,
            triangle=same,
            j0=j0,
            j1=j1,
            out=out,
        )
