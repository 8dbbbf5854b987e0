"""Choosing a kernel and a penalty: searches whose candidates share decompositions."""

from mercer.factorizations.band import RidgeBand
from mercer.factorizations.inverse import RidgeInverse
from mercer.factorizations.spectrum import RidgeSpectrum
from mercer.select.alignment import alignment_weights, centered_alignment
from mercer.select.candidates import default_alphas, default_kernels, default_sequence_kernels
from mercer.select.clusters import ClusterCounts, choose_n_clusters, silhouettes, simplified_silhouettes
from mercer.select.heuristics import bandwidth_heuristic
from mercer.select.marginal import MarginalLikelihood, log_marginal_likelihood, maximise_marginal_likelihood
from mercer.select.mixtures import KernelMixture, column_kernels, combine_kernels
from mercer.select.reconstruction import Reconstruction, ReconstructionSearch, cross_validate_kernel_pca
from mercer.select.ridge import Candidate, RidgeSearch, cross_validate_ridge
from mercer.select.scorers import Scorer, accuracy, negative_squares, r2
from mercer.select.suggestions import Suggestion, Suggestions, suggest

__all__ = [
    "Candidate",
    "ClusterCounts",
    "KernelMixture",
    "MarginalLikelihood",
    "Reconstruction",
    "ReconstructionSearch",
    "RidgeBand",
    "RidgeInverse",
    "RidgeSearch",
    "RidgeSpectrum",
    "Scorer",
    "Suggestion",
    "Suggestions",
    "accuracy",
    "alignment_weights",
    "bandwidth_heuristic",
    "centered_alignment",
    "choose_n_clusters",
    "column_kernels",
    "combine_kernels",
    "cross_validate_kernel_pca",
    "cross_validate_ridge",
    "default_alphas",
    "default_kernels",
    "default_sequence_kernels",
    "log_marginal_likelihood",
    "maximise_marginal_likelihood",
    "negative_squares",
    "r2",
    "silhouettes",
    "simplified_silhouettes",
    "suggest",
]


def __dir__() -> list[str]:
    return sorted(__all__)
