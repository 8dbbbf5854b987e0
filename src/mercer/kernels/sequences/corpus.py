"""Sequences as one array of symbols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message

__all__ = ["Corpus", "both_strands", "encoded", "reordered", "tokens", "without_gaps"]


def tokens(x: str | tuple[Any, ...], unit: str) -> Any:
    """The symbols of a sequence: the characters or words of a string, or the tokens of a list.

    >>> tokens("to be", "word"), tokens("ab", "character")
    (['to', 'be'], 'ab')
    """
    return x.split() if unit == "word" and isinstance(x, str) else x


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sequences in one array: sequence i is symbols[starts[i]:starts[i + 1]]; symbols are numbers below `alphabet`.

    A symbol outside a given alphabet is −1. `names[s]` is the name of symbol s.
    """

    symbols: NDArray[np.int32]
    starts: NDArray[np.int64]
    names: list[Any]

    @property
    def count(self) -> int:
        """The number of sequences."""
        return len(self.starts) - 1

    @property
    def alphabet(self) -> int:
        """The number of different symbols, at least 1."""
        return max(len(self.names), 1)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each sequence."""
        return np.diff(self.starts)

    def part(self, first: int, last: int) -> Corpus:
        """Sequences [first, last), with the same symbols."""
        begin, end = self.starts[first], self.starts[last]
        return Corpus(self.symbols[begin:end], self.starts[first : last + 1] - begin, self.names)

    def ordered(self, order: NDArray[np.intp]) -> Corpus:
        """The sequences in this order."""
        positions, starts = reordered(self.starts, order)
        return Corpus(self.symbols[positions], starts, self.names)


def reordered(starts: NDArray[np.int64], order: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The positions of the entries if the parts between `starts` are put in this order, and the new starts.

    >>> reordered(np.array([0, 2, 3]), np.array([1, 0]))
    (array([2, 0, 1]), array([0, 1, 3]))
    """
    lengths = np.diff(starts)[order]
    new = np.zeros(len(starts), np.int64)
    np.cumsum(lengths, out=new[1:])
    return np.arange(new[-1]) + np.repeat(starts[:-1][order] - new[:-1], lengths), new


def encoded(sequences: Any, unit: str = "character", alphabet: Iterable[Any] | None = None) -> Corpus:
    """The corpus of (validated) sequences; symbols are numbered in sorted order.

    >>> corpus = encoded(["ba", "", "ac"])
    >>> corpus.symbols, corpus.starts, corpus.names
    (array([1, 0, 0, 2], dtype=int32), array([0, 2, 2, 4]), ['a', 'b', 'c'])
    """
    split = [tokens(x, unit) for x in sequences]
    starts = np.zeros(len(split) + 1, np.int64)
    np.cumsum([len(x) for x in split], out=starts[1:])
    if starts[-1] >= 1 << 31:
        given = f"{starts[-1]:,} symbols at once"
        raise InvalidInput(message("sequences", given, "give fewer sequences: at most 2³¹ symbols at a time"))
    known = None if alphabet is None else sorted(set(alphabet), key=_order)
    symbols, names = _characters(split, known) if all(type(x) is str for x in split) else _tokens(split, known)
    return Corpus(symbols, starts, names)


_STRAND = "ACGTURYKMSWBDHVN"
_OTHER = "TGCAAYRMKSWVHDBN"
_COMPLEMENT = str.maketrans(_STRAND + _STRAND.lower(), _OTHER + _OTHER.lower())
_LETTERS = frozenset(_STRAND + _STRAND.lower())
GAP = "\0"
"""The separator of the two strands. It is not a symbol, so that no window has symbols of both."""


def both_strands(sequences: Any, who: str) -> list[str]:
    """Each sequence of nucleotides, a gap, and its reverse complement. U is read as T, so that A has one complement.

    >>> both_strands(["AAC"], "example")
    ['AAC\\x00GTT']
    """
    out = []
    for x in sequences:
        if not isinstance(x, str) or not _LETTERS.issuperset(x):
            wrong = sorted(set(x) - _LETTERS, key=str)[:1] if isinstance(x, str) else ["a token list"]
            do = "give strings of nucleotides (ACGTU and the IUPAC codes), or set both_strands=False"
            raise InvalidInput(message(who, f"{wrong[0]!r} in a sequence, with both_strands=True", do))
        x = x.replace("U", "T").replace("u", "t")
        out.append(x + GAP + x.translate(_COMPLEMENT)[::-1])
    return out


def without_gaps(corpus: Corpus) -> Corpus:
    """The corpus in which the gaps between strands are −1, and not a symbol."""
    if GAP not in corpus.names:
        return corpus
    assert corpus.names[0] == GAP  # so that the numbers of all others decrease by one
    return Corpus(corpus.symbols - np.int32(1), corpus.starts, corpus.names[1:])


def _order(token: Any) -> tuple[bool, Any]:
    """A key for sorting: integers before texts."""
    return isinstance(token, str), token


def _characters(split: list[str], known: list[Any] | None) -> tuple[NDArray[np.int32], list[Any]]:
    codes = np.frombuffer("".join(split).encode("utf-32-le", "surrogatepass"), np.uint32)
    size = int(codes.max(initial=0)) + 1
    if known is None:
        present = np.zeros(size, bool)
        present[codes] = True
        found = np.flatnonzero(present)
    else:
        found = np.array([ord(one) for one in known if isinstance(one, str) and len(one) == 1], np.int64)
    number = np.full(max(size, int(found.max(initial=0)) + 1), -1, np.int32)
    number[found] = np.arange(len(found), dtype=np.int32)
    return number[codes], [chr(code) for code in found]


def _tokens(split: list[Any], known: list[Any] | None) -> tuple[NDArray[np.int32], list[Any]]:
    names = sorted(set(chain.from_iterable(split)), key=_order) if known is None else known
    number = {name: place for place, name in enumerate(names)}
    total = sum(map(len, split))
    return np.fromiter((number.get(t, -1) for t in chain.from_iterable(split)), np.int32, total), names
