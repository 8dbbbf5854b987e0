"""Substitution with a triangular factor, by LAPACK: the definition of ``_core.cholesky_solve``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

__all__ = ["cholesky_solve"]


def cholesky_solve(upper: Any, x: Any, isa: str = "") -> None:
    """X ← (UᵀU)⁻¹ X in place.

    Parameters
    ----------
    upper : array of shape (n, n), float32 or float64
        U in its upper triangle; the other one is not read.
    x : array of shape (n, m) of the same dtype
    """
    if x.size == 0:
        return
    potrs = lapack.spotrs if upper.dtype == np.float32 else lapack.dpotrs
    x[...] = potrs(upper.T, x, lower=True)[0]
