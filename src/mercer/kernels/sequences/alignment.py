"""The global alignment kernel on time series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.errors import InvalidInput, message
from mercer.kernels.base import Array, Kernel
from mercer.kernels.parameters import bandwidth, checks
from mercer.kernels.parameters.resolution import Resolver
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.sequences.pairs import by_pairs, own_pairs
from mercer.kernels.sequences.series import Series, as_tables, same_width, stacked
from mercer.points import OBJECTS, Space

__all__ = ["GlobalAlignment"]

COST = 8.0
"""Of a pair of places, for its exponentials and logarithms, where a subsequence's symbol costs 1."""
LARGEST = 700.0
"""The logarithm of the largest value that is not normalised, near the end of float64."""


@dataclass(frozen=True, repr=False)
class GlobalAlignment(Kernel):
    """K(x, z) = Σ over all alignments π of x and z of Π κ(x_π₁(i), z_π₂(i)), with κ = g/(2 − g), g = e^(−γ‖·‖²).

    An alignment goes through both series from the first times to the last, and steps ahead in one or both at a time, as
    dynamic time warping does: that takes the best alignment, and is no kernel; this sums over all of them, and is one.

    Parameters
    ----------
    gamma : float, "median", "scale" or "auto", default "median"
        γ > 0. "median" is 1/(2m²ℓ) with m the median distance of two points of the series and ℓ the median length, so
        that σ is Cuturi's m√ℓ; "scale" is scikit-learn's rule on the points, over ℓ.
    normalize : bool, default True
        K(x, z)/√(K(x, x) K(z, z)), computed by logarithms: without it values grow exponentially with the length, and
        those beyond float64 are refused.

    Notes
    -----
    K is positive semi-definite because κ/(1 + κ) = g/2 is (Cuturi's theorem); a Gaussian g itself in the place of κ has
    no such property. O(|x| |z| d) for a pair, as many pairs at a time as a vector register has room for.

    References
    ----------
    M. Cuturi, J.-P. Vert, O. Birkenes, T. Matsui (2007). A kernel for time series based on global alignments. ICASSP.
    M. Cuturi (2011). Fast global alignment kernels. ICML.

    Examples
    --------
    >>> from mercer.kernels import GlobalAlignment
    >>> GlobalAlignment(gamma=0.1)([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).round(3)
    array([[1.   , 0.811, 0.273],
           [0.811, 1.   , 0.17 ],
           [0.273, 0.17 , 1.   ]])
    """

    gamma: float | str = "median"
    normalize: bool = True

    reads: ClassVar[str] = "objects"

    def __post_init__(self) -> None:
        self._set("gamma", checks.bandwidth("GlobalAlignment", "gamma", self.gamma))
        if not isinstance(self.normalize, bool):
            raise InvalidInput(message("GlobalAlignment", f"normalize={self.normalize!r}", "give True or False"))

    @property
    def space(self) -> Space:
        return OBJECTS

    @property
    def prefers_large_blocks(self) -> bool:
        return True

    @property
    def properties(self) -> Properties:
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE, bounded=self.normalize)

    def as_objects(self, X: Array) -> Array:
        return as_tables(X, "GlobalAlignment")

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        if X is None:
            return replace(self, gamma=1.0)
        series = stacked(self.as_objects(X))
        gamma = bandwidth.from_data(str(self.gamma), "sqdist", series.rows)
        return replace(self, gamma=gamma / float(np.median(series.lengths)))

    def block(self, X: Array, Z: Array) -> NDArray[np.float64]:
        """All K(x, z)."""
        self._require_resolved()
        x = stacked(self.as_objects(X))
        z = None if Z is X else stacked(self.as_objects(Z))
        same_width(x, x if z is None else z, "GlobalAlignment")
        logarithms = by_pairs(x, z, COST + 0.2 * x.rows.shape[1], self._fill)
        if not self.normalize:
            return self._exponential(logarithms)
        rows = logarithms.diagonal() if z is None else self._own(x)
        columns = rows if z is None else self._own(z)
        return np.exp(logarithms - (0.5 * rows[:, None] + 0.5 * columns[None, :]))

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        self._require_resolved()
        x = stacked(self.as_objects(X))
        return np.ones(x.count) if self.normalize else self._exponential(self._own(x))

    def _own(self, x: Series) -> NDArray[np.float64]:
        return own_pairs((x.part(i, i + 1) for i in range(x.count)), self._fill)

    def _exponential(self, logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
        largest = float(logarithms.max(initial=-np.inf))
        if largest > LARGEST:
            given = f"values up to e^{largest:.0f}, beyond float64"
            raise InvalidInput(message("GlobalAlignment", given, "set normalize=True"))
        return np.exp(logarithms)

    def _fill(self, x: Series, z: Series, same: bool, i0: int, i1: int, out: NDArray[np.float64]) -> None:
        backend.engine().alignment_kernel(
            x=x.rows,
            x_starts=x.starts,
            z=z.rows,
            z_starts=z.starts,
            gamma=float(self.gamma),
            triangle=same,
            i0=i0,
            i1=i1,
            out=out,
        )
