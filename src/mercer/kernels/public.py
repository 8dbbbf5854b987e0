"""What `mercer.kernels` gives to users beside the kernels on vectors, each of which stands in its module alone."""

from __future__ import annotations

from math import inf

from mercer.kernels.base import Constant, Kernel, Normalized, OnColumns, Power, Product, Rescaled, Scaled, Sum
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
]
