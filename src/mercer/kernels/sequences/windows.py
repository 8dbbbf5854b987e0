"""Kernels that count substrings of a fixed length: exact, with gaps, or with mismatches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, factorial
from typing import Any

from mercer.engine.opcodes import LONGEST_WINDOW
from mercer.errors import InvalidInput, NotAKernel, message
from mercer.kernels.sequences.base import WindowKernel, integer
from mercer.kernels.sequences.counts import Pattern

__all__ = ["GappedKmer", "Mismatch", "Spectrum"]

MOST_PATTERNS = 20_000
"""The most patterns of a kernel: each is a pass over all windows."""

MOST_POSITIONS = 500_000
"""The most positions of all patterns together."""


@dataclass(frozen=True, repr=False)
class Spectrum(WindowKernel):
    """k(x, z) = Σᵤ |x|ᵤ |z|ᵤ over all u of k symbols; |x|ᵤ counts the occurrences of u in x.

    Parameters
    ----------
    k : int, default 3
        The length of the substrings. Common choices are 3 to 6 letters for text and proteins, 4 to 10 for DNA, and 1 or
        2 words.
    unit : {"character", "word"}, default "character"
        The symbols of a string; words are separated by white space. The symbols of a list of tokens are the tokens.
    both_strands : bool, default False
        For DNA and RNA: add the counts of the reverse complement, so that both strands of a molecule have the same
        features.

    Notes
    -----
    A sequence shorter than k has no features, and k(x, x) = 0. Longer sequences have larger values;
    ``Spectrum(3).normalized()`` is the cosine.

    References
    ----------
    C. Leslie, E. Eskin, W. S. Noble (2002). The spectrum kernel: a string kernel for SVM protein classification. PSB.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> Spectrum(k=2)(["banana", "nab"])  # ba an na an na; na ab
    array([[9., 2.],
           [2., 2.]])
    >>> Spectrum(k=1, unit="word")(["to be or not to be", "to do"])
    array([[10.,  2.],
           [ 2.,  2.]])
    """

    k: int = 3
    unit: str = "character"
    both_strands: bool = False

    def __post_init__(self) -> None:
        self._set("k", integer("Spectrum", "k", self.k))
        _require_patterns("Spectrum", self.k, [self.k])
        self._check_unit()
        self._check_strands()

    @property
    def span(self) -> int:
        return self.k

    def patterns(self) -> Sequence[Pattern]:
        """One pattern, with all positions of the window."""
        return [Pattern(tuple(range(self.k)))]

    def shared(self, matches: int) -> int:
        """1 if all k symbols agree, else 0."""
        return int(matches == self.k)


@dataclass(frozen=True, repr=False)
class GappedKmer(WindowKernel):
    """k(x, z) = Σ_P Σᵤ |x|_{P,u} |z|_{P,u} over all choices P of k of g positions, and all u of k symbols.

    |x|_{P,u} counts the windows of g symbols of x that have u at the positions P. Two windows that differ at h
    positions add C(g − h, k). The features are k-mers with g − k gaps ("wildcards"), which similar sequences share even
    if they have few long substrings in common.

    Parameters
    ----------
    g : int, default 8
        The length of a window.
    k : int, default 5
        How many of its positions must agree; k = g is `Spectrum`. There are C(g, k) choices of positions, such as 210
        for g = 10 and k = 6.
    unit : {"character", "word"}, default "character"
        As for `Spectrum`.
    both_strands : bool, default False
        As for `Spectrum`; it doubles the time.

    Raises
    ------
    NotAKernel
        For k > g, for more than 20 000 choices of positions, and for g > 4095.

    Notes
    -----
    Long windows with many choices of positions are not counted. Instead all pairs of windows are compared, 16 to 64 at
    once, and a pair that agrees at m positions adds C(m, k). The kernel takes the method with less predicted work.

    References
    ----------
    M. Ghandi, D. Lee, M. Mohammad-Noori, M. A. Beer (2014). Enhanced regulatory sequence prediction using gapped k-mer
    features. PLoS Computational Biology 10.
    D. Blakely, E. Collins, R. Singh, A. Norton, J. Lanchantin, Y. Qi (2020). FastSK: fast sequence analysis with gapped
    string kernels. Bioinformatics 36.

    Examples
    --------
    >>> from mercer.kernels import GappedKmer
    >>> GappedKmer(g=3, k=2)(["abc", "axc"])  # ab_, a_c, _bc; ax_, a_c, _xc
    array([[3., 1.],
           [1., 3.]])
    """

    g: int = 8
    k: int = 5
    unit: str = "character"
    both_strands: bool = False

    def __post_init__(self) -> None:
        self._set("g", integer("GappedKmer", "g", self.g))
        self._set("k", integer("GappedKmer", "k", self.k))
        self._check_unit()
        self._check_strands()
        if self.k > self.g:
            raise NotAKernel(message("GappedKmer", f"k={self.k} of g={self.g} positions", "give k ≤ g"))
        _require_patterns("GappedKmer", self.g, [self.k])

    @property
    def span(self) -> int:
        return self.g

    def patterns(self) -> Sequence[Pattern]:
        """The C(g, k) choices of positions."""
        return [Pattern(offsets) for offsets in combinations(range(self.g), self.k)]

    def shared(self, matches: int) -> int:
        """The number of choices of k positions among those that agree."""
        return comb(matches, self.k)


@dataclass(frozen=True, repr=False)
class Mismatch(WindowKernel):
    """k(x, z) = Σ_w φ_w(x) φ_w(z); φ_w(x) counts the substrings of x that differ from w at up to m of its k symbols.

    w runs over all k-mers of the alphabet.

    Parameters
    ----------
    k : int, default 5
        The length of the substrings.
    m : int, default 1
        The most mismatches, below k; m = 0 is `Spectrum`.
    unit, both_strands
        As for `Spectrum`.
    alphabet : str, list of tokens, or None, default None
        The symbols of w. Substrings with other symbols are ignored, such as those with an N in DNA. None stands for the
        symbols of the training data; estimators find them by `resolve`.

    Raises
    ------
    NotAKernel
        For m ≥ k, and if the computation takes too many passes over the windows.

    Notes
    -----
    Two k-mers that differ at h positions share N(h) words w, which depends on the size of the alphabet. With integers
    c_s that follow from N, k(x, z) is Σ_s c_s times the number of pairs of windows that agree on s chosen positions,
    summed over all choices. This takes Σ_{j ≤ 2m} C(k, j) passes over the windows, and does not enumerate the words w,
    whose number grows as (k·alphabet)ᵐ.

    References
    ----------
    C. Leslie, E. Eskin, A. Cohen, J. Weston, W. S. Noble (2004). Mismatch string kernels for discriminative protein
    classification. Bioinformatics 20.

    Examples
    --------
    >>> from mercer.kernels import Mismatch
    >>> Mismatch(k=2, m=1, alphabet="ab")(["ab", "aa"])  # aa ab bb; aa ab ba
    array([[3., 2.],
           [2., 3.]])
    """

    k: int = 5
    m: int = 1
    unit: str = "character"
    both_strands: bool = False
    alphabet: Any = None

    def __post_init__(self) -> None:
        self._set("k", integer("Mismatch", "k", self.k))
        self._set("m", integer("Mismatch", "m", self.m, least=0))
        self._check_unit()
        self._check_strands()
        if self.m >= self.k:
            raise NotAKernel(message("Mismatch", f"m={self.m} mismatches of k={self.k} symbols", "give m < k"))
        self._set("alphabet", _checked_alphabet(self.alphabet))
        _require_patterns("Mismatch", self.k, range(self.k, max(self.k - 2 * self.m, 0) - 1, -1))

    @property
    def span(self) -> int:
        return self.k

    @property
    def is_resolved(self) -> bool:
        return self.alphabet is not None

    def _unresolved(self) -> tuple[str, str]:
        return "alphabet=None", 'the symbols, such as alphabet="ACGT"'

    def _resolved(self, X: Any, resolver: Any) -> Mismatch:
        if self.is_resolved or X is None:
            return self
        found = self.replace(alphabet=None)._encoded(self.as_objects(X)).names or ["?"]
        characters = all(isinstance(one, str) and len(one) == 1 for one in found)
        return replace(self, alphabet="".join(found) if characters else tuple(found))

    def _alphabet(self) -> Iterable[Any] | None:
        return None if self.alphabet is None else tuple(self.alphabet)

    def patterns(self) -> Sequence[Pattern]:
        """The choices of s ≥ k − 2m positions, with the weights c_s."""
        weights = mismatch_weights(self.k, self.m, len(self.alphabet))
        return [
            Pattern(offsets, float(weights[size]))
            for size in weights
            if weights[size]
            for offsets in combinations(range(self.k), size)
        ]

    def shared(self, matches: int) -> int:
        """The number of words that differ from both windows at up to m symbols."""
        return shared_neighbours(self.k, self.m, len(self.alphabet), self.k - matches)


def mismatch_weights(k: int, m: int, alphabet: int) -> dict[int, int]:
    """The integers c_s with Σ_s c_s C(k − h, s) = N(h) for all h.

    >>> mismatch_weights(3, 0, 4)
    {3: 1}
    """
    weights: dict[int, int] = {}
    for size in range(max(k - 2 * m, 0), k + 1):
        known = sum(weight * comb(size, smaller) for smaller, weight in weights.items())
        weights[size] = shared_neighbours(k, m, alphabet, k - size) - known
    return weights


def shared_neighbours(k: int, m: int, alphabet: int, h: int) -> int:
    """N(h): the number of k-mers that differ at up to m positions from both of two k-mers which differ at h positions.

    >>> shared_neighbours(2, 1, 4, 0), shared_neighbours(2, 1, 4, 1), shared_neighbours(2, 1, 4, 2)
    (7, 4, 2)
    """
    found = 0
    if h > 2 * m:
        return found
    for first in range(h + 1):  # how many of the h positions agree with the first k-mer,
        for second in range(h - first + 1):  # and how many with the second; the rest agree with neither
            rest = h - first - second
            ways = factorial(h) // (factorial(first) * factorial(second) * factorial(rest)) * (alphabet - 2) ** rest
            left = m - rest - max(first, second)  # mismatches that remain for the positions where the two agree
            found += ways * sum(comb(k - h, j) * (alphabet - 1) ** j for j in range(min(left, k - h) + 1))
    return found


def _require_patterns(who: str, span: int, sizes: Iterable[int]) -> None:
    """Raise NotAKernel for too many patterns, without computing their exact number: C(4·10⁶, 2·10⁶) takes minutes."""
    if span > LONGEST_WINDOW:
        given = f"windows of {span:,} symbols"
        raise NotAKernel(message(who, given, f"choose at most {LONGEST_WINDOW:,}"))
    patterns = positions = 0
    for size in sizes:
        found = _choices(span, size)
        patterns, positions = patterns + found, positions + found * size
        if patterns > MOST_PATTERNS:
            given = f"more than {MOST_PATTERNS:,} choices of positions, each a pass over all windows"
            raise NotAKernel(message(who, given, "choose lengths with fewer"))
        if positions > MOST_POSITIONS:
            given = f"choices of more than {MOST_POSITIONS:,} positions in all, each read in all windows"
            raise NotAKernel(message(who, given, "choose lengths with fewer"))


def _choices(n: int, k: int) -> int:
    """C(n, k), or a number above `MOST_PATTERNS` if C(n, k) is above it.

    >>> _choices(10, 6), _choices(4_000_000, 2_000_000) > MOST_PATTERNS
    (210, True)
    """
    found = 1
    for chosen in range(1, min(k, n - k) + 1):
        found = found * (n - chosen + 1) // chosen  # C(n, chosen), which grows
        if found > MOST_PATTERNS:
            break
    return found


def _checked_alphabet(given: Any) -> Any:
    """The alphabet as a text or a tuple of tokens without duplicates; the same object if it is one already."""
    if given is None:
        return None
    if not isinstance(given, str | Iterable):
        raise InvalidInput(message("Mismatch", f"alphabet={given!r}", "give its symbols, such as 'ACGT'"))
    symbols = given if isinstance(given, str | tuple) else tuple(given)
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in symbols) or not symbols:
        raise InvalidInput(message("Mismatch", f"alphabet={given!r:.60}", "give its symbols, such as 'ACGT'"))
    if len(set(symbols)) < len(symbols):
        raise InvalidInput(message("Mismatch", f"alphabet={given!r:.60} with a symbol twice", "name each once"))
    return symbols
