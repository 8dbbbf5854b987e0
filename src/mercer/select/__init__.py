"""Choosing a kernel and a penalty: searches that share what their candidates have in common."""

from mercer.select.candidates import default_alphas, default_kernels, default_sequence_kernels
from mercer.select.clusters import ClusterCounts, choose_n_clusters, silhouettes, simplified_silhouettes
from mercer.select.judges import Judge, accuracy, negative_squares, r2
from mercer.select.reconstruction import Reconstruction, ReconstructionSearch, cross_validate_kernel_pca
from mercer.select.ridge import Candidate, RidgeSearch, cross_validate_ridge
from mercer.select.spectrum import RidgeSpectrum

__all__ = [
    "Candidate",
    "ClusterCounts",
    "Judge",
    "Reconstruction",
    "ReconstructionSearch",
    "RidgeSearch",
    "RidgeSpectrum",
    "accuracy",
    "choose_n_clusters",
    "cross_validate_kernel_pca",
    "cross_validate_ridge",
    "default_alphas",
    "default_kernels",
    "default_sequence_kernels",
    "negative_squares",
    "r2",
    "silhouettes",
    "simplified_silhouettes",
]
