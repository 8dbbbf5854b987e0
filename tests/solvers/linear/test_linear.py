"""Cholesky and conjugate gradients against NumPy, against high precision, and on what has no answer."""

from __future__ import annotations

import tracemalloc

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.operators import Dense, Diagonal, Identity, Operator, Scaled
from mercer.solvers import (
    Cholesky,
    CholeskyFactor,
    ConjugateGradients,
    LinearSystem,
    RefinedConjugateGradients,
    Status,
    solve,
)
from mercer.testing import assert_close

RNG = np.random.default_rng(3)
SOLVERS = [Cholesky(), Cholesky(precision="float64"), ConjugateGradients(tol=1e-10)]


def spd(n, condition=100.0, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    A = (Q * np.logspace(0, -np.log10(condition), n)) @ Q.T
    return (A + A.T) / 2


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 30), r=st.integers(0, 4), seed=st.integers(0, 100), by_row=st.booleans())
def test_against_numpy(solver, n, r, seed, by_row):
    local = np.random.default_rng(seed)
    A, B = spd(n, seed=seed), local.standard_normal((n, r))
    shift = local.random(n) if by_row else 0.3
    solution = solve(solver, LinearSystem(Dense(A), B, shift))
    assert solution.status is Status.CONVERGED
    assert solution.x.shape == B.shape
    np.testing.assert_allclose(solution.x, np.linalg.solve(A + np.diag(np.broadcast_to(shift, n)), B), atol=1e-7)
    assert solution.residual <= 1e-10


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_many_right_hand_sides_are_each_its_own(solver, rng):
    A, B = Dense(spd(50)), rng.standard_normal((50, 4)) * [1.0, 1e-30, 1e30, 0.0]
    together = solve(solver, LinearSystem(A, B))
    for j in range(4):
        alone = solve(solver, LinearSystem(A, B[:, j]))
        np.testing.assert_allclose(together.x[:, j], alone.x, rtol=1e-7, atol=1e-7 * np.abs(alone.x).max())
    assert not together.x[:, 3].any()
    assert together.converged


def test_mixed_precision_reaches_float64_where_float32_alone_cannot():
    """The Hilbert matrix plus 1e-5, against fifty digits."""
    n = 8
    mpmath.mp.dps = 50
    H = np.array([[1.0 / (i + j + 1) for j in range(n)] for i in range(n)])
    exact = mpmath.matrix(H.tolist()) + mpmath.mpf(1e-5) * mpmath.eye(n)
    wanted = np.array([float(v) for v in mpmath.lu_solve(exact, mpmath.matrix([1] * n))])
    solution = solve(Cholesky(tol=1e-13), LinearSystem(Dense(H), np.ones(n), 1e-5))
    assert solution.converged
    assert solution.state.precision == "float32"
    assert_close(solution.x, wanted, rtol=1e-9)
    factor = CholeskyFactor.of(H.astype(np.float32), 1e-5)
    assert np.abs(factor.solve(np.ones(n)) / wanted - 1).max() > 1e-4


def test_the_residual_of_a_run_that_was_cut_off_is_the_true_one(rng):
    """The recurrence goes on falling where rounding has stopped the true residual."""
    problem = LinearSystem(Dense(spd(60, 1e6)), rng.standard_normal(60))
    solution = solve(ConjugateGradients(tol=1e-30, max_steps=1000, recompute_every=2000), problem)
    assert solution.status is Status.MAX_STEPS
    assert solution.state.residual < 0.01 * solution.residual
    assert solution.residual == pytest.approx(problem.residual(solution.x))


def test_the_residual_is_that_of_the_operator_and_not_of_the_copy_that_was_factored():
    A = spd(40)
    coarse = (A * (1 + 1e-3 * np.sign(A))).astype(np.float32)
    solution = solve(Cholesky(), LinearSystem(Dense(A), np.ones(40), 0.1, matrix=coarse))
    assert solution.converged
    np.testing.assert_allclose((A + 0.1 * np.eye(40)) @ solution.x, np.ones(40), atol=1e-9)


def test_a_factor_in_float64_solves_by_one_product():
    """Whose residual is the true one; an operator that is not the matrix of the factor is refined as ever."""
    A, B = spd(40), np.random.default_rng(5).standard_normal((40, 3))
    operator = Counting(A)
    solution = solve(Cholesky(precision="float64"), LinearSystem(operator, B, 0.1, matrix=A.copy()))
    assert solution.steps == 1
    assert operator.columns == [3]
    assert solution.residual == pytest.approx(LinearSystem(Dense(A), B, 0.1).residual(solution.x), rel=1e-3)
    other = Counting(A + np.diag(np.linspace(0, 0.01, 40)))
    refined = solve(Cholesky(precision="float64"), LinearSystem(other, B, 0.1, matrix=A.copy()))
    assert refined.converged
    assert refined.steps > 1
    assert_close(refined.x, np.linalg.solve(other.array + 0.1 * np.eye(40), B), rtol=1e-8)


def test_float64_takes_over_where_float32_has_no_factor():
    A = spd(30, condition=1e10)
    solution = solve(Cholesky(tol=1e-6), LinearSystem(Dense(A), np.ones(30)))
    assert solution.converged
    assert solution.state.precision == "float64"


def test_float64_takes_over_where_float32_overflows():
    A = 1e60 * spd(20)
    solution = solve(Cholesky(), LinearSystem(Dense(A), np.ones(20)))
    assert solution.converged
    assert solution.state.precision == "float64"


def test_float64_takes_over_where_refinement_does_not_contract():
    A = spd(80, condition=1e5)
    useless = (np.eye(80) + np.diag(np.logspace(0, 7, 80))).astype(np.float32)
    solution = solve(Cholesky(), LinearSystem(Dense(A), np.ones(80), matrix=useless))
    assert solution.converged
    assert solution.state.precision == "float64"
    assert solution.steps > 30


def test_one_buffer_of_four_bytes_an_entry():
    n = 1200
    A = Dense(spd(n).astype(np.float32), symmetric=True)
    tracemalloc.start()
    solution = solve(Cholesky(), LinearSystem(A, np.ones(n), 1.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.state.precision == "float32"
    assert peak < 1.6 * 4 * n * n


def test_a_given_buffer_becomes_the_factor_and_is_used_again(rng):
    A = spd(50)
    matrix = A.astype(np.float32)
    solution = solve(Cholesky(), LinearSystem(Dense(A), np.ones(50), 0.5, matrix=matrix))
    factor = solution.state.factor
    assert np.shares_memory(factor.buffer, matrix)
    shifted = A + 0.5 * np.eye(50)
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(shifted)[1], abs=1e-4)
    B = rng.standard_normal((50, 2))
    np.testing.assert_allclose(factor.solve(B), np.linalg.solve(shifted, B), rtol=1e-3, atol=1e-4)
    assert_close(factor.inverse @ B, factor.solve(B))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_factor_of_either_order_and_dtype(dtype, order):
    A = spd(20)
    factor = CholeskyFactor.of(np.array(A, dtype, order=order), 0.1)
    expected = np.linalg.solve(A + 0.1 * np.eye(20), np.ones(20))
    for size in (1.0, 1e-50, 1e50):  # also beyond float32's numbers
        B = np.outer(np.ones(20), [size, 1.0])
        assert_close(factor.solve(B[:, 0]) / size, expected, rtol=1e-3)
        assert_close(factor.solve(B) / B[0], np.column_stack([expected, expected]), rtol=1e-3)
    with pytest.raises(InvalidInput, match="contiguous"):
        CholeskyFactor.of(np.ones((8, 8), dtype)[::2, ::2])


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_an_indefinite_system_is_reported(solver):
    A = np.diag([1.0, 2.0, -3.0])
    solution = solve(solver, LinearSystem(Dense(A), np.ones(3)))
    expected = Status.BREAKDOWN if isinstance(solver, ConjugateGradients) else Status.NOT_POSITIVE_DEFINITE
    assert solution.status is expected
    assert "positive" in solution.status.advice
    assert not solution.converged
    assert np.isfinite(solution.x).all()


def test_a_singular_system_has_no_factor_but_a_consistent_one_has_a_solution():
    A = np.ones((4, 4))
    assert solve(Cholesky(), LinearSystem(Dense(A), np.ones(4))).status is Status.NOT_POSITIVE_DEFINITE
    solution = solve(ConjugateGradients(), LinearSystem(Dense(A), np.ones(4)))
    assert solution.converged
    assert_close(solution.x, 0.25)
    inconsistent = solve(ConjugateGradients(), LinearSystem(Dense(A), [1.0, 0.0, 0.0, 0.0]))
    assert not inconsistent.converged
    assert np.isfinite(inconsistent.x).all()


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_reported(solver, bad):
    A = spd(5)
    A[1, 1] = bad
    matrix = solve(solver, LinearSystem(Dense(A, symmetric=True), np.ones(5)))
    assert matrix.status is Status.NOT_FINITE
    b = np.ones(5)
    b[0] = bad
    assert solve(solver, LinearSystem(Dense(spd(5)), b)).status is Status.NOT_FINITE


def test_a_bad_column_does_not_spoil_the_others():
    A = spd(12)
    B = np.ones((12, 3))
    B[0, 1] = np.nan
    solution = solve(ConjugateGradients(), LinearSystem(Dense(A), B))
    assert solution.status is Status.NOT_FINITE
    np.testing.assert_allclose(A @ solution.x[:, [0, 2]], B[:, [0, 2]], atol=1e-7)


class Coarse(Operator):
    """A matrix whose products are rounded to float32: what float32 iterations offer."""

    def __init__(self, array):
        self.array = array
        super().__init__(array.shape, np.float64, symmetric=True)

    def _matmat(self, V):
        return (self.array @ V).astype(np.float32).astype(V.dtype)


def test_a_tolerance_below_the_operators_precision_stalls_and_says_so(rng):
    solution = solve(ConjugateGradients(tol=1e-13), LinearSystem(Coarse(spd(60, 1e3)), rng.standard_normal(60)))
    assert solution.status is Status.STALLED
    assert "float64" in solution.status.advice
    assert 1e-13 < solution.residual < 1e-4
    mixed = solve(Cholesky(tol=1e-13), LinearSystem(Coarse(spd(60, 1e3)), rng.standard_normal(60)))
    assert mixed.status is Status.STALLED
    assert mixed.state.precision == "float64"


def test_a_preconditioner_that_is_not_definite_is_reported():
    problem = LinearSystem(Dense(spd(6)), np.ones(6), preconditioner=Scaled(Identity(6), -1.0))
    assert solve(ConjugateGradients(), problem).status is Status.BREAKDOWN


def test_a_preconditioner_saves_steps():
    d = np.logspace(0, 6, 200)
    plain = solve(ConjugateGradients(), LinearSystem(Diagonal(d), np.ones(200)))
    helped = solve(ConjugateGradients(), LinearSystem(Diagonal(d), np.ones(200), preconditioner=Diagonal(1 / d)))
    assert helped.converged
    assert helped.steps <= 2 < plain.steps


class Counting(Operator):
    def __init__(self, array):
        self.array, self.columns = array, []
        super().__init__(array.shape, array.dtype, symmetric=True)

    def _matmat(self, V):
        self.columns.append(V.shape[1])
        return self.array @ V


def test_converged_columns_are_no_longer_multiplied():
    A = Counting(np.diag(np.arange(1.0, 41.0)))
    B = np.ones((40, 2))
    B[1:, 0] = 0.0  # an eigenvector: done after one step
    solution = solve(ConjugateGradients(), LinearSystem(A, B))
    assert solution.converged
    assert A.columns[0] == 2
    assert A.columns[2:-1].count(2) == 0


@pytest.mark.parametrize(("least", "steps", "status"), [(1.0, None, "CONVERGED"), (1e-9, 2, "MAX_STEPS")])
def test_a_run_ends_when_its_residual_shows_that_it_will_be_late(least, steps, status):
    """Eigenvalues between 2 and 1 take few steps; between 2 and 1e-9 two show that 40 will not do."""
    problem = LinearSystem(Dense(np.diag(np.geomspace(2.0, least, 200))), np.ones(200))
    solution = solve(ConjugateGradients(tol=1e-10, max_steps=40, on_course=True), problem)
    patient = solve(ConjugateGradients(tol=1e-10, max_steps=40), problem)
    assert solution.status.name == patient.status.name == status
    assert solution.steps == (patient.steps if steps is None else steps) <= 40


def test_empty_and_one_by_one():
    for solver in SOLVERS:
        one = solve(solver, LinearSystem(Dense([[4.0]]), [2.0]))
        assert one.x.tolist() == [0.5]
        zero = solve(solver, LinearSystem(Dense([[4.0]]), [0.0]))
        assert (zero.x.tolist(), zero.residual) == ([0.0], 0.0)
        empty = solve(solver, LinearSystem(Dense(np.empty((0, 0))), np.empty(0)))
        assert (empty.x.shape, empty.converged) == ((0,), True)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: LinearSystem(Dense([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0]),
        lambda: LinearSystem(Identity(2), [1.0]),
        lambda: LinearSystem(Identity(2), np.ones((2, 1, 1))),
        lambda: LinearSystem(Identity(2), [1j, 1.0]),
        lambda: LinearSystem(Identity(2), [1.0, 1.0], shift=[1.0]),
        lambda: LinearSystem(Identity(2), [1.0, 1.0], preconditioner=Identity(3)),
        lambda: LinearSystem(Identity(2), [1.0, 1.0], matrix=np.eye(3)),
        lambda: ConjugateGradients(tol=-1.0),
        lambda: ConjugateGradients(tol=np.nan),
        lambda: ConjugateGradients(recompute_every=0),
        lambda: Cholesky(tol=-1.0),
        lambda: Cholesky(precision="half"),
    ],
)
def test_what_does_not_fit_is_refused_with_advice(attempt):
    with pytest.raises(InvalidInput, match=r"\w+: .+; .+\."):
        attempt()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_and_many_columns_are_solved_for_equally_well(dtype):
    rng, B = np.random.default_rng(0), np.random.default_rng(1).normal(size=(90, 5))
    A = np.asarray(rng.normal(size=(90, 90)), dtype)
    A = A @ A.T / 90 + np.eye(90, dtype=dtype)
    factor, double = CholeskyFactor.of(A.copy()), A.astype(np.float64)
    exact = np.linalg.solve(double, B)
    residual = np.asarray(B - A.astype(np.longdouble) @ exact, np.float64)
    exact = exact + np.linalg.solve(double, residual).astype(np.longdouble)
    one, many = np.hstack([factor.solve(b)[:, None] for b in B.T]), factor.solve(B)
    errors = [np.sqrt(np.mean((found - exact) ** 2)) for found in (one, many)]
    assert max(errors) <= 2 * min(errors) < 2 * 5 * np.finfo(dtype).eps  # A's condition is 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 32, 33, 101])
def test_a_factor_by_blocks_is_that_of_lapack(monkeypatch, dtype, n):
    A = np.random.default_rng(n).standard_normal((n, n + 3)).astype(dtype)
    A = A @ A.T + np.eye(n, dtype=dtype)
    whole = CholeskyFactor.of(A.copy(), 0.5)
    monkeypatch.setattr("mercer.factorizations.cholesky.LARGEST_LAPACK", 0)
    monkeypatch.setattr("mercer.factorizations.cholesky.BLOCK", 32)
    blocks = CholeskyFactor.of(A.copy(), 0.5)
    upper = np.triu_indices(n)
    tolerance = 50 * np.finfo(dtype).eps * np.abs(whole.buffer).max()
    assert np.abs(whole.buffer[upper] - blocks.buffer[upper]).max() <= tolerance
    below = np.tril_indices(n, -1)
    assert np.array_equal(blocks.buffer[below], A[below])  # the other triangle is left as it was
    b = np.arange(n) + 1.0
    exact = np.linalg.solve(A.astype(float) + 0.5 * np.eye(n), b)
    # Of the largest entry: it is the norm that a factor is good in, and the smallest entry may be 600 times smaller.
    assert np.abs(blocks.solve(b) - exact).max() <= 50 * np.finfo(dtype).eps * np.abs(exact).max()
    A[n // 2, n // 2] = -1e3
    assert CholeskyFactor.of(A.copy()) is None


def test_a_round_in_low_precision_leaves_room_for_its_rounding():
    """Stopped at 0.8 of the tolerance the first round leaves 1.1 of it, and a second one costs two products with A."""
    local, a = np.random.default_rng(4), np.geomspace(1, 300, 200)
    A, rounded = Counting(np.diag(a)), Dense(np.diag(a * (1 + 7e-4 * local.choice([-1, 1], 200))))
    b = local.standard_normal(200) * np.sqrt(a)
    solution = solve(RefinedConjugateGradients(tol=1e-3), LinearSystem(A, b, low_precision=rounded))
    assert solution.converged
    assert A.columns == [1]
