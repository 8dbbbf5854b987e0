"""One textbook chapter per file: an estimator states its problem and never iterates."""

from mercer.estimators.discriminant import KernelDiscriminantAnalysis
from mercer.estimators.empirical_map import EmpiricalKernelMap
from mercer.estimators.explain import Explanation, explain, position_weights
from mercer.estimators.feature_maps import Nystroem, RandomFourierFeatures
from mercer.estimators.kernel_cca import KernelCCA
from mercer.estimators.kernel_kmeans import KernelKMeans
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.kernel_pls import KernelPLS
from mercer.estimators.kernel_ridge import KernelRidge, KernelRidgeClassifier
from mercer.estimators.kernel_ridge_cv import KernelRidgeClassifierCV, KernelRidgeCV
from mercer.estimators.lms import KernelLMS
from mercer.estimators.logistic import KernelLogisticRegression
from mercer.estimators.one_class import OneClassSVM
from mercer.estimators.online_classifier import OnlineKernelClassifier
from mercer.estimators.online_regressor import OnlineKernelRegressor
from mercer.estimators.perceptron import KernelPerceptron
from mercer.estimators.polynomial_sketch import PolynomialSketch
from mercer.estimators.report import Report
from mercer.estimators.search import KernelSearchCV
from mercer.estimators.spectral_clustering import KernelSpectralClustering
from mercer.estimators.svc import SVC, NuSVC
from mercer.estimators.svr import SVR, NuSVR

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
