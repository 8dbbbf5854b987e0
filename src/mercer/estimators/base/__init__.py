"""The parts that all estimators use: the base class, parameters, expansions, compression, calibration."""

from mercer.estimators.base.estimator import KernelEstimator

__all__ = ["KernelEstimator"]
