"""Eigenpairs of a centred kernel matrix, checked by one product."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.operators import Operator
from mercer.solvers import Eigenpairs, rayleigh_ritz

__all__ = ["CentredPairs", "checked", "precision"]

WITNESSES = 128
"""Rows on which a check in float32 is compared with float64: a fiftieth of its operations at n = 7291."""


class CentredPairs(NamedTuple):
    """The eigenpairs of the centred kernel matrix, the column means of the kernel matrix, and the norm of what float32
    changed in their images (0 where it had no part in them).
    """

    pairs: Eigenpairs
    column_means: np.ndarray
    rounding: float = 0.0

    @property
    def scale(self) -> float:
        """The largest |eigenvalue|."""
        return max(float(np.abs(self.pairs.values).max()), np.finfo(np.float64).tiny)


def checked(K: Operator, V: np.ndarray, exact: Operator | None = None, seed: int = 0) -> CentredPairs:
    """The best pairs of the centred matrix in the span of V by one product, which gives the column means too.

    Without `exact` the product is K V in float64. With it the vectors are rounded to float32 first, and on m random
    rows the product is compared with that of `exact` and the vectors as they were: √(n/m) times the norm of the
    difference, the largest over the vectors, estimates by how much a residual may be off.
    """
    V = V - V.mean(axis=0)
    n, B = len(V), np.column_stack([V, np.full(len(V), 1 / len(V))])
    images, rounding = np.asarray(K @ (B if exact is None else B.astype(np.float32)), np.float64), 0.0
    if exact is not None:
        rows = np.sort(np.random.default_rng(seed).choice(n, min(n, WITNESSES), replace=False))
        change = images[rows] - np.asarray(exact.rows(rows), np.float64) @ B
        rounding = float(np.sqrt(n / len(rows)) * np.linalg.norm(change[:, :-1], axis=0).max())
    pairs = rayleigh_ritz(V, images[:, :-1] - images[:, :-1].mean(axis=0))
    return CentredPairs(pairs, images[:, -1], rounding)


def precision(dtype: str, cheap: bool, found: CentredPairs) -> str:
    """In what the iterations ran, and the check: where entries are cheap it makes its own, and only products differ."""
    if not found.rounding:
        return f"{dtype} {'products' if cheap else 'entries'}, float64 eigenvalues and residual"
    share, rows = found.rounding / found.scale, min(WITNESSES, len(found.column_means))
    products = f"{dtype} products," if cheap else f"{dtype} entries, products"
    return f"{products} {share:.0e} λ₁ from those in float64 (seen on {rows} rows)"
