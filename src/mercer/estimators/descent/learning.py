"""What gradient descent on a kernel matrix asks of it: its largest eigenvalue, which bounds the step."""

from __future__ import annotations

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.operators import Operator, Weighted
from mercer.solvers import BlockKrylov, Eigenproblem, solve
from mercer.solvers.choose import choose_eigen
from mercer.ways.report import Report

__all__ = ["EARLY", "largest_eigenvalue"]

EARLY = ", or set tol=None to stop early on purpose, after max_iter"
"""What else may be done where the steps came to an end: to stop early is the regularisation of these estimators."""


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
