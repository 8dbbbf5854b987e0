"""One textbook chapter per file: an estimator states its problem and never iterates."""

from mercer.estimators import (
    clustering,
    correlation,
    descent,
    discriminant,
    features,
    gp,
    online,
    pca,
    ridge,
    search,
    svm,
)
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

__all__ = ["Explanation", "KernelLogisticRegression", "Report", "explain", "position_weights"]
__all__ += clustering.__all__
__all__ += correlation.__all__
__all__ += descent.__all__
__all__ += discriminant.__all__
__all__ += features.__all__
__all__ += gp.__all__
__all__ += online.__all__
__all__ += pca.__all__
__all__ += ridge.__all__
__all__ += search.__all__
__all__ += svm.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
