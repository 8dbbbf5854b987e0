"""Dual coordinate descent: LIBLINEAR's objective, its gap, and several machines at once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.svm import LinearSVC, LinearSVR

from mercer.engine import backend
from mercer.errors import InvalidInput
from mercer.solvers import DualCoordinateDescent, LinearDualBatch, LinearPoint, Status, solve
from mercer.testing import assert_close

many_passes = pytest.mark.skipif(not backend.is_native(), reason="the reference would take minutes for so many passes")


def machine(X, c, lower, upper, epsilon=0.0):
    n = len(X)
    return LinearDualBatch(np.ascontiguousarray(X), c, lower, upper, np.arange(n), np.array([0, n]), epsilon)


def hinge(X, y, C):
    return machine(X, y, np.minimum(C * y, 0), np.maximum(C * y, 0))


@many_passes
@pytest.mark.parametrize(("n", "C"), [(300, 1.0), (300, 0.01), (1500, 0.3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hinge_loss_equals_liblinear(n, C, dtype):
    X, y = make_classification(n, 20, flip_y=0.05, random_state=0)
    X, y = X.astype(dtype), 2.0 * y - 1
    ones = np.hstack([X, np.ones((n, 1), dtype)])
    found = solve(DualCoordinateDescent(tol=1e-8), hinge(ones, y, C))
    theirs = LinearSVC(loss="hinge", C=C, tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, y)
    w = np.append(theirs.coef_[0], theirs.intercept_)

    def objective(w):
        return 0.5 * w @ w + C * np.sum(np.maximum(0, 1 - y * (ones.astype(float) @ w)))

    assert found.converged
    assert abs(objective(found.x.w[0]) / objective(w) - 1) < 1e-6


@many_passes
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_insensitive_loss_equals_liblinear(epsilon):
    X, y = make_regression(400, 10, noise=20.0, random_state=0)
    y = y / y.std()
    C = 0.5
    problem = machine(X, y, np.full(400, -C), np.full(400, C), epsilon)
    found = solve(DualCoordinateDescent(tol=5e-7, max_passes=1_000_000), problem)
    assert found.converged
    theirs = LinearSVR(C=C, epsilon=epsilon, fit_intercept=False, tol=1e-9, max_iter=1_000_000).fit(X, y)

    def objective(w):
        return 0.5 * w @ w + C * np.sum(np.maximum(0, np.abs(y - X @ w) - epsilon))

    assert abs(objective(found.x.w[0]) / objective(theirs.coef_) - 1) < 1e-6
    assert_close(problem.objectives(found.x)[0], objective(found.x.w[0]), rtol=1e-12)


@many_passes
def test_weights_are_bounds_of_their_own():
    X, y = make_classification(200, 5, random_state=1)
    y, weights = 2.0 * y - 1, np.arange(200) % 3
    whole = machine(X, y, np.minimum(weights * y, 0), np.maximum(weights * y, 0))
    rows = np.repeat(np.arange(200), weights)
    repeated = hinge(X[rows], y[rows], 1.0)
    first, second = (solve(DualCoordinateDescent(tol=1e-10), problem).x.w for problem in (whole, repeated))
    np.testing.assert_allclose(first, second, atol=1e-4)


@many_passes
def test_many_machines_are_as_if_alone():
    X, y = make_classification(300, 8, random_state=2)
    y, parts = 2.0 * y - 1, [np.arange(300), np.arange(0, 300, 2), np.arange(100, 250)]
    rows = np.concatenate(parts)
    offset = np.concatenate([[0], np.cumsum([len(one) for one in parts])])
    c = y[rows]
    family = LinearDualBatch(np.ascontiguousarray(X), c, np.minimum(c, 0), np.maximum(c, 0), rows, offset)
    found = solve(DualCoordinateDescent(tol=1e-9), family)
    for p, part in enumerate(parts):
        alone = solve(DualCoordinateDescent(tol=1e-9), hinge(X[part], y[part], 1.0))
        np.testing.assert_allclose(found.x.w[p], alone.x.w[0], atol=1e-3)
        some = family.part(np.array([p]))
        assert_close(some.objectives(alone.x), family.objectives(found.x)[0][p : p + 1][0], rtol=1e-7)
    primal, dual = family.objectives(found.x)
    assert_close(found.residual, np.max((primal - dual) / primal))


@many_passes
def test_degenerate_machines():
    X = np.zeros((4, 3))
    zero = solve(DualCoordinateDescent(), hinge(X, np.array([1.0, -1.0, 1.0, 1.0]), 2.0))
    assert zero.converged
    assert_close(zero.x.beta, [2, -2, 2, 2])
    free = solve(DualCoordinateDescent(), machine(np.eye(3), np.ones(3), np.zeros(3), np.zeros(3)))
    assert free.converged
    assert not free.x.beta.any()
    X = np.array([[1.0, 2.0], [1.0, 2.0]])
    opposite = solve(DualCoordinateDescent(tol=1e-8), hinge(X, np.array([1.0, -1.0]), 1e6))
    assert opposite.converged
    np.testing.assert_allclose(opposite.x.w, 0, atol=1e-3)


@many_passes
def test_where_it_ends_without_an_answer():
    X, y = make_classification(200, 5, random_state=1)
    few = solve(DualCoordinateDescent(tol=1e-8, max_passes=3), hinge(X, 2.0 * y - 1, 1e3))
    assert few.status is Status.MAX_STEPS
    assert few.residual > 1e-8
    infinite = solve(DualCoordinateDescent(max_passes=3), hinge(np.where(X > 2, np.inf, X), 2.0 * y - 1, 1.0))
    assert infinite.status is Status.NOT_FINITE


@pytest.mark.parametrize(
    "change",
    [
        {"features": np.eye(3)[0]},
        {"features": np.eye(3, dtype=int)},
        {"linear": np.ones(2)},
        {"rows": np.array([0, 1, 3])},
        {"lower": np.ones(3)},
        {"epsilon": -1.0},
    ],
)
def test_what_is_no_family_is_refused(change):
    parts = {"features": np.eye(3), "linear": np.ones(3), "lower": -np.ones(3), "upper": np.ones(3)}
    parts |= {"rows": np.arange(3), "offset": np.array([0, 3])}
    with pytest.raises(InvalidInput, match="LinearDualBatch"):
        LinearDualBatch(**(parts | change))
    with pytest.raises(InvalidInput, match="DualCoordinateDescent"):
        DualCoordinateDescent(tol=-1.0)


def test_a_point_is_judged_with_the_w_of_its_beta():
    X, y = make_classification(100, 5, random_state=1)
    problem = hinge(X, 2.0 * y - 1, 1.0)
    x = solve(DualCoordinateDescent(), problem).x
    assert problem.residual(LinearPoint(x.beta, 0 * x.w)) == problem.residual(x)
