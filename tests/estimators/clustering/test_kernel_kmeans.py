"""Kernel k-means against k-means, brute force and its own promises."""

import tracemalloc
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from mercer import KernelKMeans
from mercer.engine.backend import is_native
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.estimators.base import landmarks
from mercer.estimators.clustering import kernel_kmeans, landmark_clusters
from mercer.kernels import Function, Gaussian, Laplace, Linear, Polynomial, Precomputed
from mercer.planning.machine import Machine
from mercer.testing import assert_close

X, CLOUD = make_blobs(300, 3, centers=4, cluster_std=1.5, random_state=0)
NEW = X[::7] + 0.3
RNG = np.random.default_rng(0)


def distances(K, labels, w=None):
    """‖φ(xᵢ) − m_c‖² with every mean written out as weights on the rows."""
    E = np.eye(labels.max() + 1)[labels] * (np.ones(len(K)) if w is None else w)[:, None]
    C = E / E.sum(axis=0)
    return np.diag(K)[:, None] - 2 * K @ C + np.einsum("ic,ij,jc->c", C, K, C)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["auto", "stored", "matrix_free"])
def test_the_linear_kernel_is_k_means(solver, weighted, rng):
    w = rng.integers(0, 4, len(X)).astype(float) if weighted else None
    start = X[[5, 100, 201, 250, 299]]
    reference = KMeans(5, init=start, n_init=1, tol=0, algorithm="lloyd").fit(X, sample_weight=w)
    model = KernelKMeans(5, "linear", init=start, solver=solver).fit(X, sample_weight=w)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    assert model.inertia_ == pytest.approx(reference.inertia_, rel=1e-10)
    np.testing.assert_array_equal(model.predict(NEW), reference.predict(NEW))
    assert_close(model.transform(NEW), reference.transform(NEW), rtol=1e-9)
    assert model.score(NEW) == pytest.approx(reference.score(NEW), rel=1e-10)
    assert_close(model.center_norms_, (reference.cluster_centers_**2).sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian(0.1), Laplace(0.3), Polynomial(degree=2)])
def test_a_fixed_point_by_brute_force(kernel, rng):
    w = rng.random(len(X))
    model = KernelKMeans(4, kernel).fit(X, sample_weight=w)
    D = distances(kernel(X), model.labels_, w)
    np.testing.assert_array_equal(D.argmin(axis=1), model.labels_)
    assert model.inertia_ == pytest.approx(w @ D.min(axis=1), rel=1e-9)
    np.testing.assert_allclose(model.fit_transform(X, sample_weight=w) ** 2, D, atol=1e-9 * D.max())
    np.testing.assert_allclose(model.transform(X) ** 2, D, atol=1e-9 * D.max())
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_two_clean_blobs_that_means_without_their_norms_put_into_one(rng):
    """Without ‖m_c‖² every row goes to the densest cluster."""
    rows = np.concatenate([rng.standard_normal((40, 2)), 0.2 * rng.standard_normal((40, 2)) + 8])
    labels = KernelKMeans(2, Gaussian(0.5)).fit_predict(rows)
    assert adjusted_rand_score(labels, np.repeat([0, 1], 40)) == 1.0


def test_circles_that_no_line_separates():
    rows, ring = make_circles(200, factor=0.2, noise=0.03, random_state=0)
    assert adjusted_rand_score(KernelKMeans(2, "linear").fit_predict(rows), ring) < 0.1
    radius = Function(lambda A, B: (A**2).sum(axis=1)[:, None] * (B**2).sum(axis=1))
    assert adjusted_rand_score(KernelKMeans(2, radius).fit_predict(rows), ring) == 1.0


@pytest.mark.parametrize("solver", ["stored", "matrix_free"])
def test_large_methods_with_float32_entries_equal_the_small_one(solver, monkeypatch, rng):
    start = rng.integers(0, 6, len(X))
    small = KernelKMeans(6, Gaussian(0.1), init=start).fit(X)
    monkeypatch.setattr(kernel_kmeans, "SMALL", 10)
    large = KernelKMeans(6, Gaussian(0.1), init=start, solver=solver).fit(X)
    assert "float32 entries" in large.report_.precision
    assert ("stored" in large.report_.method) == (solver == "stored")
    np.testing.assert_array_equal(large.labels_, small.labels_)
    assert large.inertia_ == pytest.approx(small.inertia_, rel=1e-12), "the last pass is in float64"


def test_k_is_stored_if_it_fits(monkeypatch, rng):
    monkeypatch.setattr(kernel_kmeans, "AT_ONCE", 1.0)
    monkeypatch.setattr(kernel_kmeans, "SMALL", 10)
    rows = rng.standard_normal((400, 3))
    assert "stored" in KernelKMeans(2).fit(rows).report_.method
    short = KernelKMeans(2, memory=500_000).fit(rows).report_
    assert "matrix-free" in short.method
    assert "do not fit" in short.reason
    assert short.memory_planned < 500_000


def test_weight_2_is_a_repeated_row_weight_0_an_absent_one_in_any_order(rng):
    w = rng.integers(0, 3, len(X)).astype(float)
    order = rng.permutation(len(X))
    weighted = KernelKMeans(5, Gaussian(0.1)).fit(X[order], sample_weight=w[order])
    repeated = KernelKMeans(5, Gaussian(0.1)).fit(np.repeat(X, w.astype(int), axis=0))
    np.testing.assert_array_equal(weighted.predict(NEW), repeated.predict(NEW))
    assert_close(weighted.transform(NEW), repeated.transform(NEW), rtol=1e-9)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-10)


def test_starts_as_places_labels_and_rows_are_one():
    places = np.array([3, 50, 120])
    kernel = Gaussian(0.1)
    near = (np.diag(kernel(X))[places] - 2 * kernel(X)[:, places]).argmin(axis=1)
    first, second, third = (KernelKMeans(3, kernel, init=init).fit(X) for init in (places, near, X[places]))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.labels_, third.labels_)


@pytest.mark.parametrize("init", [np.array([1, 2]), np.ones((3, 2)), "random", np.array([0.0, 1.0, 2.0]), [0, 1, 300]])
def test_starts_that_are_none_are_refused(init):
    with pytest.raises(InvalidInput, match="init"):
        KernelKMeans(3, init=init).fit(X)


def test_more_starts_are_never_worse():
    inertia = [KernelKMeans(9, Gaussian(0.1), n_init=count).fit(X).inertia_ for count in (1, 3, 9)]
    assert inertia == sorted(inertia, reverse=True)


def test_clusters_are_numbered_by_falling_weight():
    model = KernelKMeans(4, Gaussian(0.1)).fit(np.concatenate([X, X[CLOUD == 2], X[CLOUD == 2]]))
    assert np.all(np.diff(model.cluster_weights_) <= 0)
    np.testing.assert_array_equal(np.bincount(model.labels_), model.cluster_weights_)


def test_precomputed_objects_sparse_rows_and_float32():
    kernel = Gaussian(0.1)
    direct = KernelKMeans(4, kernel).fit(X)
    given = KernelKMeans(4, Precomputed()).fit(kernel(X))
    np.testing.assert_array_equal(given.labels_, direct.labels_)
    np.testing.assert_array_equal(given.predict(kernel(NEW, X)), direct.predict(NEW))
    with pytest.raises(InvalidInput, match="precomputed"):
        given.transform(kernel(NEW, X))
    np.testing.assert_allclose(given.fit_transform(kernel(X)), direct.transform(X), atol=1e-7)
    sparse = KernelKMeans(4, kernel).fit(sp.csr_array(X))
    np.testing.assert_array_equal(sparse.labels_, direct.labels_)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(NEW)), direct.predict(NEW))
    narrow = KernelKMeans(4, kernel).fit(X.astype(np.float32))
    np.testing.assert_array_equal(narrow.labels_, direct.labels_)
    frame = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_array_equal(KernelKMeans(4, kernel).fit(frame).predict(frame), direct.labels_)


def test_a_sparse_precomputed_matrix_is_made_dense_only_as_planned():
    rows = np.repeat(X, 4, axis=0)
    K = np.where((near := Gaussian(2.0)(rows)) > 1e-3, near, 0.0)
    given = KernelKMeans(3, Precomputed(), n_init=1).fit(K)
    stored = KernelKMeans(3, Precomputed(), n_init=1).fit(sp.csr_array(K))
    assert stored.report_.memory_planned >= K.nbytes > given.report_.memory_planned
    tracemalloc.start()
    try:
        free = KernelKMeans(3, Precomputed(), n_init=1, memory=K.nbytes // 2).fit(sp.csr_array(K))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "matrix-free" in free.report_.method
    assert free.report_.memory_planned < K.nbytes / 2
    assert peak < K.nbytes
    for model in (stored, free):
        np.testing.assert_array_equal(model.labels_, given.labels_)
        np.testing.assert_array_equal(model.predict(sp.csr_array(K[:9])), given.labels_[:9])


def test_objects_through_a_function():
    words = ["aab", "aba", "xyz", "xzy", "baa", "zyx"]
    common = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    model = KernelKMeans(2, common).fit(words)
    assert model.labels_[[0, 1, 4]].tolist() == [model.labels_[0]] * 3
    assert model.predict(["ab", "xy"]).tolist() == [model.labels_[0], model.labels_[2]]


def test_fewer_distinct_rows_than_clusters():
    rows = np.repeat([[0.0], [3.0]], [5, 4], axis=0)
    with pytest.warns(ConvergenceWarning, match="2 distinct"):
        model = KernelKMeans(4, Gaussian(0.1)).fit(rows)
    assert model.n_clusters_ == 2
    assert model.labels_.tolist() == [0] * 5 + [1] * 4
    assert model.transform(rows).shape == (9, 2)
    assert model.inertia_ == pytest.approx(0, abs=1e-12)


def test_as_many_clusters_as_rows_and_one_cluster():
    rows = X[:6]
    each = KernelKMeans(6, Gaussian(0.1)).fit(rows)
    assert sorted(each.labels_.tolist()) == list(range(6))
    assert each.inertia_ == pytest.approx(0, abs=1e-12)
    one = KernelKMeans(1, Gaussian(0.1)).fit(X)
    assert one.inertia_ == pytest.approx(len(X) - Gaussian(0.1)(X).mean() * len(X), rel=1e-12)
    assert KernelKMeans(1).fit(X[:1]).inertia_ == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_clusters": 0}, "n_clusters"), ({"n_clusters": 2.0}, "n_clusters"), ({"n_init": 0}, "n_init"),
        ({"n_clusters": 301}, "n_samples=300"), ({"max_iter": 0}, "max_iter"), ({"solver": "elkan"}, "solver"),
        ({"tol": -1.0}, "tol"), ({"solver": "nystroem", "n_landmarks": 0}, "n_landmarks"),
        ({"solver": "nystroem", "batch_size": -1}, "batch_size"),
        ({"solver": "nystroem", "init": [0, 1, 2, 3, 4, 5, 6, 7]}, "init"),
    ],
)  # fmt: skip
def test_parameters_that_are_none_are_refused(options, words):
    with pytest.raises(InvalidInput, match=words):
        KernelKMeans(**options).fit(X)


def test_a_budget_that_is_too_small_is_refused():
    with pytest.raises(MemoryExceeded, match="memory="):
        KernelKMeans(memory=1000).fit(X)


def test_too_few_passes_are_said():
    with pytest.warns(ConvergenceWarning, match="residual"):
        model = KernelKMeans(8, Gaussian(0.1), max_iter=2, n_init=1).fit(X)
    assert model.n_iter_ == 2
    assert model.report_.residual > 0


def test_the_report_tells_what_was_done():
    report = KernelKMeans(4).fit(X).report_
    assert report.status == "converged"
    assert report.residual == 0.0
    assert 0 < report.memory_planned < report.memory_budget
    assert "Lloyd" in str(report)


# ---- landmarks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 100])
def test_landmarks_find_the_clusters_and_tell_their_error(batch_size):
    kernel = Gaussian(0.05)
    exact = KernelKMeans(4, kernel).fit(X)
    model = KernelKMeans(4, kernel, solver="nystroem", n_landmarks=60, batch_size=batch_size).fit(X)
    assert adjusted_rand_score(model.labels_, exact.labels_) > 0.9
    D = distances(kernel(X), model.labels_)
    error = model.report_.residual
    assert 0 < error < (1e-2 if batch_size is None else 0.1)
    ours = model.transform(X) ** 2
    products = (np.diag(kernel(X))[:, None] + model.center_norms_ - ours) / 2
    E = np.eye(4)[model.labels_]
    assert np.abs(kernel(X) @ E / E.sum(axis=0) - products).max() == pytest.approx(error, rel=1e-6)
    assert model.inertia_ == pytest.approx(ours[np.arange(len(X)), model.labels_].sum(), rel=1e-9)
    assert model.inertia_ >= D[np.arange(len(X)), model.labels_].sum() - 1e-9, "no means are better than the own ones"
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert ("mini-batches" in model.report_.method) == (batch_size is not None)


def test_all_rows_as_landmarks_give_the_exact_answer():
    kernel = Gaussian(0.1)
    exact = KernelKMeans(4, kernel).fit(X)
    model = KernelKMeans(4, kernel, solver="nystroem", landmarks=np.arange(len(X))).fit(X)
    np.testing.assert_array_equal(model.labels_, exact.labels_)
    assert model.inertia_ == pytest.approx(exact.inertia_, rel=1e-7)
    np.testing.assert_allclose(model.transform(NEW), exact.transform(NEW), atol=1e-5)


def test_landmarks_with_precomputed_kernels_and_weights(rng):
    kernel, w = Gaussian(0.05), rng.integers(0, 3, len(X)).astype(float)
    options = {"solver": "nystroem", "n_landmarks": 50}
    direct = KernelKMeans(4, kernel, **options).fit(X, sample_weight=w)
    given = KernelKMeans(4, Precomputed(), **options).fit(kernel(X), sample_weight=w)
    np.testing.assert_array_equal(given.labels_, direct.labels_)
    np.testing.assert_array_equal(given.predict(kernel(NEW, X)), direct.predict(NEW))
    assert_close(direct.cluster_weights_, np.bincount(direct.labels_, w))


@pytest.mark.parametrize("landmarks", ["pivoted", "uniform", "kmeans"])
@pytest.mark.parametrize("batch_size", [None, 40])
def test_landmarks_are_rows_that_are_there(landmarks, batch_size, rng):
    junk, kernel = 50 + rng.normal(size=(len(X), X.shape[1])), Gaussian(0.1)
    options = {"solver": "nystroem", "landmarks": landmarks, "batch_size": batch_size, "random_state": 0}
    alone = KernelKMeans(4, kernel, **options).fit(X)
    rows, w = np.vstack([junk, X]), np.repeat([0.0, 1.0], len(X))
    model = KernelKMeans(4, kernel, **options).fit(rows, sample_weight=w)
    np.testing.assert_array_equal(model.X_fit_, alone.X_fit_)
    np.testing.assert_array_equal(model.labels_[len(X) :], alone.labels_)
    assert_close(model.transform(NEW), alone.transform(NEW), rtol=1e-9)
    if landmarks != "kmeans":
        given = KernelKMeans(4, Precomputed(), **options).fit(kernel(rows), sample_weight=w)
        assert given.X_fit_.min() >= len(X)


def test_rows_of_weight_0_whose_mini_batch_cluster_is_left_out_join_the_nearest(monkeypatch):
    class Given:
        """Three means, of which the first is nearest to rows of weight 0 only."""

        cluster_centers_, n_steps_ = np.array([[9.0, 9.0], [0.0, 0.0], [5.0, 5.0]]), 1

        def __init__(self, k, **options):
            assert k == 3

        def partial_fit(self, F, sample_weight):
            assert sample_weight.min() > 0

        def predict(self, F):
            return np.argmin(np.square(F[:, None] - self.cluster_centers_).sum(axis=2), axis=1)

    class Features(SimpleNamespace):
        def __call__(self, rows):
            return np.asarray(rows)

    monkeypatch.setattr("sklearn.cluster.MiniBatchKMeans", Given)
    rows = np.array([[8.0, 9.5], [0.1, 0.2], [5.1, 5.0], [0.3, 0.0]])
    features, w = Features(span=SimpleNamespace(root=np.eye(2))), np.array([0.0, 1.0, 1.0, 2.0])
    report = SimpleNamespace(stage=lambda name: nullcontext())
    means, labels, sizes, _ = landmark_clusters.by_batches(features, rows, w, 3, (4, 1, 1), 0, report)
    np.testing.assert_array_equal(means, [[0.0, 0.0], [5.0, 5.0]])
    np.testing.assert_array_equal(labels, [1, 0, 1, 0])
    np.testing.assert_array_equal(sizes, [3.0, 1.0])


def test_features_that_do_not_fit_are_taken_in_mini_batches(monkeypatch):
    monkeypatch.setattr(landmark_clusters, "BATCH", 100)
    monkeypatch.setattr(landmarks, "CHUNK", 10_000)
    model = KernelKMeans(3, Gaussian(0.05), solver="nystroem", n_landmarks=20, memory="800kB").fit(np.tile(X, (12, 1)))
    assert "mini-batches of 100 rows" in model.report_.method
    assert any("do not fit" in note for note in model.report_.notes)
    assert model.report_.memory_planned <= 800_000


@pytest.mark.skipif(not is_native(), reason="the rates are those of the compiled engine")
@pytest.mark.parametrize(("patience", "stored"), [(1e-9, True), (1e9, False)])
def test_where_the_number_of_passes_decides_k_is_stored_after_some(patience, stored, monkeypatch):
    monkeypatch.setattr(kernel_kmeans, "SMALL", 10)
    usual = KernelKMeans(6, Gaussian(0.1), solver="matrix_free").fit(X)
    monkeypatch.setattr(kernel_kmeans, "AT_ONCE", 0.0)
    monkeypatch.setattr(kernel_kmeans, "PATIENCE", patience)
    monkeypatch.setattr(kernel_kmeans.rates, "machine", lambda cost: Machine.documented())
    model = KernelKMeans(6, Gaussian(0.1)).fit(X)
    assert model.report_.method == "Lloyd, matrix-free" + ", then K stored" * stored
    assert ("few passes" in model.report_.reason) != stored
    assert model.report_.memory_planned >= 4 * len(X) ** 2
    np.testing.assert_array_equal(model.labels_, usual.labels_)
    assert model.inertia_ == pytest.approx(usual.inertia_, rel=1e-13)


@pytest.mark.skipif(not is_native(), reason="the rates are those of the compiled engine")
@pytest.mark.parametrize(("slow", "stored"), [("", True), ("narrow32", True), ("touch", False), ("sums", False)])
def test_a_wrong_rate_decides_whether_k_is_stored(slow, stored, monkeypatch):
    monkeypatch.setattr(kernel_kmeans, "AT_ONCE", 1.0)
    monkeypatch.setattr(kernel_kmeans, "SMALL", 10)
    machine = Machine.documented()
    wrong = replace(machine, **({slow: getattr(machine, slow) / 30} if slow else {}))
    monkeypatch.setattr(kernel_kmeans.rates, "machine", lambda cost: wrong)
    report = KernelKMeans(3, Gaussian(0.1)).fit(X).report_
    assert ("K stored" in report.method) == stored
    assert stored or "entries are made anew in" in report.reason


def test_auto_takes_landmarks_where_a_pass_is_too_dear(monkeypatch):
    monkeypatch.setattr(kernel_kmeans, "SMALL", 10)
    monkeypatch.setattr(kernel_kmeans, "DEAREST_PASS", 1e5)
    monkeypatch.setattr(kernel_kmeans, "lloyd", lambda *_, stored=False: float(stored))
    monkeypatch.setattr("mercer.gram.tiled.TiledOperator.native", True)
    report = KernelKMeans(3, Gaussian(0.1)).fit(X).report_
    assert "Nyström" in report.method
    assert "multiply-adds" in report.reason


def test_the_linear_kernel_needs_no_matrix():
    assert "rows themselves" in KernelKMeans(3, Linear()).fit(X).report_.method


def test_same_bits_every_time():
    first, second = (KernelKMeans(5, Gaussian(0.1)).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.transform(NEW), second.transform(NEW))


# ---- the steps, one after the other ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_the_history_is_lloyds_and_each_assignment_is_to_the_nearest_mean(weighted):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 2)), rng.integers(1, 4, size=60).astype(float) if weighted else None
    model = KernelKMeans(4, "gaussian(gamma=0.5)", keep_history=True).fit(X, sample_weight=w)
    assert len(model.history_) > 2
    assert np.array_equal(model.history_[-1], model.labels_)
    scores = list(model.staged_decision_function(X))
    for now, following in zip(scores, model.history_[1:], strict=False):
        assert np.array_equal(now.argmax(axis=1), following)
    assert np.array_equal(scores[-1].argmax(axis=1), model.predict(X))
    assert np.allclose(1 - scores[-1], model.transform(X) ** 2)
    plain = KernelKMeans(4, "gaussian(gamma=0.5)").fit(X, sample_weight=w)
    assert np.array_equal(plain.labels_, model.labels_)
    assert not hasattr(model.set_params(keep_history=False).fit(X), "history_")
    with pytest.raises(InvalidInput, match="keep_history=True"):
        model.staged_decision_function(X).__next__()
