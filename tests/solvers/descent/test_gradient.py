"""Least mean squares as solvers: their contract, the rules to the letter, and what a step size may be."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.operators import Dense, LowRank
from mercer.solvers import BatchLMS, LeastSquares, Status, StochasticLMS, solve
from mercer.testing import assert_close
from mercer.testing import solvers as suite

rng = np.random.default_rng(0)
ROWS = rng.standard_normal((40, 5))
K = ROWS @ ROWS.T
LIMIT = 2 / np.linalg.eigvalsh(K)[-1]
Y = ROWS @ rng.standard_normal((5, 2))
NOISY = Y + 0.3 * rng.standard_normal(Y.shape)
WEIGHTS = rng.integers(1, 4, 40).astype(float)

SOLVERS = {
    "batch": (BatchLMS(0.9 * LIMIT, tol=1e-6), lambda: LeastSquares(Dense(K, symmetric=True), NOISY)),
    "batch, one target": (BatchLMS(0.9 * LIMIT, tol=1e-6), lambda: LeastSquares(LowRank(ROWS), NOISY[:, 0])),
    "batch, weighted": (BatchLMS(0.2 * LIMIT, tol=1e-6), lambda: LeastSquares(LowRank(ROWS), NOISY, WEIGHTS)),
    "stochastic": (StochasticLMS(1 / K.max(), tol=1e-6), lambda: LeastSquares(LowRank(ROWS), Y)),
    "stochastic, in order": (
        StochasticLMS(1 / K.max(), tol=1e-6, shuffle=False),
        lambda: LeastSquares(LowRank(ROWS), Y, WEIGHTS),
    ),
}


@pytest.mark.parametrize("check", suite.SOLVER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SOLVERS)
def test_contract(name, check):
    check(*SOLVERS[name])


def test_batch_steps_are_the_rule():
    beta, problem = np.zeros_like(NOISY), LeastSquares(Dense(K, symmetric=True), NOISY)
    for t in range(1, 8):
        beta = beta + 0.01 * (NOISY - K @ beta)
        assert_close(solve(BatchLMS(0.01, tol=0.0), problem, max_steps=t).x, beta, rtol=1e-11)


@pytest.mark.parametrize("shuffle", [False, True])
def test_stochastic_passes_are_the_rule_row_by_row(shuffle):
    rows = np.random.default_rng(1).standard_normal((600, 4))  # more than one chunk
    kernel, y = rows @ rows.T, rows[:, :1] + 1.0
    solver = StochasticLMS(1 / kernel.max(), tol=0.0, shuffle=shuffle, seed=5)
    beta = np.zeros((600, 1))
    for t in range(3):
        order = np.random.default_rng([5, t]).permutation(600) if shuffle else np.arange(600)
        for i in order:
            beta[i] += solver.step_size * (y[i] - kernel[i] @ beta)
        found = solve(solver, LeastSquares(LowRank(rows), y), max_steps=t + 1).x
        np.testing.assert_allclose(found, beta, rtol=1e-9, atol=1e-12)


def test_weights_are_rows_that_stand_several_times():
    rows = np.repeat(np.arange(40), WEIGHTS.astype(int))
    again = LeastSquares(Dense(K[np.ix_(rows, rows)], symmetric=True), NOISY[rows])
    once = LeastSquares(Dense(K, symmetric=True), NOISY, WEIGHTS)
    for solver in (BatchLMS(0.1 * LIMIT, tol=0.0), StochasticLMS(0.5 / K.max(), tol=0.0, shuffle=False)):
        f, g = solve(solver, again, max_steps=9), solve(solver, once, max_steps=9)
        np.testing.assert_allclose(K @ g.x, K[:, rows] @ f.x, rtol=1e-9, atol=1e-10)
        assert_close(g.residual, f.residual, rtol=1e-9)
        assert_close(g.state.error, f.state.error, rtol=1e-9)


def test_the_limit_is_sharp():
    problem = LeastSquares(Dense(K, symmetric=True), NOISY)
    assert solve(BatchLMS(0.99 * LIMIT, tol=1e-5, max_steps=3000), problem).converged
    ended = solve(BatchLMS(1.01 * LIMIT, tol=1e-5, max_steps=3000), problem)
    assert ended.status is Status.DIVERGED
    assert "2/λmax" in ended.status.advice
    errors = [np.linalg.norm(NOISY - K @ x) for x in (ended.x, np.zeros_like(NOISY))]
    assert errors[0] <= errors[1]


@pytest.mark.parametrize("solver", [BatchLMS(1e200), StochasticLMS(1e200), StochasticLMS(10.0), BatchLMS(1e8)])
def test_nothing_but_numbers_comes_out_of_divergence(solver):
    ended = solve(solver, LeastSquares(Dense(K, symmetric=True), NOISY))
    assert ended.status is Status.DIVERGED
    assert np.all(np.isfinite(ended.x))
    assert np.isfinite(ended.residual)


def test_targets_that_are_no_numbers_and_targets_of_zero():
    problem = LeastSquares(Dense(K, symmetric=True), np.full(40, np.nan))
    assert solve(BatchLMS(0.1), problem).status is Status.NOT_FINITE
    nothing = solve(BatchLMS(0.1), LeastSquares(Dense(K, symmetric=True), np.zeros(40)))
    assert nothing.converged
    assert not nothing.x.any()


def test_invalid_problems_and_solvers():
    for options in ({"step_size": 0.0}, {"step_size": np.inf}, {"tol": -1.0}, {"max_steps": -1}):
        with pytest.raises(InvalidInput):
            replace(BatchLMS(0.1), **options)
    A = Dense(K, symmetric=True)
    for arguments in ((Dense(K[:3], symmetric=False), NOISY), (A, NOISY[:3]), (A, NOISY, -WEIGHTS), (A, NOISY, [1.0])):
        with pytest.raises(InvalidInput):
            LeastSquares(*arguments)
    with pytest.raises(InvalidInput, match="integer weights"):
        solve(StochasticLMS(1.9 / K.max()), LeastSquares(A, NOISY, WEIGHTS + 0.5))
