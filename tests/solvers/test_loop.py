"""The loop: states on disk, limits, cancelling, advice."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import FrozenInstanceError
from weakref import ref

import numpy as np
import pytest

import mercer
from mercer.errors import Cancelled, InvalidInput
from mercer.events import observe
from mercer.operators import Dense, Diagonal
from mercer.solvers import (
    BlockKrylov,
    Cholesky,
    ConjugateGradients,
    DenseEigen,
    Eigenproblem,
    LinearSystem,
    RefinedConjugateGradients,
    Status,
    choose_eigen,
    choose_linear,
    solve,
)

A = Diagonal(np.linspace(1.0, 50.0, 40))
b = np.ones(40)


def test_each_status_says_what_it_means_and_what_to_try():
    for status in Status:
        assert "; " in status.advice
    assert len({status.advice for status in Status}) == len(Status)


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        (ConjugateGradients(), LinearSystem(A, b)),
        (Cholesky(tol=1e-12), LinearSystem(Dense(A.toarray()), b)),
        (BlockKrylov(tol=1e-9, block=4), Eigenproblem(A, 2)),
    ],
)
def test_a_state_survives_a_file_without_pickle(solver, problem, tmp_path):
    first = solve(solver, problem, max_steps=2)
    np.savez(tmp_path / "state.npz", **first.state.to_arrays())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as saved:
        state = type(first.state).from_arrays(dict(saved))
    resumed, whole = solve(solver, problem, state=state), solve(solver, problem)
    assert (resumed.steps, resumed.residual, resumed.status) == (whole.steps, whole.residual, whole.status)
    for key, array in whole.state.to_arrays().items():
        np.testing.assert_array_equal(resumed.state.to_arrays()[key], array)


@pytest.mark.parametrize("kept", [False, True])
def test_a_run_does_not_hold_the_state_that_it_started_from(kept, tmp_path, monkeypatch):
    starts, seen = [], []
    start, step = RefinedConjugateGradients.start, RefinedConjugateGradients.step

    def first(solver, problem):
        starts.append(ref(state := start(solver, problem)))
        return state

    def watched(solver, problem, state):
        seen.append((state.steps > 0, starts[-1]() is None))
        return step(solver, problem, state)

    monkeypatch.setattr(RefinedConjugateGradients, "start", first)
    monkeypatch.setattr(RefinedConjugateGradients, "step", watched)
    X = np.random.default_rng(0).standard_normal((60, 3))
    with mercer.checkpoint(tmp_path / "run") if kept else nullcontext():
        mercer.KernelRidge("gaussian", alpha=1e-3, solver="cg").fit(X, X[:, 0])
    assert set(seen) == {(False, False), (True, True)}


def test_each_state_is_handed_out():
    seen = []
    solution = solve(ConjugateGradients(tol=1e-9), LinearSystem(A, b), each=seen.append)
    assert [state.steps for state in seen] == list(range(solution.steps + 1))
    assert seen[-1] is solution.state


def test_max_steps_is_of_this_call_and_the_solvers_own_is_of_all():
    problem = LinearSystem(A, b)
    first = solve(ConjugateGradients(tol=1e-14), problem, max_steps=3)
    second = solve(ConjugateGradients(tol=1e-14), problem, state=first.state, max_steps=4)
    assert (first.steps, second.steps) == (3, 7)
    limited = solve(ConjugateGradients(tol=1e-14, max_steps=5), problem)
    assert (limited.steps, limited.status) == (5, Status.MAX_STEPS)
    assert not limited.converged
    assert solve(ConjugateGradients(max_steps=0), problem).x.tolist() == [0.0] * 40
    with pytest.raises(InvalidInput, match="max_steps"):
        solve(ConjugateGradients(), problem, max_steps=-1)


def test_an_observer_may_cancel():
    class StopAtThree:
        steps = 0

        def on_event(self, event):
            self.steps = event.step
            if event.step == 3:
                raise Cancelled("enough")

    observer = StopAtThree()
    with observe(observer), pytest.raises(Cancelled):
        solve(ConjugateGradients(), LinearSystem(A, b))
    assert observer.steps == 3


def test_solutions_are_frozen():
    solution = solve(ConjugateGradients(), LinearSystem(A, b))
    with pytest.raises(FrozenInstanceError):
        solution.x = None


def test_the_tables_choose_by_size_and_budget_and_say_why():
    solver, reason, stored = choose_linear(10_000, 4, 2e9, tol=1e-9)
    assert (solver, stored) == (Cholesky(tol=1e-9), True)
    assert "400 MB" in reason
    assert "800 MB" in reason
    assert choose_linear(10_000, 8, 4e9).solver == Cholesky(precision="float64")
    solver, reason, stored = choose_linear(10_000, 4, 0.9e9)
    assert (solver, stored) == (ConjugateGradients(tol=1e-10), False)
    assert "360 MB" in reason
    assert choose_eigen(200, 3, 1e9).name == "dense"
    assert choose_eigen(7291, 64, 2e9, 1e-5).solver == BlockKrylov(tol=1e-5)
    assert choose_eigen(3000, 3000, 2e9).name == "dense"
    assert choose_eigen(200_000, 50, 2e9)[2] is False
    assert choose_eigen(20_000, 19_999, 2e9).name == "krylov"  # no room for the dense method
    assert choose_eigen(1, 1, 1e9).solver == DenseEigen()
