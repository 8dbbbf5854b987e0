"""The generalised eigenproblem of two dense matrices, and its solution by LAPACK."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.eigen.dense import Eigenpairs, Floats, leading_pairs

__all__ = ["DensePencil", "DensePencilState", "Pencil"]


@dataclass(frozen=True, eq=False)
class Pencil:
    """A v = λ B v for the k largest λ, with A symmetric and B symmetric positive definite; vᵀBv = 1.

    Parameters
    ----------
    A, B : array-like of shape (n, n)
    k : int
        Number of eigenpairs, from 1 to n.

    Raises
    ------
    InvalidInput
        If A and B are not square and of one size, or k is not from 1 to n.
    """

    A: ArrayLike
    B: ArrayLike
    k: int

    def __post_init__(self) -> None:
        shapes = np.shape(self.A), np.shape(self.B)
        if len(shapes[0]) != 2 or shapes[0][0] != shapes[0][1] or shapes[0] != shapes[1]:
            raise InvalidInput(message("Pencil", f"matrices of shapes {shapes}", "give square matrices of one size"))
        if not 1 <= self.k <= shapes[0][0]:
            do = f"give k from 1 to {shapes[0][0]}"
            raise InvalidInput(message("Pencil", f"k={self.k} of {shapes[0][0]} eigenpairs", do))

    def residuals(self, values: Floats, vectors: NDArray[np.floating]) -> Floats:
        """‖Av − λBv‖ of each pair, relative to the largest ‖λBv‖ (absolute if all are 0)."""
        V = np.asarray(vectors, np.float64)
        right = (np.asarray(self.B, np.float64) @ V) * values
        scale = float(np.max(np.linalg.norm(right, axis=0), initial=0.0))
        return np.asarray(np.linalg.norm(np.asarray(self.A, np.float64) @ V - right, axis=0)) / (scale or 1.0)

    def residual(self, pairs: Eigenpairs) -> float:
        """The largest of ``residuals``."""
        return float(np.max(self.residuals(pairs.values, pairs.vectors), initial=0.0))


@dataclass(frozen=True)
class DensePencilState(State):
    """Empty before the step; the eigenpairs, or the reason for the failure, after it.

    Attributes
    ----------
    steps : int
    values, residuals : arrays of shape (k,), optional
    vectors : array of shape (n, k), optional
    failure : str, optional
    """

    values: Floats | None = None
    vectors: Floats | None = None
    residuals: Floats | None = None
    failure: str | None = None

    @property
    def residual(self) -> float:
        return float("inf") if self.residuals is None else float(np.max(self.residuals, initial=0.0))


@dataclass(frozen=True)
class DensePencil(Solver[Pencil, DensePencilState]):
    """B = LLᵀ, then L⁻¹AL⁻ᵀ = U diag(λ) Uᵀ and V = L⁻ᵀU, by LAPACK in float64.

    References
    ----------
    R. S. Martin, J. H. Wilkinson (1968). Reduction of the symmetric eigenproblem Ax = λBx and related problems to
    standard form. Numerische Mathematik 11. (LAPACK's sygvx.)

    Examples
    --------
    >>> from mercer.solvers import solve
    >>> solve(DensePencil(), Pencil([[2.0, 0.0], [0.0, 5.0]], [[1.0, 0.0], [0.0, 10.0]], k=1)).x.values
    array([2.])
    """

    def start(self, problem: Pencil) -> DensePencilState:
        return DensePencilState(0)

    def step(self, problem: Pencil, state: DensePencilState) -> DensePencilState:
        A, B = np.asarray(problem.A, np.float64), np.asarray(problem.B, np.float64)
        steps = state.steps + 1
        if not (np.all(np.isfinite(A)) and np.all(np.isfinite(B))):
            return DensePencilState(steps, failure=Status.NOT_FINITE.name)
        try:
            values, vectors = leading_pairs(A, problem.k, B)
        except np.linalg.LinAlgError:
            return DensePencilState(steps, failure=Status.NOT_POSITIVE_DEFINITE.name)
        return DensePencilState(steps, values, vectors, problem.residuals(values, vectors))

    def verdict(self, problem: Pencil, state: DensePencilState) -> Status | None:
        if state.failure is not None:
            return Status[state.failure]
        return None if state.values is None else Status.CONVERGED

    def finish(self, problem: Pencil, state: DensePencilState) -> tuple[Eigenpairs | None, float]:
        if state.values is None or state.vectors is None or state.residuals is None:
            return None, state.residual
        return Eigenpairs(state.values, state.vectors, state.residuals), state.residual
