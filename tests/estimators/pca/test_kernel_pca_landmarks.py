"""Kernel PCA on landmarks, against the exact one, brute force, and itself on other cuts of the rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA

import mercer
import mercer.estimators.base.landmarks as landmarks_module
import mercer.estimators.pca.kernel_pca as module
from mercer import KernelPCA
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.kernels import Function, Gaussian, Linear, Polynomial, Precomputed
from mercer.planning.costs import eigen_ways
from mercer.planning.machine import Machine
from mercer.solvers.eigen.krylov import BlockKrylov
from mercer.testing import assert_close

GAUSS = Gaussian(gamma=0.05)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:900] / 16.0


def by_hand(kernel, X, B):
    """PITFALLS' right form: Φ = K_nm K_mm^(−½), centre Φ's columns, then the SVD."""
    values, V = np.linalg.eigh(kernel(B))
    Phi = kernel(X, B) @ (V / np.sqrt(values)) @ V.T
    U, s, _ = np.linalg.svd(Phi - Phi.mean(axis=0), full_matrices=False)
    return s**2, U * s


def test_equals_the_svd_of_centred_features(digits):
    model = KernelPCA(6, GAUSS, solver="nystroem", landmarks=np.arange(0, 900, 10)).fit(digits)
    values, scores = by_hand(GAUSS, digits, digits[::10])
    assert_close(model.eigenvalues_, values[:6], rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform(digits)), np.abs(scores[:, :6]), atol=1e-9)
    assert_close(model.transform(digits).var(axis=0), model.explained_variance_, rtol=1e-9)


def test_all_rows_as_landmarks_are_the_exact_answer(digits):
    X, new = digits[:300], digits[300:350]
    exact = KernelPCA(5, GAUSS, solver="dense").fit(X)
    model = KernelPCA(5, GAUSS, solver="nystroem", n_landmarks=300).fit(X)
    assert_close(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    assert_close(model.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(model.transform(new), exact.transform(new), atol=1e-9)
    np.testing.assert_allclose(model.spe(new), exact.spe(new), atol=1e-9)
    assert model.report_.residual < 1e-9


def test_shares_count_what_lies_outside_the_landmarks(digits):
    """About the mean within their span: N − N‖m‖² for k(x, x) = 1."""
    places = np.arange(0, 900, 100)
    model = KernelPCA(3, GAUSS, solver="nystroem", landmarks=places).fit(digits)
    values, V = np.linalg.eigh(GAUSS(digits[places]))
    mean = (GAUSS(digits, digits[places]) @ V / np.sqrt(values)).mean(axis=0)
    assert_close(model.explained_variance_ratio_, model.explained_variance_ / (1 - mean @ mean), rtol=1e-9)


@pytest.mark.parametrize("far", [0.0, 1e3, 1e5, 1e6])
def test_shares_of_variance_do_not_depend_on_where_the_rows_lie(far):
    """All components are kept, so the shares sum to 1: the whole was a difference of squares of the mean."""
    X = np.random.default_rng(0).normal(size=(400, 3)) * [3.0, 2.0, 1.0]
    shares = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    whole = KernelPCA(3, "linear", solver="nystroem").fit(X + far)
    parts = KernelPCA(3, "linear")
    for chunk in np.array_split(X + far, 4):
        parts.partial_fit(chunk)
    for model in (whole, parts):
        assert_close(model.explained_variance_ratio_, shares / shares.sum(), rtol=1e-9 + 1e-15 * far**2)


def test_few_landmarks_are_near_it_and_the_report_says_how_near(digits):
    exact = KernelPCA(5, GAUSS, solver="dense").fit(digits)
    model = KernelPCA(5, GAUSS, solver="nystroem").fit(digits)
    assert len(model.X_fit_) == landmarks_module.count_landmarks(900, 5) == 204
    off = exact.eigenvalues_ - model.eigenvalues_
    assert np.all(off >= 0), "Nyström's eigenvalues are never too large"
    assert off.max() / exact.eigenvalues_[0] <= model.report_.residual < 0.01
    assert "Nyström, 204 landmarks" in str(model.report_)
    assert "measured on all rows" in str(model.report_)
    K = GAUSS(digits)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    V = model.transform(digits) / np.sqrt(model.eigenvalues_)
    true = np.linalg.norm(centred @ V - V * model.eigenvalues_, axis=0).max() / model.eigenvalues_[0]
    assert_close(model.report_.residual, true, rtol=1e-9)
    features = KernelPCA(5, GAUSS, solver="nystroem").fit(digits)
    left = np.trace(K) - np.sum(
        (GAUSS(digits, model.X_fit_) @ np.linalg.inv(GAUSS(model.X_fit_))) * GAUSS(digits, model.X_fit_)
    )
    said = float(next(n for n in features.report_.notes if "tr K" in n).split()[-1])
    assert_close(said, left, rtol=0.05)
    assert off.max() <= left


def test_an_estimate_of_the_residual_is_near_the_residual(digits, monkeypatch):
    model = KernelPCA(4, GAUSS, solver="nystroem").fit(digits)
    monkeypatch.setattr(landmarks_module, "CHECKED_WHOLE", 100)
    estimated = KernelPCA(4, GAUSS, solver="nystroem").fit(digits)
    assert "estimated from 512 rows" in str(estimated.report_)
    assert_close(estimated.report_.residual, model.report_.residual, rtol=0.3)


@pytest.mark.parametrize("parts", [1, 4, 90])
def test_chunks_give_the_batch_whatever_their_size(digits, parts):
    B = digits[::9]
    batch = KernelPCA(5, GAUSS, solver="nystroem", landmarks=B).fit(digits)
    model = KernelPCA(5, GAUSS, landmarks=B)
    for rows in np.array_split(digits, parts):
        assert model.partial_fit(rows) is model
    assert model.n_samples_seen_ == 900
    for name in ("eigenvalues_", "column_means_", "explained_variance_ratio_"):
        assert_close(getattr(model, name), getattr(batch, name), rtol=1e-8)
    np.testing.assert_allclose(model.transform(digits), batch.transform(digits), atol=1e-8)
    np.testing.assert_allclose(model.spe(digits), batch.spe(digits), atol=1e-8)
    assert "not measured" in str(model.report_)


def test_chunks_go_on_after_either_fit(digits):
    first, rest = digits[:400], digits[400:]
    for solver in ("dense", "nystroem"):
        model = KernelPCA(3, GAUSS, solver=solver, n_landmarks=100).fit(first).partial_fit(rest)
        batch = KernelPCA(3, GAUSS, solver="nystroem", landmarks=model.X_fit_).fit(digits)
        np.testing.assert_allclose(model.transform(rest), batch.transform(rest), atol=1e-8)
        assert not hasattr(model, "eigenvectors_")
    again = model.fit(first)
    assert_close(
        again.transform(rest), KernelPCA(3, GAUSS, solver="nystroem", n_landmarks=100).fit(first).transform(rest)
    )


def test_reports_of_chunks_say_everything_once():
    model = KernelPCA(9, Linear(), n_landmarks=10, fit_inverse_transform=True, preimage="ridge")
    for rows in np.split(load_iris().data, 3):
        model.partial_fit(rows)
    starts = [note.split(":")[0] for note in model.report_.notes]
    assert sorted(set(starts)) == sorted(starts)
    assert {"decoder", "fewer components"} < set(starts)
    assert model.report_.n == 150


def test_a_fit_that_failed_leaves_the_former():
    X = load_iris().data
    model = KernelPCA(2, GAUSS).partial_fit(X[:50])
    with pytest.raises(MemoryExceeded):
        model.set_params(memory=1000).fit(X)
    model.set_params(memory=None).partial_fit(X[:30])
    assert model.n_samples_seen_ == 80


def test_linear_chunks_are_ordinary_pca():
    X = load_iris().data
    model = KernelPCA(3, "linear", n_landmarks=10)
    for rows in np.split(X, 5):
        model.partial_fit(rows)
    assert_close(model.explained_variance_ * 150 / 149, PCA(3).fit(X).explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(PCA(3).fit_transform(X)), atol=1e-9)


@pytest.mark.parametrize("how", ["uniform", "kmeans"])
def test_other_landmarks(digits, how):
    exact = KernelPCA(3, GAUSS, solver="dense").fit(digits)
    model = KernelPCA(3, GAUSS, solver="nystroem", landmarks=how, n_landmarks=150).fit(digits)
    assert_close(model.eigenvalues_, exact.eigenvalues_, rtol=0.02)


def test_pivots_from_a_pool_are_as_good_as_from_all_rows(digits, monkeypatch):
    model = KernelPCA(2, GAUSS, solver="nystroem", n_landmarks=40).fit(digits)  # of a pool of 400
    monkeypatch.setattr(landmarks_module, "POOL", 10**6)
    whole = KernelPCA(2, GAUSS, solver="nystroem", n_landmarks=40).fit(digits)
    assert not np.array_equal(model.X_fit_, whole.X_fit_)
    assert_close(model.eigenvalues_, whole.eigenvalues_, rtol=0.05)


def test_float32_sparse_and_precomputed_give_the_same(digits):
    X = np.where(digits > 0.3, digits, 0.0)
    options = {"solver": "nystroem", "landmarks": np.arange(0, 900, 9)}
    model = KernelPCA(4, GAUSS, **options).fit(X)
    expected = model.transform(X)
    narrow = KernelPCA(4, GAUSS, **options).fit(X.astype(np.float32))
    assert_close(narrow.eigenvalues_, model.eigenvalues_, rtol=1e-3)
    np.testing.assert_allclose(narrow.transform(X.astype(np.float32)), expected, atol=1e-3 * np.abs(expected).max())
    sparse = KernelPCA(4, GAUSS, **options).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), expected, atol=1e-8)
    by_rows = KernelPCA(4, GAUSS, solver="nystroem", landmarks=X[::9]).fit(sp.csr_array(X))
    np.testing.assert_allclose(by_rows.transform(sp.csr_array(X)), expected, atol=1e-8)
    given = KernelPCA(4, Precomputed(), **options).fit(GAUSS(X))
    np.testing.assert_allclose(given.transform(GAUSS(X)), expected, atol=1e-8)
    assert given.report_.residual == pytest.approx(model.report_.residual, rel=1e-6)
    chosen = KernelPCA(4, Precomputed(), solver="nystroem", n_landmarks=50).fit(GAUSS(X))
    assert_close(chosen.eigenvalues_, model.eigenvalues_, rtol=0.1)


def test_objects_through_a_function():
    words = ["ab", "abc", "xyz", "xy", "abz", "yz", "zz", "cab"]
    common = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    exact = KernelPCA(2, common, solver="dense").fit(words)
    model = KernelPCA(2, common, solver="nystroem", n_landmarks=8).fit(words)
    np.testing.assert_allclose(np.abs(model.transform(["bc", "x"])), np.abs(exact.transform(["bc", "x"])), atol=1e-8)
    chunks = KernelPCA(2, common, n_landmarks=4).partial_fit(words[:4]).partial_fit(words[4:])
    assert chunks.transform(words).shape == (8, 2)


def test_a_file_in_memory_is_read_in_chunks(digits, tmp_path):
    file = np.memmap(tmp_path / "rows", np.float64, "w+", shape=digits.shape)
    file[:] = digits
    file = np.memmap(tmp_path / "rows", np.float64, "r", shape=digits.shape)
    model, plain = (KernelPCA(3, GAUSS, solver="nystroem", n_landmarks=80).fit(X) for X in (file, digits))
    np.testing.assert_array_equal(model.transform(file), plain.transform(digits))
    assert type(model.X_fit_) is np.ndarray
    exact = KernelPCA(3, GAUSS).fit(file)
    np.testing.assert_allclose(exact.transform(file), KernelPCA(3, GAUSS).fit(digits).transform(digits), atol=1e-9)


def test_auto_takes_landmarks_only_where_the_exact_method_is_too_dear(digits, monkeypatch):
    assert "Nyström" not in KernelPCA(4, GAUSS).fit(digits).report_.method
    n = 100_000
    report = KernelPCA(4, GAUSS).fit(digits[:50]).report_
    report.memory_budget = 10**9
    for rows, method in ((n, "krylov"), (10**6, "nystroem")):
        seconds = eigen_ways(Machine.documented(), rows, 20, 10)
        work = float(rows) ** 2 * (20 + BlockKrylov().columns(rows, 10))
        assert KernelPCA(10, GAUSS)._choose(rows, 10, report, seconds, 0, 4, work) == method
    assert "multiply-adds" in report.reason
    monkeypatch.setattr(module, "DEAREST_PRODUCT", 1e6)
    with pytest.warns(ConvergenceWarning, match="n_landmarks"):
        model = KernelPCA(4, GAUSS, memory=4_000_000).fit(digits)
    assert "Nyström" in model.report_.method
    assert "multiply-adds" in model.report_.reason


def test_auto_takes_landmarks_where_the_vectors_do_not_fit(digits):
    with pytest.warns(ConvergenceWarning, match="n_landmarks"):
        report = KernelPCA(2, GAUSS, memory=1_400_000).fit(digits[:800]).report_
    assert "Nyström" in report.method
    assert "vectors would take 3.69 MB of 581 kB" in report.reason
    assert report.memory_planned <= 1_400_000
    with pytest.raises(MemoryExceeded):
        KernelPCA(None, GAUSS, memory=1_400_000).fit(digits[:800])  # all components: landmarks would not have them
    with pytest.raises(MemoryExceeded):
        KernelPCA(2, GAUSS, solver="krylov", memory=1_400_000).fit(digits[:800])


def test_memory(digits):
    with pytest.raises(MemoryExceeded, match="n_landmarks"):
        KernelPCA(4, GAUSS, solver="nystroem", n_landmarks=500, memory="1MB").fit(digits)
    lowered = KernelPCA(4, GAUSS, solver="nystroem", memory="2MB").fit(digits)
    assert len(lowered.X_fit_) < 204
    assert any(" hold " in note for note in lowered.report_.notes)
    assert lowered.report_.memory_planned <= 2_000_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_landmarks": 0}, "n_landmarks"),
        ({"n_landmarks": 1.5}, "n_landmarks"),
        ({"landmarks": "best"}, "landmarks"),
        ({"landmarks": [5000]}, "landmarks"),
        ({"landmarks": np.ones((3, 2))}, "landmarks"),
        ({"landmarks": np.full((3, 64), np.nan)}, "landmarks"),
        ({"landmarks": np.empty((0, 64))}, "landmarks"),
        ({"landmarks": None}, "landmarks"),
        ({"landmarks": sp.eye_array(64).tocsr()}, "landmarks"),
    ],
)
def test_bad_landmarks(digits, options, words):
    with pytest.raises(InvalidInput, match=words):
        KernelPCA(2, GAUSS, solver="nystroem", **options).fit(digits)


def test_degenerate_rows():
    same = KernelPCA(2, GAUSS, solver="nystroem", n_landmarks=5).fit(np.ones((10, 3)))
    assert same.transform(np.ones((4, 3))).shape == (4, 0)
    np.testing.assert_allclose(same.spe(np.ones((4, 3))), 0.0, atol=1e-12)
    model = KernelPCA(3, Gaussian(gamma=0.5)).partial_fit(np.ones((1, 2)))
    assert model.transform(np.ones((1, 2))).shape == (1, 0)
    twice = np.repeat(np.random.default_rng(0).standard_normal((20, 2)), 2, axis=0)
    doubled = KernelPCA(3, Gaussian(gamma=0.5), solver="nystroem", n_landmarks=40).fit(twice)
    single = KernelPCA(3, Gaussian(gamma=0.5), solver="dense").fit(twice[::2])
    assert_close(doubled.explained_variance_, single.explained_variance_, rtol=1e-7)
    rank = KernelPCA(10, Linear(), solver="nystroem", n_landmarks=30).fit(load_iris().data[:, :2])
    assert rank.report_.rank == 2


def test_no_bound_is_claimed_for_a_kernel_that_is_none():
    X = np.random.default_rng(0).standard_normal((80, 3))
    report = KernelPCA(3, "sigmoid(gamma=0.5)", solver="nystroem", n_landmarks=20).fit(X).report_
    assert any("not proved" in note for note in report.notes)
    assert any("20 landmarks were requested" in note for note in report.notes)
    assert not any("too small" in note for note in report.notes)
    assert report.residual > 0.1


def test_bad_chunks():
    model = KernelPCA(2, Polynomial(degree=3)).partial_fit(load_iris().data[:50])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(np.ones((5, 3)))
    with pytest.raises(InvalidInput, match="finite"):
        model.partial_fit(np.full((5, 4), 1e150))
    with pytest.raises(InvalidInput, match="precomputed"):
        KernelPCA(2, Precomputed()).partial_fit(np.eye(3))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 4), np.nan))
    assert model.n_samples_seen_ == 50


def test_another_kernel_is_refused_later(tmp_path):
    """The features of the landmarks belong to the kernel of the first call; exact components are computed anew."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    for first, solver in (("fit", "nystroem"), ("partial_fit", "auto")):
        model = getattr(KernelPCA(2, "gaussian", solver=solver, n_landmarks=20), first)(X)
        model.set_params(kernel="gaussian()").partial_fit(X)
        model.set_params(kernel=model.kernel_).partial_fit(X)
        mercer.save(model, tmp_path / first)
        for one in (model, mercer.load(tmp_path / first)):
            one.set_params(kernel="laplace")
            with pytest.raises(InvalidInput, match=r"kernel=Laplace.* after Gaussian.*; set it back, or start again"):
                one.partial_fit(X)
            assert type(one.set_params(kernel="laplace").fit(X).kernel_).__name__ == "Laplace"
            one.partial_fit(X)
    exact = KernelPCA(2, Gaussian(1.0)).fit(X).set_params(kernel=Gaussian(0.1), n_landmarks=20).partial_fit(X)
    assert exact.kernel_ == Gaussian(0.1)
