"""Ridge regression from K = QBQᵀ, of more than one block, against dense linear algebra and longer arithmetic."""

import tracemalloc

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.operators import Dense
from mercer.select import RidgeBand, RidgeSpectrum
from mercer.testing import assert_close

ALPHAS = np.array([1e-2, 0.3, 50.0])


def problem(n, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    return scale * np.exp(-0.2 * squares), rng.standard_normal((n, 2)), rng.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("n", [47, 48, 49, 96, 97, 145, 250])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_answers_are_those_of_the_eigenvectors(n, intercept, weighted):
    K, Y, w = problem(n)
    weights = w if weighted else None
    band = RidgeBand.of(Dense(K), weights, intercept=intercept)
    spectrum = RidgeSpectrum.of(K.copy(), weights, intercept=intercept)
    np.testing.assert_allclose(band.solve(Y, ALPHAS), spectrum.solve(Y, ALPHAS), atol=1e-10)
    assert_close(band.diagonal(ALPHAS), spectrum.diagonal(ALPHAS), rtol=1e-10)
    np.testing.assert_allclose(band.leave_one_out(Y, ALPHAS), spectrum.leave_one_out(Y, ALPHAS), atol=1e-10)
    assert_close(band.generalised(Y, ALPHAS), spectrum.generalised(Y, ALPHAS), rtol=1e-10)


@pytest.mark.parametrize("entries", [1, 1 << 21])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_left_out_are_those_of_the_eigenvectors(monkeypatch, weighted, intercept, entries):
    """For more λ than are factored together, one after the other and some at a time."""
    monkeypatch.setattr("mercer.factorizations.band.ENTRIES", entries)
    n, alphas = 205, np.geomspace(1e-2, 50, 11)
    K, Y, w = problem(n)
    fold, weights = np.random.default_rng(1).permutation(n)[:70], w if weighted else None
    found = [
        inverse.leave_out(fold, Y, alphas, inverse.solve(Y, alphas))
        for inverse in (
            RidgeBand.of(Dense(K), weights, intercept=intercept),
            RidgeSpectrum.of(K.copy(), weights, intercept=intercept),
        )
    ]
    assert found[0].shape == (70, 11, 2)
    np.testing.assert_allclose(*found, atol=1e-9)


@pytest.mark.parametrize("share", [2, 5])
def test_the_plan_has_room_for_a_fold(share):
    n = 1000
    K, y, _ = problem(n)
    tracemalloc.start()
    band, alphas = RidgeBand.of(Dense(K)), np.geomspace(1e-2, 1, 9)
    band.leave_out(np.arange(n // share), y, alphas, band.solve(y, alphas))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= RidgeBand.bytes(n, n // share) <= 1.7 * peak


def inverse_in_long_doubles(A):
    """Gauss and Jordan without pivots: A is positive definite."""
    n = len(A)
    M = np.concatenate([A.astype(np.longdouble), np.eye(n, dtype=np.longdouble)], axis=1)
    for k in range(n):
        M[k] /= M[k, k]
        others = np.arange(n) != k
        M[others] -= np.outer(M[others, k], M[k])
    return M[:, n:]


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double has no more digits than double here")
@pytest.mark.parametrize("alpha", [1e-2, 1e-5, 1e-8])
def test_errors_are_those_of_the_matrix_condition(alpha):
    K, y, _ = problem(130)
    exact = inverse_in_long_doubles(K + alpha * np.eye(130))
    band = RidgeBand.of(Dense(K))
    bound = 4 * np.finfo(float).eps * np.linalg.norm(K, 2) / alpha
    diagonal, solved = np.diag(exact).astype(float), (exact @ y).astype(float)
    assert_close(band.diagonal(alpha)[:, 0], diagonal, rtol=bound)
    assert np.linalg.norm(band.solve(y, alpha)[:, 0] - solved) <= bound * np.linalg.norm(solved)


@pytest.mark.parametrize("least", [1, 2, 5])
def test_columns_of_q_may_be_made_in_several_calls(monkeypatch, least):
    K, _, _ = problem(300)  # seven blocks, 36 rows of the last are padding
    whole = RidgeBand.of(Dense(K))
    monkeypatch.setattr("mercer.factorizations.band.TILES", 0)
    monkeypatch.setattr("mercer.factorizations.band.LEAST", least)
    parts = RidgeBand.of(Dense(K))
    np.testing.assert_allclose(parts.vectors, whole.vectors, atol=1e-13)
    np.testing.assert_allclose(parts.vectors[:300, :300] @ parts.vectors[:300, :300].T, np.eye(300), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_square_leaves_the_range(scale):
    K, y, _ = problem(100)
    far, near = RidgeBand.of(Dense(scale * K), intercept=True), RidgeBand.of(Dense(K), intercept=True)
    assert_close(scale * far.diagonal(scale * ALPHAS), near.diagonal(ALPHAS), rtol=1e-12)
    predicted = far.leave_one_out(y, scale * ALPHAS)
    np.testing.assert_allclose(predicted, near.leave_one_out(y, ALPHAS), rtol=1e-9, atol=1e-12)


def test_singular_matrices_need_a_lambda():
    F = np.random.default_rng(0).standard_normal((120, 7))
    singular, definite = RidgeBand.of(Dense(F @ F.T)), RidgeBand.of(Dense(F @ F.T + np.eye(120)))
    assert singular.solvable([0.0, 1e-3, -1.0, 2.0]).tolist() == [False, True, False, True]
    assert definite.solvable([0.0, -0.9, -1.1]).tolist() == [True, True, False]
    # A λ below the rounding of the eigenvalues, which are 0 here, says nothing.
    spectrum = RidgeSpectrum.of(F @ F.T)
    tiny = np.finfo(float).eps * spectrum.values[-1] * np.array([0.01, 1.0, 9.0, 14.0])
    assert singular.solvable(tiny).tolist() == spectrum.solvable(tiny).tolist() == [False, False, False, True]
    # What pads the last block is no less definite than the matrix.
    assert RidgeBand.of(Dense(1.9 * np.eye(60))).solvable([-1.8, -2.0]).tolist() == [True, False]
    assert RidgeBand.of(Dense(np.zeros((60, 60)))).solvable([0.0, 1e-300]).tolist() == [False, True]
    for answer in (singular.diagonal, lambda alpha: singular.leave_one_out(np.ones(120), alpha)):
        with pytest.raises(InvalidInput, match=r"RidgeBand: .*larger α"):
            answer([1.0, -1e-3])


def test_no_lambda_and_no_rows():
    K, y, _ = problem(50)
    band = RidgeBand.of(Dense(K))
    assert band.diagonal([]).shape == (50, 0)
    assert band.solve(y, []).shape == (50, 0, 2)
    assert band.leave_one_out(y, []).shape == (50, 0, 2)
    with pytest.raises(InvalidInput, match="not finite"):
        RidgeBand.of(np.nan * Dense(np.eye(3)))


def test_more_lambdas_than_are_factored_at_once():
    K, y, _ = problem(60)
    band, spectrum = RidgeBand.of(Dense(K)), RidgeSpectrum.of(K)
    alphas = np.logspace(-2, 2, 19)
    np.testing.assert_allclose(band.leave_one_out(y, alphas), spectrum.leave_one_out(y, alphas), atol=1e-10)
