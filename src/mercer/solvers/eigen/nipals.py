"""Partial least squares in dual form: orthonormal scores, one component per step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.operators import Operator
from mercer.solvers.base import Solver, State, Status

__all__ = ["KernelNipals", "LatentScores", "NipalsState", "ScoreProblem"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoreProblem:
    """tᵢ ∝ PᵢAPᵢ uᵢ, uᵢ = PᵢYYᵀPᵢ tᵢ up to a factor, with Pᵢ = I − Σⱼ﹤ᵢ tⱼtⱼᵀ and ‖tᵢ‖ = 1, for i = 1 … k.

    Parameters
    ----------
    A : Operator of shape (n, n)
        Symmetric positive semi-definite: a centred kernel matrix.
    Y : array-like of shape (n, q)
        Centred targets.
    k : int
        Number of components, from 1 to n.

    Raises
    ------
    InvalidInput
        If the operator is not symmetric, Y does not have n rows, or k is not from 1 to n.
    """

    A: Operator
    Y: ArrayLike
    k: int

    def __post_init__(self) -> None:
        n, shape = self.A.shape[0], np.shape(self.Y)
        if self.A.shape != (n, n) or not self.A.symmetric or len(shape) != 2 or shape[0] != n or shape[1] == 0:
            given = f"an operator of shape {self.A.shape}, symmetric={self.A.symmetric}, and targets of shape {shape}"
            raise InvalidInput(message("ScoreProblem", given, "give a symmetric operator and one row of targets a row"))
        if not 1 <= self.k <= n:
            raise InvalidInput(message("ScoreProblem", f"k={self.k} components", f"give k from 1 to {n}"))

    def residual(self, x: LatentScores) -> float:
        """max ‖tᵢ − (PᵢAPᵢYYᵀPᵢtᵢ normalised)‖ over the components, from one product in float64."""
        T, Y = x.T, np.asarray(self.Y, np.float64)
        if T.shape[1] == 0:
            return 0.0
        wanted = np.asarray(self.A.matmat(_targets_of(T, Y)))
        for i in range(T.shape[1]):
            wanted[:, i] = _without(wanted[:, i : i + 1], T[:, :i])[:, 0]
        return float(np.max(np.linalg.norm(T - wanted / np.linalg.norm(wanted, axis=0), axis=0)))


@dataclass(frozen=True, eq=False)
class LatentScores:
    """Orthonormal scores T, target scores U, and AU, all of shape (n, k).

    Attributes
    ----------
    T, U, AU : arrays of shape (n, k)
    """

    T: Floats
    U: Floats
    AU: Floats


@dataclass(frozen=True)
class NipalsState(State):
    """The scores so far, the share of Y that they do not explain, and whether no further component exists.

    Attributes
    ----------
    steps : int
    T, U, AU : arrays of shape (n, steps)
    left : float
    exhausted : bool
    """

    T: Floats
    U: Floats
    AU: Floats
    left: float
    exhausted: bool = False

    @property
    def residual(self) -> float:
        return self.left


@dataclass(frozen=True)
class KernelNipals(Solver[ScoreProblem, NipalsState]):
    r"""c the first eigenvector of YᵢᵀAYᵢ, Yᵢ = PᵢY; uᵢ = Yᵢc; tᵢ = PᵢAuᵢ/‖PᵢAuᵢ‖.

    NIPALS iterates t ← A u, c ← Yᵀt, u ← Yc to the same answer; here a small eigenproblem gives it directly. A is never
    deflated: each Yᵢ is orthogonal to the earlier scores, so PᵢAPᵢYᵢ = PᵢAYᵢ. A component costs one product with q
    columns.

    Parameters
    ----------
    tol : float
        The solver stops if the remaining targets, or the part of an image orthogonal to the scores, are below this
        share of the whole: the next score would consist mostly of rounding.

    References
    ----------
    R. Rosipal, L. J. Trejo (2001). Kernel partial least squares regression in reproducing kernel Hilbert space. JMLR 2.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import solve
    >>> A, Y = np.diag([2.0, 1.0]), [[1.0], [0.0]]
    >>> solution = solve(KernelNipals(), ScoreProblem(Dense(A), Y, k=2))
    >>> solution.status.name, solution.x.T
    ('RANK_DEFICIENT', array([[1.],
           [0.]]))
    """

    tol: float = 1e-8

    @property
    def tolerance(self) -> float:
        """0: `tol` decides on the rank, not on the residual."""
        return 0.0

    def start(self, problem: ScoreProblem) -> NipalsState:
        none = np.empty((problem.A.shape[0], 0))
        return NipalsState(0, none, none, none, 1.0, not np.any(np.asarray(problem.Y)))

    def step(self, problem: ScoreProblem, state: NipalsState) -> NipalsState:
        Y, steps = np.asarray(problem.Y, np.float64), state.steps + 1
        size = float(np.linalg.norm(Y))
        rest = _without(Y, state.T)
        if not float(np.linalg.norm(rest)) > self.tol * size:
            return NipalsState(steps, state.T, state.U, state.AU, state.left, True)
        images = np.asarray(problem.A.matmat(rest))
        if not np.all(np.isfinite(images)):
            return NipalsState(steps, state.T, state.U, state.AU, float("inf"), True)
        G = rest.T @ images
        c = np.linalg.eigh((G + G.T) / 2)[1][:, -1:]
        u, image = rest @ c, images @ c
        t, length = _without(image, state.T), float(np.linalg.norm(u))
        # If an image lies in the span of the scores, only the rounding of the image is left after the projection.
        first = np.linalg.norm(state.AU[:, 0]) / np.linalg.norm(state.U[:, 0]) if state.steps else 0.0
        norm, floor = float(np.linalg.norm(t)), self.tol * max(float(np.linalg.norm(image)), first * length)
        if not norm > floor:
            return NipalsState(steps, state.T, state.U, state.AU, state.left, True)
        t = _without(t / norm, state.T)
        # The sign makes t correlate positively with its closest target. Weights instead of repeated rows keep it.
        along = Y.T @ t
        flip = -1.0 if along[np.abs(along).argmax(), 0] < 0 else 1.0
        t, u, image = flip * t / np.linalg.norm(t), flip * u, flip * image
        T, U, AU = (np.hstack(pair) for pair in ((state.T, t), (state.U, u), (state.AU, image)))
        return NipalsState(steps, T, U, AU, float(np.linalg.norm(_without(Y, T)) / size))

    def verdict(self, problem: ScoreProblem, state: NipalsState) -> Status | None:
        if state.exhausted:
            return Status.RANK_DEFICIENT if np.isfinite(state.left) else Status.NOT_FINITE
        return Status.CONVERGED if state.steps >= problem.k else None

    def finish(self, problem: ScoreProblem, state: NipalsState) -> tuple[LatentScores, float]:
        x = LatentScores(state.T, state.U, state.AU)
        return x, problem.residual(x)


def _without(V: Floats, T: Floats) -> Floats:
    """(I − TTᵀ)V for orthonormal T, applied twice to remove rounding."""
    V = V - T @ (T.T @ V)
    return np.asarray(V - T @ (T.T @ V))


def _targets_of(T: Floats, Y: Floats) -> Floats:
    """The columns PᵢYYᵀPᵢtᵢ."""
    columns = []
    for i in range(T.shape[1]):
        rest = _without(Y, T[:, :i])
        columns.append(rest @ (rest.T @ T[:, i]))
    return np.column_stack(columns)
