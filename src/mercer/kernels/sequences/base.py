"""What kernels on sequences share: strings or token lists in, an array of symbols for the loops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, NotAKernel, message
from mercer.kernels.base import Array, Kernel
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
"""What a float64 holds exactly."""


def integer(who: str, name: str, value: Any, least: int = 1) -> int:
    """An integer of at least `least`."""
    number = checks.number(who, name, value)
    if number != int(number) or number < least:
        raise NotAKernel(message(who, f"{name}={value!r}", f"give an integer of at least {least}"))
    return int(number)


@dataclass(frozen=True, repr=False)
class SequenceKernel(Kernel):
    """k(x, z) of two sequences: strings, read as characters or as words, or lists of tokens."""

    reads: ClassVar[str] = "objects"

    @property
    def space(self) -> Space:
        return OBJECTS

    @property
    def prefers_large_blocks(self) -> bool:
        return True

    @property
    def properties(self) -> Properties:
        """An inner product of features: positive semi-definite (different sequences can have the same features)."""
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE)

    def as_objects(self, X: Array) -> Array:
        return as_sequences(X, type(self).__name__)

    def _alphabet(self) -> Iterable[Any] | None:
        """The symbols that count; None is all that there are."""
        return None

    def _check_unit(self) -> None:
        self._set("unit", checks.one_of(type(self).__name__, "unit", self._unit, UNITS))

    @property
    def _unit(self) -> str:
        return str(getattr(self, "unit", "character"))

    def _corpora(self, X: Array, Z: Array) -> tuple[Corpus, Corpus | None]:
        """X and Z in the same symbols; None for X with itself."""
        if Z is X:
            return self._encoded(self.as_objects(X)), None
        X, Z = self.as_objects(X), self.as_objects(Z)
        both = self._encoded(np.concatenate([X, Z]))
        return both.part(0, len(X)), both.part(len(X), both.count)

    def _encoded(self, X: Array) -> Corpus:
        return encoded(X, self._unit, self._alphabet())


@dataclass(frozen=True, repr=False)
class WindowKernel(SequenceKernel):
    """k(x, z) = Σ over a few patterns of weight · ⟨counts of x, counts of z⟩.

    A pattern is some places of a window; its counts say how often windows of a sequence show each choice of symbols
    there.
    """

    @property
    @abstractmethod
    def span(self) -> int:
        """How long windows are."""

    @abstractmethod
    def patterns(self) -> Sequence[Pattern]:
        """The places of a window that are looked at together."""

    @property
    def _strands(self) -> bool:
        return bool(getattr(self, "both_strands", False))

    def _check_strands(self) -> None:
        who, given = type(self).__name__, self._strands
        if getattr(self, "both_strands", False) not in (True, False) or (given and self._unit == "word"):
            raise InvalidInput(message(who, f"both_strands={given!r}, unit={self._unit!r}", "give True for DNA only"))

    def _encoded(self, X: Array) -> Corpus:
        """Of both strands, one after the other: the counts of the two add up."""
        if not self._strands:
            return super()._encoded(X)
        return without_gaps(super()._encoded(both_strands(X, type(self).__name__)))

    def _distinct(self) -> Sequence[Pattern]:
        """The patterns without those that count the same: with both strands a pattern and its mirror image do."""
        patterns = self.patterns()
        if not self._strands:
            return patterns
        weights: dict[tuple[int, ...], float] = {}
        for pattern in patterns:
            mirror = tuple(self.span - 1 - place for place in reversed(pattern.offsets))
            key = min(pattern.offsets, mirror)
            weights[key] = weights.get(key, 0.0) + pattern.weight
        return [Pattern(offsets, weight) for offsets, weight in weights.items() if weight]

    @abstractmethod
    def shared(self, matches: int) -> int:
        """What two windows that agree at so many places add to k."""

    def _worth(self) -> NDArray[np.int64] | None:
        """What each number of matches adds; None where it does not fit a table of numbers that are exact.

        With both strands a pair counts twice: once as the pair of the complements.
        """
        worth = [(1 + self._strands) * self.shared(m) for m in range(self.span + 1)]
        return np.array(worth, np.int64) if max(worth) <= LARGEST else None

    def _compared(self, x: Corpus) -> Corpus:
        """The rows whose windows are compared with those of the columns: of both strands the first."""
        if not self._strands:
            return x
        sizes = x.lengths // 2  # the gap is left out
        places = np.arange(sizes.sum()) + np.repeat(x.starts[:-1] - np.cumsum(sizes) + sizes, sizes)
        return Corpus(x.symbols[places], np.concatenate([[0], np.cumsum(sizes)]), x.names)

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
        """K(X, Z) V in time that is linear in the lengths: V is folded into one weight for each feature of Z.

        Where comparing all windows of X with all of Z is less work, K is made, some rows at a time.
        """
        self._require_resolved()
        x, z = self._corpora(X, Z)
        patterns, worth, v = self._distinct(), self._worth(), np.asarray(V, np.float64)
        if worth is not None and comparing.is_less_work(x, x if z is None else z, worth, patterns, self.span):
            return comparing.matmul(self._compared(x), x if z is None else z, worth, v)
        return counts.matmul(x, z, patterns, self.span, v)

    def features(self, X: Array, columns_of: Array | None = None) -> Any:
        """The counts as a CSR matrix F: K(X, Z) = F(X, Z) F(Z)ᵀ where Z = `columns_of`, by default X itself.

        Columns are what the windows of Z show, by pattern and then in the order of symbols; windows of X that show
        something else have none. `feature_names` says what they are.

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
        """What the columns of ``features(X)`` count, a dot for each place that a pattern leaves out.

        Examples
        --------
        >>> from mercer.kernels import GappedKmer
        >>> GappedKmer(g=3, k=2).feature_names(["abc"])
        ['ab·', 'a·c', '·bc']
        """
        x, _ = self._corpora(X, X)
        names = []
        for pattern in self._own_patterns():
            places = set(pattern.offsets)
            for first in counts.count(x, pattern, self.span).first:
                window = [x.names[s] for s in x.symbols[first : first + self.span]]
                names.append(as_text([t if p in places else "·" for p, t in enumerate(window)]))
        return names

    def _own_patterns(self) -> Sequence[Pattern]:
        """The patterns, where their counts are features: not so if some are subtracted."""
        self._require_resolved()
        patterns = self.patterns()
        if any(pattern.weight < 0 for pattern in patterns):
            given = f"{self!r:.80} is computed without its features"
            raise InvalidInput(message(type(self).__name__, given, "use Spectrum or GappedKmer, or the kernel itself"))
        return patterns


def as_text(window: Iterable[Any]) -> str:
    """Symbols as one text: characters side by side, words and numbers with spaces between.

    >>> as_text("ab"), as_text(["to", "be"])
    ('ab', 'to be')
    """
    symbols = [str(symbol) for symbol in window]
    return ("" if all(len(symbol) == 1 for symbol in symbols) else " ").join(symbols)
