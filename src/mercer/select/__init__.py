"""Choosing a kernel and a penalty: searches that share what their candidates have in common."""

from mercer.select.candidates import default_alphas, default_kernels
from mercer.select.ridge import Candidate, RidgeSearch, cross_validate_ridge

__all__ = ["Candidate", "RidgeSearch", "cross_validate_ridge", "default_alphas", "default_kernels"]
