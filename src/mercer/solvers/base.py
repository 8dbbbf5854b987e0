"""The contract of a solver, and the one loop that runs them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from enum import Enum
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.events import SolverStep, emit
from mercer.keeping import run_of
from mercer.operators import Operator

__all__ = ["Problem", "Solution", "Solver", "State", "Status", "require_symmetric", "solve"]


class Status(Enum):
    """How a run ended. The value of each member is the advice to the user, and never changes: pickles hold it.

    Examples
    --------
    >>> Status.CONVERGED.advice
    'the tolerance was reached; nothing to do'
    """

    CONVERGED = "the tolerance was reached; nothing to do"
    MAX_STEPS = "the step limit came before the tolerance; continue from solution.state, or allow more steps"
    STALLED = (
        "the recurrence went on but the true residual did not fall: the precision of the operator is used up; "
        "use a float64 operator, a larger regularisation, or a looser tolerance"
    )
    BREAKDOWN = (
        "a direction p with pᵀAp ≤ 0 was met, so the operator or its preconditioner is not positive definite; "
        "increase the regularisation, or check that the kernel is positive semi-definite"
    )
    NOT_POSITIVE_DEFINITE = (
        "the Cholesky factorisation failed in float64 too; increase the regularisation, "
        "or check that the kernel is positive semi-definite"
    )
    RANK_DEFICIENT = (
        "the operator has fewer eigenvalues above rounding than were asked for; "
        "the trailing ones are 0 to working precision: ask for fewer, or drop them"
    )
    DIVERGED = (
        "the error grows from step to step, because the step size is too large; the answer is the best iterate: "
        "lower the step size, below 2/λmax in batch mode and 2/max k(x, x) in stochastic mode"
    )
    NOT_FINITE = "a NaN or an infinity came out of the operator or the right-hand side; check the data and the kernel"

    @property
    def advice(self) -> str:
        """The meaning of the status, and advice."""
        return str(self.value)

    @property
    def converged(self) -> bool:
        """Whether the answer meets the tolerance. A rank deficiency that was found counts as success."""
        return self in (Status.CONVERGED, Status.RANK_DEFICIENT)


class Problem(Protocol):
    """The problem that a solver solves. It computes the residual of any answer without the solver's recurrences."""

    def residual(self, x: Any, /) -> float:
        """The true residual of x, computed from the operator in float64."""


@dataclass(frozen=True)
class State(ABC):
    """All that a resumed run needs to give the same bits: arrays, scalars, and nested states.

    A field that holds a state names its class, ``field(metadata={"state": ThatState})``. Memory that the next step may
    overwrite is marked ``{"scratch": True}`` and not saved.

    Attributes
    ----------
    steps : int
        Steps so far.
    """

    steps: int

    @property
    @abstractmethod
    def residual(self) -> float:
        """The residual by the solver's own recurrence."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The state as named arrays, for any file format that holds arrays. Fields that are None are omitted."""
        arrays: dict[str, NDArray[Any]] = {}
        for f in _kept(self):
            value = getattr(self, f.name)
            if isinstance(value, State):
                arrays |= {f"{f.name}.{key}": array for key, array in value.to_arrays().items()}
            elif value is not None:
                arrays[f.name] = np.asarray(value)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The state that ``to_arrays`` wrote."""
        return cls(**{f.name: _read(f, arrays) for f in _kept(cls)})


def _kept(state: Any) -> list[Field[Any]]:
    return [f for f in fields(state) if not f.metadata.get("scratch")]


def _read(f: Field[Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    prefix = f"{f.name}."
    within = {key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)}
    if within:
        return f.metadata["state"].from_arrays(within)
    if f.name not in arrays:
        return None
    array = np.asarray(arrays[f.name])
    return array.item() if array.ndim == 0 else array


P = TypeVar("P", bound=Problem)
S = TypeVar("S", bound=State)


class Solver(ABC, Generic[P, S]):
    """A frozen dataclass of tolerances that can start, take a step, decide when to stop, and return the answer.

    ``step`` returns a new state and does not change the old one. So any state can be kept and continued.
    """

    @property
    def tolerance(self) -> float:
        """The residual at which the solver stops: its ``tol``, or 0 for a direct solver."""
        return float(getattr(self, "tol", 0.0))

    @abstractmethod
    def start(self, problem: P) -> S:
        """The state before the first step. This must be cheap."""

    @abstractmethod
    def step(self, problem: P, state: S) -> S:
        """The state after one bounded piece of work."""

    @abstractmethod
    def verdict(self, problem: P, state: S) -> Status | None:
        """How the run ended, or None if it has not."""

    @abstractmethod
    def finish(self, problem: P, state: S) -> tuple[Any, float]:
        """The answer and its true residual. The state can still be continued."""


@dataclass(frozen=True)
class Solution(Generic[S]):
    """The result of ``solve``, converged or not.

    Attributes
    ----------
    x : object
        The answer, or the last iterate.
    status : Status
        How the run ended; ``status.advice`` says what to try.
    steps : int
        Number of steps, including those of the runs that this one continued.
    residual : float
        The true residual, not the recurrence's. It is recomputed in float64 unless the solver says otherwise.
    state : State
        Pass it to ``solve`` to take more steps.
    """

    x: Any
    status: Status
    steps: int
    residual: float
    state: S

    @property
    def converged(self) -> bool:
        """Whether the answer meets the tolerance."""
        return self.status.converged


def solve(
    solver: Solver[P, S],
    problem: P,
    *,
    state: S | None = None,
    max_steps: int | None = None,
    each: Callable[[S], None] | None = None,
) -> Solution[S]:
    """Take steps until the solver has a verdict, or at most ``max_steps`` of them. Each step emits one event.

    A run that is stopped and continued from its state gives the same bits as an uninterrupted run. In a fit within
    `mercer.checkpoint` the loop continues from the state that was kept.

    Parameters
    ----------
    solver : Solver
        The method and its tolerances.
    problem : Problem
        The problem to solve.
    state : State, optional
        The state to continue from: that of an earlier solution of the same problem by the same solver.
    max_steps : int, optional
        The most steps that this call may take; by default only the solver's own limit counts.
    each : callable, optional
        Called with every state, including the one before the first step, to record the iterates. A checkpoint keeps
        what a `Trail` has recorded; any other function is called with the states from the one kept on.

    Returns
    -------
    Solution

    Raises
    ------
    InvalidInput
        If ``max_steps`` is negative.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import ConjugateGradients, LinearSystem
    >>> problem = LinearSystem(Dense([[2.0, 0.0], [0.0, 4.0]]), [2.0, 4.0])
    >>> first = solve(ConjugateGradients(), problem, max_steps=1)
    >>> first.status.name, first.steps
    ('MAX_STEPS', 1)
    >>> second = solve(ConjugateGradients(), problem, state=first.state)
    >>> second.status.name, second.steps, second.x.round(6)
    ('CONVERGED', 2, array([1., 1.]))
    """
    if max_steps is not None and max_steps < 0:
        raise InvalidInput(message("solve", f"max_steps={max_steps}", "give None or at least 0"))
    # Numbers that are not finite end in a status, not in a warning.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        current = solver.start(problem) if state is None else state
        last = None if max_steps is None else current.steps + max_steps
        with run_of(solver, current, each) as run:
            if run.arrays is not None:
                current = type(current).from_arrays(run.arrays)
            elif each is not None:
                each(current)
            while (status := solver.verdict(problem, current)) is None:
                if last is not None and current.steps >= last:
                    status = Status.MAX_STEPS
                    break
                current = solver.step(problem, current)
                emit(SolverStep(type(solver).__name__, current.steps, current.residual, solver.tolerance))
                if each is not None:
                    each(current)
                run.offer(current)
            x, residual = solver.finish(problem, current)
    return Solution(x, status, current.steps, residual, current)


def require_symmetric(speaker: str, A: Operator) -> None:
    """Refuse an operator that is not square and symmetric, in the name of the problem that it was given to."""
    if A.shape[0] != A.shape[1] or not A.symmetric:
        given = f"an operator of shape {A.shape}, symmetric={A.symmetric}"
        raise InvalidInput(message(speaker, given, "give a symmetric operator"))
