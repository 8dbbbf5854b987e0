"""The global alignment kernel on time series."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
"""The cost of a pair of positions, for exponentials and logarithms, relative to a pair in `Subsequence`."""
LARGEST = 700.0
"""The largest logarithm of a value without normalisation: e⁷⁰⁹ is the limit of float64."""


@dataclass(frozen=True, repr=False)
class GlobalAlignment(Kernel):
    """K(x, z) = Σ_π Π_i κ(x_π₁(i), z_π₂(i)) over all alignments π of x and z, with κ = g/(2 − g), g = e^(−γ‖·‖²).

    An alignment is a path of pairs of times, from the first times of both series to the last ones; each step advances
    in one series or in both. Dynamic time warping takes the best alignment and is not a kernel. This sum over all
    alignments is a kernel.

    Parameters
    ----------
    gamma : float, "median", "scale" or "auto", default "median"
        γ > 0. "median" is 1/(2m²ℓ) with the median distance m of two points of the series and the median length ℓ, so
        that σ is Cuturi's m√ℓ. "scale" is scikit-learn's rule for the points, divided by ℓ.
    normalize : bool, default True
        Return K(x, z)/√(K(x, x) K(z, z)), computed by logarithms. Without normalisation values grow exponentially with
        the length, and values beyond float64 are refused.

    Raises
    ------
    InvalidInput
        Without normalisation, for values beyond float64.

    Notes
    -----
    K is positive semi-definite because κ/(1 + κ) = g/2 is (Cuturi's theorem). With g in the place of κ this would not
    hold. A pair takes O(|x| |z| d) operations; as many pairs are computed at once as fit into a vector register.

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
