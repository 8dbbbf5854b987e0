"""A program that imports all names of `mercer.kernels`: mypy must know those of each module, and a test runs it."""

# ruff: noqa: F403, F405
from __future__ import annotations

from mercer.kernels import *


def kernel() -> Kernel:
    vectors = Gaussian() + Polynomial(degree=2) + Chi2() + Formula("exp(-l1)")
    return vectors.normalized() * Constant(2.0)
