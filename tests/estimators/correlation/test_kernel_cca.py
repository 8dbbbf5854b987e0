"""Kernel canonical correlation analysis against brute force, closed forms, scikit-learn, and the mistakes of others."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.cross_decomposition import CCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from mercer import KernelCCA, load, save
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import Function, Gaussian, Laplace, Linear, Polynomial, Precomputed
from mercer.testing import assert_close


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(200, 2))
    X, Y = (common @ rng.normal(size=(2, d)) + rng.normal(size=(200, d)) for d in (5, 4))
    return X, Y


@pytest.fixture
def circle():
    """A point of a circle, and its angle: no linear function of the one correlates much with the other."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(-np.pi, np.pi, 400)
    X = np.column_stack([np.cos(2 * angle), np.sin(2 * angle)]) + 0.05 * rng.normal(size=(400, 2))
    return X, angle[:, None] + 0.05 * rng.normal(size=(400, 1))


def brute_force(Kx, Ky, kx, ky):
    """The generalised eigenproblem of the definition, on the range of both centred matrices: its values are ±ρ."""
    n = len(Kx)
    H = np.eye(n) - 1 / n
    Kx, Ky = H @ Kx @ H, H @ Ky @ H
    zero, cross = np.zeros((n, n)), Kx @ Ky / n
    A = np.block([[zero, cross], [cross.T, zero]])
    B = scipy.linalg.block_diag(Kx @ Kx / n + kx * Kx, Ky @ Ky / n + ky * Ky)
    s, Q = np.linalg.eigh(B)
    Q = Q[:, s > 1e-10 * s[-1]]
    return scipy.linalg.eigh(Q.T @ A @ Q, Q.T @ B @ Q, eigvals_only=True)[::-1]


@pytest.mark.parametrize("solver", ["dense", "nystroem"])
def test_is_the_generalised_eigenproblem(solver, views):
    X, Y = views[0][:60], views[1][:60]
    kx, ky = Polynomial(2, gamma=0.1), Laplace(gamma=0.3)
    model = KernelCCA(5, kx, ky, solver=solver).fit(X, Y)
    Kx, Ky = kx(X), ky(Y)
    assert_close(
        model.correlations_, brute_force(Kx, Ky, model.regularization_x_, model.regularization_y_)[:5], rtol=1e-6
    )
    Z, W = model.transform(X, Y)
    np.testing.assert_allclose(Z.T @ W / 60, np.diag(model.correlations_), atol=1e-8)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    assert model.report_.residual < 1e-8


def test_the_constraint_of_the_definition(views):
    X, Y = views
    model = KernelCCA(3, Gaussian(0.1), Laplace(0.2)).fit(X, Y)
    H = np.eye(200) - 1 / 200
    for K, a, kappa in (
        (Gaussian(0.1)(X), model.dual_coef_, model.regularization_x_),
        (Laplace(0.2)(Y), model.dual_coef_y_, model.regularization_y_),
    ):
        K = H @ K @ H
        np.testing.assert_allclose(a.T @ (K @ K / 200 + kappa * K) @ a, np.eye(3), atol=1e-9)
        assert_close(kappa, 0.03 * np.trace(K) / 200)


@pytest.mark.parametrize("solver", ["dense", "nystroem"])
def test_linear_kernels_without_regularisation_are_canonical_correlation_analysis(solver, views):
    X, Y = views
    model = KernelCCA(3, "linear", regularization=0, solver=solver).fit(X, Y)
    Qx, Qy = (np.linalg.qr(V - V.mean(axis=0))[0] for V in (X, Y))
    assert_close(model.correlations_, np.linalg.svd(Qx.T @ Qy)[1][:3], rtol=1e-9)
    theirs = CCA(3, tol=1e-10, max_iter=2000).fit(X, Y).transform(X, Y)
    for ours, other in zip(model.transform(X, Y), theirs, strict=True):
        for j in range(3):
            assert abs(np.corrcoef(ours[:, j], other[:, j])[0, 1]) > 1 - 1e-8
    assert_close(model.score(X, Y), model.correlations_.mean(), rtol=1e-9)


def test_linear_kernels_with_regularisation_are_the_canonical_ridge(views):
    X, Y = (V - V.mean(axis=0) for V in views)
    model = KernelCCA(4, "linear", regularization=0.5).fit(*views)
    roots = [
        np.linalg.inv(np.linalg.cholesky(V.T @ V / 200 + 0.5 * np.trace(V.T @ V) / 200 * np.eye(V.shape[1])))
        for V in (X, Y)
    ]
    assert_close(model.correlations_, np.linalg.svd(roots[0] @ X.T @ Y / 200 @ roots[1].T)[1][:4], rtol=1e-9)


def test_independent_views_do_not_correlate_on_new_rows():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    model = KernelCCA(1, regularization=0.1).fit(X[:350], Y[:350])
    assert model.correlations_[0] < 0.3, "an unregularised method finds 1 here"
    assert abs(model.score(X[350:], Y[350:])) < 0.12


def test_a_relation_that_is_not_linear(circle):
    X, Y = circle
    model = KernelCCA(2, Gaussian(1.0)).fit(X[:300], Y[:300])
    assert model.score(X[300:], Y[300:]) > 0.97
    assert KernelCCA(1, "linear").fit(X[:300], Y[:300]).score(X[300:], Y[300:]) < 0.4


def test_centring_is_in_feature_space(circle):
    plain, lifted = KernelCCA(2, Gaussian(1.0)), KernelCCA(2, Gaussian(1.0) + 100.0)
    plain.fit(*circle), lifted.fit(*circle)
    assert_close(lifted.correlations_, plain.correlations_, rtol=1e-9)
    np.testing.assert_allclose(lifted.transform(circle[0][:9]), plain.transform(circle[0][:9]), atol=1e-6)


def test_a_repeated_data_set_and_a_scaled_kernel_change_nothing(circle):
    X, Y = circle[0][:100], circle[1][:100]
    kernel = Gaussian(1.0)
    once = KernelCCA(2, kernel).fit(X, Y)
    twice = KernelCCA(2, kernel).fit(np.vstack([X, X]), np.vstack([Y, Y]))
    scaled = KernelCCA(2, 7.0 * kernel, kernel).fit(X, Y)
    for other in (twice, scaled):
        assert_close(other.correlations_, once.correlations_, rtol=1e-8)
        np.testing.assert_allclose(other.transform(X, Y), once.transform(X, Y), atol=1e-6)


def test_fewer_landmarks_are_close_and_say_how_much_they_leave(circle):
    exact = KernelCCA(2).fit(*circle)
    model = KernelCCA(2, solver="nystroem", n_landmarks=30).fit(*circle)
    np.testing.assert_allclose(model.correlations_, exact.correlations_, atol=2e-3)
    assert model.dual_coef_.shape == (len(model.X_fit_), 2)
    assert len(model.X_fit_) <= 30
    assert any("landmarks leave out" in note for note in model.report_.notes)
    assert "30 landmarks" in model.report_.method


def test_the_method_follows_the_budget(circle):
    model = KernelCCA(2, memory=2_000_000).fit(*circle)
    assert "Nyström" in model.report_.method
    np.testing.assert_allclose(model.correlations_, KernelCCA(2).fit(*circle).correlations_, atol=1e-4)
    with pytest.raises(MemoryExceeded, match="memory="):
        KernelCCA(solver="dense", memory=100_000).fit(*circle)


def test_float32_is_near_float64(circle):
    wide, narrow = KernelCCA(2).fit(*circle), KernelCCA(2).fit(*(V.astype(np.float32) for V in circle))
    np.testing.assert_allclose(narrow.correlations_, wide.correlations_, atol=1e-3)
    np.testing.assert_allclose(narrow.transform(circle[0].astype(np.float32)), wide.transform(circle[0]), atol=1e-3)


def test_sparse_rows_frames_precomputed_and_objects(circle):
    X, Y = circle
    kernel = Gaussian(1.0)
    model = KernelCCA(2, kernel).fit(X, Y)
    expected = model.transform(X, Y)
    for A, B in ((sp.csr_array(X), sp.csr_array(Y)), (pd.DataFrame(X, columns=["a", "b"]), pd.Series(Y[:, 0]))):
        np.testing.assert_allclose(KernelCCA(2, kernel).fit(A, B).transform(A, B), expected, atol=1e-9)
    named = KernelCCA(1, kernel, kernel.on(["u"])).fit(X, pd.DataFrame({"u": Y[:, 0], "v": 0.0}))
    assert_close(named.correlations_, model.correlations_[:1], rtol=1e-9)
    for solver in ("dense", "nystroem"):
        given = KernelCCA(2, Precomputed(), solver=solver).fit(kernel(X), kernel(Y))
        np.testing.assert_allclose(given.transform(kernel(X), kernel(Y)), expected, atol=1e-5)
    words = ["ab", "abc", "xyz", "xy", "abz", "yz"]
    letters = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    paired = KernelCCA(1, letters).fit(words, [word.replace("z", "w") for word in words])
    assert paired.correlations_[0] > 0.8


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplace(0.3), Polynomial(3)])
def test_rounding_of_a_constant_view_is_no_direction(kernel):
    rng = np.random.default_rng(0)
    for n in range(20, 400, 19):
        for constant in (1.0, 0.3):
            with pytest.raises(InvalidInput, match="view X is constant"):
                KernelCCA(kernel=kernel, solver="dense").fit(np.full((n, 2), constant), rng.normal(size=(n, 1)))


def test_degenerate_views(circle):
    X, Y = circle
    constant = np.ones((400, 1))
    for A, B, name in ((constant, Y, "X"), (X, constant, "y")):
        for solver in ("dense", "nystroem"):
            with pytest.raises(InvalidInput, match=f"view {name} is constant"):
                KernelCCA(solver=solver).fit(A, B)
    apart = np.repeat([0.0, 1.0], 200)[:, None], np.tile([0.0, 1.0], 200)[:, None]
    with pytest.raises(InvalidInput, match="nothing correlates"):
        KernelCCA(kernel="linear").fit(*apart)
    model = KernelCCA(5, "linear").fit(X, Y)
    assert model.transform(X).shape == (400, 1)
    assert any("5 pairs" in note for note in model.report_.notes)
    with pytest.raises(InvalidInput, match="positive regularization"):
        KernelCCA(regularization=0, kernel=Gaussian(50.0)).fit(X, Y)
    same = KernelCCA(1, regularization=1e-6).fit(X, X)
    np.testing.assert_allclose(same.correlations_, 1.0, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"regularization": -1}, "regularization"),
        ({"regularization": np.nan}, "regularization"),
        ({"solver": "magic"}, "solver"),
        ({"n_landmarks": 0}, "n_landmarks"),
        ({"random_state": "x"}, "random_state"),
    ],
    ids=str,
)
def test_bad_parameters(options, words, circle):
    with pytest.raises(InvalidInput, match=words):
        KernelCCA(**({"solver": "nystroem"} | options)).fit(*circle)


def test_bad_second_views(circle):
    X, Y = circle
    for bad in (Y[:-1], np.full_like(Y, np.nan), np.empty((400, 0))):
        with pytest.raises(ValueError, match=r"inconsistent|NaN|0 feature"):
            KernelCCA().fit(X, bad)
    model = KernelCCA().fit(X, Y)
    with pytest.raises(InvalidInput, match="second view"):
        model.transform(X, np.hstack([Y, Y]))
    with pytest.raises(NotFittedError):
        KernelCCA().transform(X)
    assert KernelCCA().fit(X, Y[:, 0].tolist()).correlations_.shape == (2,)


def test_searches_reach_both_kernels_and_files_keep_everything(circle, tmp_path):
    X, Y = circle
    shared = Gaussian(1.0)
    search = GridSearchCV(
        KernelCCA(1, shared, shared), {"kernel_y__gamma": [1e-6, 1.0], "regularization": [0.03]}, cv=3
    ).fit(X, Y)
    assert search.best_params_["kernel_y__gamma"] == 1.0
    assert shared == Gaussian(1.0)
    model = KernelCCA(2, Gaussian(1.0), Linear(), solver="nystroem", n_landmarks=20).fit(X, Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    for ours, theirs in zip(model.transform(X, Y), again.transform(X, Y), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert str(again.report_) == str(model.report_)


def test_columns_of_the_second_view_in_another_order_are_refused(views, tmp_path):
    X, Y = views
    table = pd.DataFrame(Y, columns=list("abcd"))
    model = KernelCCA(1).fit(X, table)
    assert model.feature_names_y_ == list("abcd")
    save(model, tmp_path / "cca")
    for one in (model, load(tmp_path / "cca")):
        assert one.score(X, table) == pytest.approx(one.score(X, Y))
        with pytest.raises(InvalidInput, match="KernelCCA: two tables with the column 'a' in different places"):
            one.score(X, table[list("bacd")])
    assert not hasattr(model.fit(X, Y), "feature_names_y_")
