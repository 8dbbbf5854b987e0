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

__all__ = ["Problem", "Solution", "Solver", "State", "Status", "solve"]


class Status(Enum):
    """How a solver ended; each member is its own advice.

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
        """What the status means and what to try."""
        return str(self.value)

    @property
    def converged(self) -> bool:
        """Whether the answer meets the tolerance; a known deficiency of rank is no failure."""
        return self in (Status.CONVERGED, Status.RANK_DEFICIENT)


class Problem(Protocol):
    """What a solver is given. It judges any answer by itself, with no trust in the solver's recurrences."""

    def residual(self, x: Any, /) -> float:
        """The true residual of x, computed from the operator in float64."""


@dataclass(frozen=True)
class State(ABC):
    """Where a solver stands: arrays, scalars, and states within, all that a resumed run needs to give the same bits.

    A field that is itself a state says which in its metadata, ``field(metadata={"state": ThatState})``; memory that the
    next step may write over has ``{"scratch": True}``, and is not kept.
    """

    steps: int

    @property
    @abstractmethod
    def residual(self) -> float:
        """The residual as far as the solver knows it."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The state as named arrays, for any file format that holds arrays; fields that are None are left out."""
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
    """A frozen dataclass of tolerances that knows how to begin, take a step, stop, and read off the answer.

    ``step`` returns a new state and leaves the old one as it was, so that any state can be kept and continued from.
    """

    @property
    def tolerance(self) -> float:
        """The residual at which the solver stops; 0 for a direct one."""
        return 0.0

    @abstractmethod
    def start(self, problem: P) -> S:
        """The state before the first step; cheap."""

    @abstractmethod
    def step(self, problem: P, state: S) -> S:
        """The state after one bounded piece of work."""

    @abstractmethod
    def verdict(self, problem: P, state: S) -> Status | None:
        """How it ended, or None while there is more to do."""

    @abstractmethod
    def finish(self, problem: P, state: S) -> tuple[Any, float]:
        """The answer and its true residual; the state may be continued from all the same."""


@dataclass(frozen=True)
class Solution(Generic[S]):
    """What the loop returns, whether or not it converged.

    Attributes
    ----------
    x : object
        The answer, or the last iterate.
    status : Status
        How it ended; ``status.advice`` says what to try.
    steps : int
        Taken in all, earlier runs that were resumed included.
    residual : float
        True residual, not the recurrence's: recomputed in float64, unless the solver says otherwise.
    state : State
        To be handed back to ``solve`` for more steps.
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
    """Step until the solver has a verdict, or for ``max_steps`` more steps; one event a step.

    A run that is stopped and continued from its state gives the same bits as one that is not.

    Parameters
    ----------
    solver : Solver
        A frozen bag of tolerances.
    problem : Problem
        What is to be solved.
    state : State, optional
        Where to continue from: the ``state`` of an earlier solution of the same problem by the same solver.
    max_steps : int, optional
        Steps that this call may take.
    each : callable, optional
        Is called with every state, that before the first step included: for a history of the iterates.

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
    with np.errstate(
        over="ignore", invalid="ignore", divide="ignore"
    ):  # what is not finite ends in a status, not a warning
        current = solver.start(problem) if state is None else state
        last = None if max_steps is None else current.steps + max_steps
        if each is not None:
            each(current)
        while (status := solver.verdict(problem, current)) is None:
            if last is not None and current.steps >= last:
                status = Status.MAX_STEPS
                break
            current = solver.step(problem, current)
            emit(SolverStep(type(solver).__name__, current.steps, current.residual, solver.tolerance))
            if each is not None:
                each(current)
        x, residual = solver.finish(problem, current)
    return Solution(x, status, current.steps, residual, current)
