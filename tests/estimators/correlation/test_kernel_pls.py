"""Kernel partial least squares against scikit-learn, explicit deflation, and its own definition."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV

from mercer import KernelPLS, load, save
from mercer.engine.backend import is_native
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import Function, Gaussian, Linear, Polynomial, Precomputed
from mercer.testing import assert_close


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], X[:, 3]]) + 0.1 * rng.normal(size=(120, 3)) + 5.0
    return X, Y


def explicit(K, Y, k):
    """Rosipal & Trejo, to the letter: the inner iteration, deflated matrices, B = U(TᵀKU)⁻¹TᵀY."""
    n = len(K)
    H = np.eye(n) - 1 / n
    K, Y = H @ K @ H, Y - Y.mean(axis=0)
    whole, targets, T, U = K, Y, [], []
    for _ in range(k):
        u = Y[:, :1]
        for _ in range(3000):
            t = K @ u
            t /= np.linalg.norm(t)
            u = Y @ (Y.T @ t)
            u /= np.linalg.norm(u)
        P = np.eye(n) - t @ t.T
        K, Y = P @ K @ P, P @ Y
        T.append(t), U.append(u)
    T, U = np.hstack(T), np.hstack(U)
    return T, U @ np.linalg.solve(T.T @ whole @ U, T.T @ targets)


def test_is_the_explicit_deflation(data):
    X, Y = data
    kernel = Gaussian(0.1)
    model = KernelPLS(5, kernel).fit(X, Y)
    T, B = explicit(kernel(X), Y, 5)
    np.testing.assert_allclose(np.abs(np.sum(T * model.x_scores_, axis=0)), 1.0, atol=1e-10)
    np.testing.assert_allclose(model.dual_coef_, B, atol=1e-7 * np.abs(B).max())
    H = np.eye(120) - 1 / 120
    np.testing.assert_allclose(model.predict(X), H @ kernel(X) @ H @ B + Y.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_the_linear_kernel_is_partial_least_squares(k, targets, data):
    X, Y = data[0][:90], data[1][:90, :targets]
    # Its tolerance is on the square of a difference.
    theirs = PLSRegression(k, scale=False, tol=1e-24, max_iter=5000).fit(X, Y)
    ours = KernelPLS(k, "linear").fit(X, Y)
    np.testing.assert_allclose(ours.predict(data[0]), theirs.predict(data[0]).reshape(120, -1), rtol=0, atol=1e-8)


def test_scores_are_orthonormal_and_those_of_transform(data):
    X, Y = data
    model = KernelPLS(8, Gaussian(0.1)).fit(X, Y)
    np.testing.assert_allclose(model.x_scores_.T @ model.x_scores_, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(model.transform(X), model.x_scores_, atol=1e-8)
    away = Y - Y.mean(axis=0)
    np.testing.assert_allclose(
        model.predict(X), Y.mean(axis=0) + model.x_scores_ @ (model.x_scores_.T @ away), atol=1e-8
    )
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-9)
    assert model.report_.residual < 1e-8
    assert model.report_.status == "converged"


def test_more_components_fit_better_and_all_of_them_interpolate(data):
    X, Y = data
    scores = [KernelPLS(k, Gaussian(0.3)).fit(X, Y).score(X, Y) for k in (1, 5, 20, 60)]
    assert np.all(np.diff(scores) > 0)
    np.testing.assert_allclose(KernelPLS(119, Gaussian(0.5)).fit(X, Y[:, 0]).predict(X), Y[:, 0], atol=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 0.05, 0.01])
@pytest.mark.parametrize("targets", [1, 3])
def test_components_that_rounding_would_make_are_left_out(gamma, targets, data):
    X, Y = data[0], data[1][:, :targets]
    model = KernelPLS(119, Gaussian(gamma)).fit(X, Y)
    np.testing.assert_allclose(model.transform(X), model.x_scores_, atol=1e-5)
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-3)


@pytest.mark.parametrize("factor", [1e-150, 1e150, 1e-300, 1e300])
def test_a_factor_of_all_weights_changes_the_norm_of_the_scores_alone(data, factor):
    X, Y = data
    w = np.random.default_rng(3).uniform(0.5, 2.0, len(X))
    plain, scaled = KernelPLS(4).fit(X, Y, w), KernelPLS(4).fit(X, Y, factor * w)
    assert_close(scaled.predict(X), plain.predict(X), rtol=1e-9)
    T = np.sqrt(factor * w)[:, None] * scaled.transform(X)
    np.testing.assert_allclose(T.T @ T, np.eye(4), atol=1e-9)


def test_weight_two_is_a_repeated_row_and_weight_zero_an_absent_one(data):
    X, Y = data
    w = np.ones(120)
    w[:30], w[30:45] = 2.0, 0.0
    rows = np.concatenate([np.arange(30), np.arange(30), np.arange(45, 120)])
    repeated, weighted = KernelPLS(4).fit(X[rows], Y[rows]), KernelPLS(4).fit(X, Y, w)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-9)


def test_centring_is_in_feature_space(data):
    plain, lifted = (KernelPLS(4, kernel).fit(*data) for kernel in (Gaussian(0.1), Gaussian(0.1) + 1000.0))
    np.testing.assert_allclose(lifted.predict(data[0]), plain.predict(data[0]), atol=1e-7)


def test_matrix_free_equals_stored(data):
    X, Y = np.hstack([data[0], np.zeros((120, 100))]), data[1]
    narrow, stored, free = KernelPLS(4).fit(*data), KernelPLS(4).fit(X, Y), KernelPLS(4, memory=280_000).fit(X, Y)
    assert "stored" in stored.report_.method
    assert "matrix-free" in free.report_.method
    if is_native():  # the reference stores what fits
        assert "as fast as they are read" in narrow.report_.reason
    np.testing.assert_allclose(free.predict(X), stored.predict(X), atol=1e-9)
    with pytest.raises(MemoryExceeded, match="memory="):
        KernelPLS(memory=1000).fit(*data)


def test_float32_sparse_precomputed_and_objects(data, tmp_path):
    X, Y = data
    kernel = Gaussian(0.1)
    model = KernelPLS(3, kernel).fit(X, Y)
    expected = model.predict(X)
    narrow = KernelPLS(3, kernel).fit(X.astype(np.float32), Y).predict(X.astype(np.float32))
    np.testing.assert_allclose(narrow, expected, atol=1e-3)
    np.testing.assert_allclose(
        KernelPLS(3, kernel).fit(sp.csr_array(X), Y).predict(sp.csr_array(X)), expected, atol=1e-9
    )
    given = KernelPLS(3, Precomputed()).fit(kernel(X), Y)
    np.testing.assert_allclose(given.predict(kernel(X)), expected, atol=1e-9)
    letters = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    words = KernelPLS(2, letters).fit(["ab", "abc", "xyz", "xy"], [0.0, 0.0, 1.0, 1.0])
    assert words.predict(["abab"])[0] < 0.5 < words.predict(["zy"])[0]
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), expected)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_degenerate_inputs(data):
    X, Y = data
    more = KernelPLS(10, "linear").fit(X, Y[:, 0])
    assert more.transform(X).shape == (120, 6)
    assert any("6 of 10" in note for note in more.report_.notes)
    constant = KernelPLS().fit(X, np.full(120, 0.1))
    assert_close(constant.predict(X), 0.1, rtol=1e-12)
    assert constant.transform(X).shape == (120, 0)
    same = KernelPLS().fit(np.ones((9, 2)), np.arange(9.0))
    assert_close(same.predict(np.ones((2, 2))), 4.0)
    twice = KernelPLS(3, Polynomial(2)).fit(np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0))
    np.testing.assert_allclose(twice.predict(X), KernelPLS(3, Polynomial(2)).fit(X, Y).predict(X), atol=1e-8)
    mixed = KernelPLS(2, Linear()).fit(X, np.column_stack([Y[:, 0], np.full(120, 7.0)]))
    assert_close(mixed.predict(X)[:, 1], 7.0)
    for bad in (0, 1.5, True, "two"):
        with pytest.raises(InvalidInput, match="n_components"):
            KernelPLS(bad).fit(X, Y)


def test_the_number_of_components_is_searched(data):
    X, Y = data
    Y = Y + np.random.default_rng(1).normal(size=Y.shape)
    search = GridSearchCV(KernelPLS(kernel=Gaussian(0.1)), {"n_components": [1, 6, 90]}, cv=3).fit(X, Y)
    assert search.best_params_["n_components"] == 6
