"""The preconditioner against inverses, and in the solves that it is for."""

import numpy as np
import pytest

from mercer import KernelOperator
from mercer.approx import LowRankInverse, SpectralInverse, pivoted_cholesky, preconditioner
from mercer.errors import InvalidInput
from mercer.factorizations.preconditioner import rest
from mercer.kernels import Gaussian
from mercer.operators import Dense
from mercer.solvers import ConjugateGradients, LinearSystem, RefinedConjugateGradients, Status, solve
from mercer.testing import assert_close
from mercer.testing.operators import check_operator_contract

RNG = np.random.default_rng(0)
F = RNG.standard_normal((12, 4))


def inverse(F, shift):
    return np.linalg.inv(F @ F.T + np.diag(np.broadcast_to(shift, len(F))))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_is_the_inverse_and_keeps_the_operators_contract(dtype, overwrite, order):
    given = np.array(F, dtype, order=order)
    check_operator_contract(LowRankInverse(given), inverse(F, 1.0))
    check_operator_contract(SpectralInverse.of(given, overwrite=overwrite), inverse(F, 1.0))
    assert overwrite or np.array_equal(given, F.astype(dtype))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("shift", [0.3, RNG.uniform(0.1, 3.0, 12)], ids=["number", "rows"])
def test_a_shift(shift, overwrite):
    given = F.copy()
    M = preconditioner(given, shift, overwrite=overwrite)
    np.testing.assert_allclose(M.toarray(), inverse(F, shift), rtol=1e-10, atol=1e-12)
    assert overwrite or np.array_equal(given, F)


def test_rank_deficient_factors_and_none():
    doubled, none = np.hstack([F, F]), F[:, :0]
    for make in (LowRankInverse, SpectralInverse.of):
        np.testing.assert_allclose(make(doubled).toarray(), inverse(doubled, 1.0), atol=1e-12)
        assert_close(make(none).toarray(), np.eye(12))
    assert_close(preconditioner(none, 0.5).toarray(), 2 * np.eye(12))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_of_f_that_are_rounding_are_those_of_the_identity(dtype):
    """Pairs of equal columns of size 1e9: of the s² of their difference nothing but rounding is left."""
    big = 1e9 * np.asarray(np.hstack([F, F]), dtype)
    M, outside = SpectralInverse.of(big), np.linalg.svd(F)[0][:, 4:]
    np.testing.assert_allclose(M @ outside, outside, atol=1e-6)
    np.testing.assert_allclose(M @ F, 0.0, atol=1e-6)


def test_columns_nearly_alike_are_summed_in_float64():
    """s² = 2.4e6 and 0.6: in float32 the rounding of the one's sums is a hundredth of the other's 0.6 + 1."""
    x, e = np.random.default_rng(0).standard_normal((2, 3000))
    given = np.column_stack([20 * x, 20 * x + 0.02 * e]).astype(np.float32)
    U, s = np.linalg.svd(given.astype(np.float64), full_matrices=False)[:2]
    M = LowRankInverse(given)
    assert_close(U[:, 1] @ (M @ U[:, 1]), 1 / (s[1] ** 2 + 1), rtol=1e-4)


@pytest.mark.parametrize("size", [1e-60, 1e60])
@pytest.mark.parametrize("make", [LowRankInverse, SpectralInverse.of])
def test_vectors_beyond_the_range_of_float32(make, size):
    M, V = make(np.asarray(F, np.float32)), np.random.default_rng(1).standard_normal((12, 3))
    V[:, 2] = 0.0
    np.testing.assert_allclose(M @ (size * V) / size, M @ V, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shift", [0.0, -1.0, np.nan, np.inf, np.r_[np.ones(11), 0.0]])
def test_a_shift_that_is_not_positive_is_refused(shift):
    with pytest.raises(InvalidInput, match="shift"):
        preconditioner(F, shift)


def test_the_form_is_that_which_rounding_allows():
    forms = [preconditioner(scale * np.asarray(F, np.float32), 1.0).A for scale in (1.0, 1e3)]
    assert [type(form) for form in forms] == [LowRankInverse, SpectralInverse]
    assert type(preconditioner(1e3 * F, 1.0).A) is LowRankInverse  # in float64


@pytest.mark.parametrize("shift", [1e-300, 1e-60])
def test_a_shift_beyond_the_range_of_float32_is_taken_as_the_rounding_of_f(shift, rng):
    M = preconditioner(np.asarray(F, np.float32), shift)
    V = M @ rng.standard_normal((12, 3))
    assert np.all(np.isfinite(V))
    assert np.any(V != 0)


def test_stays_positive_definite_in_float32_where_the_shift_is_tiny(rng):
    big = np.asarray(1e3 * F, np.float32)
    M = preconditioner(big, 0.01)
    V = big.astype(np.float64) @ rng.standard_normal((4, 50))
    V /= np.linalg.norm(V, axis=0)
    exact = np.linalg.eigh(big.astype(np.float64) @ big.T + 0.01 * np.eye(12))
    expected = np.sum((exact[1].T @ V) ** 2 / exact[0][:, None], axis=0)
    assert_close(np.sum(V * (M @ V), axis=0), expected, rtol=0.2)


def left_over(d, pivots, n=1500):
    X = np.random.default_rng(4).standard_normal((n, d))
    K = KernelOperator(Gaussian(1 / d), X)
    return X, K, pivoted_cholesky(K.astype(np.float32), pivots)


def test_a_part_of_the_diagonal_that_is_left_saves_steps():
    X, K, found = left_over(d=12, pivots=150)
    assert np.array_equal(rest(K, found), 0.1 * found.left)
    steps = [
        solve(ConjugateGradients(1e-6), LinearSystem(K, np.sin(X[:, 0]), 1e-3, preconditioner=M)).steps
        for M in (preconditioner(found.F, 1e-3), preconditioner(found.F, 1e-3 + rest(K, found)))
    ]
    assert steps[1] < 0.85 * steps[0]


def test_nothing_is_added_where_the_rows_that_are_left_are_alike():
    _, K, found = left_over(d=2, pivots=15)
    assert found.correlation(K) > 8
    assert rest(K, found) == 0.0


def system(shift, low_precision=False, n=400):
    X = np.random.default_rng(1).standard_normal((n, 4))
    K = KernelOperator(Gaussian(0.2), X)
    found = pivoted_cholesky(K.astype(np.float32), n // 4, tol=float(np.min(shift)))
    options = {"low_precision": K.astype(np.float32)} if low_precision else {}
    B = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
    return LinearSystem(K, B, shift, preconditioner=preconditioner(found.F, shift), **options)


def test_few_steps_where_without_it_there_are_many():
    problem = system(1e-2)
    helped = solve(ConjugateGradients(tol=1e-10), problem)
    alone = solve(ConjugateGradients(tol=1e-10), LinearSystem(problem.A, problem.B, problem.shift))
    assert helped.status is Status.CONVERGED
    assert 3 * helped.steps < alone.steps
    direct = np.linalg.solve(problem.A.toarray() + 1e-2 * np.eye(400), problem.B)
    np.testing.assert_allclose(helped.x, direct, rtol=1e-5, atol=1e-7 * np.abs(direct).max())


def test_a_residual_trace_below_the_shift_bounds_the_condition_number_by_two():
    K = KernelOperator(Gaussian(0.1), np.random.default_rng(2).standard_normal((300, 2)))
    found = pivoted_cholesky(K, 300, tol=0.1)
    M = preconditioner(found.F, 0.1).toarray()
    root = np.linalg.cholesky((M + M.T) / 2)
    values = np.linalg.eigvalsh(root.T @ (K.toarray() + 0.1 * np.eye(300)) @ root)
    assert values.min() > 1 - 1e-8
    assert values.max() <= 2


@pytest.mark.parametrize("shift", [1e-2, np.linspace(0.01, 0.1, 400)], ids=["number", "rows"])
def test_float32_products_with_refinement_give_the_float64_answer(shift):
    problem = system(shift, low_precision=True)
    solution = solve(RefinedConjugateGradients(tol=1e-10), problem)
    assert solution.status is Status.CONVERGED
    assert solution.state.precision == "float32"
    assert problem.residual(solution.x) <= 1e-10
    wide = solve(ConjugateGradients(tol=1e-11), system(shift))
    np.testing.assert_allclose(solution.x, wide.x, rtol=1e-5, atol=1e-7 * np.abs(wide.x).max())


def test_what_float32_cannot_carry_is_done_in_float64(rng):
    n, rough = 80, 1e-3
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = Dense((Q * np.logspace(0, -3, n)) @ Q.T, symmetric=True)
    A.array[...] = (A.array + A.array.T) / 2
    E = rng.standard_normal((n, n))
    low_precision = Dense(A.array + rough * (E + E.T), symmetric=True)
    solution = solve(RefinedConjugateGradients(tol=1e-9), LinearSystem(A, np.ones(n), low_precision=low_precision))
    assert solution.status is Status.CONVERGED
    assert solution.state.precision == "float64"


def test_an_indefinite_system_is_told():
    solution = solve(RefinedConjugateGradients(), LinearSystem(Dense(np.diag([1.0, -1.0])), [1.0, 2.0]))
    assert solution.status is Status.BREAKDOWN
    assert solve(RefinedConjugateGradients(), LinearSystem(Dense(np.eye(2)), [np.nan, 1.0])).status is Status.NOT_FINITE
    assert solve(RefinedConjugateGradients(), LinearSystem(Dense(np.eye(2)), [0.0, 0.0])).steps == 0
