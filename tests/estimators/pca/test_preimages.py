"""Pre-images: exact where they exist, near where they do not, and residuals equal to brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from mercer import KernelPCA
from mercer.approx.preimages import fixed_point, fixed_point_weight, neighbour_location
from mercer.errors import InvalidInput
from mercer.kernels import Cauchy, Cosine, Gaussian, Laplace, Linear, Matern, Polynomial, Precomputed
from mercer.testing import assert_close

METHODS = ("ridge", "fixed_point", "kwok_tsang")


@pytest.fixture(scope="module")
def digits():
    X = load_digits().data / 16.0
    clean = X[600:700]
    return X[:600], clean, clean + np.random.default_rng(0).normal(scale=0.3, size=clean.shape)


def projection(model, kernel, X, Y):
    """γ of P = Σ γᵢ φ(xᵢ), to the letter: m + Σⱼ yⱼ Σᵢ Aᵢⱼ (φ(xᵢ) − m)."""
    n = len(X)
    A = model.dual_coef_ - model.dual_coef_.mean(axis=0)
    return np.full(n, 1 / n) + Y @ A.T


@pytest.mark.parametrize("solver", ["dense", "nystroem"])
@pytest.mark.parametrize("method", METHODS)
def test_residuals_are_those_of_brute_force(digits, method, solver):
    X, _, noisy = digits
    X, kernel = X[:200], Gaussian(gamma=0.03)
    model = KernelPCA(8, kernel, solver=solver, n_landmarks=60, fit_inverse_transform=True, preimage=method).fit(X)
    Y = model.transform(noisy)
    rows, residual = model.inverse_transform(Y, return_residual=True)
    B = model.X_fit_
    gamma = model.mean_coef_ + Y @ model.dual_coef_.T
    if solver == "dense":
        np.testing.assert_allclose(gamma, projection(model, kernel, X, Y), atol=1e-10)
    K, cross = kernel(B), kernel(rows, B)
    expected = 1 - 2 * np.sum(gamma * cross, axis=1) + np.sum(gamma @ K * gamma, axis=1)
    np.testing.assert_allclose(residual, expected, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_linear_kernel_inverts_as_pca(scale):
    X = load_iris().data
    pca = PCA(2).fit(X)
    expected = pca.inverse_transform(pca.transform(X))
    kernel = Linear() if scale == 1 else scale * Linear()
    for options in ({}, {"solver": "nystroem", "n_landmarks": 10}):
        model = KernelPCA(2, kernel, **options).fit(X)
        rows, residual = model.inverse_transform(model.transform(X), return_residual=True)
        np.testing.assert_allclose(rows, expected, atol=1e-8)
        np.testing.assert_allclose(residual, 0.0, atol=1e-8)
        np.testing.assert_allclose(model.reconstruction_error(X), np.sum((X - expected) ** 2, axis=1), atol=1e-8)
        assert model.score(X) == pytest.approx(-np.mean(np.sum((X - expected) ** 2, axis=1)))


@pytest.mark.parametrize("kernel", [Gaussian(gamma=2.0), Gaussian(gamma=0.3)])
def test_the_ridge_decoder_is_scikit_learns_with_its_kernel(kernel):
    X = load_iris().data
    X = X - X.mean(axis=0)
    theirs = Reference(4, kernel="rbf", gamma=kernel.gamma, alpha=0.1, fit_inverse_transform=True).fit(X)
    model = KernelPCA(4, kernel, fit_inverse_transform=True, preimage="ridge", decoder_kernel=kernel, alpha=0.1).fit(X)
    expected = theirs.inverse_transform(theirs.transform(X))
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), expected, atol=1e-8)


def test_a_decoder_with_its_own_kernel_needs_no_tuning_of_the_first(digits):
    X, clean, _ = digits
    for gamma in (0.3, 0.03, 0.003):
        ours = KernelPCA(16, Gaussian(gamma), fit_inverse_transform=True).fit(X)
        theirs = Reference(16, kernel="rbf", gamma=gamma, alpha=0.1, fit_inverse_transform=True).fit(X)
        error = np.mean(np.sum((theirs.inverse_transform(theirs.transform(clean)) - clean) ** 2, axis=1))
        assert -ours.score(clean) < error


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem"])
@pytest.mark.parametrize("method", METHODS)
def test_noisy_digits_become_cleaner(digits, method, solver):
    X, clean, noisy = digits
    model = KernelPCA(32, Gaussian(0.03), solver=solver, fit_inverse_transform=True, preimage=method).fit(X)
    found = model.inverse_transform(model.transform(noisy))
    before, after = (np.sum((rows - clean) ** 2, axis=1) for rows in (noisy, found))
    assert after.mean() < 0.5 * before.mean()
    assert np.mean(after < before) > 0.95


def test_the_fixed_point_is_nearer_in_feature_space_than_its_start(digits):
    X, _, noisy = digits
    kernel = Gaussian(0.05)
    model = KernelPCA(32, kernel, fit_inverse_transform=True, preimage="fixed_point").fit(X)
    Y = model.transform(noisy)
    rows, residual = model.inverse_transform(Y, return_residual=True)
    start = KernelPCA(32, kernel, fit_inverse_transform=True, preimage="ridge").fit(X)
    assert np.all(residual <= start.inverse_transform(Y, return_residual=True)[1] + 1e-12)
    # where it settled the gradient of ‖φ(x) − P‖² vanishes: no small step does better
    rng = np.random.default_rng(1)
    near = model._preimages().residuals(rows + 1e-3 * rng.standard_normal(rows.shape), Y)
    assert np.mean(near >= residual - 1e-7) > 0.95


def test_half_moons_are_drawn_back_to_their_curve():
    X, _ = make_moons(400, noise=0.02, random_state=0)
    noisy = X[:100] + np.random.default_rng(0).normal(scale=0.1, size=(100, 2))
    for method in METHODS:
        model = KernelPCA(8, Gaussian(gamma=2.0), fit_inverse_transform=True, preimage=method, alpha=0.01).fit(X)
        found = model.inverse_transform(model.transform(noisy))
        off = [np.min(np.linalg.norm(rows[:, None] - X, axis=2), axis=1).mean() for rows in (noisy, found)]
        assert off[1] < 0.8 * off[0], method


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(gamma=0.4),
        Laplace(gamma=0.3),
        Matern(nu=1.5, length_scale=2.0),
        Cauchy(gamma=0.3),
        Gaussian(0.4) + 2 * Cauchy(0.1),
        Polynomial(degree=3, gamma=0.1, coef0=0.0),
        Linear(),
    ],
)
def test_distances_in_feature_space_give_back_the_rows(kernel):
    # With all components a training row is its own projection, and 10 neighbours in 3 dimensions determine it.
    X = np.random.default_rng(0).standard_normal((40, 3))
    model = KernelPCA(None, kernel, preimage="kwok_tsang").fit(X)
    rows, residual = model.inverse_transform(model.transform(X), return_residual=True)
    np.testing.assert_allclose(rows, X, atol=2e-5)
    np.testing.assert_allclose(residual, 0.0, atol=1e-6)


def test_kernels_that_a_method_has_no_formula_for_are_refused():
    X = load_iris().data
    with pytest.raises(InvalidInput, match="Gaussian and Cauchy"):
        KernelPCA(2, Laplace(0.1), fit_inverse_transform=True, preimage="fixed_point").fit(X)
    for kernel, words in ((Cosine(), "neither"), (Gaussian(0.1).on([0]), "neither"), (Polynomial(2), "not monotone")):
        model = KernelPCA(2, kernel, preimage="kwok_tsang").fit(X - X.mean(axis=0))
        with pytest.raises(InvalidInput, match=words):
            model.inverse_transform(model.transform(X))
    assert fixed_point_weight(2.0 * Cauchy(0.5)) == Cauchy(0.5) ** 2


def test_the_fixed_point_of_a_cauchy_kernel_finds_the_row():
    rng = np.random.default_rng(0)
    X, kernel = rng.standard_normal((30, 2)), Cauchy(gamma=0.5)
    gamma = np.eye(30)[:5]  # P = φ(xᵢ)
    found = fixed_point(fixed_point_weight(kernel), X, gamma, X[:5] + 0.3)
    np.testing.assert_allclose(found, X[:5], atol=1e-9)


def test_a_small_denominator_leaves_the_point_where_it_is():
    basis, start = np.array([[-1.0], [1.0]]), np.array([[0.0]])
    assert fixed_point(Gaussian(1.0), basis, np.array([[1.0, -1.0]]), start) == 0.0
    far = np.array([[1e6]])
    assert fixed_point(Gaussian(1.0), basis, np.array([[1.0, 1.0]]), far) == 1e6


def test_neighbours_that_are_all_the_same_row():
    same = np.ones((12, 2))
    found = neighbour_location(Gaussian(1.0), same, np.ones(12), np.full((3, 12), 0.1), np.ones(3))
    np.testing.assert_array_equal(found, np.ones((3, 2)))


def test_what_cannot_be_inverted_says_so():
    X = load_iris().data
    model = KernelPCA(2).fit(X)
    with pytest.raises(InvalidInput, match="fit_inverse_transform=True"):
        model.inverse_transform(model.transform(X))
    assert not hasattr(model, "score")
    assert hasattr(KernelPCA(2, fit_inverse_transform=True), "score")
    with pytest.raises(InvalidInput, match="preimage"):
        KernelPCA(2, preimage="guess").fit(X)
    with pytest.raises(InvalidInput, match="vectors"):
        KernelPCA(2, Precomputed(), fit_inverse_transform=True).fit(X @ X.T)
    with pytest.raises(InvalidInput, match="1 column for 2"):
        KernelPCA(2, "linear").fit(X).inverse_transform([[1.0]])
    with pytest.raises(NotFittedError):
        KernelPCA(2).inverse_transform([[1.0]])
    with pytest.raises(InvalidInput, match="alpha"):
        KernelPCA(2, alpha=-1, fit_inverse_transform=True).fit(X)


def test_no_components_and_one_component():
    same = KernelPCA(2, Gaussian(1.0), fit_inverse_transform=True).fit(np.ones((5, 3)))
    np.testing.assert_array_equal(same.inverse_transform(np.empty((4, 0))), np.ones((4, 3)))
    column = KernelPCA(1, Gaussian(0.1), fit_inverse_transform=True).fit(np.arange(20.0)[:, None])
    assert column.inverse_transform(column.transform([[3.0]])).shape == (1, 1)


def test_sparse_float32_and_chunks(digits):
    X, clean, _ = digits
    sparse = KernelPCA(4, Gaussian(0.03), fit_inverse_transform=True).fit(sp.csr_array(X))
    dense = KernelPCA(4, Gaussian(0.03), fit_inverse_transform=True).fit(X)
    narrow = KernelPCA(4, Gaussian(0.03), fit_inverse_transform=True).fit(X.astype(np.float32))
    expected = dense.inverse_transform(dense.transform(clean))
    np.testing.assert_allclose(sparse.inverse_transform(sparse.transform(sp.csr_array(clean))), expected, atol=1e-7)
    assert_close(sparse.reconstruction_error(sp.csr_array(clean)), dense.reconstruction_error(clean))
    found = narrow.inverse_transform(narrow.transform(clean.astype(np.float32)))
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())
    chunks = KernelPCA(4, Gaussian(0.03), fit_inverse_transform=True, n_landmarks=200)
    for rows in np.split(X, 3):
        chunks.partial_fit(rows)
    options = {"solver": "nystroem", "landmarks": chunks.X_fit_, "fit_inverse_transform": True}
    batch = KernelPCA(4, Gaussian(0.03), **options).fit(X)
    assert_close(chunks.reconstruction_error(clean), batch.reconstruction_error(clean), rtol=1e-8)


def test_a_grid_search_chooses_kernel_and_components():
    X = np.random.default_rng(0).standard_normal((120, 1)) * [1.0, 1.0] + [0.0, 1.0]
    grid = {"kernel": ["linear", Gaussian(gamma=100.0)], "n_components": [1]}
    search = GridSearchCV(KernelPCA(fit_inverse_transform=True), grid, cv=3).fit(X)
    assert search.best_params_["kernel"] == "linear"
    assert search.best_score_ == pytest.approx(0.0, abs=1e-9)
