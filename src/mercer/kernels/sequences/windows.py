"""Kernels that count substrings of a fixed length: exact, with gaps, with mismatches."""

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
"""Beyond this an exact kernel of counts is refused: each pattern is a pass over all windows."""

MOST_PLACES = 500_000
"""Of all patterns together."""


@dataclass(frozen=True, repr=False)
class Spectrum(WindowKernel):
    """k(x, z) = Σᵤ |x|ᵤ |z|ᵤ over all u of k symbols, |x|ᵤ being how often u stands in x.

    Parameters
    ----------
    k : int, default 3
        The length of the substrings. 3 to 6 letters for text and proteins, 4 to 10 for DNA, 1 or 2 words.
    unit : {"character", "word"}, default "character"
        What a string is made of; words are separated by white space. A list of tokens is made of its tokens.
    both_strands : bool, default False
        For DNA and RNA: what is counted in x is counted in its reverse complement too, and added, so that it does not
        matter which strand was read.

    Notes
    -----
    A sequence shorter than k has no substrings of that length: k(x, x) = 0. Longer sequences have larger values:
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
        """All places."""
        return [Pattern(tuple(range(self.k)))]

    def shared(self, matches: int) -> int:
        """1 where all places agree."""
        return int(matches == self.k)


@dataclass(frozen=True, repr=False)
class GappedKmer(WindowKernel):
    """k(x, z) = Σ_P Σᵤ |x|_{P,u} |z|_{P,u} over the choices P of k of g places, and all u of k symbols.

    |x|_{P,u} is how often windows of g symbols of x show u at the places P. Two windows that differ at h places add C(g
    − h, k). The features are k-mers with g − k gaps ("wildcards"): similar sequences share them where long exact
    substrings are rare.

    Parameters
    ----------
    g : int, default 8
        The length of a window.
    k : int, default 5
        How many of its places are looked at; k = g is `Spectrum`. There are C(g, k) choices of places, 210 for (10, 6).
    unit : {"character", "word"}, default "character"
        As for `Spectrum`.
    both_strands : bool, default False
        As for `Spectrum`; it takes twice the time.

    Notes
    -----
    A matrix of long windows with many choices is made without them: all pairs of windows are compared, of which a
    vector register does 16 to 64 at once, and a pair that agrees at m places adds C(m, k). The kernel takes what is
    predicted to be less work.

    Raises
    ------
    NotAKernel
        For k > g, for more than 20 000 choices of places, and for g > 4095.

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
            raise NotAKernel(message("GappedKmer", f"k={self.k} of g={self.g} places", "give k ≤ g"))
        _require_patterns("GappedKmer", self.g, [self.k])

    @property
    def span(self) -> int:
        return self.g

    def patterns(self) -> Sequence[Pattern]:
        """The C(g, k) choices of places."""
        return [Pattern(places) for places in combinations(range(self.g), self.k)]

    def shared(self, matches: int) -> int:
        """The choices of k places among those that agree."""
        return comb(matches, self.k)


@dataclass(frozen=True, repr=False)
class Mismatch(WindowKernel):
    """k(x, z) = Σ_w φ_w(x) φ_w(z), φ_w(x) being how many substrings of x differ from w at up to m of its k places.

    w runs over all k-mers of the alphabet, seen or not.

    Parameters
    ----------
    k : int, default 5
    m : int, default 1
        Mismatches, below k; 0 is `Spectrum`.
    unit, both_strands
        As for `Spectrum`.
    alphabet : str, list of tokens, or None, default None
        The symbols that w is made of; substrings with another one in them are left out, as those with an N in DNA are.
        None: those of the training data, found by `resolve`, as every estimator does.

    Notes
    -----
    Two k-mers that differ at h places share N(h) words w, which depends on the size of the alphabet. The sum over all
    pairs is Σ_s c_s · (number of pairs that agree on s chosen places, over all choices), with integers c_s from N: that
    is computed, by Σ_{j ≤ 2m} C(k, j) passes over the windows, without the neighbourhoods, whose number grows as
    (k·alphabet)ᵐ.

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
            raise NotAKernel(message("Mismatch", f"m={self.m} mismatches of k={self.k} places", "give m < k"))
        self._set("alphabet", _checked_alphabet(self.alphabet))
        _require_patterns("Mismatch", self.k, range(self.k, max(self.k - 2 * self.m, 0) - 1, -1))

    @property
    def span(self) -> int:
        return self.k

    @property
    def is_resolved(self) -> bool:
        return self.alphabet is not None

    def _resolved(self, X: Any, resolver: Any) -> Mismatch:
        if self.is_resolved or X is None:
            return self
        found = self.replace(alphabet=None)._encoded(self.as_objects(X)).names or ["?"]
        characters = all(isinstance(one, str) and len(one) == 1 for one in found)
        return replace(self, alphabet="".join(found) if characters else tuple(found))

    def _alphabet(self) -> Iterable[Any] | None:
        return None if self.alphabet is None else tuple(self.alphabet)

    def patterns(self) -> Sequence[Pattern]:
        """The choices of at least k − 2m places, with the integers c_s of their number s."""
        weights = mismatch_weights(self.k, self.m, len(self.alphabet))
        return [
            Pattern(places, float(weights[size]))
            for size in weights
            if weights[size]
            for places in combinations(range(self.k), size)
        ]

    def shared(self, matches: int) -> int:
        """The words near both."""
        return shared_neighbours(self.k, self.m, len(self.alphabet), self.k - matches)


def mismatch_weights(k: int, m: int, alphabet: int) -> dict[int, int]:
    """The integers c_s with Σ_s c_s C(k − h, s) = N(h) for every number h of mismatches.

    >>> mismatch_weights(3, 0, 4)
    {3: 1}
    """
    weights: dict[int, int] = {}
    for size in range(max(k - 2 * m, 0), k + 1):
        known = sum(weight * comb(size, smaller) for smaller, weight in weights.items())
        weights[size] = shared_neighbours(k, m, alphabet, k - size) - known
    return weights


def shared_neighbours(k: int, m: int, alphabet: int, h: int) -> int:
    """N(h): how many k-mers differ at up to m places from each of two k-mers that differ from each other at h.

    >>> shared_neighbours(2, 1, 4, 0), shared_neighbours(2, 1, 4, 1), shared_neighbours(2, 1, 4, 2)
    (7, 4, 2)
    """
    found = 0
    if h > 2 * m:
        return found
    for first in range(h + 1):  # of the h places, so many are as in the first,
        for second in range(h - first + 1):  # so many as in the second, and the rest as in neither
            rest = h - first - second
            ways = factorial(h) // (factorial(first) * factorial(second) * factorial(rest)) * (alphabet - 2) ** rest
            room = m - rest - max(first, second)  # for mismatches where the two agree
            found += ways * sum(comb(k - h, j) * (alphabet - 1) ** j for j in range(min(room, k - h) + 1))
    return found


def _require_patterns(who: str, span: int, sizes: Iterable[int]) -> None:
    """Refuse what takes too many passes over the windows, without counting how many: C(4·10⁶, 2·10⁶) takes minutes."""
    if span > LONGEST_WINDOW:
        given = f"windows of {span:,} symbols"
        raise NotAKernel(message(who, given, f"choose at most {LONGEST_WINDOW:,}"))
    patterns = places = 0
    for size in sizes:
        found = _choices(span, size)
        patterns, places = patterns + found, places + found * size
        if patterns > MOST_PATTERNS:
            given = f"more than {MOST_PATTERNS:,} choices of places, each a pass over all windows"
            raise NotAKernel(message(who, given, "choose lengths with fewer"))
        if places > MOST_PLACES:
            given = f"choices with more than {MOST_PLACES:,} places in all, each looked at in all windows"
            raise NotAKernel(message(who, given, "choose lengths with fewer"))


def _choices(n: int, k: int) -> int:
    """C(n, k), or something above `MOST_PATTERNS` where that is.

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
    """Text, or a tuple of tokens, each symbol once, in order; the same object where nothing changes."""
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
