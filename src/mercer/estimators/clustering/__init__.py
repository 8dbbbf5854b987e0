"""Kernel k-means and spectral clustering."""

from mercer.estimators.clustering.kernel_kmeans import KernelKMeans
from mercer.estimators.clustering.spectral_clustering import KernelSpectralClustering

__all__ = ["KernelKMeans", "KernelSpectralClustering"]
