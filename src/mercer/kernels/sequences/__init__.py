"""Kernels on sequences: strings as characters or words, or lists of tokens."""

from mercer.kernels.sequences.corpus import as_sequences
from mercer.kernels.sequences.subsequence import Subsequence
from mercer.kernels.sequences.substrings import AllSubstrings
from mercer.kernels.sequences.windows import GappedKmer, Mismatch, Spectrum

__all__ = ["AllSubstrings", "GappedKmer", "Mismatch", "Spectrum", "Subsequence", "as_sequences"]
