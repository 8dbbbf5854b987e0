"""Base classes of kernels on sequences, which encode strings or lists of tokens as arrays of symbols."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, NotAKernel, message
from mercer.kernels.base import Array, Kernel
from mercer.kernels.factors import Factors
from mercer.kernels.parameters import checks
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.sequences import comparing, counts
from mercer.kernels.sequences.corpus import Corpus, both_strands, encoded, without_gaps
from mercer.kernels.sequences.counts import Pattern
from mercer.points import OBJECTS, Space
from mercer.points.sequences import as_sequences

__all__ = ["UNITS", "SequenceKernel", "WindowKernel", "as_text", "integer"]

UNITS = ("character", "word")

LARGEST = 1 << 53
"""Whole numbers up to this one are exact in float64."""


def integer(who: str, name: str, value: Any, least: int = 1) -> int:
    """An integer of at least `least`."""
    number = checks.number(who, name, value)
    if number != int(number) or number < least:
        raise NotAKernel(message(who, f"{name}={value!r}", f"give an integer of at least {least}"))
    return int(number)


@dataclass(frozen=True, repr=False)
class SequenceKernel(Kernel):
    """k(x, z) of two sequences: strings, which are read as characters or as words, or lists of tokens."""

    @property
    def space(self) -> Space:
        return OBJECTS

    @property
    def prefers_large_blocks(self) -> bool:
        return True

    @property
    def properties(self) -> Properties:
        """Positive semi-definite, but not strictly: different sequences can have the same features."""
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE)

    def as_objects(self, X: Array) -> Array:
        return as_sequences(X, type(self).__name__)

    def _alphabet(self) -> Iterable[Any] | None:
        """The symbols that the kernel knows; None for all."""
        return None

    def _check_unit(self) -> None:
        self._set("unit", checks.one_of(type(self).__name__, "unit", self._unit, UNITS))

    @property
    def _unit(self) -> str:
        return str(getattr(self, "unit", "character"))

    def _corpora(self, X: Array, Z: Array) -> tuple[Corpus, Corpus | None]:
        """The encoded X and Z, with the same symbols; (X, None) if Z is X."""
        if Z is X:
            return self._encoded(self.as_objects(X)), None
        X, Z = self.as_objects(X), self.as_objects(Z)
        both = self._encoded(np.concatenate([X, Z]))
        return both.part(0, len(X)), both.part(len(X), both.count)

    def _encoded(self, X: Array) -> Corpus:
        return encoded(X, self._unit, self._alphabet())


@dataclass(frozen=True, repr=False)
class WindowKernel(SequenceKernel):
    """k(x, z) = Σ weight · ⟨counts of x, counts of z⟩ over patterns.

    A pattern is a set of positions in a window. Its counts are the numbers of windows of a sequence that have given
    symbols at these positions.
    """

    @property
    @abstractmethod
    def span(self) -> int:
        """The length of a window."""

    @abstractmethod
    def patterns(self) -> Sequence[Pattern]:
        """The patterns and their weights."""

    @property
    def _strands(self) -> bool:
        return bool(getattr(self, "both_strands", False))

    def _check_strands(self) -> None:
        who, given = type(self).__name__, self._strands
        if getattr(self, "both_strands", False) not in (True, False) or (given and self._unit == "word"):
            raise InvalidInput(message(who, f"both_strands={given!r}, unit={self._unit!r}", "give True for DNA only"))

    def _encoded(self, X: Array) -> Corpus:
        """The encoded sequences; with both strands each is followed by its reverse complement."""
        if not self._strands:
            return super()._encoded(X)
        return without_gaps(super()._encoded(both_strands(X, type(self).__name__)))

    def _distinct(self) -> Sequence[Pattern]:
        """The patterns, each once: with both strands a pattern and its mirror image have the same counts."""
        patterns = self.patterns()
        if not self._strands:
            return patterns
        weights: dict[tuple[int, ...], float] = {}
        for pattern in patterns:
            mirror = tuple(self.span - 1 - offset for offset in reversed(pattern.offsets))
            key = min(pattern.offsets, mirror)
            weights[key] = weights.get(key, 0.0) + pattern.weight
        return [Pattern(offsets, weight) for offsets, weight in weights.items() if weight]

    @abstractmethod
    def shared(self, matches: int) -> int:
        """The term that two windows add to k if they agree at this number of positions."""

    def _worth(self) -> NDArray[np.int64] | None:
        """The term of each number of matches; None if a term is too large to be exact in float64.

        With both strands a pair counts twice, because the pair of the complements adds the same.
        """
        worth = [(1 + self._strands) * self.shared(m) for m in range(self.span + 1)]
        return np.array(worth, np.int64) if max(worth) <= LARGEST else None

    def _compared(self, x: Corpus) -> Corpus:
        """The sequences whose windows are compared with those of the columns: only the first of both strands."""
        if not self._strands:
            return x
        sizes = x.lengths // 2  # without the gap
        positions = np.arange(sizes.sum()) + np.repeat(x.starts[:-1] - np.cumsum(sizes) + sizes, sizes)
        return Corpus(x.symbols[positions], np.concatenate([[0], np.cumsum(sizes)]), x.names)

    def block(self, X: Array, Z: Array) -> NDArray[np.float64]:
        """All k(x, z): whole numbers, exact below 2⁵³."""
        self._require_resolved()
        x, z = self._corpora(X, Z)
        patterns, worth = self._distinct(), self._worth()
        if worth is not None and comparing.is_less_work(x, z, worth, patterns, self.span):
            return comparing.gram(self._compared(x), x if z is None else z, worth, z is None)
        return counts.gram(x, z, patterns, self.span)

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        self._require_resolved()
        x, _ = self._corpora(X, X)
        patterns, worth = self._distinct(), self._worth()
        if worth is not None and comparing.diagonal_is_less_work(x, worth, patterns, self.span):
            return comparing.diagonal(self._compared(x), x, worth)
        return counts.self_products(x, patterns, self.span)

    @property
    def has_fast_matmul(self) -> bool:
        return True

    def matmul(self, X: Array, Z: Array, V: Array) -> NDArray[np.float64]:
        """K(X, Z) V in time that is linear in the lengths: each feature of Z gets a weight F(Z)ᵀ V.

        If comparing all windows of X with all of Z is less work, K is computed, some rows at a time.
        """
        self._require_resolved()
        x, z = self._corpora(X, Z)
        patterns, worth, v = self._distinct(), self._worth(), np.asarray(V, np.float64)
        if worth is not None and comparing.is_less_work(x, x if z is None else z, worth, patterns, self.span):
            return comparing.matmul(self._compared(x), x if z is None else z, worth, v)
        return counts.matmul(x, z, patterns, self.span, v)

    @property
    def counts_features(self) -> bool:
        return True

    def factors(self, X: Array, Z: Array, room: float) -> Factors | None:
        """The counts, with weights; None if comparing all windows is less work."""
        self._require_resolved()
        x, z = self._corpora(X, Z)
        patterns, worth = self._distinct(), self._worth()
        if worth is not None and comparing.is_less_work(x, z, worth, patterns, self.span):
            return None
        return counts.factors(x, z, patterns, self.span, room)

    def features(self, X: Array, columns_of: Array | None = None) -> Any:
        """The counts as a CSR matrix F with K(X, Z) = F(X, Z) F(Z)ᵀ.

        Parameters
        ----------
        X : sequences
        columns_of : sequences, optional
            Z, by default X. The columns are the features of its windows, by pattern and then by symbols; other features
            of X are not counted. `feature_names` names them.

        Returns
        -------
        CSR array of shape (len(X), features)

        Raises
        ------
        InvalidInput
            If the kernel subtracts some counts, as `Mismatch` may, so that it has no such features.

        Examples
        --------
        >>> from mercer.kernels import Spectrum
        >>> Spectrum(k=2).features(["aba", "bab"]).toarray()
        array([[1., 1.],
               [1., 1.]])
        """
        x, z = self._corpora(X, X if columns_of is None else columns_of)
        parts = []
        for pattern in self._own_patterns():
            rows = counts.count(x if z is None else counts.joined(x, z), pattern, self.span).matrix.tocsr()
            if z is not None:
                known = np.unique(rows[x.count :].indices)
                rows = rows[: x.count][:, known]
            parts.append(np.sqrt(pattern.weight) * rows)
        return sp.csr_array(sp.hstack(parts, format="csr"))

    def feature_names(self, X: Array) -> list[str]:
        """The names of the columns of ``features(X)``, with a dot for each position that a pattern ignores.

        Examples
        --------
        >>> from mercer.kernels import GappedKmer
        >>> GappedKmer(g=3, k=2).feature_names(["abc"])
        ['ab·', 'a·c', '·bc']
        """
        x, _ = self._corpora(X, X)
        names = []
        for pattern in self._own_patterns():
            offsets = set(pattern.offsets)
            for first in counts.count(x, pattern, self.span).first:
                window = [x.names[s] for s in x.symbols[first : first + self.span]]
                names.append(as_text([t if p in offsets else "·" for p, t in enumerate(window)]))
        return names

    def _own_patterns(self) -> Sequence[Pattern]:
        """The patterns; raise InvalidInput if a weight is negative, so that the counts are not features."""
        self._require_resolved()
        patterns = self.patterns()
        if any(pattern.weight < 0 for pattern in patterns):
            given = f"{self!r:.80} is computed without its features"
            raise InvalidInput(message(type(self).__name__, given, "use Spectrum or GappedKmer, or the kernel itself"))
        return patterns


def as_text(window: Iterable[Any]) -> str:
    """Symbols as one text: characters without spaces, words and numbers with spaces between them.

    >>> as_text("ab"), as_text(["to", "be"])
    ('ab', 'to be')
    """
    symbols = [str(symbol) for symbol in window]
    return ("" if all(len(symbol) == 1 for symbol in symbols) else " ").join(symbols)
