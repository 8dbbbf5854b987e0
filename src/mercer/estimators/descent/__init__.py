"""Estimators by descent: least mean squares and the perceptron."""

from mercer.estimators.descent.lms import KernelLMS
from mercer.estimators.descent.perceptron import KernelPerceptron

__all__ = ["KernelLMS", "KernelPerceptron"]
