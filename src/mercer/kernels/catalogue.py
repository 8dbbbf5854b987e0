"""The kernels that can be named in texts."""

from __future__ import annotations

from mercer.kernels.base import Constant
from mercer.kernels.names import register
from mercer.kernels.sequences import (
    AllSubstrings,
    GappedKmer,
    GlobalAlignment,
    Mismatch,
    SetKernel,
    Spectrum,
    Subsequence,
)
from mercer.kernels.values import Precomputed
from mercer.kernels.vectors.formula import Formula
from mercer.kernels.vectors.histograms import AdditiveChi2, Chi2, Dice, Hamming, Intersection, Tanimoto
from mercer.kernels.vectors.products import Cosine, Linear, MonomialSum, Polynomial, Sigmoid
from mercer.kernels.vectors.stationary import Cauchy, Gaussian, Laplace, Matern, Periodic, RationalQuadratic

__all__ = ["register_all"]


def register_all() -> None:
    """Register every kernel that has a name."""
    register(
        *(Linear, Polynomial, MonomialSum, Gaussian, Laplace, Matern, RationalQuadratic, Cauchy, Periodic, Sigmoid),
        *(Cosine, Chi2, AdditiveChi2, Intersection, Tanimoto, Dice, Hamming, Constant, Precomputed, Formula, Spectrum),
        *(GappedKmer, Mismatch, Subsequence, AllSubstrings, GlobalAlignment, SetKernel),
    )
