"""The search for a witness: point sets with a negative eigenvalue are reduced, rounded and confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread
from mercer.errors import MercerError
from mercer.kernels import Expression, Kernel
from mercer.validity.arithmetic.exact import leaves, size
from mercer.validity.arithmetic.ranges import Domain
from mercer.validity.witnesses.budget import Budget, Spent
from mercer.validity.witnesses.points import within
from mercer.validity.witnesses.witness import Gap, Witness, confirm, confirm_asymmetry, confirm_gap

__all__ = ["Search", "Subject"]

Floats = NDArray[np.float64]

NOISE = 1e-12
"""|λ|/λmax below this can be rounding in a float64 matrix."""

KEPT = 1e-3
"""A reduced set must keep this share of the most negative λ/λmax, so that z needs few digits."""

MOST_GREEDY = 60
"""Sets of at most this many points are reduced one point at a time; larger sets keep their leading points."""

GIVEN_UP = 4
"""A point set is given up after this many roundings that are negative in float64 and cannot be confirmed."""

CLEAR = -0.01
"""A witness with a smaller λmin/λmax is not improved further."""

TRIED = 6
"""Most point sets to reduce to witnesses, the most negative ones first."""


@dataclass(frozen=True)
class Subject:
    """The subject of a search: a kernel on rows, or a matrix of values (of `objects`); `unit` is their rounding."""

    kernel: Kernel
    expression: Expression | None
    matrix: Floats | None = None
    objects: Any = None
    domain: Domain = field(default_factory=Domain)
    unit: float = float(np.finfo(np.float64).eps)
    budget: Budget = field(default_factory=Budget)

    @cached_property
    def nodes(self) -> int:
        """The nodes of the formula that are computed for each entry; small formulas compute shared nodes repeatedly."""
        if self.expression is None:
            return 1
        found = size(self.expression)
        return found.written if found.is_small else found.different

    def confirmed(self, points: Sequence[Any], K: Floats, z: Sequence[Decimal]) -> Witness | None:
        """The witness if it can be confirmed; otherwise None."""
        self.budget.of_intervals(self.nodes * len(points) ** 2)
        return confirm(self.expression, points, K, z, self.unit)

    def gram(self, points: Any) -> Floats:
        """K of the points in float64, with NaN if the function has no value."""
        if self.matrix is not None:
            return np.asarray(self.matrix[np.ix_(points, points)], np.float64)
        self.budget.of_arrays(self.nodes, len(points) ** 2)
        with np.errstate(all="ignore"):
            try:
                return np.asarray(self.kernel.block(points, points), np.float64)
            except (MercerError, ArithmeticError, ValueError, TypeError, IndexError):  # also raised by users' functions
                return np.full((len(points), len(points)), np.nan)

    @property
    def noise(self) -> float:
        """The |λ|/λmax that rounding can cause."""
        return max(NOISE, 64 * self.unit)

    def take(self, points: Any, index: Any) -> Any:
        """Some of the points."""
        return points[index] if isinstance(points, np.ndarray) else [points[i] for i in index]

    def exact(self, points: Any, decimals: int) -> list[Any]:
        """The points as a witness lists them: decimals, objects, or indices."""
        if self.matrix is not None:
            return [int(one) if self.objects is None else self.objects[int(one)] for one in points]
        if not isinstance(points, np.ndarray) or points.ndim != 2:
            return list(points)
        return [tuple(_short(value, decimals) for value in row) for row in points]


@dataclass
class Search:
    """Checks point sets one by one, and collects those with a negative eigenvalue.

    Attributes
    ----------
    sets : int
        Number of sets that were checked.
    worst : float
        The most negative λmin/λmax of the sets; 0 if none is negative.
    """

    subject: Subject
    sets: int = 0
    worst: float = 0.0
    smallest_diagonal: float = np.inf
    largest_cosine: float = 0.0
    conditional_worst: float = 0.0
    _found: list[tuple[float, Any]] = field(default_factory=list)
    _lopsided: Any = None
    _gaps: list[Any] = field(default_factory=list)

    @one_blas_thread()
    def look(self, sets: Iterable[Any]) -> None:
        """Check the sets, and keep those whose matrix has a negative eigenvalue beyond rounding."""
        for points in sets:
            try:
                K = self.subject.gram(points)
            except Spent:
                return
            sound = np.isfinite(np.diagonal(K))
            sound[sound] = np.isfinite(K[np.ix_(sound, sound)]).all(axis=1)
            if not sound.all():
                self._note_gap(points, K)
            if not sound.any():
                continue
            index = np.flatnonzero(sound)
            points, K = (points, K) if sound.all() else (self.subject.take(points, index), K[np.ix_(index, index)])
            if np.max(np.abs(K)) > 1e100:  # a single entry dominates the eigenvalues of such a matrix
                continue
            self._judge(points, K)

    def _note_gap(self, points: Any, K: Floats) -> None:
        """Keep a few points without a value."""
        if len(self._gaps) < TRIED:
            alone = np.flatnonzero(~np.isfinite(np.diagonal(K)))
            pair = [int(alone[0])] if len(alone) else [int(i) for i in np.argwhere(~np.isfinite(K))[0]]
            self._gaps.append(self.subject.take(points, pair))

    def _judge(self, points: Any, K: Floats) -> None:
        self.sets += 1
        apart = np.abs(K - K.T)
        size = float(np.max(np.abs(K)))
        if np.max(apart) > max(1e-9, 64 * self.subject.unit) * size and self._lopsided is None:
            i, j = np.unravel_index(int(np.argmax(apart)), K.shape)
            self._lopsided = self.subject.take(points, [int(i), int(j)])
        diagonal = np.diagonal(K)
        self.smallest_diagonal = min(self.smallest_diagonal, float(diagonal.min()))
        if diagonal.min() > 0:
            lengths = np.sqrt(diagonal)
            self.largest_cosine = max(self.largest_cosine, float(np.max(np.abs(K) / np.outer(lengths, lengths))))
        ratio = _ratio(K)
        self.worst = min(self.worst, ratio)
        centred = K - K.mean(axis=0)
        self.conditional_worst = min(self.conditional_worst, _ratio(centred - centred.mean(axis=1, keepdims=True)))
        if ratio < -self.subject.noise:
            self._found.append((ratio, points))

    @property
    def suspicious(self) -> bool:
        """Whether any set was negative or asymmetric."""
        return bool(self._found) or self._lopsided is not None

    @one_blas_thread()
    def witness(self) -> Witness | None:
        """The smallest confirmed witness from the most negative sets; None if none can be confirmed."""
        self.subject.budget.renew()
        best: Witness | None = None
        try:
            if self._lopsided is not None and (found := self._asymmetric(self._lopsided)):
                return found
            for points in self._ordered():
                found = Reduction(self.subject, points).witness()
                if found and (best is None or found.m < best.m):
                    best = found
                if best and best.m <= 3:
                    break
        except Spent:
            pass
        return best

    def gap(self) -> Gap | None:
        """A point without a value, with as few digits as possible."""
        self.subject.budget.renew()
        try:
            for points in self._gaps:
                for decimals in (1, 2, 3, 17):
                    rounded = _rounded(points, decimals)
                    if not np.all(np.isfinite(self.subject.gram(rounded))):
                        names = self.subject.exact(rounded, decimals)
                        if found := confirm_gap(self.subject.expression, names):
                            return found
        except Spent:
            pass
        return None

    def _ordered(self) -> Iterable[Any]:
        """The most negative sets for each number of columns, the fewest columns first; then the most negative ones."""
        by_width: dict[int, list[tuple[float, Any]]] = {}
        for ratio, points in sorted(self._found, key=lambda one: one[0]):
            width = points.shape[1] if isinstance(points, np.ndarray) and points.ndim == 2 else 1
            by_width.setdefault(width, []).append((ratio, points))
        chosen = [one for width in sorted(by_width) for one in by_width[width][:2]][:TRIED]
        chosen += sorted(self._found, key=lambda one: one[0])[:TRIED]
        return [points for _, points in chosen]

    def _asymmetric(self, points: Any) -> Witness | None:
        for decimals in (1, 3, 6, 17):
            rounded = _rounded(points, decimals)
            K = self.subject.gram(rounded)
            if abs(K[0, 1] - K[1, 0]) > 1e-9 * float(np.max(np.abs(K))):
                x, y = self.subject.exact(rounded, decimals)
                if found := confirm_asymmetry(self.subject.expression, x, y, K):
                    return found
        return None


class Reduction:
    """Reduces a set with a negative eigenvalue to a witness of few points with few digits."""

    def __init__(self, subject: Subject, points: Any) -> None:
        self.subject, self.points = subject, points
        self.K = subject.gram(points)
        self.floor = min(-subject.noise, KEPT * _ratio(self.K))

    def witness(self) -> Witness | None:
        """The witness, or None if it cannot be confirmed."""
        index = self._small() or self._greedy()
        points = self.subject.take(self.points, index)
        movable = self.subject.matrix is None and isinstance(points, np.ndarray) and points.ndim == 2
        if movable and points.size <= 40:
            points = self._moved(points)
        if movable and self._is_stationary():
            points = points - points[0]
        return self._confirmed(points, movable)

    def _small(self) -> list[int] | None:
        """One, two or three of the points with an eigenvalue below the floor, or None."""
        n = len(self.K)
        for few in (1, 2, 3):
            if n < few or n > (1000, 300, 40)[few - 1]:
                return None
            index = np.array(list(combinations(range(n), few)))
            ratios = _ratios(self.K[index[:, :, None], index[:, None, :]])
            if ratios.min() < self.floor:
                return [int(i) for i in index[int(np.argmin(ratios))]]
        return None

    def _greedy(self) -> list[int]:
        """Remove one point after the other, each time the one whose removal matters least."""
        index, K = self._leading(), self.K
        while 2 < len(index) <= MOST_GREEDY:
            n = len(index)
            without = np.array([np.delete(index, place) for place in range(n)])
            ratios = _ratios(K[without[:, :, None], without[:, None, :]])
            if ratios.min() >= self.floor:
                break
            index = without[int(np.argmin(ratios))]
        return [int(i) for i in index]

    def _leading(self) -> NDArray[np.intp]:
        """The points of the largest |zᵢ|, as few as keep a negative eigenvalue, by bisection."""
        order = np.argsort(-np.abs(np.linalg.eigh(_symmetric(self.K))[1][:, 0]))
        low, high = 1, len(order)
        while low < high:
            middle = (low + high) // 2
            some = order[:middle]
            if _ratio(self.K[np.ix_(some, some)]) < self.floor:
                high = middle
            else:
                low = middle + 1
        return np.sort(order[: max(high, min(2 * high, MOST_GREEDY))])

    def _moved(self, points: Floats) -> Floats:
        """Points moved to make the eigenvalue more negative, while fewer points are enough."""
        while len(points) > 2 and points.size <= 24:
            z = np.linalg.eigh(_symmetric(self.subject.gram(points)))[1][:, 0]
            fewer = self._descended(np.delete(points, int(np.argmin(np.abs(z))), axis=0))
            if _ratio(self.subject.gram(fewer)) >= self.floor:
                break
            points = fewer
        # A set with a clearly negative eigenvalue needs no further descent.
        clear = _ratio(self.subject.gram(points)) < CLEAR or points.size > 24
        return points if clear else self._descended(points)

    def _descended(self, points: Floats) -> Floats:
        """The points after a Nelder–Mead descent on λmin/λmax."""

        def ratio(flat: Floats) -> float:
            K = self.subject.gram(self._inside(flat.reshape(points.shape)))
            return _ratio(K) if np.all(np.isfinite(K)) and np.max(np.abs(K)) < 1e100 else 1.0

        found = scipy.optimize.minimize(
            ratio, points.ravel(), method="Nelder-Mead", options={"maxfev": 40 * points.size, "adaptive": True}
        )
        moved = self._inside(found.x.reshape(points.shape))
        return moved if found.fun < _ratio(self.subject.gram(points)) else points

    def _inside(self, points: Floats) -> Floats:
        return within(points, self.subject.domain)

    def _is_stationary(self) -> bool:
        """Whether the formula depends on distances only, so that the points can be translated."""
        e = self.subject.expression
        return e is not None and not self.subject.domain.non_negative and _of_distances(e)

    def _confirmed(self, points: Any, movable: bool) -> Witness | None:
        """The first confirmed witness, with more and more digits for the points and for z."""
        target, failed = _ratio(self.subject.gram(points)), 0
        for decimals in (0, 1, 2, 3, 4, 6, 17) if movable else (17,):
            rounded = _rounded(points, decimals) if movable else points
            K = self.subject.gram(rounded)
            if not np.all(np.isfinite(K)) or _ratio(K) > min(0.3 * target, -self.subject.noise):
                continue
            values, vectors = np.linalg.eigh(_symmetric(K))
            for z in _integer_multiples(vectors[:, 0]):
                v = np.array(z, np.float64)
                if v @ K @ v > 0.1 * values[0] * (v @ v):
                    continue
                names = self.subject.exact(rounded, decimals)
                found = self.subject.confirmed(names, K, [Decimal(one) for one in z])
                if found:
                    return found
                failed += 1
                if failed == GIVEN_UP:
                    return None
        return None


def _symmetric(K: Floats) -> Floats:
    return (K + K.T) / 2


def _ratio(K: Floats) -> float:
    """λmin/max|λ|; 1 for a matrix that is not finite."""
    return float(_ratios(K[None])[0]) if np.all(np.isfinite(K)) else 1.0


def _ratios(K: Floats) -> Floats:
    """λmin/max|λ| of a stack of matrices."""
    values = np.linalg.eigvalsh((K + np.swapaxes(K, 1, 2)) / 2)
    size = np.maximum(np.abs(values[:, 0]), np.abs(values[:, -1]))
    return np.asarray(values[:, 0] / np.where(size > 0, size, 1.0))


def _of_distances(e: Expression) -> bool:
    kinds = [(leaf.op, *leaf.value) for leaf in leaves(e)]
    return all(op == "pairing" and kind in ("sqdist", "l1", "mismatches") and not views for op, kind, views in kinds)


def _rounded(points: Any, decimals: int) -> Any:
    """Rows rounded to `decimals` places after the leading digit of their largest number."""
    if decimals > 15 or not isinstance(points, np.ndarray) or points.ndim != 2:
        return points
    size = float(np.max(np.abs(points), initial=0.0))
    places = decimals - int(np.floor(np.log10(size))) if size > 0 else 0
    return np.array([[float(f"{value:.{max(places, 0)}f}") for value in np.round(row, places)] for row in points])


def _short(value: float, decimals: int) -> Decimal:
    """The shortest decimal of a float, or its exact value if `decimals` exceeds 15."""
    exact = Decimal(float(value)) if decimals > 15 else Decimal(repr(float(value)))
    plain = exact.normalize() if decimals <= 15 else exact
    return Decimal(0) if plain == 0 else Decimal(format(plain, "f"))


def _integer_multiples(z: Floats) -> Iterable[Sequence[int]]:
    """Multiples of z rounded to integers, the smaller ones first, with a positive first entry."""
    z = z / z[int(np.argmax(np.abs(z)))]
    z = z * np.sign(z[np.flatnonzero(z)[0]])
    for scale in (1, 2, 3, 5, 10, 20, 50, 100, 1000, 10_000, 100_000, 10**6, 10**8):
        whole = np.rint(scale * z)
        if np.any(whole):
            yield [int(one) for one in whole]
