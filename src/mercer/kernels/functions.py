"""Elementwise functions for formulas of kernels; they take symbols, NumPy arrays and PyTorch tensors."""

from mercer.kernels.symbolic.functions import abs, cos, exp, log, maximum, minimum, sin, sqrt, tanh, where

__all__ = ["abs", "cos", "exp", "log", "maximum", "minimum", "sin", "sqrt", "tanh", "where"]
