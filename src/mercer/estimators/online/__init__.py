"""Online classification and regression within a budget."""

from mercer.estimators.online.online_classifier import OnlineKernelClassifier
from mercer.estimators.online.online_regressor import OnlineKernelRegressor

__all__ = ["OnlineKernelClassifier", "OnlineKernelRegressor"]
