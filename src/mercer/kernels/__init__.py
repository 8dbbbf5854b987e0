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
from mercer.kernels.vectors.formula import Formula, is_formula
from mercer.kernels.vectors.histograms import AdditiveChi2, Chi2, Dice, Hamming, Intersection, Tanimoto
from mercer.kernels.vectors.products import Cosine, Linear, MonomialSum, Polynomial, Sigmoid
from mercer.kernels.vectors.stationary import Cauchy, Gaussian, Laplace, Matern, Periodic, RationalQuadratic

__all__ = [
    "AdditiveChi2",
    "AllSubstrings",
    "ArrayPair",
    "Cauchy",
    "Chi2",
    "Circle",
    "Columns",
    "Constant",
    "Cosine",
    "Definiteness",
    "Dice",
    "Expression",
    "Formula",
    "Function",
    "GappedKmer",
    "Gaussian",
    "GlobalAlignment",
    "Hamming",
    "Intersection",
    "Kernel",
    "Laplace",
    "LengthScales",
    "Linear",
    "Matern",
    "Mismatch",
    "MonomialSum",
    "Normalized",
    "OnColumns",
    "Pair",
    "Periodic",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "Properties",
    "RationalQuadratic",
    "Rescaled",
    "Scaled",
    "SetKernel",
    "Sigmoid",
    "Spectrum",
    "Subsequence",
    "Sum",
    "SymbolPair",
    "TableKernel",
    "TablePart",
    "Tanimoto",
    "View",
    "abs",
    "as_kernel",
    "cos",
    "dense",
    "evaluate",
    "exp",
    "inf",
    "is_formula",
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

register_all()


def __dir__() -> list[str]:
    return sorted(__all__)
