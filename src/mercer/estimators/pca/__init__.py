"""Kernel principal components, on landmarks too, with pre-images and process monitoring."""

from mercer.estimators.pca.kernel_pca import KernelPCA

__all__ = ["KernelPCA"]
