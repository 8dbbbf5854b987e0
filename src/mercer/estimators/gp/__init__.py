"""Gaussian processes: distributions of functions, given rows and targets."""

from mercer.estimators.gp.classifier import GaussianProcessClassifier
from mercer.estimators.gp.regressor import GaussianProcessRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor"]
