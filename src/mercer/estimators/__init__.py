"""One textbook chapter per file: an estimator states its problem and never iterates."""

from mercer.estimators.clustering.kernel_kmeans import KernelKMeans
from mercer.estimators.clustering.spectral_clustering import KernelSpectralClustering
from mercer.estimators.correlation.kernel_cca import KernelCCA
from mercer.estimators.correlation.kernel_pls import KernelPLS
from mercer.estimators.descent.lms import KernelLMS
from mercer.estimators.descent.perceptron import KernelPerceptron
from mercer.estimators.discriminant.analysis import KernelDiscriminantAnalysis
from mercer.estimators.explain import Explanation, explain, position_weights
from mercer.estimators.features.empirical_map import EmpiricalKernelMap
from mercer.estimators.features.feature_maps import Nystroem, RandomFourierFeatures
from mercer.estimators.features.polynomial_sketch import PolynomialSketch
from mercer.estimators.logistic import KernelLogisticRegression
from mercer.estimators.online.online_classifier import OnlineKernelClassifier
from mercer.estimators.online.online_regressor import OnlineKernelRegressor
from mercer.estimators.pca.kernel_pca import KernelPCA
from mercer.estimators.ridge.kernel_ridge import KernelRidge, KernelRidgeClassifier
from mercer.estimators.ridge.kernel_ridge_cv import KernelRidgeClassifierCV, KernelRidgeCV
from mercer.estimators.search.kernel_search import KernelSearchCV
from mercer.estimators.svm.one_class import OneClassSVM
from mercer.estimators.svm.svc import SVC, NuSVC
from mercer.estimators.svm.svr import SVR, NuSVR
from mercer.ways.report import Report

__all__ = [
    "SVC",
    "SVR",
    "EmpiricalKernelMap",
    "Explanation",
    "KernelCCA",
    "KernelDiscriminantAnalysis",
    "KernelKMeans",
    "KernelLMS",
    "KernelLogisticRegression",
    "KernelPCA",
    "KernelPLS",
    "KernelPerceptron",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "KernelSearchCV",
    "KernelSpectralClustering",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "OnlineKernelClassifier",
    "OnlineKernelRegressor",
    "PolynomialSketch",
    "RandomFourierFeatures",
    "Report",
    "explain",
    "position_weights",
]


def __dir__() -> list[str]:
    return sorted(__all__)
