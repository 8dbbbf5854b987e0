"""Chapter 000, kernel PCA (21.1) and discriminant analysis (21.2): in explicit features, and on four points by hand.

The feature map is that of (⟨x, z⟩ + 1)², written out, so that every formula about φ can be computed as it stands.
"""

import numpy as np
import pytest
from sklearn.datasets import make_circles

from mercer import KernelDiscriminantAnalysis, KernelPCA, MonomialFeatures
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.testing import assert_close

KERNEL = Polynomial(2, coef0=1.0)
POINTS = np.array([[-1.0], [0.0], [1.0], [2.0]])
LABELS = np.array([-1, -1, 1, 1])


@pytest.fixture(scope="module")
def features():
    X, y = make_circles(40, factor=0.5, noise=0.2, random_state=3)
    return X, np.where(y == 1, 1, -1), MonomialFeatures(2, 1.0, kind="all").fit_transform(X)


def centred(K):
    """(21.35)."""
    ones = np.full(K.shape, 1 / len(K))
    return K - ones @ K - K @ ones + ones @ K @ ones


# ---- 21.1 kernel PCA ------------------------------------------------------------------------------------------------


def test_components_are_eigenvectors_of_the_covariance_in_feature_space(features):
    """(21.1), (21.2), (21.6), (21.19), (21.27), (21.28)."""
    X, _, Phi = features
    model = KernelPCA(3, KERNEL).fit(X)
    away = Phi - Phi.mean(axis=0)
    U = away.T @ model.dual_coef_
    np.testing.assert_allclose(away.T @ away / 40 @ U, U * model.explained_variance_, atol=1e-10)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-10)


def test_coefficients_are_eigenvectors_of_the_centred_kernel_matrix(features):
    """(21.18) with (21.36), (21.22) to (21.25)."""
    X, _, _ = features
    model, K = KernelPCA(3, KERNEL).fit(X), centred(KERNEL(X))
    a, lam = model.dual_coef_, model.explained_variance_
    np.testing.assert_allclose(K @ a, 40 * lam * a, atol=1e-10)
    assert_close(np.diag(a.T @ K @ a), 1.0, rtol=1e-10)
    assert_close(np.sum(a**2, axis=0), 1 / (40 * lam), rtol=1e-10)


def test_scores_are_projections(features):
    """(21.26) on rows that are not those of the fit."""
    X, _, Phi = features
    model, new = KernelPCA(3, KERNEL).fit(X), X[:5] + 0.3
    U = (Phi - Phi.mean(axis=0)).T @ model.dual_coef_
    explicit = (MonomialFeatures(2, 1.0, kind="all").fit_transform(new) - Phi.mean(axis=0)) @ U
    np.testing.assert_allclose(model.transform(new), explicit, atol=1e-10)


def test_four_points_by_hand_kernel_pca():
    """x − x̄ = −3/2, −1/2, 1/2, 3/2: nλ = 5, a = (x − x̄)/5 with ‖a‖² = 1/5, and the scores are x − x̄."""
    model = KernelPCA(1, Linear()).fit(POINTS)
    assert_close(model.eigenvalues_, [5.0], rtol=1e-12)
    sign = np.sign(model.dual_coef_[3, 0])
    np.testing.assert_allclose(sign * model.dual_coef_[:, 0], [-0.3, -0.1, 0.1, 0.3], atol=1e-12)
    np.testing.assert_allclose(sign * model.transform([[-1.0], [5.0]])[:, 0], [-1.5, 4.5], atol=1e-12)


# ---- 21.2 kernel discriminant analysis ------------------------------------------------------------------------------


def matrices(K, y):
    """m₁, m₂ (21.48), M (21.52), N (21.54)."""
    N, m = np.zeros(K.shape), []
    for label in (1, -1):
        E = K[:, y == label]
        size = E.shape[1]
        m.append(E.sum(axis=1) / size)
        N += E @ (np.eye(size) - np.full((size, size), 1 / size)) @ E.T
    return *m, np.outer(m[0] - m[1], m[0] - m[1]), N


@pytest.mark.parametrize("solver", ["regression", "eigen"])
def test_the_direction_is_the_eigenvector_in_feature_space(features, solver):
    """(21.38) to (21.43), with S_W + δI for S_W, and (21.57)."""
    X, y, Phi = features
    delta = 0.1
    model = KernelDiscriminantAnalysis(KERNEL, delta=delta, solver=solver).fit(X, y)
    w = Phi.T @ model.dual_coef_[:, 0]
    mu = [Phi[y == label].mean(axis=0) for label in (1, -1)]
    S_B = np.outer(mu[0] - mu[1], mu[0] - mu[1])
    S_W = sum((Phi[y == c] - m).T @ (Phi[y == c] - m) for c, m in zip((1, -1), mu, strict=True))
    regular = S_W + delta * np.eye(len(w))
    lam = model.eigenvalues_[0] * 40 / (np.sum(y == 1) * np.sum(y == -1))
    np.testing.assert_allclose(np.linalg.solve(regular, S_B @ w), lam * w, atol=1e-8)
    assert_close(w @ w, 1.0, rtol=1e-9)
    assert_close(lam, np.max(np.linalg.eigvals(np.linalg.solve(regular, S_B)).real), rtol=1e-8)


def test_scatter_is_that_of_the_kernel_matrices(features):
    """(21.44) to (21.55), (21.59), (21.61)."""
    X, y, Phi = features
    K, delta = KERNEL(X), 0.1
    model = KernelDiscriminantAnalysis(KERNEL, delta=delta).fit(X, y)
    a = model.dual_coef_[:, 0]
    m1, m2, M, N = matrices(K, y)
    scores = model.transform(X)[:, 0]
    np.testing.assert_allclose(scores, Phi @ (Phi.T @ a), atol=1e-9)
    np.testing.assert_allclose(model.means_[:, 0], [m2 @ a, m1 @ a], atol=1e-9)
    assert_close((m1 @ a - m2 @ a) ** 2, a @ M @ a, rtol=1e-8)
    within = sum(np.sum((scores[y == c] - scores[y == c].mean()) ** 2) for c in (1, -1))
    assert_close(within, a @ N @ a, rtol=1e-8)
    assert_close(a @ K @ a, 1.0, rtol=1e-9)
    J = a @ M @ a / (a @ N @ a + delta * a @ K @ a)
    for other in np.random.default_rng(0).normal(size=(200, 40)):
        assert other @ M @ other / (other @ (N + delta * K) @ other) <= J


def test_four_points_by_hand_discriminant_analysis():
    """−1, 0 | 1, 2: m₁ = 3x/2, m₂ = −x/2, M = 4xxᵀ, N = xxᵀ: J = 4 aᵀKa/aᵀKa, with δ 4/(1 + δ), and w = 1."""
    K = [[1, 0, -1, -2], [0, 0, 0, 0], [-1, 0, 1, 2], [-2, 0, 2, 4]]
    np.testing.assert_array_equal(Linear()(POINTS), K)
    m1, m2, M, N = matrices(np.array(K, float), LABELS)
    np.testing.assert_array_equal(m1, [-1.5, 0, 1.5, 3])
    np.testing.assert_array_equal(m2, [0.5, 0, -0.5, -1])
    np.testing.assert_array_equal(M, 4 * np.array(K))
    np.testing.assert_array_equal(N, K)
    model = KernelDiscriminantAnalysis(Linear(), delta=1.0).fit(POINTS, LABELS)
    assert_close(model.eigenvalues_, [2.0], rtol=1e-9)  # n/(n₁n₂) = 1
    assert_close(model.transform([[7.0]]), [[7.0]], rtol=1e-9)
    assert model.predict([[0.49], [0.51]]).tolist() == [-1, 1]


def test_n_is_singular_by_construction(features):
    """N has rank n − 2 at most: why δ > 0 is demanded."""
    X, y, _ = features
    *_, N = matrices(Gaussian(gamma=50.0)(X), y)  # this K is far from singular
    assert np.linalg.matrix_rank(N) == 38


def test_two_classes_that_no_line_separates():
    X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    line, curve = (KernelDiscriminantAnalysis(kernel).fit(X, y) for kernel in (Linear(), KERNEL))
    assert line.score(X, y) < 0.7
    assert curve.score(X, y) == 1.0
