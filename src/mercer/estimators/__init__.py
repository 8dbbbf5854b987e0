"""One textbook chapter per file: an estimator states its problem and never iterates."""

from importlib import import_module
from typing import TYPE_CHECKING

# What each module gives to users. A module is imported when a name of it is first used, so that the names cost nothing.
_MODULES = {
    "mercer.estimators.clustering.kernel_kmeans": ["KernelKMeans"],
    "mercer.estimators.clustering.spectral_clustering": ["KernelSpectralClustering"],
    "mercer.estimators.correlation.kernel_cca": ["KernelCCA"],
    "mercer.estimators.correlation.kernel_pls": ["KernelPLS"],
    "mercer.estimators.descent.lms": ["KernelLMS"],
    "mercer.estimators.descent.perceptron": ["KernelPerceptron"],
    "mercer.estimators.discriminant.analysis": ["KernelDiscriminantAnalysis"],
    "mercer.estimators.explanation": ["Explanation", "explain", "position_weights"],
    "mercer.estimators.features.empirical_map": ["EmpiricalKernelMap"],
    "mercer.estimators.features.feature_maps": ["Nystroem", "RandomFourierFeatures"],
    "mercer.estimators.features.polynomial_sketch": ["PolynomialSketch"],
    "mercer.estimators.gp.classifier": ["GaussianProcessClassifier"],
    "mercer.estimators.gp.regressor": ["GaussianProcessRegressor"],
    "mercer.estimators.logistic": ["KernelLogisticRegression"],
    "mercer.estimators.online.online_classifier": ["OnlineKernelClassifier"],
    "mercer.estimators.online.online_regressor": ["OnlineKernelRegressor"],
    "mercer.estimators.pca.kernel_pca": ["KernelPCA"],
    "mercer.estimators.ridge.kernel_ridge": ["KernelRidge", "KernelRidgeClassifier"],
    "mercer.estimators.ridge.kernel_ridge_cv": ["KernelRidgeCV", "KernelRidgeClassifierCV"],
    "mercer.estimators.search.kernel_search": ["KernelSearchCV"],
    "mercer.estimators.svm.one_class": ["OneClassSVM"],
    "mercer.estimators.svm.svc": ["SVC", "NuSVC"],
    "mercer.estimators.svm.svr": ["SVR", "NuSVR"],
    "mercer.ways.report": ["Report"],
}

if TYPE_CHECKING:  # the same for type checkers and editors
    from mercer.estimators.clustering.kernel_kmeans import *
    from mercer.estimators.clustering.spectral_clustering import *
    from mercer.estimators.correlation.kernel_cca import *
    from mercer.estimators.correlation.kernel_pls import *
    from mercer.estimators.descent.lms import *
    from mercer.estimators.descent.perceptron import *
    from mercer.estimators.discriminant.analysis import *
    from mercer.estimators.explanation import *
    from mercer.estimators.features.empirical_map import *
    from mercer.estimators.features.feature_maps import *
    from mercer.estimators.features.polynomial_sketch import *
    from mercer.estimators.gp.classifier import *
    from mercer.estimators.gp.regressor import *
    from mercer.estimators.logistic import *
    from mercer.estimators.online.online_classifier import *
    from mercer.estimators.online.online_regressor import *
    from mercer.estimators.pca.kernel_pca import *
    from mercer.estimators.ridge.kernel_ridge import *
    from mercer.estimators.ridge.kernel_ridge_cv import *
    from mercer.estimators.search.kernel_search import *
    from mercer.estimators.svm.one_class import *
    from mercer.estimators.svm.svc import *
    from mercer.estimators.svm.svr import *
    from mercer.ways.report import *
else:
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
    __all__ = sorted(_MODULE_OF)

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'mercer.estimators' has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(_MODULE_OF[name]), name)
        return found

    def __dir__() -> list[str]:
        return __all__
