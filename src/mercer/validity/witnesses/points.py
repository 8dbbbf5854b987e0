"""Point sets on which kernels often fail, at many scales: lines, circles, grids, spheres, clusters, repeated points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.points import sample_rows
from mercer.validity.arithmetic.ranges import Domain

__all__ = ["DIMENSIONS", "adversarial", "large", "spread", "subsets", "within"]

DIMENSIONS = (1, 2, 3, 5, 8)
"""Numbers of columns to try if none is given."""

WIDEST = 256
"""Points are drawn in at most this many columns; the others are zeros, which change no pairing."""

SIZE = 24
"""Points per set: enough to find eigenvalues of −1e-6·λmax of smooth formulas, and few enough for many sets."""

_SCALES = (1.0, 0.3, 3.0, 0.1, 10.0, 0.03, 30.0, 0.6, 1.7)
_LARGE = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)


def within(points: NDArray[np.float64], domain: Domain) -> NDArray[np.float64]:
    """The points with absolute values in the columns that have no negative entries in the domain.

    >>> within(np.array([[-1.0, -2.0]]), Domain(frozenset({1}), 2))
    array([[-1.,  2.]])
    """
    if isinstance(domain.non_negative, bool):
        return np.abs(points) if domain.non_negative else points
    columns = [column for column in domain.non_negative if column < points.shape[1]]
    moved = points.copy()
    moved[:, columns] = np.abs(moved[:, columns])
    return moved


def adversarial(
    d: int, seed: int = 0, domain: Domain | None = None, scales: tuple[float, ...] = _SCALES
) -> Iterator[NDArray[np.float64]]:
    """Point sets of d columns, each at every scale.

    >>> len(list(adversarial(2)))
    81
    """
    rng = np.random.default_rng([seed, d])
    for scale in scales:
        for points in _shapes(min(d, WIDEST), rng):
            drawn = within(scale * points, domain or Domain())
            yield drawn if d <= WIDEST else np.pad(drawn, ((0, 0), (0, d - WIDEST)))


def _shapes(d: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Sets of about unit size."""
    direction = np.ones(d) / np.sqrt(d)
    line = np.arange(SIZE)[:, None] / 8 * direction
    yield line
    yield rng.standard_normal((SIZE, d))
    axes = np.eye(min(d, 11), d)
    yield np.vstack([np.zeros(d), axes, -axes])
    yield rng.standard_normal((SIZE, 1)) * direction
    sphere = rng.standard_normal((SIZE, d))
    yield sphere / np.linalg.norm(sphere, axis=1, keepdims=True)
    yield _circle(d, 13)
    yield _lattice(d)
    clusters = np.repeat(rng.standard_normal((4, d)), 6, axis=0)
    yield clusters + 0.05 * rng.standard_normal((SIZE, d))
    few = rng.standard_normal((8, d))
    yield np.vstack([few, few, 100 * few[:2]])


def large(d: int, seed: int = 0, domain: Domain | None = None, scale: float = 1.0) -> Iterator[NDArray[np.float64]]:
    """Larger sets, for formulas that fail by little: long lines, square and triangular lattices, random points."""
    rng = np.random.default_rng([seed, d, 1])
    shapes = [rng.standard_normal((64, d)), np.arange(64)[:, None] / 4 * np.eye(1, d)]
    if d > 1:
        u, v = (grid.ravel() / 2.0 for grid in np.meshgrid(np.arange(9.0), np.arange(9.0)))
        shapes += [_padded(u, v, d), _padded(u + v / 2, np.sqrt(0.75) * v, d)]
    for factor in _LARGE:
        for points in shapes:
            moved = scale * factor * points
            yield within(moved - moved.min(axis=0), domain) if domain and domain.non_negative else moved


def _padded(u: NDArray[np.float64], v: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    points = np.zeros((len(u), d))
    points[:, 0], points[:, 1] = u, v
    return points


def _circle(d: int, count: int) -> NDArray[np.float64]:
    """Points at equal angles on a circle in the first two columns, and its centre."""
    angle = 2 * np.pi * np.arange(count) / count
    points = np.zeros((count + 1, d))
    points[:count, 0] = np.cos(angle)
    if d > 1:
        points[:count, 1] = np.sin(angle)
    return points


def _lattice(d: int) -> NDArray[np.float64]:
    """A grid of spacing 0.5 in the first two columns."""
    side = np.arange(5.0) / 2
    points = np.zeros((25 if d > 1 else 5, d))
    points[:, 0] = np.repeat(side, 5) if d > 1 else side
    if d > 1:
        points[:, 1] = np.tile(side, 5)
    return points


def subsets(n: int, seed: int = 0, count: int = 6) -> Iterator[NDArray[np.intp]]:
    """Index sets of random rows of a data set, or all rows if they are few."""
    rng = np.random.default_rng([seed, n])
    if n <= 2 * SIZE:
        yield np.arange(n)
        return
    for _ in range(count):
        yield sample_rows(n, SIZE, rng)


def spread(X: Any) -> float:
    """A typical distance between the rows; 1 if all rows are equal."""
    scale = float(np.sqrt(np.mean(np.var(np.asarray(X, np.float64), axis=0))))
    return scale if np.isfinite(scale) and scale > 0 else 1.0
