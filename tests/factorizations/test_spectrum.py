"""Ridge regression from one spectrum against dense linear algebra: the whole matrix, and a factor of small rank."""

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.errors import InvalidInput
from mercer.kernels import Precomputed
from mercer.operators import Dense
from mercer.select import RidgeBand, RidgeSpectrum, r2
from mercer.testing import assert_close

N, ALPHAS = 40, np.array([1e-3, 0.1, 10.0])
RNG = np.random.default_rng(0)
F = RNG.standard_normal((N, 7))
Y = RNG.standard_normal((N, 2))
W = RNG.uniform(0.2, 3.0, N)


@pytest.fixture(params=["matrix", "factor", "definite", "band"])
def case(request, rng):
    """A kernel matrix, and how its spectrum is made."""
    if request.param == "factor":
        return F @ F.T, lambda weights, intercept: RidgeSpectrum.of_factor(F.copy(), weights, intercept=intercept)
    K = F @ F.T + (np.diag(rng.uniform(0.1, 1.0, N)) if request.param == "definite" else 0.0)
    if request.param == "band":
        return K, lambda weights, intercept: RidgeBand.of(Dense(K), weights, intercept=intercept)
    return K, lambda weights, intercept: RidgeSpectrum.of(K.copy(), weights, intercept=intercept)


def dense(K, w, intercept, alpha):
    """P, by an inverse on an orthonormal basis of the complement of s."""
    root = np.sqrt(w)
    Q = np.linalg.qr(np.column_stack([root, np.eye(N)[:, 1:]]))[0][:, 1:] if intercept else np.eye(N)
    return Q @ np.linalg.inv(Q.T @ (root[:, None] * K * root) @ Q + alpha * np.eye(Q.shape[1])) @ Q.T


both = pytest.mark.parametrize("intercept", [False, True])
weighted = pytest.mark.parametrize("weights", [None, W], ids=["equal", "weighted"])


@both
@weighted
def test_the_solution_is_the_closed_form(case, weights, intercept):
    (K, make), w = case, np.ones(N) if weights is None else weights
    spectrum = make(weights, intercept)
    beta = spectrum.solve(Y, ALPHAS)
    for i, alpha in enumerate(ALPHAS):
        np.testing.assert_allclose(beta[:, i], dense(K, w, intercept, alpha) @ (np.sqrt(w)[:, None] * Y), atol=1e-8)
        dual = spectrum.roots[:, None] * beta[:, i]
        rest = Y - K @ dual - alpha * dual / w[:, None]
        b = np.average(Y - K @ dual, axis=0, weights=w) if intercept else 0.0
        np.testing.assert_allclose(rest, np.broadcast_to(b, Y.shape), atol=1e-9)


@both
@weighted
def test_one_minus_the_hat_matrix_is_lambda_p(case, weights, intercept):
    (K, make), w = case, np.ones(N) if weights is None else weights
    diagonal = make(weights, intercept).diagonal(ALPHAS)
    for i, alpha in enumerate(ALPHAS):
        P = dense(K, w, intercept, alpha)
        assert_close(diagonal[:, i], np.diag(P), rtol=1e-9)
        # The j-th column of H is what the fit makes of the j-th unit vector.
        root, H = np.sqrt(w), np.eye(N) - alpha * P
        j = 3
        model = KernelRidge(Precomputed(), alpha, fit_intercept=intercept).fit(K, np.eye(N)[j] / root[j], w)
        np.testing.assert_allclose(root * model.predict(K), H[:, j], atol=1e-7)


@both
@weighted
def test_rows_left_out_are_those_of_honest_fits(case, weights, intercept):
    (K, make), w = case, np.ones(N) if weights is None else weights
    spectrum = make(weights, intercept)
    solved, alone = spectrum.solve(Y, ALPHAS), spectrum.leave_one_out(Y, ALPHAS)
    for fold in (np.array([5]), np.array([2, 3, 17]), np.array([N - 1, 0]), np.arange(0, N, 2)):
        together = spectrum.leave_out(fold, Y, ALPHAS, solved)
        rest = np.setdiff1d(np.arange(N), fold)
        for i, alpha in enumerate(ALPHAS):
            model = KernelRidge(Precomputed(), alpha, fit_intercept=intercept)
            honest = model.fit(K[np.ix_(rest, rest)], Y[rest], w[rest]).predict(K[np.ix_(fold, rest)])
            np.testing.assert_allclose(together[:, i], honest, atol=1e-7)
        if len(fold) == 1:
            np.testing.assert_allclose(together, alone[fold], atol=1e-9)


@both
@weighted
def test_generalised_cross_validation(case, weights, intercept):
    (K, make), w = case, np.ones(N) if weights is None else weights
    found = make(weights, intercept).generalised(Y, ALPHAS)
    for i, alpha in enumerate(ALPHAS):
        left = alpha * dense(K, w, intercept, alpha)  # I − H
        squares = np.sum((left @ (np.sqrt(w)[:, None] * Y)) ** 2, axis=0)
        assert_close(found[i], (N / np.trace(left)) ** 2 * squares / w.sum(), rtol=1e-9)


def test_rank_zero_and_one_row_with_intercept():
    nothing = RidgeSpectrum.of(np.zeros((3, 3)))
    np.testing.assert_array_equal(nothing.leave_one_out([1.0, 2.0, 3.0], 1.0)[:, 0, 0], 0.0)
    mean = RidgeSpectrum.of(np.zeros((3, 3)), intercept=True).leave_one_out([1.0, 2.0, 6.0], 1.0)[:, 0, 0]
    assert_close(mean, [4.0, 3.5, 1.5])
    assert RidgeSpectrum.of(np.ones((1, 1)), intercept=True).solve([2.0], 1.0).tolist() == [[[0.0]]]


def test_what_is_singular_is_told_apart_and_refused():
    singular, definite = RidgeSpectrum.of(F @ F.T), RidgeSpectrum.of(F @ F.T + np.eye(N))
    assert singular.solvable([0.0, 1e-18, 1e-3]).tolist() == [False, False, True]
    assert definite.solvable([0.0]).tolist() == [True]
    assert RidgeSpectrum.of_factor(F.copy()).solvable([0.0, 1e-3]).tolist() == [False, True]
    for spectrum in (singular, RidgeSpectrum.of_factor(F.copy())):
        with pytest.raises(InvalidInput, match="larger α"):
            spectrum.leave_one_out(Y, 0.0)


def test_r2_of_constant_targets():
    constant = np.full((4, 1), 2.0)
    assert r2(constant, constant[:, None]).tolist() == [[1.0]]
    assert r2(constant, constant[:, None] + 1.0).tolist() == [[0.0]]


def test_a_matrix_that_is_not_finite_is_refused():
    for value in (np.nan, np.inf):
        K = np.eye(3)
        K[0, 1] = K[1, 0] = value
        with pytest.raises(InvalidInput, match="not finite"):
            RidgeSpectrum.of(K)
