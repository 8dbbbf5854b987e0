"""Lloyd's iteration in feature space, from sums of an operator's columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer.engine import backend
from mercer.errors import InvalidInput, message
from mercer.operators import Operator
from mercer.solvers.base import Solver, State, Status, require_symmetric

__all__ = ["Clustering", "Lloyd", "LloydState", "Partition"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Partition:
    """The labels, and for each cluster its weight W_c and ‖m_c‖²; the inertia Σ wᵢ ‖φ(xᵢ) − m_c(i)‖².

    `own` are ‖φ(xᵢ) − m_c(i)‖². `nearest` is the nearest mean of each row, the first one of equally near means, and
    `left` the squared distance to it. Both distances are 0 for rows of weight 0. `sums` are Sᵢ₍c₎ and `diagonal`
    k(xᵢ, xᵢ).

    Attributes
    ----------
    labels, nearest : integers of shape (n,)
    sizes, norms : arrays of shape (k,)
    inertia : float
    own, left, diagonal : arrays of shape (n,)
    sums : array of shape (n, k)
    """

    labels: Labels
    sizes: Floats
    norms: Floats
    inertia: float
    own: Floats
    nearest: Labels
    left: Floats
    sums: Floats
    diagonal: Floats

    @cached_property
    def distances(self) -> Floats:
        """All ‖φ(xᵢ) − m_c‖², infinite for a cluster without weight."""
        filled = self.sizes > 0
        D = self.sums * (-2.0 / np.where(filled, self.sizes, 1.0))
        D += self.norms
        D += self.diagonal[:, None]
        np.maximum(D, 0.0, out=D)
        D[:, ~filled] = np.inf
        return D


@dataclass(frozen=True, eq=False)
class Clustering:
    r"""min Σᵢ wᵢ ‖φ(xᵢ) − m_c(i)‖² over labels c(i) < k, with m_c = Σ_{c(i)=c} wᵢφ(xᵢ)/W_c and A = (⟨φ(xᵢ), φ(xⱼ)⟩).

    Parameters
    ----------
    A : Operator of shape (n, n), symmetric
        Its entries may be in float32.
    labels : integers of shape (n,)
        The initial clusters.
    k : int
        Number of clusters.
    weights : array of shape (n,), optional
        wᵢ ≥ 0, 1 by default. A row of weight 0 gets a label but does not change the means.
    exact : Operator, optional
        A in float64, to confirm the answer; A itself by default.

    Raises
    ------
    InvalidInput
        If the labels are not n integers from 0 to k − 1.
    """

    A: Operator
    labels: Labels
    k: int
    weights: Floats | None = None
    exact: Operator | None = None

    def __post_init__(self) -> None:
        n, labels = self.A.shape[0], np.asarray(self.labels)
        require_symmetric("Clustering", self.A)
        integers = labels.shape == (n,) and labels.dtype.kind in "iu" and n > 0
        if not integers or not 0 <= labels.min() <= labels.max() < self.k:
            given = f"labels of shape {labels.shape}, {labels.dtype}, for {n} rows and {self.k} clusters"
            raise InvalidInput(message("Clustering", given, "give an integer from 0 to k − 1 for each row"))

    @cached_property
    def w(self) -> Floats:
        """The weights."""
        return np.ones(self.A.shape[0]) if self.weights is None else np.asarray(self.weights, np.float64)

    @property
    def reference(self) -> Operator:
        """The operator that defines the residual."""
        return self.A if self.exact is None else self.exact

    @cached_property
    def diagonal(self) -> Floats:
        """k(xᵢ, xᵢ)."""
        return np.asarray(self.reference.diagonal(), np.float64)

    @cached_property
    def rounding(self) -> float:
        """Squared distances that differ by less count as equal: the rounding of a sum of n float64 terms."""
        largest = float(np.max(np.abs(self.diagonal), initial=0.0))
        return float(4 * np.finfo(np.float64).eps * np.sqrt(len(self.w)) * largest)

    @cached_property
    def from_mean(self) -> Floats:
        """‖φ(xᵢ) − m‖² − ‖m‖², with m the mean of all rows: it orders rows independently of their input order."""
        return np.asarray(self.diagonal - 2 * (self.reference @ self.w) / self.w.sum())

    @cached_property
    def noise(self) -> float:
        """Squared distances of two rows below this count as 0: the rounding of an entry."""
        largest = float(np.max(np.abs(self.diagonal), initial=0.0))
        return float(4 * np.finfo(self.reference.dtype).eps * largest)

    def distances_from(self, some: Labels) -> Floats:
        """‖φ(xᵢ) − φ(xₛ)‖² from each of some rows to all rows, with values below rounding set to 0."""
        rows, diagonal = np.asarray(self.reference.rows(some), np.float64), self.diagonal
        D = diagonal + diagonal[some][:, None] - 2 * rows
        D[np.arange(len(some)), some] = 0.0
        return np.where(self.noise < D, D, 0.0)

    def sums(self, A: Operator, labels: Labels) -> Floats:
        """Sᵢ₍c₎ = Σ_{c(j)=c} wⱼ Aᵢⱼ, in one pass over A."""
        found = A.group_sums(labels, self.k, self.weights)
        self.release()
        return found

    def release(self) -> None:
        """Free the memory of the exact operator: most steps use A."""
        if self.exact is not None:
            self.exact.release()

    def partition(self, labels: Labels, sums: Floats) -> Partition:
        """The partition with ‖φ(xᵢ) − m_c‖² = k(xᵢ, xᵢ) − 2 Sᵢ₍c₎/W_c + Σ_{c(j)=c} wⱼ Sⱼ₍c₎/W_c²."""
        sizes = np.asarray(np.bincount(labels, self.w, self.k), np.float64)
        within = np.bincount(labels, self.w * sums[np.arange(len(labels)), labels], self.k)
        filled = sizes > 0
        W = np.where(filled, sizes, 1.0)
        norms = within / W**2
        own, left, nearest = np.empty(len(labels)), np.empty(len(labels)), np.empty(len(labels), np.int64)
        backend.engine().nearest_means(
            sums=np.ascontiguousarray(sums.T),
            slope=-2.0 / W,
            offset=np.where(filled, norms, np.inf),
            diagonal=self.diagonal,
            labels=labels.astype(np.int64, copy=False),
            rounding=self.rounding,
            own=own,
            nearest=nearest,
            left=left,
        )
        if self.weights is not None:
            own[self.w <= 0] = left[self.w <= 0] = 0.0
        inertia = float(self.w @ own)
        return Partition(labels, sizes, norms, inertia, own, nearest, left, sums, self.diagonal)

    def improved(self, now: Partition) -> tuple[Labels, float]:
        """The labels after one more assignment to the nearest mean, and how much this lowers the inertia at least.

        Of means at the same distance, up to rounding, every row takes the first, so that equal rows stay together.
        """
        nearer = now.own - now.left
        gain = float(self.w @ np.where(nearer <= self.rounding, 0.0, nearer))  # ties gain nothing; NaN stays
        nearest = now.nearest.astype(np.intp)
        return nearest, gain + _fill_empty(self, nearest, now.left.copy())

    def residual(self, x: Partition) -> float:
        """The share of the inertia that one more assignment would remove: 0 at a fixed point."""
        now = self.partition(x.labels, self.sums(self.reference, x.labels))
        return _share(self.improved(now)[1], now.inertia)


def _fill_empty(problem: Clustering, labels: Labels, left: Floats) -> float:
    """Give each empty cluster the row farthest from its mean, in place; return how much this lowers the inertia.

    Rows with the same image move with it. They are at distance 0 from their own mean, so this never raises the inertia.
    If every row equals its mean, there are fewer distinct rows than clusters, and the cluster stays empty.
    """
    w, gain = problem.w, 0.0
    counts = np.bincount(labels[w > 0], minlength=problem.k)
    for c in np.flatnonzero(counts == 0):
        while left.max() > problem.rounding:
            far = int(left.argmax())
            equal = (problem.distances_from(np.array([far]))[0] == 0) & (labels == labels[far]) & (w > 0)
            lost, taken = float(w[equal] @ left[equal]), int(equal.sum())
            left[equal] = 0.0
            if taken < counts[labels[far]]:  # else it would leave another cluster empty
                counts[labels[far]], counts[c] = counts[labels[far]] - taken, taken
                labels[equal] = c
                gain += lost
                break
    return gain


def _share(gain: float, inertia: float) -> float:
    return gain / inertia if gain > 0 else 0.0 * gain


@dataclass(frozen=True)
class LloydState(State):
    """The labels, their sums Sᵢ₍c₎ (None before the first pass), and the labels of the next assignment.

    `age` counts the passes since all sums were last recomputed; it is −1 before any pass if the sums were given with
    the labels. `checked` tells whether the exact operator recomputed them.

    Attributes
    ----------
    steps, age : int
    labels, nearest : integers of shape (n,)
    sums : array of shape (n, k), optional
    inertia, share : float
        The inertia, and the share of it that one more assignment would remove.
    checked : bool
    """

    labels: Labels
    nearest: Labels
    sums: Floats | None = None
    inertia: float = float("inf")
    share: float = float("inf")
    age: int = 0
    checked: bool = False

    @property
    def residual(self) -> float:
        return self.share


@dataclass(frozen=True)
class Lloyd(Solver[Clustering, LloydState]):
    r"""c(i) ← argmin_c ‖φ(xᵢ) − m_c‖², then m_c ← the mean of cluster c. The inertia never rises.

    A step is one assignment and one pass over columns of A: those of the rows that moved, if they are fewer than half,
    and all columns at the first step and after every `refresh` steps, so that rounding does not accumulate. When no row
    moves, a pass over the exact operator confirms it, or finds rows that should move.

    Of means at the same distance, up to rounding, a row takes the first, and a row moves only if that lowers the
    inertia. So ties do not cause cycles. A cluster that loses all its rows takes the row that is farthest from its own
    mean. If several clusters end with the same mean, because there are fewer distinct rows, all but the first are
    empty.

    Parameters
    ----------
    tol : float
        Tolerance on the share of the inertia that one more assignment would remove; 0 requires a fixed point.
    max_steps : int
        Most steps.
    refresh : int
        Number of steps after which all sums are recomputed.
    confirm : bool
        Whether a pass over the exact operator must confirm the fixed point.

    Raises
    ------
    InvalidInput
        If tol or max_steps is negative, or `refresh` below 1.

    References
    ----------
    S. P. Lloyd (1982). Least squares quantization in PCM. IEEE Transactions on Information Theory 28.
    I. S. Dhillon, Y. Guan, B. Kulis (2004). Kernel k-means, spectral clustering and normalized cuts. KDD.

    Examples
    --------
    >>> from mercer.operators import LowRank
    >>> from mercer.solvers import solve
    >>> problem = Clustering(LowRank([[0.0], [1.0], [9.0], [10.0]]), np.array([0, 1, 1, 1]), k=2)
    >>> solution = solve(Lloyd(), problem)
    >>> solution.x.labels, solution.x.inertia, solution.status.name
    (array([0, 0, 1, 1]), 1.0, 'CONVERGED')
    """

    tol: float = 0.0
    max_steps: int = 300
    refresh: int = 30
    confirm: bool = True

    def __post_init__(self) -> None:
        if not (self.tol >= 0 and self.max_steps >= 0 and self.refresh >= 1):
            raise InvalidInput(message("Lloyd", repr(self), "give tol ≥ 0, max_steps ≥ 0, refresh ≥ 1"))

    def start(self, problem: Clustering) -> LloydState:
        labels = np.array(problem.labels, np.intp)
        return LloydState(0, labels, labels)

    def step(self, problem: Clustering, state: LloydState) -> LloydState:
        exact = state.sums is not None and state.share <= self.tol  # the sums at hand show a fixed point: confirm it
        labels = state.labels if exact else state.nearest
        moved = np.flatnonzero(labels != state.labels)
        age = state.age + 1
        if state.sums is None or exact or age >= self.refresh or 2 * len(moved) > len(labels):
            A, age = problem.reference if exact else problem.A, 0
            sums = problem.sums(A, labels)
        else:
            w = None if problem.weights is None else problem.w[moved]
            sums = problem.A.moved_sums(state.sums, moved, state.labels[moved], labels[moved], w)
        now = problem.partition(labels, sums)
        nearest, gain = problem.improved(now)
        checked = age == 0 and (exact or problem.exact is None)
        return LloydState(state.steps + 1, labels, nearest, sums, now.inertia, _share(gain, now.inertia), age, checked)

    def verdict(self, problem: Clustering, state: LloydState) -> Status | None:
        if state.steps > 0 and not (np.isfinite(state.inertia) and np.isfinite(state.share)):
            return Status.NOT_FINITE
        if state.share <= self.tol and (state.checked or not self.confirm):
            return Status.CONVERGED
        return Status.MAX_STEPS if state.steps >= self.max_steps else None

    def finish(self, problem: Clustering, state: LloydState) -> tuple[Partition, float]:
        known = state.sums is not None and (state.checked or not self.confirm)
        sums = state.sums if known else problem.sums(problem.reference, state.labels)
        assert sums is not None
        now = _merged(problem, problem.partition(state.labels, sums), sums)
        if problem.weights is not None:
            # No step waits for rows of weight 0, so their labels can be those of the means before.
            now = replace(now, labels=np.where(problem.w > 0, now.labels, now.nearest))
        return now, state.share if known else _share(problem.improved(now)[1], now.inertia)


def _merged(problem: Clustering, now: Partition, sums: Floats) -> Partition:
    """The partition in which clusters with the same mean are merged."""
    if np.array_equal(now.nearest, now.labels):
        return now
    D, labels, sums = now.distances, now.labels.copy(), sums.copy()
    filled = np.flatnonzero(now.sizes > 0)
    for place, b in enumerate(filled):
        for a in filled[:place]:
            if np.all(np.abs(D[:, a] - D[:, b]) <= problem.rounding):
                labels[labels == b] = a
                sums[:, a] += sums[:, b]
                sums[:, b] = 0.0
                break
    return problem.partition(labels, sums)
