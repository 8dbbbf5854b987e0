"""Logistic regression by Newton's method: against high precision, its optimality conditions, and its gap."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from mercer.errors import InvalidInput
from mercer.factorizations.pivoted_cholesky import pivoted_cholesky
from mercer.operators import Dense, LowRank
from mercer.solvers import Logistic, LogisticFit, NewtonLogistic, Status, solve
from mercer.solvers.descent import curvature
from mercer.solvers.descent.curvature import Curvature, FeatureInverse, Reduced, feature_curvature
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 4)) * [1.0, 2.0, 0.5, 1.0]
TWO = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.standard_normal(80) > 0.3).astype(int)
THREE = TWO + (X[:, 3] > 0.5)


def gaussian(n=80):
    return np.exp(-0.3 * np.sum((X[:n, None] - X[None, :n]) ** 2, axis=2))


def test_equals_newton_in_fifty_digits():
    mpmath = pytest.importorskip("mpmath")
    n, lam = 8, 0.05
    K, y, w = gaussian(n), np.array([0, 1, 1, 0, 1, 0, 0, 1]), np.linspace(0.5, 2, n)
    with mpmath.workdps(50):
        mp, a, b = mpmath.matrix(K.tolist()), mpmath.matrix(n, 1), mpmath.mpf(0)
        for _ in range(30):
            f = mp * a
            p = [1 / (1 + mpmath.exp(-f[i] - b)) for i in range(n)]
            # λα + w(p − y) = 0 and Σα = 0, in α and b at once
            J, right = mpmath.matrix(n + 1, n + 1), mpmath.matrix(n + 1, 1)
            for i in range(n):
                h = w[i] * p[i] * (1 - p[i])
                for j in range(n):
                    J[i, j] = h * mp[i, j] + (lam if i == j else 0)
                J[i, n], J[n, i] = h, 1
                right[i] = -(lam * a[i] + w[i] * (p[i] - int(y[i])))
            right[n] = -sum(a)
            move = mpmath.lu_solve(J, right)
            a, b = a + move[:n, :], b + move[n]
        exact = np.array([float(v) for v in a]), float(b)
    found = solve(NewtonLogistic(tol=1e-24), Logistic(Dense(K), y, lam, w)).x
    np.testing.assert_allclose(found.coef[:, 0], exact[0], rtol=1e-10, atol=1e-11)
    assert_close(found.intercept[0], exact[1], rtol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("lam", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_equals_scikit_learn_on_explicit_features(y, lam, intercept):
    problem = Logistic(LowRank(X), y, lam, intercept=intercept)
    solution = solve(NewtonLogistic(tol=1e-16), problem)
    theirs = LogisticRegression(C=1 / lam, fit_intercept=intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    objective = problem.loss(X @ theirs.coef_.T + theirs.intercept_) + lam / 2 * np.sum(theirs.coef_**2)
    assert solution.state.objective <= objective * (1 + 1e-12)
    np.testing.assert_allclose((X.T @ solution.x.coef).T, theirs.coef_, atol=2e-5 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(solution.x.intercept, theirs.intercept_, atol=2e-5 * np.abs(theirs.coef_).max())


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("lam", [1e-6, 1e-2, 10.0])
def test_optimality_conditions(y, lam, rng):
    K, w = gaussian(), rng.uniform(0.5, 3, 80)
    problem = Logistic(Dense(K), y, lam, w)
    x = solve(NewtonLogistic(tol=1e-20), problem).x
    P = problem.chances(K @ x.coef + x.intercept)
    np.testing.assert_allclose(lam * x.coef, w[:, None] * (problem.Y - P), atol=1e-9)
    np.testing.assert_allclose(x.coef.sum(axis=0), 0, atol=1e-9 / lam)
    if P.shape[1] > 1:
        np.testing.assert_allclose(x.coef.sum(axis=1), 0, atol=1e-9 / lam)
        assert abs(x.intercept.sum()) < 1e-12


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_the_gap_bounds_what_is_left_of_the_objective_and_the_error_of_f(y):
    problem, K, lam = Logistic(Dense(gaussian()), y, 0.01), gaussian(), 0.01
    best = solve(NewtonLogistic(tol=1e-22), problem)
    for steps in range(7):
        part = solve(NewtonLogistic(tol=1e-22), problem, max_steps=steps)
        left = part.state.objective - best.state.objective
        assert -1e-12 * left <= left <= part.state.gap * (1 + 1e-9) + 1e-12
        apart = part.x.coef - best.x.coef
        assert lam / 2 * np.vdot(apart, K @ apart) <= part.state.gap * (1 + 1e-9) + 1e-12
        assert_close(part.residual, part.state.residual, rtol=1e-6)


def test_the_objective_never_rises():
    problem = Logistic(Dense(gaussian()), THREE, 1e-6)
    values = [solve(NewtonLogistic(), problem, max_steps=steps).state.objective for steps in range(12)]
    assert np.all(np.diff(values) <= 1e-12 * np.abs(values[:-1]))


def test_a_wrong_intercept_is_a_residual():
    problem = Logistic(Dense(gaussian()), TWO, 0.1)
    x = solve(NewtonLogistic(), problem).x
    assert problem.residual(LogisticFit(x.coef, x.intercept + 1.0)) > 1e-2


def test_a_preconditioner_changes_the_way_and_not_the_answer():
    K = gaussian()
    values, V = np.linalg.eigh(K)
    plain = solve(NewtonLogistic(tol=1e-20), Logistic(Dense(K), THREE, 1e-4)).x
    helped = solve(
        NewtonLogistic(tol=1e-20),
        Logistic(Dense(K), THREE, 1e-4, factor=V[:, -60:] * np.sqrt(np.maximum(values[-60:], 0))),
    ).x
    np.testing.assert_allclose(helped.coef, plain.coef, atol=1e-8 * np.abs(plain.coef).max())


def test_an_indefinite_matrix_is_found(rng):
    A = rng.standard_normal((80, 80))
    assert solve(NewtonLogistic(), Logistic(Dense(A + A.T, symmetric=True), TWO, 0.1)).status is Status.BREAKDOWN
    infinite = np.full((80, 80), np.inf)
    assert solve(NewtonLogistic(), Logistic(Dense(infinite, symmetric=True), TWO, 0.1)).status is Status.NOT_FINITE


def test_saturated_rows_far_from_the_boundary():
    K = np.outer(np.r_[-1e3, 1e3, -1e-3, 1e-3], np.r_[-1e3, 1e3, -1e-3, 1e-3])
    solution = solve(NewtonLogistic(), Logistic(Dense(K, symmetric=True), [0, 1, 0, 1], 1e-3))
    assert solution.converged
    assert np.all(np.isfinite(solution.x.coef))


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        ([0, 1, 3], {}),
        ([0, 0, 0], {}),
        ([0, 1], {}),
        ([0.0, 1.0, 1.0], {}),
        ([0, 1, 1], {"penalty": 0.0}),
        ([0, 1, 1], {"weights": [1.0, 0.0, 1.0]}),
    ],
)
def test_what_is_no_problem_is_refused(labels, options):
    with pytest.raises(InvalidInput, match="Logistic"):
        Logistic(Dense(np.eye(3)), labels, **({"penalty": 1.0} | options))
    with pytest.raises(InvalidInput, match="NewtonLogistic"):
        NewtonLogistic(tol=-1.0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_small_system_of_a_step_is_inverted(classes, intercept):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(17, 4))
    K = X @ X.T
    Z = rng.normal(size=(17, 1 if classes == 2 else classes))
    P = special.expit(Z) if classes == 2 else special.softmax(Z, axis=1)
    reduced = Reduced(Dense(K), 0.3, Curvature(P, rng.uniform(0.5, 2, (17, 1)), intercept))
    inverse, V = reduced.inverse(), rng.normal(size=P.shape)
    np.testing.assert_allclose(inverse(reduced(V)), V, atol=1e-10)
    np.testing.assert_allclose(reduced(inverse(V)), V, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_preconditioner_is_the_inverse_where_the_factor_is_exact(classes, intercept):
    """On the range of QTᵀ, which conjugate gradients never leave."""
    rng = np.random.default_rng(classes)
    F, t = rng.normal(size=(30, 4)), 1 if classes == 2 else classes
    Z = 3 * rng.normal(size=(30, t))
    T = Curvature(special.expit(Z) if t == 1 else special.softmax(Z, axis=1), rng.uniform(0.5, 2, (30, 1)), intercept)
    V = T.projected(T.adjoint(rng.normal(size=(30, t))))
    given = FeatureInverse(F, 0.3, T)(Reduced(Dense(F @ F.T, symmetric=True), 0.3, T)(V)) / 0.3
    np.testing.assert_allclose(given, V, atol=1e-12 * np.abs(V).max())


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_an_exact_factor_leaves_little_to_conjugate_gradients(classes):
    rng = np.random.default_rng(0)
    F, labels = rng.normal(size=(200, 6)), np.r_[np.arange(classes), rng.integers(0, classes, 200 - classes)]
    counted = Counted(F @ F.T, symmetric=True)
    solution = solve(NewtonLogistic(), Logistic(counted, labels, 1e-3, factor=F))
    assert solution.converged
    assert counted.products <= 8 * solution.steps + 5  # 141 and 12 135 with each class by itself


def test_a_small_penalty_is_come_near_by_larger_ones():
    X, y = load_digits(return_X_y=True)
    K = rbf_kernel(X[:400], gamma=0.003)
    counted = Counted(K, symmetric=True)
    problem = Logistic(
        counted, (y[:400] > 4).astype(int), 1e-5, factor=pivoted_cholesky(Dense(K, symmetric=True), 25).F
    )
    assert solve(NewtonLogistic(), problem).converged
    assert counted.products < 240  # some 120; 480 with Newton's steps from the start


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("t", [1, 2, 4])
def test_the_curvature_on_features_is_its_sum_over_rows(t, intercept, monkeypatch):
    monkeypatch.setattr(curvature, "CHUNK", 50)
    rng = np.random.default_rng(t)
    Phi, w = rng.normal(size=(23, 3)), rng.uniform(0.5, 2, (23, 1))
    P = special.expit(rng.normal(size=(23, 1))) if t == 1 else special.softmax(rng.normal(size=(23, t)), axis=1)
    H = np.array([u * (np.diag(p) - np.outer(p, p)) for u, p in zip(w[:, 0], P, strict=True)])
    wanted = sum(np.kron(h, np.outer(phi, phi)) for h, phi in zip(H, Phi, strict=True))
    if intercept:
        S = sum(np.kron(h, phi[:, None]) for h, phi in zip(H, Phi, strict=True))
        wanted = wanted - S @ np.linalg.pinv(H.sum(axis=0), rcond=1e-10) @ S.T
    np.testing.assert_allclose(feature_curvature(Phi, P, w, intercept), wanted, atol=1e-13 * np.abs(wanted).max())


def test_what_is_not_definite_has_no_inverse():
    P, w = np.full((3, 1), 0.5), np.ones((3, 1))
    assert Reduced(Dense(-10.0 * np.eye(3)), 0.1, Curvature(P, w, False)).inverse() is None
    assert Reduced(Dense(np.full((3, 3), np.inf)), 0.1, Curvature(P, w, False)).inverse() is None


@pytest.mark.parametrize("size", [3.0, 10.0])
def test_large_entries_end_soon_and_what_is_said_to_have_converged_has(size):
    rng = np.random.default_rng(1)
    X, labels = size * rng.normal(size=(65, 5)), rng.integers(0, 3, 65)
    counted = Counted((X @ X.T + 1) ** 4)
    problem = Logistic(counted, labels, penalty=1.0)
    solution = solve(NewtonLogistic(), problem)
    assert solution.status.name == "CONVERGED"
    assert solution.residual <= 1e-10
    assert problem.residual(solution.x) <= 1e-10
    assert counted.products < 5000  # conjugate gradients alone took a hundred thousand, and did not converge


class Counted(Dense):
    """Counts its products."""

    products = 0

    def _matmat(self, V):
        self.products += 1
        return super()._matmat(V)
