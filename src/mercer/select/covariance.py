"""The matrix of a kernel with free parameters on some rows, and what its derivatives in them add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.gram import KernelOperator
from mercer.gram import tiles as sweep
from mercer.kernels import Kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.derivatives import (
    ParametricKernel,
    Tape,
    positive_parameters,
    tunable_parameters,
    with_parameters,
)
from mercer.kernels.symbolic.expression import Expression
from mercer.points import points_of, vectors_of

__all__ = ["COARSE", "NOISE", "Covariance", "free_parameters"]

Floats = NDArray[np.float64]
STEP = 1e-4
"""Of central differences in log θ: their error is near STEP² of the derivative, and rounding's 1e-13/STEP."""
NOISE = "noise"
"""The name of σ² among the parameters of a likelihood."""
ROWS = 1024
"""The most rows of a block of differences."""
ENTRIES = 1 << 18
"""Entries of such a block, of which several exist at a time, unless the kernel prefers large blocks."""
FEW = 384
"""The most rows of which the sweeps over all pairs are kept."""
TILE = (128, 2048)
"""The most rows and columns of a block of derivatives, which stays in the cache."""
ASIDE = 3
"""Arrays of a block beside one for each pairing that parameters move: G and its parts, and a derivative."""
COARSE = 1000
"""From this many rows on, a search begins with some of them: with a quarter and a half evaluations cost a 64th and an
eighth."""


def free_parameters(kernel: Kernel) -> dict[str, float]:
    """The positive parameters in which the matrix can be differentiated: of the formula, or by differences if there
    is none.

    >>> from mercer.kernels import Subsequence
    >>> free_parameters(2.0 * Subsequence(length=2, decay=0.5))
    {'scale': 2.0, 'kernel__decay': 0.5}
    """
    return tunable_parameters(kernel) if trace_or_none(kernel) is not None else positive_parameters(kernel)


def upper_limits(kernel: Kernel, before: str = "") -> dict[str, float]:
    """The largest values of the parameters that have one, by name.

    >>> from mercer.kernels import Gaussian, Subsequence
    >>> upper_limits(2.0 * Subsequence(length=2)), upper_limits(Gaussian(0.5))
    ({'kernel__decay': 1.0}, {})
    """
    found = {before + one.name: float(one.metadata["at_most"]) for one in fields(kernel) if "at_most" in one.metadata}
    for name, value in kernel._params().items():
        if isinstance(value, Kernel):
            found |= upper_limits(value, f"{before}{name}__")
    return found


@dataclass(frozen=True, eq=False)
class Covariance:
    """K(θ) of the rows X, and Σᵢⱼ Gᵢⱼ ∂Kᵢⱼ/∂log θ.

    The derivatives are those of the traced formula, in one backward sweep for all parameters. If the kernel has no such
    formula, or the rows are not dense, they are central differences.

    Parameters
    ----------
    kernel : Kernel
        Without parameters that depend on data.
    names : tuple of str
        The parameters θ, of those of `free_parameters`.
    X : rows of the kernel's space, checked
    """

    kernel: Kernel
    names: tuple[str, ...]
    X: Any

    @classmethod
    def of(cls, who: str, kernel: Kernel, X: Any, fixed: Iterable[str] = ()) -> Covariance:
        """With all parameters of the kernel but the `fixed` ones, which may also name parameters of other things."""
        known = free_parameters(kernel)
        held = set(fixed)
        unknown = sorted(held - set(known))
        if unknown:
            do = f"choose from {', '.join((*known, 'noise'))}"
            raise InvalidInput(message(who, f"no parameter {unknown[0]!r}", do))
        return cls(kernel, tuple(name for name in known if name not in held), X)

    @cached_property
    def values(self) -> Floats:
        """The values of θ in `kernel`."""
        known = positive_parameters(self.kernel)
        return np.array([known[name] for name in self.names])

    def most(self, names: tuple[str, ...]) -> Floats:
        """The largest values of these parameters, so that a central difference stays within the kernel's limits."""
        limits = upper_limits(self.kernel)
        return np.array([limits.get(name, np.inf) * np.exp(-STEP) for name in names])

    @property
    def bytes(self) -> int:
        """The peak memory of `contracted`."""
        if not self.names:
            return 0
        if self._rows is not None:
            (height, width), (n, d) = TILE, self._rows.shape
            moved = sum(leaf.op != "param" for leaf in self._parametric.slopes(self._given(self.values)))
            return 8 * ((ASIDE + moved) * min(n, height) * min(n, width) + (1 + moved) * n * d)
        return 8 * 4 * self._step * len(points_of(self.X))

    def taken(self, index: NDArray[np.intp]) -> Covariance:
        """The same on some of the rows."""
        return Covariance(self.kernel, self.names, points_of(self.X).take(index).rows)

    def kernel_at(self, theta: Floats) -> Kernel:
        """The kernel with these values of θ."""
        return with_parameters(self.kernel, self._given(theta))

    def operator(self, theta: Floats) -> KernelOperator:
        """K(θ), with entries in float64."""
        return KernelOperator(self.kernel_at(theta), self.X, dtype=np.float64)

    def matrix(self, theta: Floats) -> Floats:
        """K(θ), stored. That of few rows is the forward sweep of the formula, whose values the derivatives need."""
        kernel, n = self.kernel_at(theta), len(points_of(self.X))
        if self._tape is None:
            return np.asarray(KernelOperator(kernel, self.X, dtype=np.float64).fill(np.empty((n, n))))
        K = self._tape.at(self._given(theta)).copy()
        if not np.all(np.isfinite(K)):
            raise InvalidInput(message("Covariance", f"{kernel!r}, with values beyond float64", "scale the columns"))
        return K

    def contracted(self, theta: Floats, G: Callable[[slice, slice], Floats]) -> Floats:
        """Σᵢⱼ Gᵢⱼ ∂Kᵢⱼ/∂log θ for a symmetric G, whose blocks on and above the diagonal `G(rows, columns)` gives."""
        if not self.names:
            return np.empty(0)
        if self._tape is not None:
            self._tape.at(self._given(theta))
            every = slice(0, len(points_of(self.X)))
            return self._tape.back(G(every, every), self.names)
        if self._rows is not None:
            return self._by_formulas(theta, G)
        return self._by_differences(theta, G)

    def _by_formulas(self, theta: Floats, G: Callable[[slice, slice], Floats]) -> Floats:
        """By the engine's entries of ∂k/∂leaf for each leaf that depends on θ."""
        X, given, total = self._rows, self._given(theta), np.zeros(len(self.names))
        assert X is not None
        plans = {leaf: sweep.formula_tiles(one, vectors_of(X)) for leaf, one in self._parametric.slopes(given).items()}
        for rows, columns in _upper_tiles(len(X)):
            weights, adjoints = G(rows, columns), {}
            for leaf, plan in plans.items():
                slopes = np.empty(weights.shape)
                plan.block(rows.start, rows.stop, columns.start, columns.stop, out=slopes)
                adjoints[leaf] = _times(leaf, weights, slopes)
            tape = self._parametric.tape(X[rows], X[columns], given)
            total += (1 if rows == columns else 2) * tape.gathered(adjoints, self.names)
        return total

    def _by_differences(self, theta: Floats, G: Callable[[slice, slice], Floats]) -> Floats:
        """By central differences in each parameter, a few rows at a time."""
        found, n = np.empty(len(self.names)), len(points_of(self.X))
        step = self._step
        for place in range(len(self.names)):
            move = np.exp(STEP * (np.arange(len(self.names)) == place))
            up, down = self.operator(theta * move), self.operator(theta / move)
            total = 0.0
            for start in range(0, n, step):
                rows = slice(start, min(start + step, n))
                own = np.arange(rows.start, rows.stop)
                change = up.rows(own) - down.rows(own)
                total += float(np.sum(G(rows, rows) * change[:, rows]))
                if rows.stop < n:
                    total += 2 * float(np.sum(G(rows, slice(rows.stop, n)) * change[:, rows.stop :]))
            found[place] = total / (2 * STEP)
        return found

    @property
    def _step(self) -> int:
        """Rows of a block of differences."""
        n = len(points_of(self.X))
        return min(n, ROWS) if self.kernel.prefers_large_blocks else max(1, min(ROWS, ENTRIES // n))

    def _given(self, theta: Floats) -> dict[str, float]:
        return dict(zip(self.names, map(float, theta), strict=True))

    @cached_property
    def _tape(self) -> Tape | None:
        """The sweeps over all pairs of few rows, which take no more memory than the pairs."""
        rows = self._rows
        if rows is None or len(rows) > FEW or rows.size > FEW * FEW:
            return None
        return self._parametric.tape(rows, rows)

    @cached_property
    def _parametric(self) -> ParametricKernel:
        return ParametricKernel(self.kernel, self.names)

    @cached_property
    def _rows(self) -> Floats | None:
        """The rows in float64, if the derivatives are those of the formula."""
        points = points_of(self.X)
        if points.sparse or not self.kernel.space.vectors or trace_or_none(self.kernel) is None:
            return None
        return np.ascontiguousarray(vectors_of(self.X).dense(), np.float64)


def _upper_tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Blocks on and above the diagonal of an n × n matrix."""
    height, width = TILE
    for first in range(0, n, height):
        rows = slice(first, min(first + height, n))
        yield rows, rows
        for start in range(rows.stop, n, width):
            yield rows, slice(start, min(start + width, n))


def _times(leaf: Expression, G: Floats, slopes: Floats) -> Any:
    """Σ G ∂K/∂leaf of a block, in the shape of the leaf: one number, one for each row, or one for each pair."""
    if leaf.op == "pairing":
        return np.multiply(G, slopes, out=slopes)
    if leaf.op == "param":
        return np.einsum("ij,ij->", G, slopes)
    own = "i" if leaf.op == "self_x" else "j"
    return np.einsum(f"ij,ij->{own}", G, slopes)
