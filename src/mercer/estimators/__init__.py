"""One textbook chapter per file: an estimator states its problem and never iterates."""

from mercer.estimators.clustering import *
from mercer.estimators.correlation import *
from mercer.estimators.descent import *
from mercer.estimators.discriminant import *
from mercer.estimators.explain import Explanation, explain, position_weights
from mercer.estimators.features import *
from mercer.estimators.gp import *
from mercer.estimators.logistic import KernelLogisticRegression
from mercer.estimators.online import *
from mercer.estimators.pca import *
from mercer.estimators.ridge import *
from mercer.estimators.search import *
from mercer.estimators.svm import *
from mercer.ways.report import Report

__all__ = [
    "SVC",
    "SVR",
    "EmpiricalKernelMap",
    "Explanation",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
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
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
