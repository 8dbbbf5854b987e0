"""Cholesky in float32, refined to float64 accuracy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.linear.cg import CGState, ConjugateGradients
from mercer.solvers.linear.system import Floats, LinearSystem

__all__ = ["Cholesky", "CholeskyState"]

# A factor in float64 costs as much as about fifty float64 products with a stored matrix (n = 10 000).
_REFINEMENTS = 30


@dataclass(frozen=True)
class CholeskyState(State):
    """The factor, its precision, and the state of the refinement.

    Attributes
    ----------
    steps : int
    precision : str
        The dtype of the factor.
    buffer : array of shape (n, n), optional
        The factor, in the upper triangle.
    refinement : CGState, optional
    failure : str, optional
        The reason for the failure of the factorisation.
    """

    precision: str
    buffer: NDArray[Any] | None = None
    refinement: CGState | None = field(default=None, metadata={"state": CGState})
    failure: str | None = None

    @property
    def residual(self) -> float:
        return 1.0 if self.refinement is None else self.refinement.residual

    @property
    def factor(self) -> CholeskyFactor | None:
        """The factor, for more right-hand sides and the determinant; None if the factorisation failed."""
        return None if self.buffer is None else CholeskyFactor(self.buffer)


@dataclass(frozen=True)
class Cholesky(Solver[LinearSystem, CholeskyState]):
    r"""A + diag(shift) = LLᵀ in float32, then conjugate gradients on b − Ax in float64 with (LLᵀ)⁻¹ as preconditioner.

    One buffer of 4n² bytes holds the matrix and then its factor. The first step factors, each later one refines: one
    float64 product with the operator, shared by all right-hand sides. Refinement ends when each true relative residual
    is at most ``tol``; after a factor in float64 it is mostly not needed. If the factorisation in float32 fails, or its
    refinement stops contracting, the matrix is factored in float64 (8n² bytes). ``state.precision`` tells which of the
    two factors was used.

    Parameters
    ----------
    tol : float
        Tolerance on the true relative residual of each right-hand side.
    precision : {"mixed", "float64"}
        "float64" factors in float64 from the start.

    Raises
    ------
    InvalidInput
        If tol is negative, or `precision` is another word.

    References
    ----------
    N. J. Higham, T. Mary (2022). Mixed precision algorithms in numerical linear algebra. Acta Numerica 31. Section 5.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import LinearSystem, solve
    >>> solution = solve(Cholesky(), LinearSystem(Dense([[2.0, 1.0], [1.0, 3.0]]), [3.0, 4.0]))
    >>> solution.x.round(12), solution.state.precision
    (array([1., 1.]), 'float32')
    """

    tol: float = 1e-10
    precision: Literal["mixed", "float64"] = "mixed"

    def __post_init__(self) -> None:
        if not self.tol >= 0 or self.precision not in ("mixed", "float64"):
            raise InvalidInput(message("Cholesky", repr(self), 'give tol ≥ 0 and precision "mixed" or "float64"'))

    def start(self, problem: LinearSystem) -> CholeskyState:
        return CholeskyState(0, "float64" if self.precision == "float64" else "float32")

    def step(self, problem: LinearSystem, state: CholeskyState) -> CholeskyState:
        steps = state.steps + 1
        if state.buffer is None:
            return self._factor(problem, state, steps)
        assert state.refinement is not None
        with one_blas_thread(2.0 * state.buffer.size * problem.columns.shape[1]):
            refinement = self._cg.step(self._preconditioned(problem, state.buffer), state.refinement)
        ended = refinement.status
        given_up = ended in (Status.STALLED, Status.BREAKDOWN) or (ended is None and refinement.steps >= _REFINEMENTS)
        if given_up and state.precision == "float32":
            # The new state has no buffer, so that the memory is freed before the larger one is allocated.
            return CholeskyState(steps, "float64")
        return replace(state, steps=steps, refinement=refinement)

    def _factor(self, problem: LinearSystem, state: CholeskyState, steps: int) -> CholeskyState:
        dtype = np.dtype(state.precision)
        buffer = problem.matrix if state.steps == 0 else None
        if buffer is None or buffer.dtype != dtype:
            buffer = problem.A.fill(np.empty(problem.A.shape, dtype))
        factor = CholeskyFactor.of(buffer, problem.shift)
        if factor is not None:
            with one_blas_thread(2.0 * buffer.size * problem.columns.shape[1]):
                begin = self._cg.start if dtype == np.float32 else self._cg.start_from_inverse
                refinement = begin(self._preconditioned(problem, factor.buffer))
            return CholeskyState(steps, state.precision, factor.buffer, refinement)
        if state.precision == "float32":
            return CholeskyState(steps, "float64")
        finite = bool(np.all(np.isfinite(buffer)))
        return CholeskyState(steps, "float64", failure=("NOT_POSITIVE_DEFINITE" if finite else "NOT_FINITE"))

    def verdict(self, problem: LinearSystem, state: CholeskyState) -> Status | None:
        if state.failure is not None:
            return Status[state.failure]
        if state.refinement is None:
            return None
        return self._cg.verdict(problem, state.refinement)

    def finish(self, problem: LinearSystem, state: CholeskyState) -> tuple[Floats, float]:
        if state.refinement is None:
            return problem.shaped(np.zeros_like(problem.columns)), 1.0
        return self._cg.finish(problem, state.refinement)

    @property
    def _cg(self) -> ConjugateGradients:
        return ConjugateGradients(tol=self.tol, max_steps=200)

    @staticmethod
    def _preconditioned(problem: LinearSystem, buffer: NDArray[Any]) -> LinearSystem:
        return replace(problem, preconditioner=CholeskyFactor(buffer).inverse)
