"""Spectral clustering against the eigenproblem written out, and scikit-learn's."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from mercer import KernelSpectralClustering
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.kernels import Gaussian, Precomputed, Spectrum
from mercer.solvers import choose
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
X, RING = make_circles(240, factor=0.3, noise=0.05, random_state=0)
KERNEL = Gaussian(30.0)
NEW = X[::9] + 0.02


def written_out(K, w, q):
    """The normalised rows of the leading eigenvectors, and the eigenvalues."""
    d = K @ w
    s = np.sqrt(w / d)
    values, U = scipy.linalg.eigh(s[:, None] * K * s)
    values, U = values[::-1][:q], U[:, ::-1][:, :q]
    return values, U / np.linalg.norm(U, axis=1, keepdims=True)


@pytest.mark.parametrize("krylov", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_embedding_is_that_of_the_eigenproblem_written_out(weighted, krylov, monkeypatch, rng):
    monkeypatch.setattr(choose, "DENSE_BELOW", 10 if krylov else 500)
    if krylov:
        monkeypatch.setattr("mercer.planning.costs.eigen_ways", lambda *_: {"dense": 9.0, "stored": 1.0})
    w = rng.random(len(X)) + 0.1 if weighted else np.ones(len(X))
    kernel = Gaussian(8.0)
    values, U = written_out(kernel(X), w, 3)
    tol = 1e-10 if krylov else 1e-5
    model = KernelSpectralClustering(3, kernel, tol=tol).fit(X, sample_weight=w if weighted else None)
    assert ("krylov" in model.report_.method) == krylov
    assert_close(model.eigenvalues_, values, rtol=1e-10)
    assert model.eigenvalues_[0] == pytest.approx(1.0, rel=1e-12)
    # Up to signs: inner products of rows have none.
    np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, U @ U.T, atol=1e-7)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-12)
    assert model.report_.residual <= tol


@pytest.mark.parametrize("data", [(X, RING, 30.0), (*make_moons(240, noise=0.05, random_state=0), 30.0)])
def test_shapes_that_no_line_separates(data):
    rows, truth, gamma = data
    model = KernelSpectralClustering(2, Gaussian(gamma)).fit(rows)
    assert adjusted_rand_score(model.labels_, truth) == 1.0
    theirs = SpectralClustering(2, gamma=gamma, random_state=0).fit(rows)
    assert adjusted_rand_score(model.labels_, theirs.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(rows), model.labels_)


def test_blocks_without_ties_between_them():
    """K of three blocks: the eigenvalue 1 three times, and the clusters are the blocks."""
    sizes = [5, 9, 7]
    K = scipy.linalg.block_diag(*[np.full((m, m), 0.5) + 0.5 * np.eye(m) for m in sizes])
    model = KernelSpectralClustering(3, Precomputed()).fit(K)
    assert_close(model.eigenvalues_, 1.0)
    assert adjusted_rand_score(model.labels_, np.repeat([0, 1, 2], sizes)) == 1.0
    np.testing.assert_array_equal(model.cluster_weights_, [9, 7, 5])


def test_weight_2_is_a_repeated_row_weight_0_an_absent_one_in_any_order(rng):
    w = rng.integers(0, 3, len(X)).astype(float)
    order = rng.permutation(len(X))
    kernel = Gaussian(8.0)
    weighted = KernelSpectralClustering(4, kernel).fit(X[order], sample_weight=w[order])
    repeated = KernelSpectralClustering(4, kernel).fit(np.repeat(X, w.astype(int), axis=0))
    np.testing.assert_allclose(weighted.transform(NEW), repeated.transform(NEW), atol=1e-8)
    np.testing.assert_array_equal(weighted.predict(NEW), repeated.predict(NEW))


def test_stored_and_matrix_free_are_one(monkeypatch):
    monkeypatch.setattr(choose, "DENSE_BELOW", 10)
    ways = {"dense": 9.0, "stored": 1.0, "matrix-free": 2.0}
    monkeypatch.setattr("mercer.planning.costs.eigen_ways", lambda *_: ways)
    stored = KernelSpectralClustering(2, KERNEL).fit(X)
    free = KernelSpectralClustering(2, KERNEL, memory=1_100_000).fit(X)
    assert "stored" in stored.report_.method
    assert "matrix-free" in free.report_.method
    np.testing.assert_array_equal(free.labels_, stored.labels_)
    assert free.report_.memory_planned <= 1_100_000


def test_precomputed_sparse_and_float32():
    direct = KernelSpectralClustering(2, KERNEL).fit(X)
    given = KernelSpectralClustering(2, Precomputed()).fit(KERNEL(X))
    np.testing.assert_array_equal(given.labels_, direct.labels_)
    np.testing.assert_array_equal(given.predict(KERNEL(NEW, X)), direct.predict(NEW))
    np.testing.assert_array_equal(KernelSpectralClustering(2, KERNEL).fit(sp.csr_array(X)).labels_, direct.labels_)
    np.testing.assert_array_equal(KernelSpectralClustering(2, KERNEL).fit(X.astype(np.float32)).labels_, direct.labels_)


def test_negative_degrees_are_refused():
    with pytest.raises(InvalidInput, match="negative values"):
        KernelSpectralClustering(2, "linear").fit(X - X.mean(axis=0))


def test_a_row_that_is_far_from_everything_is_placed_nowhere():
    model = KernelSpectralClustering(2, KERNEL).fit(X)
    assert not np.any(model.transform([[1e4, 1e4]]))
    assert model.predict([[1e4, 1e4]])[0] in (0, 1)


def test_a_kernel_of_smaller_rank_gives_fewer_components():
    model = KernelSpectralClustering(3, "linear", n_components=4).fit(np.abs(X) + 1)
    assert len(model.eigenvalues_) == 2
    assert any("above rounding" in note for note in model.report_.notes)


def test_rows_that_have_ties_with_no_other():
    rows = 1e3 * np.random.default_rng(5).normal(size=(300, 3))
    model = KernelSpectralClustering(2, Gaussian(gamma=10.0), random_state=0).fit(rows)
    assert_close(model.eigenvalues_, 1.0)
    assert len(model.labels_) == 300


def test_one_row_and_equal_rows():
    assert KernelSpectralClustering(1).fit(X[:1]).labels_.tolist() == [0]
    with pytest.warns(ConvergenceWarning, match="distinct"):
        model = KernelSpectralClustering(2, KERNEL).fit(np.ones((6, 2)))
    assert model.labels_.tolist() == [0] * 6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_clusters": 0}, "n_clusters"), ({"n_components": 0}, "n_components"), ({"tol": 0.0}, "tol"),
        ({"n_clusters": 500}, "n_samples"), ({"n_init": None}, "n_init"),
    ],
)  # fmt: skip
def test_parameters_that_are_none_are_refused(options, words):
    with pytest.raises(InvalidInput, match=words):
        KernelSpectralClustering(**options).fit(X)


def test_a_budget_that_is_too_small_is_refused():
    with pytest.raises(MemoryExceeded, match="memory="):
        KernelSpectralClustering(2, memory=1000).fit(X)


def test_a_row_of_weight_0_that_is_like_no_other_is_absent():
    far, w = np.vstack([X, [[500.0, 500.0]]]), np.r_[np.ones(len(X)), 0.0]
    wanted = KernelSpectralClustering(2, KERNEL).fit(X)
    model = KernelSpectralClustering(2, KERNEL).fit(far, sample_weight=w)
    assert_close(model.eigenvalues_, wanted.eigenvalues_, 1e-9)
    assert adjusted_rand_score(model.labels_[:-1], wanted.labels_) == 1
    assert model.labels_[-1] == model.predict([[500.0, 500.0]])[0]


def test_a_row_without_kernel_values_is_named():
    rows = ["abcabc", "bcdbcd", "", "cdbcd", "x"]
    with pytest.raises(InvalidInput, match="row 2, of which all kernel values are 0, and 1 more; leave such rows out"):
        KernelSpectralClustering(2, Spectrum(2)).fit(rows)
    weights = np.array([1.0, 1.0, 0.0, 1.0, 0.0])
    assert KernelSpectralClustering(1, Spectrum(2)).fit(rows, sample_weight=weights).labels_[0] == 0
