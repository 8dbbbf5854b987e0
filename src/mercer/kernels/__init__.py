"""Kernels: formulas over pairings of rows, kernels on objects, and their algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mercer.kernels import public
from mercer.kernels.catalogue import register_all
from mercer.kernels.public import *
from mercer.kernels.vectors import formula, histograms, products, stationary
from mercer.kernels.vectors.formula import *
from mercer.kernels.vectors.histograms import *
from mercer.kernels.vectors.products import *
from mercer.kernels.vectors.stationary import *

register_all()

if not TYPE_CHECKING:  # checkers read no sums of lists, but know what an import of * imports
    __all__ = [*public.__all__, *formula.__all__, *histograms.__all__, *products.__all__, *stationary.__all__]

    def __dir__() -> list[str]:
        return sorted(__all__)
