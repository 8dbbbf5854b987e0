"""The mean-map kernel on sets of points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.kernels import evaluation
from mercer.kernels.base import Array, Kernel
from mercer.kernels.names import as_kernel
from mercer.kernels.parameters import bandwidth, checks
from mercer.kernels.parameters.resolution import Resolver
from mercer.kernels.properties import Definiteness, Properties
from mercer.kernels.sequences.series import Series, as_tables, same_width, stacked
from mercer.kernels.vectors.stationary import Gaussian
from mercer.points import OBJECTS, Space

__all__ = ["SetKernel"]

ENTRIES = 1 << 24
"""Entries of the kernel matrix of points that are in memory at a time: 128 MB."""


@dataclass(frozen=True, repr=False)
class SetKernel(Kernel):
    """K(X, Z) = 1/(|X||Z|) Σ_{x∈X} Σ_{z∈Z} k(x, z): the inner product of the mean features of two sets of points.

    An object is a table with a point in each row; the order of the points does not matter.

    Parameters
    ----------
    kernel : Kernel or str, default Gaussian()
        The kernel k of two points: a kernel on vectors, or its name or expression. The rules "scale" and "median" use
        the points of all objects.
    aggregate : {"mean", "sum"}, default "mean"
        With "sum" the factor 1/(|X||Z|) is omitted, so that larger sets have larger values.

    Raises
    ------
    InvalidInput
        If the kernel is not one on vectors.

    Notes
    -----
    ‖mean φ(X) − mean φ(Z)‖² = K(X, X) − 2K(X, Z) + K(Z, Z) is the (biased) squared maximum mean discrepancy of the two
    sets. ``SetKernel(k).normalized()`` is the cosine.

    References
    ----------
    T. Gärtner, P. Flach, A. Kowalczyk, A. Smola (2002). Multi-instance kernels. ICML.
    A. Smola, A. Gretton, L. Song, B. Schölkopf (2007). A Hilbert space embedding for distributions. ALT.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, SetKernel
    >>> SetKernel(Linear())([[[0.0], [2.0]], [[3.0]]])  # means 1 and 3
    array([[1., 3.],
           [3., 9.]])
    """

    kernel: Kernel = Gaussian()  # noqa: RUF009  (a value)
    aggregate: str = "mean"

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str):
            self._set("kernel", as_kernel(self.kernel))
        if not isinstance(self.kernel, Kernel) or not self.kernel.space.vectors:
            given = f"{self.kernel!r} is not a kernel on vectors"
            raise InvalidInput(message("SetKernel", given, "give a kernel such as Gaussian(), or its name"))
        self._set("aggregate", checks.one_of("SetKernel", "aggregate", self.aggregate, ("mean", "sum")))

    @property
    def space(self) -> Space:
        return OBJECTS

    def _of_objects(self) -> bool:
        return True

    @property
    def prefers_large_blocks(self) -> bool:
        return True

    @property
    def properties(self) -> Properties:
        """The properties of k, but not strict definiteness, because different sets can have equal means."""
        inner, mean = self.kernel.properties, self.aggregate == "mean"
        if inner.definiteness.is_mercer:
            return Properties(Definiteness.POSITIVE_SEMIDEFINITE, bounded=inner.bounded and mean)
        conditional = inner.definiteness is Definiteness.CONDITIONALLY_POSITIVE and mean
        return Properties(Definiteness.CONDITIONALLY_POSITIVE if conditional else Definiteness.UNKNOWN)

    def as_objects(self, X: Array) -> Array:
        return as_tables(X, "SetKernel")

    def check_data(self, X: Array) -> None:
        self.kernel.check_data(stacked(self.as_objects(X)).rows)

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        points = None if X is None else stacked(self.as_objects(X)).rows
        # Without the weights, which belong to objects, while the rules use points.
        plain = Resolver(lambda rule, measure, rows: bandwidth.from_data(rule, measure, rows), resolver.column)
        return replace(self, kernel=self.kernel._resolved(points, resolver if X is None else plain))

    def block(self, X: Array, Z: Array) -> NDArray[np.float64]:
        """All K(X, Z), from blocks of the kernel matrix of the points."""
        self._require_resolved()
        x = stacked(self.as_objects(X))
        z = x if Z is X else stacked(self.as_objects(Z))
        same_width(x, z, "SetKernel")
        out = np.empty((x.count, z.count))
        for i0, i1 in _runs(x, len(z.rows)):
            part = x.part(i0, i1)
            points = evaluation.dense(self.kernel, part.rows, z.rows)
            out[i0:i1] = np.add.reduceat(np.add.reduceat(points, z.starts[:-1], axis=1), part.starts[:-1], axis=0)
        out *= np.multiply.outer(self._factor(x), self._factor(z))
        # The mean of both triangles, because their sums are rounded in different orders.
        return (out + out.T) / 2 if Z is X else out

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        x = stacked(self.as_objects(X))
        parts = (x.part(i, i + 1).rows for i in range(x.count))
        sums = np.array([evaluation.dense(self.kernel, rows).sum() for rows in parts])
        return sums * self._factor(x) ** 2

    def _factor(self, x: Series) -> Any:
        return 1.0 / x.lengths if self.aggregate == "mean" else np.ones(x.count)


def _runs(x: Series, columns: int) -> Iterator[tuple[int, int]]:
    """Runs of objects whose points have at most `ENTRIES` entries in the kernel matrix; at least one object each."""
    most, first = max(ENTRIES // max(columns, 1), 1), 0
    while first < x.count:
        last = max(int(np.searchsorted(x.starts, x.starts[first] + most, side="right")) - 1, first + 1)
        yield first, last
        first = last
