"""Kernels on objects: strings of characters or words, lists of tokens, sets of points, and time series."""

from mercer.kernels.sequences.alignment import GlobalAlignment
from mercer.kernels.sequences.sets import SetKernel
from mercer.kernels.sequences.subsequence import Subsequence
from mercer.kernels.sequences.substrings import AllSubstrings
from mercer.kernels.sequences.weights import kmer_weights, position_weights
from mercer.kernels.sequences.windows import GappedKmer, Mismatch, Spectrum
from mercer.points.sequences import as_sequences

__all__ = [
    "AllSubstrings",
    "GappedKmer",
    "GlobalAlignment",
    "Mismatch",
    "SetKernel",
    "Spectrum",
    "Subsequence",
    "as_sequences",
    "kmer_weights",
    "position_weights",
]


def __dir__() -> list[str]:
    return sorted(__all__)
