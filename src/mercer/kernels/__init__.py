"""Kernels: formulas over pairings of rows, kernels on objects, and their algebra."""

from __future__ import annotations

from math import inf

from mercer.kernels.base import Constant, Kernel, Normalized, OnColumns, Power, Product, Rescaled, Scaled, Sum
from mercer.kernels.catalogue import register_all
from mercer.kernels.evaluation import dense, set_engine
from mercer.kernels.names import as_kernel, kernel_names, parse
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.sequences import (
    AllSubstrings,
    GappedKmer,
    GlobalAlignment,
    Mismatch,
    SetKernel,
    Spectrum,
    Subsequence,
)
from mercer.kernels.symbolic.expression import Expression
from mercer.kernels.symbolic.functions import abs, cos, exp, log, maximum, minimum, sin, sqrt, tanh, where
from mercer.kernels.symbolic.pairing import ArrayPair, Pair, SymbolPair, trace
from mercer.kernels.symbolic.values import evaluate
from mercer.kernels.symbolic.views import Circle, Columns, LengthScales, View
from mercer.kernels.table import TableKernel, TablePart, table_kernel
from mercer.kernels.values import Function, Precomputed
from mercer.kernels.vectors import formula, histograms, products, stationary
from mercer.kernels.vectors.formula import *
from mercer.kernels.vectors.histograms import *
from mercer.kernels.vectors.products import *
from mercer.kernels.vectors.stationary import *

__all__ = [
    "AllSubstrings",
    "ArrayPair",
    "Circle",
    "Columns",
    "Constant",
    "Definiteness",
    "Expression",
    "Function",
    "GappedKmer",
    "GlobalAlignment",
    "Kernel",
    "LengthScales",
    "Mismatch",
    "Normalized",
    "OnColumns",
    "Pair",
    "Power",
    "Precomputed",
    "Product",
    "Properties",
    "Rescaled",
    "Scaled",
    "SetKernel",
    "Spectrum",
    "Subsequence",
    "Sum",
    "SymbolPair",
    "TableKernel",
    "TablePart",
    "View",
    "abs",
    "as_kernel",
    "cos",
    "dense",
    "evaluate",
    "exp",
    "inf",
    "kernel_names",
    "log",
    "maximum",
    "minimum",
    "parse",
    "set_engine",
    "sin",
    "sqrt",
    "table_kernel",
    "tanh",
    "trace",
    "where",
]  # fmt: skip
__all__ += formula.__all__
__all__ += histograms.__all__
__all__ += products.__all__
__all__ += stationary.__all__

register_all()


def __dir__() -> list[str]:
    return sorted(__all__)
