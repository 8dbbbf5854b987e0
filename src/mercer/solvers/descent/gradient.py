"""Least mean squares: gradient descent on the squared error, in coefficients of a kernel matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators import Operator
from mercer.solvers.base import Solver, State, Status, require_symmetric
from mercer.solvers.linear.system import Floats, column_dots, column_norms

__all__ = ["BatchLMS", "LMSState", "LeastSquares", "StochasticLMS", "replay", "update_rates"]

CHUNK = 256
"""Rows per chunk: the kernel values among them are one block, and their updates one triangular solve."""

_EXPLODED = 1e3  # times ‖y‖: a run with larger errors diverges


@dataclass(frozen=True, eq=False)
class LeastSquares:
    r"""min over f = Σᵢ βᵢ k(·, xᵢ) of ½ Σᵢ wᵢ rᵢ² with r = y − Kβ; the gradient in feature space is −Σᵢ wᵢ rᵢ φ(xᵢ).

    The residual is the norm of that gradient, √(rᵀWKWr), relative to the norm at β = 0; the largest one of many
    targets.

    Parameters
    ----------
    K : Operator of shape (n, n), symmetric
    Y : array-like of shape (n,) or (n, t)
    weights : array-like of shape (n,), optional
        Non-negative.

    Raises
    ------
    InvalidInput
        If targets or weights do not have n rows, or a weight is negative.
    """

    K: Operator
    Y: ArrayLike
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        n, shape = self.K.shape[0], np.shape(self.Y)
        require_symmetric("LeastSquares", self.K)
        if len(shape) not in (1, 2) or shape[0] != n:
            raise InvalidInput(message("LeastSquares", f"targets of shape {shape}", f"give {n} rows"))
        if self.weights is not None and (np.shape(self.weights) != (n,) or not np.all(np.asarray(self.weights) >= 0)):
            raise InvalidInput(message("LeastSquares", "weights", f"give {n} numbers ≥ 0"))

    @cached_property
    def columns(self) -> Floats:
        """Y in float64 with one column for each target."""
        Y = np.asarray(self.Y, np.float64)
        return np.ascontiguousarray(Y[:, None] if Y.ndim == 1 else Y)

    @cached_property
    def w(self) -> Floats:
        """The weights in a column, 1 by default."""
        weights = np.ones(len(self.columns)) if self.weights is None else np.asarray(self.weights, np.float64)
        return weights[:, None]

    @cached_property
    def unit(self) -> float:
        """A power of two near the largest weight: norms are over it, because squares of small weights would be 0."""
        return 2.0 ** int(np.frexp(np.max(self.w, initial=0.0) or 1.0)[1] - 1)

    @cached_property
    def first_images(self) -> Floats:
        """K W Y."""
        return np.asarray(self.K.matmat(self.w * self.columns))

    @cached_property
    def scales(self) -> Floats:
        """The norm of the gradient at β = 0 for each target, 1 if it is 0."""
        norms = self.norms(self.columns, self.first_images)
        return np.where(norms == 0, 1.0, norms)

    def norms(self, R: Floats, images: Floats) -> Floats:
        """√(rᵀWKWr) for each column, with images = K W R, over `unit`."""
        return np.sqrt(np.maximum(column_dots(self.w / self.unit * R, images) / self.unit, 0.0))

    def relative(self, R: Floats, images: Floats) -> float:
        """The residual of the problem from the errors R = Y − Kβ and K W R; infinite if these are not finite."""
        largest = float(np.max(self.norms(R, images) / self.scales, initial=0.0))
        return largest if np.isfinite(largest) else float("inf")

    def residual(self, x: ArrayLike) -> float:
        """The largest relative norm of the gradient at β = x, from two products in float64."""
        R = self.columns - self.K.matmat(np.asarray(x, np.float64).reshape(self.columns.shape))
        return self.relative(R, self.K.matmat(self.w * R))

    def shaped(self, X: Floats) -> Floats:
        """X in the shape of Y."""
        return X.reshape(np.shape(self.Y))


@dataclass(frozen=True)
class LMSState(State):
    """Coefficients X = β, errors R = Y − KX, images K W R, and the iterate with the smallest error so far.

    Attributes
    ----------
    steps : int
    X, R, images, best : arrays of shape (n, t)
    error, smallest : float
        Σ wᵢ rᵢ² now, and the smallest so far.
    gradient : float
        The norm of the gradient, relative to that at β = 0.
    """

    X: Floats
    R: Floats
    images: Floats
    best: Floats
    error: float
    smallest: float
    gradient: float

    @property
    def residual(self) -> float:
        return self.gradient


@dataclass(frozen=True)
class _LMS(Solver[LeastSquares, LMSState]):
    """The common part of both rules: the start at β = 0, the verdict, and the answer."""

    step_size: float
    tol: float = 1e-3
    max_steps: int = 1000

    def __post_init__(self) -> None:
        if not (0 < self.step_size < np.inf and self.tol >= 0 and self.max_steps >= 0):
            given = f"step_size={self.step_size}, tol={self.tol}, max_steps={self.max_steps}"
            raise InvalidInput(message(type(self).__name__, given, "give step_size > 0, tol ≥ 0, max_steps ≥ 0"))

    _growth = _EXPLODED

    def start(self, problem: LeastSquares) -> LMSState:
        Y, images = problem.columns, problem.first_images
        error = _error(problem, Y)
        return LMSState(0, np.zeros_like(Y), Y, images, np.zeros_like(Y), error, error, problem.relative(Y, images))

    def _arrived(self, problem: LeastSquares, state: LMSState, X: Floats, R: Floats, images: Floats) -> LMSState:
        """The state at X, with the best iterate so far."""
        error = _error(problem, R)
        better = error <= state.smallest
        return LMSState(
            state.steps + 1,
            X,
            R,
            images,
            X if better else state.best,
            error,
            error if better else state.smallest,
            problem.relative(R, images),
        )

    def verdict(self, problem: LeastSquares, state: LMSState) -> Status | None:
        if state.steps == 0 and not np.isfinite(state.error):
            return Status.NOT_FINITE
        if not state.error <= self._growth * _error(problem, problem.columns):
            return Status.DIVERGED
        if state.residual <= self.tol:
            return Status.CONVERGED
        return Status.MAX_STEPS if state.steps >= self.max_steps else None

    def finish(self, problem: LeastSquares, state: LMSState) -> tuple[Floats, float]:
        X = state.best if self.verdict(problem, state) is Status.DIVERGED else state.X
        return problem.shaped(X), problem.residual(X)


@dataclass(frozen=True)
class BatchLMS(_LMS):
    r"""β := β + α W(y − Kβ): gradient descent in feature space, θ := θ + α Σᵢ wᵢ (yᵢ − θᵀφ(xᵢ)) φ(xᵢ).

    With 0 < α < 2/λmax(W^½KW^½) the errors √wᵢ(yᵢ − f(xᵢ)) never grow, because each step multiplies their components
    along the eigenvectors by 1 − αλ. So errors of twice the first ones prove that α is too large, and the run ends as
    DIVERGED with the best iterate. A step is one product with K, shared by all targets.

    Parameters
    ----------
    step_size : float
        α.
    tol : float
        Tolerance on the norm of the gradient relative to the first one.
    max_steps : int
        Most steps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import solve
    >>> problem = LeastSquares(Dense([[2.0, 0.0], [0.0, 1.0]]), [2.0, 3.0])
    >>> solve(BatchLMS(0.5), problem, max_steps=1).x
    array([1. , 1.5])
    >>> solve(BatchLMS(0.5, tol=1e-9), problem).x.round(6)
    array([1., 3.])
    >>> solve(BatchLMS(1.5), problem).status.name
    'DIVERGED'
    """

    _growth = 2.0

    def step(self, problem: LeastSquares, state: LMSState) -> LMSState:
        X = state.X + self.step_size * (problem.w * state.R)
        R = state.R - self.step_size * state.images
        return self._arrived(problem, state, X, R, np.asarray(problem.K.matmat(problem.w * R)))


@dataclass(frozen=True)
class StochasticLMS(_LMS):
    r"""βᵢ := βᵢ + α (yᵢ − Σⱼ βⱼ k(xᵢ, xⱼ)) for one row i after the other. A step is one pass over the rows.

    The result is the same as that of single updates, but `replay` computes those of 256 rows by one triangular solve. A
    row of weight w is visited w times in succession; what is left of w after whole visits is one with that part of α.
    If 0 < α < 2/max k(xᵢ, xᵢ) and some function meets all targets, each update brings f nearer to it. If no function
    does, f keeps moving around the least-squares fit, at a distance that falls with α.

    Parameters
    ----------
    step_size : float
        α.
    tol : float
        Tolerance on the norm of the full gradient after a pass, relative to the first one.
    max_steps : int
        Most passes.
    shuffle : bool
        Whether each pass has a new random order; otherwise the order is 1, …, n.
    seed : int
        Seed for the orders.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import solve
    >>> problem = LeastSquares(Dense([[1.0, 0.5], [0.5, 1.0]]), [1.0, 1.0])
    >>> solve(StochasticLMS(1.0, shuffle=False), problem, max_steps=1).x
    array([1. , 0.5])
    """

    shuffle: bool = True
    seed: int = 0

    def step(self, problem: LeastSquares, state: LMSState) -> LMSState:
        n = len(problem.columns)
        order = np.random.default_rng([self.seed, state.steps]).permutation(n) if self.shuffle else np.arange(n)
        rates = update_rates(self.step_size, np.asarray(problem.K.diagonal(), np.float64), problem.w[:, 0])
        X = replay(problem.K.rows, state.X, problem.columns, order, order, rates)
        R = problem.columns - problem.K.matmat(X)
        return self._arrived(problem, state, X, R, np.asarray(problem.K.matmat(problem.w * R)))


def update_rates(step_size: float, diagonal: Floats, weights: Floats) -> Floats:
    """ρᵢ = (1 − (1 − αkᵢᵢ)^m (1 − pαkᵢᵢ))/kᵢᵢ for the update βᵢ := βᵢ + ρᵢ rᵢ: m visits, m ≤ wᵢ, and p = wᵢ − m of one.

    It is wᵢα for weights up to 1, and if kᵢᵢ = 0, and has no jumps in the weight.

    Parameters
    ----------
    step_size : float > 0
        α.
    diagonal : array of shape (n,)
        kᵢᵢ.
    weights : array of shape (n,)
        wᵢ.

    Examples
    --------
    >>> update_rates(0.5, np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0, 0.1]))
    array([0.5 , 0.75, 1.5 , 0.05])
    """
    whole = np.floor(weights)
    part, each = step_size * (weights - whole), step_size * diagonal
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # rates that overflow are a run that diverges
        left = (1 - each) ** whole
        # 1 − (1 − αk)^m, which for small αk would be the rounding of 1.
        lost = np.where(each < 0.5, -np.expm1(whole * np.log1p(-np.minimum(each, 0.5))), 1 - left)
        visits = np.where((whole <= 1) | (each == 0), step_size * whole, lost / diagonal)
        return np.asarray(visits + part * left)


def replay(
    rows: Callable[[NDArray[np.intp]], NDArray[np.floating]],
    X: Floats,
    Y: Floats,
    order: NDArray[np.intp],
    places: NDArray[np.intp],
    rates: Floats,
) -> Floats:
    r"""β after the updates βₚ := βₚ + ρ (yᵢ − K[i, :] β) for each i of the order, one after the other.

    In a chunk c of rows with errors e at its beginning, update j sees the error e_j − Σ_{l<j} K_jl δ_l. So the updates
    solve (I + diag(ρ) L) δ = diag(ρ) e, where L is the strictly lower triangle of K_cc.

    Parameters
    ----------
    rows : callable
        i ↦ K[i, :] over all coefficients.
    X : array of shape (m, t)
        β, which may have more rows than are visited. It is not changed.
    Y, rates : arrays of shapes (n, t) and (n,)
        Targets and ρ of all rows.
    order, places : integers of shape (v,)
        The rows to visit, and the places of their coefficients in β, each place once.

    Returns
    -------
    array of shape (m, t)
        The new β, with NaN if the updates diverge.

    Examples
    --------
    >>> K, row = np.eye(2), np.array([1])
    >>> replay(lambda i: K[i], np.zeros((2, 1)), np.ones((2, 1)), row, row, np.array([0.5, 0.5]))
    array([[0. ],
           [0.5]])
    """
    X = X.copy()
    for first in range(0, len(order), CHUNK):
        chunk, place = order[first : first + CHUNK], places[first : first + CHUNK]
        K = np.asarray(rows(chunk), np.float64)
        rho = rates[chunk][:, None]
        lower = np.tril(rho * K[:, place], -1)
        updates = rho * (Y[chunk] - K @ X)
        if not np.all(np.isfinite(updates)):  # the updates diverge; the caller keeps the last finite iterate
            X[place] = np.nan
            return X
        X[place] += scipy.linalg.solve_triangular(lower, updates, lower=True, unit_diagonal=True, check_finite=False)
    return X


def _error(problem: LeastSquares, R: Floats) -> float:
    """The largest √Σ wᵢrᵢ² of the targets, relative to √Σ wᵢyᵢ²; infinite instead of NaN."""
    root = np.sqrt(problem.w / problem.unit)
    first = column_norms(root * problem.columns)
    largest = float(np.max(column_norms(root * R) / np.where(first == 0, 1.0, first), initial=0.0))
    return largest if np.isfinite(largest) else float("inf")
