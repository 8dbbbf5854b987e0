"""The preconditioner against inverses, and in the solves that it is for."""

import numpy as np
import pytest

from mercer import KernelOperator
from mercer.approx import LowRankInverse, pivoted_cholesky, preconditioner
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.operators import Dense
from mercer.solvers import ConjugateGradients, LinearSystem, RefinedConjugateGradients, Status, solve
from mercer.testing.operators import check_operator_contract

rng = np.random.default_rng(0)
F = rng.standard_normal((12, 4))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_the_inverse_and_keeps_the_operators_contract(dtype, overwrite):
    given = np.asfortranarray(F, dtype)
    M = LowRankInverse.of(given, 0.3, overwrite=overwrite)
    assert overwrite or np.array_equal(given, F.astype(dtype))
    check_operator_contract(M, np.linalg.inv(F @ F.T + 0.3 * np.eye(12)))


def test_a_shift_for_each_row():
    shift = rng.uniform(0.1, 3.0, 12)
    expected = np.linalg.inv(F @ F.T + np.diag(shift))
    np.testing.assert_allclose(preconditioner(F.copy(), shift).toarray(), expected, rtol=1e-10, atol=1e-12)


def test_rank_deficient_factors_and_none():
    doubled = np.hstack([F, F])
    np.testing.assert_allclose(
        LowRankInverse.of(doubled, 0.5).toarray(), np.linalg.inv(2 * F @ F.T + 0.5 * np.eye(12)), atol=1e-12
    )
    np.testing.assert_allclose(LowRankInverse.of(F[:, :0], 0.5).toarray(), 2 * np.eye(12))
    with pytest.raises(InvalidInput, match="mu"):
        LowRankInverse.of(F, 0.0)


def test_stays_positive_definite_in_float32_where_the_shift_is_tiny():
    big = np.asarray(1e3 * F, np.float32)
    M = LowRankInverse.of(big, 0.01)
    V = big.astype(np.float64) @ rng.standard_normal((4, 50))
    V /= np.linalg.norm(V, axis=0)
    exact = np.linalg.eigh(big.astype(np.float64) @ big.T + 0.01 * np.eye(12))
    expected = np.sum((exact[1].T @ V) ** 2 / exact[0][:, None], axis=0)
    np.testing.assert_allclose(np.sum(V * (M @ V), axis=0), expected, rtol=0.2)


def system(shift, narrow=False, n=400):
    X = np.random.default_rng(1).standard_normal((n, 4))
    K = KernelOperator(Gaussian(0.2), X)
    found = pivoted_cholesky(K.astype(np.float32), n // 4, tol=float(np.min(shift)))
    options = {"narrow": K.astype(np.float32)} if narrow else {}
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
    problem = system(shift, narrow=True)
    solution = solve(RefinedConjugateGradients(tol=1e-10), problem)
    assert solution.status is Status.CONVERGED
    assert solution.state.precision == "float32"
    assert problem.residual(solution.x) <= 1e-10
    wide = solve(ConjugateGradients(tol=1e-11), system(shift))
    np.testing.assert_allclose(solution.x, wide.x, rtol=1e-5, atol=1e-7 * np.abs(wide.x).max())


def test_what_float32_cannot_carry_is_done_in_float64():
    n, rough = 80, 1e-3
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = Dense((Q * np.logspace(0, -3, n)) @ Q.T, symmetric=True)
    A.array[...] = (A.array + A.array.T) / 2
    E = rng.standard_normal((n, n))
    narrow = Dense(A.array + rough * (E + E.T), symmetric=True)
    solution = solve(RefinedConjugateGradients(tol=1e-9), LinearSystem(A, np.ones(n), narrow=narrow))
    assert solution.status is Status.CONVERGED
    assert solution.state.precision == "float64"


def test_an_indefinite_system_is_told():
    solution = solve(RefinedConjugateGradients(), LinearSystem(Dense(np.diag([1.0, -1.0])), [1.0, 2.0]))
    assert solution.status is Status.BREAKDOWN
    assert solve(RefinedConjugateGradients(), LinearSystem(Dense(np.eye(2)), [np.nan, 1.0])).status is Status.NOT_FINITE
    assert solve(RefinedConjugateGradients(), LinearSystem(Dense(np.eye(2)), [0.0, 0.0])).steps == 0
