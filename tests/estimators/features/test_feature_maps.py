"""Nyström's and random Fourier features against scikit-learn, closed forms and their expectations."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem as Reference
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from mercer import SVC, EmpiricalKernelMap, KernelPCA, KernelRidge, Nystroem, RandomFourierFeatures
from mercer.approx.fourier import draw_frequencies, fourier_features
from mercer.approx.nystroem import inverse_root
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import (
    Cauchy,
    Function,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
)
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3))
NEW = RNG.standard_normal((40, 3))
KERNEL = Gaussian(0.3)


# ---- Nyström ------------------------------------------------------------------------------------------------------


def test_equals_scikit_learn_on_the_same_landmarks():
    theirs = Reference(kernel="rbf", gamma=2.0, n_components=30, random_state=0).fit(X)
    ours = Nystroem(Gaussian(2.0), landmarks=theirs.component_indices_).fit(X)
    np.testing.assert_allclose(ours.transform(NEW), theirs.transform(NEW), atol=1e-9)


@pytest.mark.parametrize("landmarks", ["pivoted", "uniform", "kmeans", np.arange(5, 45), NEW])
def test_inner_products_are_the_projection_on_the_landmarks(landmarks):
    model = Nystroem(KERNEL, 40, landmarks=landmarks, random_state=1).fit(X)
    Z = model.components_
    expected = KERNEL(NEW, Z) @ np.linalg.pinv(KERNEL(Z), rcond=40 * 2.2e-16, hermitian=True) @ KERNEL(Z, X)
    np.testing.assert_allclose(model.transform(NEW) @ model.transform(X).T, expected, atol=1e-6)
    np.testing.assert_allclose(model.transform(Z) @ model.transform(X).T, KERNEL(Z, X), atol=1e-6)  # exact there


def test_the_measured_error_is_the_true_one_and_falls_with_more_landmarks():
    few, many = (Nystroem(KERNEL, m).fit(X) for m in (10, 80))
    for model in (few, many):
        Phi, K = model.transform(X), KERNEL(X)
        true = np.linalg.norm(K - Phi @ Phi.T) / np.linalg.norm(K)
        assert 0.7 * true < model.report_.residual < 1.4 * true
        assert "measured on a random block" in str(model.report_)
    assert many.report_.residual < 0.05 * few.report_.residual


def test_pivoted_landmarks_find_the_small_cluster_that_uniform_ones_miss():
    Z = np.vstack([X, 0.5 * X[:6] + 30.0])
    errors = {}
    for how in ("pivoted", "uniform"):
        Phi = Nystroem(KERNEL, 40, landmarks=how).fit(Z).transform(Z)
        errors[how] = np.abs(np.sum(Phi[-6:] ** 2, axis=1) - 1).max()
    assert errors["pivoted"] < 0.5 < errors["uniform"]


def test_components_from_centred_features_are_those_of_the_exact_method():
    Phi = Nystroem(KERNEL, 150).fit_transform(X)
    scores = np.linalg.svd(Phi - Phi.mean(axis=0), full_matrices=False)
    exact = KernelPCA(3, KERNEL).fit_transform(X)
    found = scores[0][:, :3] * scores[1][:3]
    np.testing.assert_allclose(np.abs(found), np.abs(exact), atol=1e-3)


@pytest.mark.parametrize("landmarks", ["pivoted", "uniform", [3, 7, 100]])
def test_precomputed_values_with_landmarks_give_the_same(landmarks):
    direct = Nystroem(KERNEL, 30, landmarks=landmarks).fit(X)
    given = Nystroem(Precomputed(), 30, landmarks=landmarks).fit(KERNEL(X))
    np.testing.assert_array_equal(given.components_, direct.component_indices_)
    np.testing.assert_allclose(given.transform(KERNEL(NEW, X)), direct.transform(NEW), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dependent_landmarks_are_dropped_not_divided_by(dtype):
    twice = np.repeat(X[:20], 3, axis=0).astype(dtype)
    model = Nystroem(KERNEL, 60, landmarks=np.arange(60)).fit(twice)
    Phi = model.transform(twice)
    assert Phi.dtype == dtype
    np.testing.assert_allclose(Phi @ Phi.T, KERNEL(twice), atol=1e-3 if dtype == np.float32 else 1e-6)
    assert any("rank" in note for note in model.report_.notes)


def test_the_root_drops_what_is_rounding_and_what_is_negative(rng):
    root, rank = inverse_root(np.diag([4.0, 1e-20, -1.0]), 2.2e-16)
    assert rank == 1
    np.testing.assert_array_equal(root, np.diag([0.5, 0.0, 0.0]))
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    A = Q @ np.diag([5.0, 4, 3, 2, 1]) @ Q.T
    root, _ = inverse_root(A, 2.2e-16)
    np.testing.assert_allclose(root @ A @ root, np.eye(5), atol=1e-12)


def test_sparse_rows_objects_and_float32():
    sparse = np.where(np.abs(X) > 1, X, 0.0)
    np.testing.assert_allclose(
        Nystroem(KERNEL, 30).fit(sp.csr_array(sparse)).transform(sp.csr_array(sparse)),
        Nystroem(KERNEL, 30).fit(sparse).transform(sparse),
        atol=1e-6,
    )
    words = ["ab", "abc", "xyz", "xy", "abz", "yz"]
    common = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    Phi = Nystroem(common, 6).fit(words).transform(words)
    np.testing.assert_allclose(Phi @ Phi.T, common(words), atol=1e-7)
    low_precision = (
        Nystroem(KERNEL, 30, landmarks="uniform").fit(X.astype(np.float32)).transform(NEW.astype(np.float32))
    )
    wide = Nystroem(KERNEL, 30, landmarks="uniform").fit(X).transform(NEW)
    np.testing.assert_allclose(low_precision @ low_precision.T, wide @ wide.T, atol=1e-3)


def test_names_seeds_and_refusals():
    model = Nystroem(KERNEL, 4).fit(X)
    assert model.get_feature_names_out().tolist() == [f"nystroem{i}" for i in range(4)]
    np.testing.assert_array_equal(model.transform(X), Nystroem(KERNEL, 4).fit(X).transform(X))
    for landmarks in ("best", [1.5], [300], [-1], np.ones((2, 7)), []):
        with pytest.raises(InvalidInput, match="landmarks="):
            Nystroem(KERNEL, landmarks=landmarks).fit(X)
    with pytest.raises(InvalidInput, match="landmarks="):
        Nystroem(Precomputed(), landmarks="kmeans").fit(KERNEL(X))
    for m in (0, 2.5, True):
        with pytest.raises(InvalidInput, match="n_components"):
            Nystroem(KERNEL, m).fit(X)
    with pytest.raises(MemoryExceeded, match="memory="):
        Nystroem(KERNEL, memory=1000).fit(X)


# ---- the empirical kernel map ----------------------------------------------------------------------------------------


def test_the_features_are_the_rows_of_the_kernel_matrix():
    model = EmpiricalKernelMap(KERNEL)
    assert_close(model.fit_transform(X), rbf_kernel(X, gamma=0.3), rtol=1e-12)
    assert_close(model.transform(NEW), rbf_kernel(NEW, X, gamma=0.3), rtol=1e-12)
    assert model.get_feature_names_out().tolist() == [f"empiricalkernelmap{i}" for i in range(300)]
    assert "exact" in str(model.report_)
    given = EmpiricalKernelMap(Precomputed()).fit(KERNEL(X))
    np.testing.assert_array_equal(given.transform(KERNEL(NEW, X)), KERNEL(NEW, X))
    np.testing.assert_array_equal(given.fit_transform(KERNEL(X)), KERNEL(X))


@pytest.mark.parametrize("landmarks", ["pivoted", "uniform", "kmeans", np.arange(5, 45), NEW])
def test_landmarks_are_the_columns(landmarks):
    model = EmpiricalKernelMap(KERNEL, 40, landmarks=landmarks).fit(X)
    assert_close(model.transform(NEW), rbf_kernel(NEW, model.components_, gamma=0.3), rtol=1e-12)
    assert_close(model.fit_transform(X), model.transform(X), rtol=1e-12)
    assert model.transform(X).shape == (300, 40)


def test_given_landmarks_are_all_taken():
    assert_close(EmpiricalKernelMap(KERNEL, landmarks=[7, 3]).fit_transform(X), KERNEL(X, X[[7, 3]]))
    swapped = np.arange(300)[::-1]
    assert_close(EmpiricalKernelMap(KERNEL, landmarks=swapped).fit_transform(X), KERNEL(X, X[::-1]))


def test_a_linear_machine_on_the_rows_of_a_matrix_of_strings(rng):
    words = ["".join(rng.choice(list("abcd" if i % 2 else "abxy"), 12)) for i in range(60)]
    kind = np.arange(60) % 2
    kernel = Spectrum(2).normalized()
    pipeline = make_pipeline(EmpiricalKernelMap(kernel), LinearSVC(C=10.0, random_state=0)).fit(words[:40], kind[:40])
    alone = LinearSVC(C=10.0, random_state=0).fit(kernel(words[:40]), kind[:40])
    expected = alone.decision_function(kernel(words[40:], words[:40]))
    np.testing.assert_allclose(pipeline.decision_function(words[40:]), expected, atol=1e-9)
    assert pipeline.score(words[40:], kind[40:]) == 1.0


def test_any_function_will_do_and_precision_is_kept():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = EmpiricalKernelMap(Sigmoid(1.0, -2.0)).fit(X)
    np.testing.assert_allclose(model.transform(NEW), np.tanh(NEW @ X.T - 2.0), atol=1e-12)
    one_way = Function(lambda x, z: float(x[0] - 2 * z[0]), mode="pair", symmetric=False)
    expected = X[:, :1] - 2 * X[:5, 0]
    assert_close(EmpiricalKernelMap(one_way, landmarks=np.arange(5)).fit_transform(X), expected)
    low_precision = X.astype(np.float32)
    for features in (
        EmpiricalKernelMap(KERNEL).fit_transform(low_precision),
        EmpiricalKernelMap(KERNEL).fit(X).transform(NEW),
    ):
        assert features.dtype == (np.float32 if len(features) == 300 else np.float64)
    sparse = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    np.testing.assert_allclose(EmpiricalKernelMap(KERNEL).fit_transform(sparse), KERNEL(sparse.toarray()), atol=1e-12)


def test_what_an_empirical_map_refuses():
    for m in (0, 2.5, True):
        with pytest.raises(InvalidInput, match="n_components"):
            EmpiricalKernelMap(KERNEL, m).fit(X)
    with pytest.raises(InvalidInput, match="landmarks="):
        EmpiricalKernelMap(KERNEL, 5, landmarks="best").fit(X)
    with pytest.raises(InvalidInput, match="landmarks='foo'; give"):  # of all rows, too
        EmpiricalKernelMap(KERNEL, landmarks="foo").fit(X)
    for call in (lambda model: model.fit_transform(X), lambda model: model.fit(X).transform(X)):
        with pytest.raises(MemoryExceeded, match="features of 300 rows"):
            call(EmpiricalKernelMap(KERNEL, memory=100_000))


# ---- random Fourier features --------------------------------------------------------------------------------------

SPECTRAL = [
    Gaussian(0.3),
    Laplace(0.4),
    Laplace(0.4, norm=1),
    Matern(0.5, 1.3),
    Matern(1.5, 1.3),
    Matern(2.2, 0.7),
    Matern(np.inf, 1.3),
    Cauchy(0.7),
    RationalQuadratic(alpha=2.5, gamma=0.4),
    2.5 * Gaussian(0.3),
    Gaussian(0.2) * Laplace(0.3),
    Gaussian(0.3).on([2, 0]),
    Gaussian(0.3).with_length_scales([0.5, 1.0, 2.0]),
]


def off_by(kernel, drawn_for, orthogonal=False):
    """The largest error of a kernel value, in units of the standard deviation that 20 000 frequencies leave."""
    W, scale = draw_frequencies(drawn_for, 3, 20_000, np.random.default_rng(0), orthogonal=orthogonal)
    Phi = fourier_features(X[:30], W, scale)
    return np.abs(Phi @ Phi.T - kernel(X[:30])).max() / (scale * np.sqrt(0.5 / 20_000))


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("kernel", SPECTRAL, ids=repr)
def test_the_expectation_is_the_kernel(kernel, orthogonal):
    if orthogonal and getattr(kernel, "norm", 2) == 1:
        with pytest.raises(InvalidInput, match="isotropic"):
            off_by(kernel, kernel, orthogonal)
        return
    assert off_by(kernel, kernel, orthogonal) < 5


@pytest.mark.parametrize(
    ("kernel", "wrong"),
    [
        (Gaussian(0.3), Gaussian(0.33)),
        (Laplace(0.4), Laplace(0.4, norm=1)),
        (Matern(1.5, 1.3), Matern(2.5, 1.3)),
        (RationalQuadratic(alpha=2.5, gamma=0.4), RationalQuadratic(alpha=1.0, gamma=0.4)),
    ],
)
def test_another_measure_would_be_noticed(kernel, wrong):
    assert off_by(kernel, wrong) > 5


def test_orthogonal_directions_are_orthonormal_and_err_less():
    W = draw_frequencies(Gaussian(0.5), 8, 20, np.random.default_rng(0), orthogonal=True).W
    U = W / np.linalg.norm(W, axis=1)[:, None]
    for block in (U[:8], U[8:16], U[16:]):
        np.testing.assert_allclose(block @ block.T, np.eye(len(block)), atol=1e-12)
    Z = np.random.default_rng(1).standard_normal((60, 16))
    K, errors = Gaussian(0.02)(Z), {}
    for orthogonal in (False, True):
        maps = [RandomFourierFeatures(Gaussian(0.02), 64, orthogonal=orthogonal, random_state=s) for s in range(20)]
        errors[orthogonal] = np.mean([np.mean((K - (P := m.fit_transform(Z)) @ P.T) ** 2) for m in maps])
    assert errors[True] < 0.6 * errors[False]


def test_the_report_and_the_estimator():
    model = RandomFourierFeatures(2 * Gaussian(0.3), 2000).fit(X)
    Phi, K = model.transform(X), 2 * KERNEL(X)
    true = np.linalg.norm(K - Phi @ Phi.T) / np.linalg.norm(K)
    assert 0.7 * true < model.report_.residual < 1.4 * true
    assert "measured on a random block" in str(model.report_)
    assert Phi.shape == (300, 2000)
    assert_close(np.sum(Phi**2, axis=1), 2.0, rtol=1e-12)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(model.transform(sp.csr_array(X)), Phi, atol=1e-12)
    assert model.get_feature_names_out()[1999] == "randomfourierfeatures1999"
    np.testing.assert_array_equal(
        RandomFourierFeatures(KERNEL, 8).fit(X).transform(X),
        fourier_features(X, RandomFourierFeatures(KERNEL, 8).fit(X).frequencies_, 1.0),
    )


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), Sigmoid(), KERNEL + Linear(), Precomputed()], ids=repr)
def test_kernels_without_a_known_measure_are_refused_with_those_that_have_one(kernel):
    rows = KERNEL(X) if kernel == Precomputed() else X
    with pytest.raises(InvalidInput, match="Gaussian, Laplace, Matern"):
        RandomFourierFeatures(kernel).fit(rows)


def test_odd_numbers_of_features_have_the_same_expectation():
    Z, offsets, total = X[:20], np.random.default_rng(5).uniform(0, 2 * np.pi, 4000), np.zeros((20, 20))
    for seed, offset in enumerate(offsets):
        W = draw_frequencies(KERNEL, 3, 2, np.random.default_rng(seed), orthogonal=False).W
        Phi = fourier_features(Z, W, 1.0, offset)
        total += Phi @ Phi.T
    assert np.abs(total / 4000 - KERNEL(Z)).max() < 5 * np.sqrt(0.5 / 4000)
    model = RandomFourierFeatures(KERNEL, 3).fit(X)
    assert model.transform(X).shape == (300, 3)
    assert len(model.get_feature_names_out()) == 3


def test_rows_of_zeros_have_no_landmarks_with_the_linear_kernel():
    rows, y = np.zeros((6, 2)), np.arange(6) % 2
    for fit in (
        lambda: Nystroem("linear", 5).fit(rows),
        lambda: KernelRidge("linear", solver="nystroem").fit(rows, y),
        lambda: SVC(kernel="linear", solver="nystroem").fit(rows, y),
    ):
        with pytest.raises(InvalidInput, match=r"no landmark, because k\(x, x\) = 0 for all rows; choose"):
            fit()


def test_few_orthogonal_frequencies_of_many_columns_are_orthogonal_and_within_the_plan():
    """They came from a d × d matrix: 50 frequencies of 3000 columns took 300 MB."""
    X, model = np.random.default_rng(0).normal(size=(20, 1500)), RandomFourierFeatures(n_components=40, orthogonal=True)
    model.fit(X)
    tracemalloc.start()
    try:
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    W = model.frequencies_ / np.linalg.norm(model.frequencies_, axis=1, keepdims=True)
    np.testing.assert_allclose(W @ W.T, np.eye(20), atol=1e-12)
    assert peak <= model.report_.memory_planned + 5e5
