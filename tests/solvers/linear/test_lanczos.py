"""Stochastic Lanczos quadrature against dense log-determinants."""

import numpy as np
import pytest
from scipy.linalg import logm

from mercer.errors import InvalidInput
from mercer.factorizations import pivoted_cholesky, preconditioner
from mercer.operators import Dense
from mercer.solvers import LogDeterminant, Status, StochasticLanczos, solve


@pytest.fixture(scope="module")
def A():
    x = np.linspace(0, 4, 120)
    return np.exp(-(np.subtract.outer(x, x) ** 2))


def gaussian(n, t, seed=0):
    return np.random.default_rng(seed).standard_normal((n, t))


def test_the_quadrature_is_that_of_the_matrix_logarithm(A):
    C, Z = A + 0.3 * np.eye(120), gaussian(120, 4)
    found = solve(StochasticLanczos(1e-12), LogDeterminant(Dense(A), Z, 0.3)).x
    L = np.real(logm(C))
    expected = [120 * z @ L @ z / (z @ z) for z in Z.T]
    assert found.value == pytest.approx(np.mean(expected), rel=1e-9)
    assert found.standard_error == pytest.approx(np.std(expected, ddof=1) / 2, rel=1e-9)


def test_the_error_is_near_the_square_of_the_residual(A):
    exact = solve(StochasticLanczos(1e-12), LogDeterminant(Dense(A), gaussian(120, 4), 0.3)).x.value
    for tol in (1e-2, 1e-3):
        found = solve(StochasticLanczos(tol), LogDeterminant(Dense(A), gaussian(120, 4), 0.3)).x.value
        assert abs(found - exact) < 100 * tol**2 * abs(exact)


@pytest.mark.parametrize("shift", [0.3, 1e-6], ids=["Cholesky factor", "eigenvectors"])  # the two kinds of M
def test_estimates_lie_within_their_errors_and_shrink_with_the_preconditioner(A, shift):
    expected, errors = np.linalg.slogdet(A + shift * np.eye(120))[1], []
    for rank in (1, 4, 8):
        found = pivoted_cholesky(Dense(A), rank)
        M = preconditioner(found.F.astype(np.float32), shift)
        offset = M.A.log_determinant - 2 * np.sum(np.log(M.s))
        rng, misses = np.random.default_rng(0), []
        for _ in range(20):
            Z = M.A.draws(rng, 10) / M.s[:, None]
            one = solve(StochasticLanczos(1e-4), LogDeterminant(Dense(A), Z, shift, None, M, offset)).x
            misses.append((one.value - expected) / one.standard_error)
        errors.append(one.standard_error)
        assert 0.5 < np.sqrt(np.mean(np.square(misses))) < 2
    assert errors[2] < errors[0] / 2


def test_solutions_come_with_it(A):
    B, Z = gaussian(120, 2, 1), gaussian(120, 3)
    found = solve(StochasticLanczos(1e-10), LogDeterminant(Dense(A), Z, 0.3, B)).x
    C = A + 0.3 * np.eye(120)
    np.testing.assert_allclose(found.solution, np.linalg.solve(C, B), atol=1e-7)
    np.testing.assert_allclose(found.probes, np.linalg.solve(C, Z), atol=1e-7)


@pytest.mark.parametrize("kind", ["low rank", "spectral"])
def test_draws_and_determinants_of_preconditioners(kind):
    from mercer.factorizations import LowRankInverse, SpectralInverse

    F = gaussian(6, 2)
    M = LowRankInverse(F.copy()) if kind == "low rank" else SpectralInverse.of(F.copy())
    C = F @ F.T + np.eye(6)
    assert M.log_determinant == pytest.approx(np.linalg.slogdet(C)[1], rel=1e-12)
    np.testing.assert_allclose(np.eye(6) - M.half @ M.half.T, np.linalg.inv(C), atol=1e-12)
    draws = M.draws(np.random.default_rng(0), 100_000)
    np.testing.assert_allclose(np.cov(draws), C, atol=0.05 * np.abs(C).max())


def test_ends():
    indefinite = LogDeterminant(Dense(np.diag([1.0, -1.0])), np.ones((2, 1)))
    assert solve(StochasticLanczos(), indefinite).status is Status.BREAKDOWN
    unknown = Dense(np.diag([1.0, np.nan]), symmetric=True)
    assert solve(StochasticLanczos(), LogDeterminant(unknown, np.ones((2, 1)))).status is Status.NOT_FINITE
    stopped = solve(StochasticLanczos(1e-12, max_steps=1), LogDeterminant(Dense(np.diag([1.0, 2.0])), np.ones((2, 1))))
    assert stopped.status is Status.MAX_STEPS
    assert stopped.x.standard_error == np.inf
    with pytest.raises(InvalidInput, match="at least one column"):
        LogDeterminant(Dense(np.eye(2)), np.empty((2, 0)))
    with pytest.raises(InvalidInput, match="tol"):
        StochasticLanczos(-1.0)
