"""The kernels that can be named in texts."""

from __future__ import annotations

from mercer.kernels import sequences
from mercer.kernels.base import Constant
from mercer.kernels.names import register
from mercer.kernels.values import Precomputed
from mercer.kernels.vectors import formula, histograms, products, stationary

__all__ = ["register_all"]


def register_all() -> None:
    """Register every kernel that has a name: the classes of each family, and two that belong to none."""
    for family in (formula, histograms, products, stationary, sequences):
        register(*(one for name in family.__all__ if isinstance(one := getattr(family, name), type)))
    register(Constant, Precomputed)
