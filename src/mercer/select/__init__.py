"""Choosing a kernel and a penalty: searches that share what their candidates have in common."""

from mercer.select.candidates import default_alphas, default_kernels
from mercer.select.reconstruction import Reconstruction, ReconstructionSearch, cross_validate_kernel_pca
from mercer.select.ridge import Candidate, RidgeSearch, cross_validate_ridge

__all__ = [
    "Candidate",
    "Reconstruction",
    "ReconstructionSearch",
    "RidgeSearch",
    "cross_validate_kernel_pca",
    "cross_validate_ridge",
    "default_alphas",
    "default_kernels",
]
