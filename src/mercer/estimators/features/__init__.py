"""Explicit features: Nyström's, random Fourier, polynomial sketches, the empirical kernel map."""

from mercer.estimators.features.empirical_map import EmpiricalKernelMap
from mercer.estimators.features.feature_maps import Nystroem, RandomFourierFeatures
from mercer.estimators.features.polynomial_sketch import PolynomialSketch

__all__ = ["EmpiricalKernelMap", "Nystroem", "PolynomialSketch", "RandomFourierFeatures"]
