"""Least mean squares as solvers: their contract, the rules to the letter, and what a step size may be."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.operators import Dense, LowRank
from mercer.solvers import BatchLMS, LeastSquares, Status, StochasticLMS, solve, update_rates
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
    with pytest.raises(InvalidInput, match=r"step_size=-1\.0, tol=") as said:
        BatchLMS(np.float64(-1.0))
    assert "np.float64" not in str(said.value)


def by_visits(step, k, weight):
    """β after the visits that a weight stands for, each of which gains α(1 − kβ), or the last a part of that."""
    step, k, left, beta = Fraction(step), Fraction(k), Fraction(weight), Fraction(0)
    while left > 0:
        beta += step * min(left, 1) * (1 - k * beta)
        left -= min(left, 1)
    return float(beta)


@pytest.mark.parametrize("step", [1.0, 0.3, 1.7])
@pytest.mark.parametrize("k", [1.0, 0.5, 1e-3, 1e-12, 1e-20, 1e-310, 0.0, -0.4])
def test_rates_are_those_of_visits_in_exact_arithmetic(step, k):
    weights = np.array([1e-300, 1e-17, 1e-5, 0.5, 0.999, 1.0, 1.001, 2.0, 2.25, 3.0, 9.5])
    expected = [by_visits(step, k, weight) for weight in weights.tolist()]
    np.testing.assert_allclose(update_rates(step, np.full(len(weights), k), weights), expected, rtol=1e-13)


def test_rates_have_no_jumps():
    for k in (1.0, 0.3, 1.6):
        near = np.sort(np.concatenate([np.arange(1.0, 5.0) + shift for shift in (-1e-9, 0.0, 1e-9)]))
        rates = update_rates(1.0, np.full(len(near), k), near).reshape(-1, 3)
        assert np.ptp(rates, axis=1).max() < 1e-8


@pytest.mark.parametrize("share", [0.5, 1.0, 1.9])
def test_parts_of_visits_are_the_rule_row_by_row(share):
    weights = np.random.default_rng(2).choice([0.2, 0.7, 1.0, 2.5], 40)
    beta, step = np.zeros_like(NOISY), share / K.max()
    for i in range(40):
        for part in [1.0] * int(weights[i]) + [weights[i] % 1]:
            beta[i] += step * part * (NOISY[i] - K[i] @ beta)
    solver = StochasticLMS(step, tol=0.0, shuffle=False)
    found = solve(solver, LeastSquares(Dense(K, symmetric=True), NOISY, weights), max_steps=1).x
    np.testing.assert_allclose(found, beta, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e150])
def test_a_scale_of_all_weights_is_one_of_the_step(scale):
    problem, scaled = (LeastSquares(Dense(K, symmetric=True), NOISY, one * WEIGHTS) for one in (1.0, scale))
    top = 0.2 * LIMIT
    found, other = (solve(BatchLMS(step, tol=1e-4), one) for step, one in ((top, problem), (top / scale, scaled)))
    assert found.status is other.status is Status.CONVERGED
    assert found.steps == other.steps > 10
    np.testing.assert_allclose(other.x, found.x, rtol=1e-9)
    assert other.residual == pytest.approx(found.residual, rel=1e-6)
