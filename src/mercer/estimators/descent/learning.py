"""Shared by estimators that learn in steps: checks of what is given, and λmax of K, which bounds the step."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.operators import Operator, Weighted
from mercer.solvers import BlockKrylov, Eigenproblem, Solution, Status, solve
from mercer.solvers.choose import choose_eigen
from mercer.ways.report import Report

__all__ = ["EARLY", "check_descent", "frames_kept", "largest_eigenvalue", "made_all_steps"]

EARLY = ", or set tol=None to stop early on purpose, after max_iter"
"""Further advice if the step limit came first: stopping early is the regularisation of these estimators."""


def largest_eigenvalue(K: Operator, weights: np.ndarray | None, report: Report, seed: int) -> float:
    """λmax of W^½KW^½, whose eigenvalues are those of the matrix in which a row of weight w stands w times.

    >>> from mercer.operators import Dense
    >>> round(largest_eigenvalue(Dense(np.diag([1.0, 3.0])), np.array([9.0, 1.0]), Report(memory_budget=10**9), 0), 6)
    9.0
    """
    A = K if weights is None else Weighted(K, np.sqrt(weights))
    with report.stage("largest eigenvalue"):
        n, choice = A.shape[0], choose_eigen(A.shape[0], 1, report.room, tol=1e-3)
        need = 8 * n * (n + 1) if choice.name == "dense" else BlockKrylov().memory(n, 1, 8) // 2  # ends early
        need += report.memory_planned - report.memory_rows if report.memory_planned else 0  # beside what is held
        report.plan(need, f"{report.estimator}'s largest eigenvalue", "give step_size=")
        solver = choice.solver
        solution = solve(solver, Eigenproblem(A, 1, seed))
    if solution.x is None or not np.isfinite(solution.x.values[0]):
        raise InvalidInput(message(report.estimator, "K has no largest eigenvalue", solution.status.advice))
    return max(float(solution.x.values[0]), 0.0)


def check_descent(model: Any) -> None:
    """Refuse a `step_size`, `tol`, `max_iter` or `keep_history` that means nothing."""
    if model.step_size != "auto":
        model._checked_number("step_size", otherwise=', or "auto"')
    if model.tol is not None:
        model._checked_number("tol", or_equal=True, otherwise=", or None for all max_iter steps")
    model._checked_count("max_iter")
    if not isinstance(model.keep_history, Integral) or int(model.keep_history) < 0:
        model._refuse("keep_history", "give False, True for every step, or a number of steps")


def frames_kept(model: Any) -> int:
    """How many states `keep_history` keeps at most."""
    return 1 + int(model.max_iter) // int(model.keep_history) if model.keep_history else 0


def made_all_steps(tol: Any, solution: Solution[Any], report: Report) -> bool:
    """Whether the run ended on purpose, after all of its steps; the report then says so."""
    if tol is not None or solution.status is not Status.MAX_STEPS:
        return False
    report.steps, report.residual = solution.steps, solution.residual
    report.status = "all steps made, as asked"
    return True
