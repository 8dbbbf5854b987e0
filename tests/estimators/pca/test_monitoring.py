"""T², SPE and their limits, against linear PCA's textbook formulas, brute force, and the rate of false alarms."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from mercer import KernelPCA
from mercer.errors import InvalidInput
from mercer.estimators.pca.monitoring import spe_limit, t2_limit
from mercer.kernels import Function, Gaussian, Linear, Polynomial, Precomputed
from mercer.testing import assert_close


def process(n, seed):
    """Two factors behind eight sensors, and noise."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(99).standard_normal((2, 8))
    return rng.standard_normal((n, 2)) * [3.0, 2.0] @ mix + 0.5 * rng.standard_normal((n, 8))


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem"])
def test_a_linear_kernel_gives_the_textbooks_figures(solver):
    X, new = process(300, 0), process(50, 1)
    model, pca = KernelPCA(2, Linear(), solver=solver, tol=1e-7).fit(X), PCA(2).fit(X)
    scores = pca.transform(new)
    textbook = np.sum(scores**2 / pca.explained_variance_, axis=1)  # variances over N − 1
    assert_close(model.hotelling_t2(new) * 299 / 300, textbook, rtol=1e-6)
    q = np.sum((new - pca.inverse_transform(scores)) ** 2, axis=1)
    assert_close(model.spe(new), q, rtol=1e-6)
    limits = model.control_limits(0.95, X)
    book = 2 * (300**2 - 1) / (300 * 298) * scipy.stats.f.ppf(0.95, 2, 298)
    assert limits.hotelling_t2 * 299 / 300 == pytest.approx(book, rel=1e-12)
    train = np.sum((X - pca.inverse_transform(pca.transform(X))) ** 2, axis=1)
    g, h = train.var() / (2 * train.mean()), 2 * train.mean() ** 2 / train.var()
    assert limits.spe == pytest.approx(g * scipy.stats.chi2.ppf(0.95, h), rel=1e-6)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.3), Polynomial(degree=2, gamma=0.2, coef0=1.0)])
def test_spe_is_the_distance_in_feature_space(kernel, solver):
    X, new = load_iris().data[::2], load_iris().data[1::2]
    model = KernelPCA(3, kernel, solver=solver, tol=1e-7).fit(X)
    K, C = kernel(X), kernel(new, X)
    A = model.dual_coef_
    y = model.transform(new)
    gamma = 1 / len(X) + y @ A.T  # Pφ(x) = Σ γᵢ φ(xᵢ)
    own = np.diagonal(kernel(new))
    expected = own - 2 * np.sum(gamma * C, axis=1) + np.sum(gamma @ K * gamma, axis=1)
    np.testing.assert_allclose(model.spe(new), expected, rtol=1e-5, atol=1e-9 * own.max())


def test_spe_on_landmarks_is_the_distance_from_the_model_that_was_fitted():
    X, kernel = load_iris().data, Gaussian(gamma=0.3)
    model = KernelPCA(3, kernel, solver="nystroem", n_landmarks=25).fit(X)
    B = model.X_fit_
    gamma = model.mean_coef_ + model.transform(X) @ model.dual_coef_.T
    expected = 1 - 2 * np.sum(gamma * kernel(X, B), axis=1) + np.sum(gamma @ kernel(B) * gamma, axis=1)
    np.testing.assert_allclose(model.spe(X), expected, atol=1e-10)


@pytest.mark.parametrize("level", [0.95, 0.99])
def test_false_alarms_come_as_often_as_the_level_says(level):
    X, new = process(1000, 2), process(20_000, 3)
    model = KernelPCA(2, Linear()).fit(X)
    limits = model.control_limits(level=level)
    for values, limit in ((model.hotelling_t2(new), limits.hotelling_t2), (model.spe(new), limits.spe)):
        assert np.mean(values > limit) == pytest.approx(1 - level, rel=0.25)


def test_few_rows_need_the_f_limit():
    # 12 rows, 2 components: χ² would raise five times as many alarms as it should
    alarms, naive = [], []
    for seed in range(300):
        model = KernelPCA(2, Linear()).fit(np.random.default_rng(seed).standard_normal((12, 2)))
        t2 = model.hotelling_t2(np.random.default_rng(1000 + seed).standard_normal((100, 2)))
        alarms.append(np.mean(t2 > model.control_limits(level=0.95).hotelling_t2))
        naive.append(np.mean(t2 > scipy.stats.chi2.ppf(0.95, 2)))
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.01)
    assert np.mean(naive) > 0.1


def test_faults_are_seen_where_they_are():
    X, new = process(500, 4), process(200, 5)
    model = KernelPCA(8, Gaussian(gamma=0.002)).fit(X)
    limits = model.control_limits(0.99, process(500, 6))
    off_plane = new + np.random.default_rng(7).standard_normal(8) * 5
    assert np.mean(model.spe(off_plane) > limits.spe) > 0.9
    assert np.mean(model.spe(new) > limits.spe) < 0.05


def test_limits_of_training_rows_need_no_product_and_equal_those_of_the_rows():
    X = load_iris().data
    model = KernelPCA(3, Gaussian(gamma=0.3)).fit(X)
    assert_close(model.control_limits(), model.control_limits(X=X), rtol=1e-9)
    everything = KernelPCA(kernel=Linear()).fit(X)
    assert everything.control_limits().spe == pytest.approx(0.0, abs=1e-9)


def test_sparse_rows_and_chunks():
    X = np.where(process(200, 8) > 0, process(200, 8), 0.0)
    dense, sparse = KernelPCA(3, Gaussian(0.01)).fit(X), KernelPCA(3, Gaussian(0.01)).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.spe(sp.csr_array(X)), dense.spe(X), atol=1e-9)
    assert_close(sparse.hotelling_t2(sp.csr_array(X)), dense.hotelling_t2(X), rtol=1e-6)
    chunks = KernelPCA(3, Gaussian(0.01), n_landmarks=100).partial_fit(X[:100]).partial_fit(X[100:])
    assert chunks.control_limits(X=X).hotelling_t2 == dense.control_limits(X=X).hotelling_t2
    assert np.corrcoef(chunks.spe(X), dense.spe(X))[0, 1] > 0.99
    with pytest.raises(InvalidInput, match="rows in control"):
        chunks.control_limits()


def test_float32_against_float64():
    X = process(300, 9)
    wide, narrow = KernelPCA(3, Gaussian(0.01)).fit(X), KernelPCA(3, Gaussian(0.01)).fit(X.astype(np.float32))
    for name in ("spe", "hotelling_t2"):
        a, b = getattr(wide, name)(X), getattr(narrow, name)(X.astype(np.float32))
        np.testing.assert_allclose(b, a, atol=1e-3 * a.max())


def test_what_has_no_answer():
    X = load_iris().data
    K = Gaussian(0.3)(X)
    given, plain = KernelPCA(2, Precomputed()).fit(K), KernelPCA(2, Gaussian(0.3)).fit(X)
    assert_close(given.hotelling_t2(K), plain.hotelling_t2(X), rtol=1e-7)
    for ask in (lambda: given.spe(K), given.control_limits):
        with pytest.raises(InvalidInput, match="precomputed"):
            ask()
    for level in (0.0, 1.0, 2, "high", np.nan):
        with pytest.raises(InvalidInput, match="level"):
            plain.control_limits(level=level)
    with pytest.raises(InvalidInput, match="fewer components"):
        t2_limit(5, 5, 0.9)
    with pytest.raises(NotFittedError):
        KernelPCA(2).control_limits()
    with pytest.raises(NotFittedError):
        KernelPCA(2).spe(X)
    none = KernelPCA(2, Gaussian(1.0)).fit(np.ones((6, 2)))
    assert none.control_limits().hotelling_t2 == 0.0
    np.testing.assert_array_equal(none.hotelling_t2(np.ones((3, 2))), 0.0)
    assert spe_limit(np.full(5, 2.0), 0.99) == 2.0


def test_objects():
    words = ["ab", "abc", "xyz", "xy", "abz", "yz"]
    common = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    model = KernelPCA(2, common).fit(words)
    features = np.array([[one in word for one in "abcxyzq"] for word in [*words, "q"]], float)
    explicit = KernelPCA(2, "linear").fit(features[:-1])
    np.testing.assert_allclose(model.spe(["ab", "q"]), explicit.spe(features[[0, -1]]), atol=1e-12)


@pytest.mark.parametrize(("model", "rows"), [(KernelPCA(5, "gaussian"), 6), (KernelPCA(3, "linear"), 20)])
def test_a_limit_of_rounding_is_warned_of(model, rows):
    """Where the components leave nothing of the rows, each new row would be beyond the limit of SPE."""
    X = np.random.default_rng(0).standard_normal((100, 3))
    model.fit(X[:rows])
    with pytest.warns(UserWarning, match="leave nothing but rounding for SPE's limit; give X="):
        model.control_limits()
    if rows == 6:
        assert model.control_limits(X=X[6:]).spe > 0.1  # no warning, which would be an error


def test_fewer_landmarks_than_components_are_warned_of():
    X = np.random.default_rng(0).standard_normal((30, 3))
    with pytest.warns(UserWarning, match="give at least 5 rows to the first call of partial_fit"):
        KernelPCA(5, "gaussian").partial_fit(X[:3])
    assert KernelPCA(5, "gaussian").partial_fit(X[:5]).partial_fit(X[5:]).transform(X).shape == (30, 5)
