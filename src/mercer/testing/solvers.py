"""The contract suite of solvers: one check for each promise, and one call for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from mercer.events import Event, SolverStep, observe
from mercer.solvers import Solution, Solver, State, Status, solve
from mercer.testing.comparison import hold

__all__ = ["SOLVER_CHECKS", "check_solver_contract"]


def check_solver_contract(solver: Solver[Any, Any], make_problem: Callable[[], Any]) -> None:
    """Check the contract of a solver on one problem.

    Parameters
    ----------
    solver : Solver
    make_problem : callable
        Returns a new copy of the same problem each time. The problem must be small and solvable by the solver.

    Raises
    ------
    AssertionError
        With the first promise that is broken.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import ConjugateGradients, LinearSystem
    >>> check_solver_contract(ConjugateGradients(), lambda: LinearSystem(Dense([[2.0, 1.0], [1.0, 3.0]]), [3.0, 4.0]))
    """
    for check in SOLVER_CHECKS:
        check(solver, make_problem)


def check_frozen(solver: Solver[Any, Any], make_problem: Callable[[], Any]) -> None:
    """A solver and its states are frozen dataclasses."""
    values: tuple[Any, Any] = (solver, solver.start(make_problem()))
    for value in values:
        hold(is_dataclass(value), f"{type(value).__name__} is not a dataclass")
        for f in fields(value)[:1]:
            try:
                setattr(value, f.name, None)
            except FrozenInstanceError:
                continue
            raise AssertionError(f"{type(value).__name__} is not frozen")


def check_answer(solver: Solver[Any, Any], make_problem: Callable[[], Any]) -> None:
    """The solver converges, and the residual that it reports is the true one and within the tolerance."""
    problem = make_problem()
    solution = solve(solver, problem)
    hold(solution.converged, f"{solution.status.name}: {solution.status.advice}")
    true = problem.residual(solution.x)
    slack = 1e-12 + solver.tolerance
    close = abs(true - solution.residual) <= 0.1 * max(true, slack)
    hold(close, f"reports {solution.residual:.3g}, true is {true:.3g}")
    hold(true <= max(1.1 * solver.tolerance, 1e-10), f"CONVERGED with a true residual of {true:.3g}")


def check_repeats(solver: Solver[Any, Any], make_problem: Callable[[], Any]) -> None:
    """The same problem gives the same bits."""
    first, second = solve(solver, make_problem()), solve(solver, make_problem())
    hold(_same(first, second), "two runs on one problem differ")


def check_resumes(solver: Solver[Any, Any], make_problem: Callable[[], Any]) -> None:
    """A run that is stopped, saved, restored and continued after each step gives the bits of an uninterrupted run."""
    whole, problem = solve(solver, make_problem()), make_problem()
    part = solve(solver, problem, max_steps=0)
    hold(part.steps == 0, "max_steps=0 took a step")
    while part.status is Status.MAX_STEPS and part.steps < whole.steps:
        saved = {key: array.copy() for key, array in part.state.to_arrays().items()}
        hold(all(array.dtype != object for array in saved.values()), "a state holds objects, which need pickle")
        restored = type(part.state).from_arrays(saved)
        part = solve(solver, problem, state=restored, max_steps=1)
    hold(_same(whole, part), "a resumed run differs from an uninterrupted one")


def check_steps_leave_states_alone(solver: Solver[Any, Any], make_problem: Callable[[], Any]) -> None:
    """A step does not change the state that it was given, so that any state can be continued several times."""
    problem = make_problem()
    state = solver.start(problem)
    while solver.verdict(problem, state) is None:
        before = {key: array.copy() for key, array in state.to_arrays().items()}
        following = solver.step(problem, state)
        hold(_equal_arrays(before, state.to_arrays()), "step changed the state it was given")
        hold(following.steps == state.steps + 1, f"step went from {state.steps} steps to {following.steps}")
        state = following


def check_events(solver: Solver[Any, Any], make_problem: Callable[[], Any]) -> None:
    """Each step emits one event, numbered from 1, with the solver's name and tolerance."""
    observer = _Observer([])
    with observe(observer):
        solution = solve(solver, make_problem())
    steps = [event for event in observer.events if isinstance(event, SolverStep)]
    hold([event.step for event in steps] == list(range(1, solution.steps + 1)), "not one event a step")
    for event in steps:
        hold(event.solver == type(solver).__name__ and event.tolerance == solver.tolerance, f"{event} misreports")


def check_residual_is_a_number(solver: Solver[Any, Any], make_problem: Callable[[], Any]) -> None:
    """The residual is a number before the first step too (maybe infinite), and a verdict is a status or None."""
    problem = make_problem()
    state = solver.start(problem)
    hold(isinstance(state, State) and not np.isnan(state.residual), "the first state has no residual")
    verdict = solver.verdict(problem, state)
    hold(verdict is None or isinstance(verdict, Status), f"verdict gave {verdict!r}")


SOLVER_CHECKS = (
    check_frozen,
    check_residual_is_a_number,
    check_answer,
    check_repeats,
    check_resumes,
    check_steps_leave_states_alone,
    check_events,
)
"""One check for each promise, called as ``check(solver, make_problem)``."""


@dataclass(frozen=True)
class _Observer:
    events: list[Event]

    def on_event(self, event: Event) -> None:
        self.events.append(event)


def _same(a: Solution[Any], b: Solution[Any]) -> bool:
    told = (a.status, a.steps, a.residual) == (b.status, b.steps, b.residual)
    return told and _equal_arrays(a.state.to_arrays(), b.state.to_arrays()) and _equal_arrays(_parts(a.x), _parts(b.x))


def _parts(x: Any) -> dict[str, Any]:
    return {f.name: getattr(x, f.name) for f in fields(x)} if is_dataclass(x) else {"x": x}


def _equal_arrays(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key], equal_nan=_floating(a[key])) for key in a)


def _floating(array: Any) -> bool:
    return np.asarray(array).dtype.kind == "f"
