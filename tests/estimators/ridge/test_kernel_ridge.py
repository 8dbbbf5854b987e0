"""Kernel ridge against closed forms, scikit-learn and high precision."""

import warnings

import mpmath
import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_classification
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.linear_model import LinearRegression, Ridge

from mercer import KernelRidge, KernelRidgeClassifier
from mercer.errors import ConvergenceWarning, InvalidInput
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.solvers import Solution, Status
from mercer.testing import assert_close
from mercer.ways.regularised import RegularisedSolve


@pytest.fixture
def data():
    X, y = load_diabetes(return_X_y=True)
    return X * 20, y


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_equals_scikit_learn(solver, data):
    X, y = data
    ours = KernelRidge(Gaussian(gamma=0.1), alpha=0.5, solver=solver).fit(X, y)
    theirs = Reference(kernel="rbf", gamma=0.1, alpha=0.5).fit(X, y)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-7, atol=1e-7)
    assert_close(ours.predict(X[:50] + 0.1), theirs.predict(X[:50] + 0.1), rtol=1e-9)


def test_equals_high_precision_where_the_system_is_nearly_singular():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((25, 1)), rng.standard_normal(25)
    alpha, gamma = 1e-7, 0.1
    with mpmath.workdps(60):
        K = mpmath.matrix(25, 25)
        for i in range(25):
            for j in range(25):
                K[i, j] = mpmath.exp(-mpmath.mpf(gamma) * (mpmath.mpf(X[i, 0]) - mpmath.mpf(X[j, 0])) ** 2)
            K[i, i] += mpmath.mpf(alpha)
        exact = np.array([float(v) for v in mpmath.lu_solve(K, mpmath.matrix(y.tolist()))])
    model = KernelRidge(Gaussian(gamma=gamma), alpha=alpha).fit(X, y)
    assert model.report_.status == "converged to rounding"
    assert not model.report_.warnings
    # forward error ≤ condition number (2e8) × rounding of the entries (1e-16), times a small factor
    np.testing.assert_allclose(model.dual_coef_, exact, rtol=0, atol=2e-7 * np.abs(exact).max())


def test_the_linear_kernel_is_ridge_regression(data):
    X, y = data
    for intercept in (False, True):
        ours = KernelRidge(Linear(), alpha=3.0, fit_intercept=intercept).fit(X, y)
        theirs = Ridge(alpha=3.0, fit_intercept=intercept).fit(X, y)
        assert_close(ours.predict(X), theirs.predict(X), rtol=1e-7)
    assert_close(ours.intercept_, y.mean() - X.mean(axis=0) @ theirs.coef_, rtol=1e-7)
    assert abs(ours.dual_coef_.sum()) < 1e-6 * np.abs(ours.dual_coef_).sum()


def test_weights_with_intercept_are_weighted_ridge(data):
    X, y = data
    w = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    ours = KernelRidge(Linear(), alpha=3.0, fit_intercept=True).fit(X, y, w)
    theirs = Ridge(alpha=3.0).fit(X, y, w)
    assert_close(ours.predict(X), theirs.predict(X), rtol=1e-6)


@pytest.mark.parametrize("estimator", [KernelRidge, KernelRidgeClassifier])
@pytest.mark.parametrize("intercept", [False, True])
def test_weight_two_is_a_repeated_row_and_weight_zero_an_absent_one(estimator, intercept):
    X, y = make_classification(60, 5, random_state=0)
    model = estimator(Gaussian(gamma=0.2), alpha=0.3, fit_intercept=intercept)
    decide = (lambda m: m.predict(X)) if estimator is KernelRidge else (lambda m: m.decision_function(X))
    weights = np.ones(60)
    weights[:20] = 2.0
    doubled = decide(model.fit(np.vstack([X, X[:20]]), np.append(y, y[:20])))
    np.testing.assert_allclose(decide(model.fit(X, y, weights)), doubled, rtol=1e-7, atol=1e-8)
    weights[:20] = 0.0
    without = decide(model.fit(X[20:], y[20:]))
    np.testing.assert_allclose(decide(model.fit(X, y, weights)), without, rtol=1e-9, atol=1e-9)


def test_many_targets_equal_one_at_a_time(data):
    X, y = data
    Y = np.column_stack([y, -y, X[:, 0]])
    model = KernelRidge(alpha=0.5, fit_intercept=True).fit(X, Y)
    assert model.dual_coef_.shape == Y.shape
    assert model.intercept_.shape == (3,)
    for j in range(3):
        single = KernelRidge(alpha=0.5, fit_intercept=True).fit(X, Y[:, j])
        np.testing.assert_allclose(model.predict(X)[:, j], single.predict(X), rtol=1e-6, atol=1e-7)


def test_alpha_zero_interpolates_a_definite_kernel_and_is_refused_on_a_singular_one():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 3)) * 3, rng.standard_normal(40)
    np.testing.assert_allclose(KernelRidge(Gaussian(gamma=1.0), alpha=0.0).fit(X, y).predict(X), y, atol=1e-7)
    with pytest.raises(InvalidInput, match="raise alpha"):
        KernelRidge(Linear(), alpha=0.0).fit(X, y)


def test_duplicate_rows_and_constant_targets(data):
    X = np.repeat(data[0][:20], 5, axis=0)
    model = KernelRidge(alpha=1e-3, fit_intercept=True).fit(X, np.full(100, 7.0))
    assert_close(model.predict(X), 7.0, rtol=1e-9)


def test_a_tolerance_out_of_reach_warns_and_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    with pytest.warns(ConvergenceWarning, match="relative residual"):
        model = KernelRidge(Gaussian(gamma=0.01), alpha=1e-13, solver="cg", tol=1e-14).fit(X, rng.standard_normal(300))
    assert model.report_.warnings
    assert model.report_.residual > 1e-14


def test_an_indefinite_matrix_is_refused_not_solved():
    K = np.diag([1.0, 1.0, -5.0])
    with pytest.raises(InvalidInput, match="definite"):
        KernelRidge(Precomputed(), alpha=0.1).fit(K, [1.0, 2.0, 3.0])


def test_two_classes_are_least_squares_on_signs():
    X, y = make_classification(100, 6, random_state=3)
    names = np.array(["no", "yes"])[y]
    model = KernelRidgeClassifier(Linear(), alpha=1.0).fit(X, names)
    signs = Ridge(alpha=1.0).fit(X, np.where(y == 1, 1.0, -1.0)).predict(X)
    assert_close(model.decision_function(X), signs, rtol=1e-7)
    assert set(model.predict(X)) <= {"no", "yes"}
    assert model.dual_coef_.shape == (100, 1)


def test_many_classes_and_balanced_weights():
    X, y = make_classification(200, 8, n_informative=6, n_classes=4, weights=[0.7, 0.1, 0.1, 0.1], random_state=0)
    model = KernelRidgeClassifier(class_weight="balanced").fit(X, y)
    assert model.decision_function(X).shape == (200, 4)
    by_hand = KernelRidgeClassifier().fit(X, y, 200 / (4 * np.bincount(y)[y]))
    assert_close(model.decision_function(X), by_hand.decision_function(X), rtol=1e-9)


def test_one_class_is_refused():
    with pytest.raises(InvalidInput, match="two classes"):
        KernelRidgeClassifier().fit(np.eye(3), [1, 1, 1])


def test_a_class_of_weight_zero_is_absent():
    X = np.random.default_rng(0).standard_normal((9, 2))
    model = KernelRidgeClassifier().fit(X, [0, 0, 0, 1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 1, 0, 0, 0])
    assert model.classes_.tolist() == [0, 1]


def test_no_regularisation_and_a_wide_feature_space_is_least_squares():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    ours = KernelRidge(Linear(), alpha=1e-6, fit_intercept=True).fit(X, y).predict(X)
    np.testing.assert_allclose(ours, LinearRegression().fit(X, y).predict(X), atol=1e-5)


@pytest.mark.parametrize(
    ("status", "residual", "says"),
    [
        (Status.STALLED, 3.6e-10, "converged to rounding"),
        (Status.STALLED, 1e-6, "stalled"),
        (Status.MAX_STEPS, 3.6e-10, "max steps"),
    ],
)
def test_a_sum_of_many_terms_is_as_good_as_float64_carries(monkeypatch, status, residual, says):
    n = 195_000

    def run(self):
        return Solution(0.5 * self.B, status, 100, residual, None)

    monkeypatch.setattr(RegularisedSolve, "run", run)
    X = np.linspace(0, 1, n).reshape(-1, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = KernelRidge("gaussian(gamma=1.0)", memory="8GB").fit(X, X[:, 0])
    assert model.report_.status == says
    assert bool(caught) == (says != "converged to rounding")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solver", ["cg", "cholesky"])
def test_a_solver_that_stalls_at_the_limit_of_float64_does_not_warn(solver):
    """‖a‖ = 0.2‖y‖/α, and products with entries near 1 round each sum by some eps·n‖a‖, ten times the tolerance."""
    n, alpha = 1500, 1e-4
    X = np.linspace(0, 1, n).reshape(-1, 1)
    y = np.sign(X[:, 0] - 0.5)
    kernel = Gaussian(gamma=0.01)
    model = KernelRidge(kernel, alpha, solver=solver).fit(X, y)
    assert model.report_.status == "converged to rounding"
    assert model.tol < model.report_.residual < 1e-8
    assert not model.report_.warnings
    a = model.dual_coef_
    left = np.linalg.norm(y - kernel(X) @ a - alpha * a) / np.linalg.norm(y)
    assert left < 4 * np.finfo(float).eps * n * np.linalg.norm(a) / np.linalg.norm(y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_landmarks_are_solved_to_rounding(alpha):
    X = np.random.default_rng(0).standard_normal((800, 5))
    options = {"solver": "nystroem", "n_landmarks": 60, "tol": 1e-16}
    model = KernelRidge("gaussian(gamma=0.1)", alpha, **options).fit(X, np.sin(X[:, 0]))
    assert model.report_.status == "converged to rounding"
    assert model.report_.residual < 1e-11
