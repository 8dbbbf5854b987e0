"""Sketch-and-project against direct solves: its blocks, its momentum, its certificates, and what has no answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mercer import KernelOperator
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.operators import Dense, Operator, Scaled
from mercer.solvers import ASkotch, LinearSystem, Status, solve
from mercer.solvers.linear.askotch import block_size
from mercer.testing import assert_close

rng = np.random.default_rng(5)
X = rng.standard_normal((600, 6))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], rng.standard_normal(600)])
K = KernelOperator(Gaussian(0.1), X)
MATRIX = K.toarray()


def errors(solution, matrix, shift, B):
    """‖x − x*‖ in the norm of the matrix, relative, for each right-hand side, against LAPACK."""
    A = matrix + np.diag(np.broadcast_to(shift, len(matrix)))
    wanted = np.linalg.solve(A, B)
    wrong = np.asarray(solution.x) - wanted
    return np.sqrt(np.einsum("ij,ij->j", wrong, A @ wrong) / np.einsum("ij,ij->j", wanted, A @ wanted))


@pytest.mark.parametrize("shift", [1.0, 0.05])
@pytest.mark.parametrize(
    "solver",
    [
        ASkotch(tol=1e-6),
        ASkotch(tol=1e-6, block=37),
        ASkotch(tol=1e-6, block=300),
        ASkotch(tol=1e-6, block=10_000),
        ASkotch(tol=1e-6, accelerate=False),
        ASkotch(tol=1e-6, seed=3, check_every=1),
        ASkotch(tol=1e-4, rank=60),
    ],
    ids=repr,
)
def test_against_a_direct_solve(solver, shift):
    solution = solve(solver, LinearSystem(K, Y, shift))
    assert solution.status is Status.CONVERGED
    assert solution.residual <= solver.tol
    assert errors(solution, MATRIX, shift, Y).max() < 100 * solver.tol


def test_a_thousand_rows_to_ten_digits():
    A = rng.standard_normal((1000, 8))
    operator, y = KernelOperator(Gaussian(0.1), A), np.sin(A[:, 0])
    solution = solve(ASkotch(tol=1e-10), LinearSystem(operator, y, 0.5))
    assert solution.converged
    assert solution.x.shape == y.shape
    np.testing.assert_allclose(solution.x, np.linalg.solve(operator.toarray() + 0.5 * np.eye(1000), y), atol=1e-9)


def test_a_shift_for_each_row():
    shift = 10.0 ** rng.uniform(-1.5, 1.0, 600)
    for rank in (None, 60):
        solution = solve(ASkotch(tol=1e-6, rank=rank), LinearSystem(K, Y, shift))
        assert solution.converged
        assert errors(solution, MATRIX, shift, Y).max() < 1e-4


def test_right_hand_sides_of_every_size_and_none():
    B = Y * [1.0, 1e-30, 1e30]
    together = solve(ASkotch(tol=1e-8), LinearSystem(K, np.column_stack([B, np.zeros(600)]), 0.3))
    assert together.converged
    assert errors(replace(together, x=together.x[:, :3]), MATRIX, 0.3, B).max() < 1e-6
    assert not together.x[:, 3].any()
    assert solve(ASkotch(), LinearSystem(K, np.zeros((600, 2)), 0.3)).steps == 0
    nothing = solve(ASkotch(), LinearSystem(K, np.empty((600, 0)), 0.3))
    assert nothing.converged
    assert nothing.x.shape == (600, 0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_row_or_two(n):
    A = np.eye(n) + 0.1
    for block in (None, 1):
        solution = solve(ASkotch(block=block), LinearSystem(Dense(A), np.arange(1.0, n + 1), 0.2))
        assert solution.converged
        assert_close(solution.x, np.linalg.solve(A + 0.2 * np.eye(n), np.arange(1.0, n + 1)), rtol=1e-7)


def test_duplicate_rows_and_a_singular_matrix_with_a_shift():
    A = np.repeat(rng.standard_normal((60, 3)), 5, axis=0)
    operator, y = KernelOperator(Gaussian(0.5), A), rng.standard_normal(300)
    matrix = operator.toarray()
    assert np.linalg.matrix_rank(matrix) <= 60
    for rank in (None, 20):
        solution = solve(ASkotch(tol=1e-6, rank=rank), LinearSystem(operator, y, 0.1))
        assert solution.converged
        np.testing.assert_allclose(solution.x, np.linalg.solve(matrix + 0.1 * np.eye(300), y), atol=1e-4)
    ones = solve(ASkotch(tol=1e-9), LinearSystem(Dense(np.ones((50, 50))), np.arange(50.0), 1e-2))
    assert ones.converged
    assert_close(ones.x, np.linalg.solve(np.ones((50, 50)) + 0.01 * np.eye(50), np.arange(50.0)), rtol=1e-6)


def test_seeds_give_other_bits_and_the_same_answer():
    first, again, other = (solve(ASkotch(tol=1e-9, seed=s), LinearSystem(K, Y, 0.5)).x for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(first, other, atol=1e-7)


@pytest.mark.parametrize("stop", [1, 7, 50])
def test_a_resumed_run_gives_the_same_bits(stop):
    system = LinearSystem(K, Y, 0.1, narrow=K.astype(np.float32))
    whole = solve(ASkotch(tol=1e-7), system)
    part = solve(ASkotch(tol=1e-7), system, max_steps=stop)
    assert part.status is Status.MAX_STEPS
    assert part.residual == pytest.approx(system.residual(part.x))
    kept = type(part.state).from_arrays({key: array.copy() for key, array in part.state.to_arrays().items()})
    rest = solve(ASkotch(tol=1e-7), system, state=kept)
    np.testing.assert_array_equal(rest.x, whole.x)
    assert rest.steps == whole.steps


def test_float32_products_reach_float64_answers():
    system = LinearSystem(K, Y, 0.1, narrow=K.astype(np.float32))
    solution = solve(ASkotch(tol=1e-11), system)
    assert solution.converged
    assert solution.state.precision == "float32"
    assert errors(solution, MATRIX, 0.1, Y).max() < 1e-9


def test_float64_takes_over_where_float32_entries_are_another_matrix():
    useless = Dense((2.5 * MATRIX).astype(np.float32), symmetric=True)
    solution = solve(ASkotch(tol=1e-6), LinearSystem(K, Y, 1.0, narrow=useless))
    assert solution.converged
    assert solution.state.precision == "float64"


def test_momentum_saves_steps_where_the_system_is_hard():
    steps = [
        solve(ASkotch(tol=1e-3, block=60, accelerate=a), LinearSystem(K, Y[:, :1], 1e-3)).steps for a in (True, False)
    ]
    assert steps[0] < 0.7 * steps[1]


@pytest.mark.parametrize("shift", [1.0, 1e-2])
def test_passes_are_as_predicted_within_a_factor_of_three(shift):
    solver, system = ASkotch(tol=1e-5), LinearSystem(K, Y, shift)
    passes = solve(solver, system).steps / 7
    assert passes / 3 < solver.predicted_passes(system) < 3 * passes


def test_a_scaled_system_takes_the_same_steps():
    plain = solve(ASkotch(tol=1e-6), LinearSystem(K, Y, 0.1))
    scaled = solve(ASkotch(tol=1e-6), LinearSystem(Scaled(K, 1000.0), 1000 * Y, 100.0))
    assert scaled.steps == plain.steps
    np.testing.assert_allclose(scaled.x, plain.x, atol=1e-9)


def test_momentum_that_leads_astray_is_noticed_and_lowered():
    system, solver = LinearSystem(K, Y, 0.1), ASkotch(tol=1e-6)
    state = solver.start(system)
    astray = replace(state, V=1e6 * rng.standard_normal(state.V.shape))
    solution = solve(solver, system, state=astray)
    assert solution.converged
    assert solution.state.mu == pytest.approx(min(4 * state.mu, 1 / 7))  # 7 blocks: no momentum at 1/7


def test_the_steps_run_out_with_advice_and_an_answer_closer_than_none():
    system = LinearSystem(K, Y, 1e-3)
    solution = solve(ASkotch(max_steps=30), system)
    assert solution.status is Status.MAX_STEPS
    assert "continue" in solution.status.advice
    assert errors(solution, MATRIX, 1e-3, Y).max() < 1.0
    assert solution.residual == pytest.approx(system.residual(solution.x))
    state = replace(solution.state, W=1e6 * solution.state.W)
    astray = solve(ASkotch(), system, state=state, max_steps=0)
    assert astray.residual == 1.0
    assert not astray.x.any()


def test_rounding_that_is_used_up_is_a_stall_and_not_a_loop():
    solution = solve(ASkotch(tol=1e-19), LinearSystem(K, Y, 1.0))
    assert solution.status is Status.STALLED
    assert solution.residual < 1e-12


class Counted(Operator):
    """Counts the entries that products with rows and with all of A read."""

    def __init__(self, array):
        super().__init__(array.shape, array.dtype, symmetric=True)
        self.array, self.rows_read, self.products = array, 0, 0

    def _matmat(self, V):
        self.products += 1
        return self.array @ V

    def _rows_times(self, index, V):
        self.rows_read += len(index)
        return self.array[index] @ V

    def block(self, I, J):
        return self.array[np.ix_(I, J)]


def test_a_pass_reads_each_row_once_and_true_residuals_are_rare():
    A = Counted(MATRIX)
    solution = solve(ASkotch(tol=1e-6), LinearSystem(A, Y, 0.5))
    passes = -(-600 // block_size(600))
    assert solution.steps % passes == 0
    assert A.rows_read == 600 * solution.steps // passes
    assert A.products <= 2 + solution.steps // (10 * passes) + 1


@pytest.mark.parametrize("rank", [None, 2])
def test_an_indefinite_system_is_reported(rank):
    hollow = np.full((12, 12), 2.0) - 2 * np.eye(12) + np.eye(12)
    found = [
        solve(ASkotch(block=b, rank=rank), LinearSystem(Dense(A), np.arange(len(A)) - 0.5))
        for b, A in ((1, hollow), (4, hollow), (2, np.diag([1.0, 2.0, -3.0])), (3, np.diag([1.0, 2.0, -3.0])))
    ]
    for solution in found:
        assert solution.status is Status.BREAKDOWN
        assert not solution.converged


def test_what_is_not_finite_ends_at_once():
    bad = MATRIX.copy()
    bad[3, 5] = bad[5, 3] = np.nan
    for A, B in ((bad, Y), (MATRIX, np.where(np.arange(600) == 4, np.inf, 1.0))):
        solution = solve(ASkotch(), LinearSystem(Dense(A, symmetric=True), B, 1.0))
        assert solution.status is Status.NOT_FINITE
        assert solution.steps < 300


@pytest.mark.parametrize(
    "options",
    [{"tol": -1}, {"tol": np.nan}, {"block": 0}, {"rank": 0}, {"max_steps": -1}, {"check_every": 0}],
    ids=repr,
)
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidInput, match=r"ASkotch: .*; give"):
        ASkotch(**options)
