"""One textbook chapter per file: an estimator states its problem and never iterates."""

from mercer.estimators.discriminant import KernelDiscriminantAnalysis
from mercer.estimators.explain import Explanation, explain
from mercer.estimators.feature_maps import Nystroem, RandomFourierFeatures
from mercer.estimators.kernel_cca import KernelCCA
from mercer.estimators.kernel_kmeans import KernelKMeans
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.kernel_pls import KernelPLS
from mercer.estimators.kernel_ridge import KernelRidge, KernelRidgeClassifier
from mercer.estimators.kernel_ridge_cv import KernelRidgeClassifierCV, KernelRidgeCV
from mercer.estimators.lms import KernelLMS
from mercer.estimators.polynomial_sketch import PolynomialSketch
from mercer.estimators.report import Report
from mercer.estimators.spectral_clustering import KernelSpectralClustering

__all__ = [
    "Explanation",
    "KernelCCA",
    "KernelDiscriminantAnalysis",
    "KernelKMeans",
    "KernelLMS",
    "KernelPCA",
    "KernelPLS",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "KernelSpectralClustering",
    "Nystroem",
    "PolynomialSketch",
    "RandomFourierFeatures",
    "Report",
    "explain",
]
