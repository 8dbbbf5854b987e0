"""Kernel PCA against the chapters' formulas, scikit-learn, ordinary PCA and the mistakes of others."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_circles
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference

from mercer import KernelPCA
from mercer.engine.backend import is_native
from mercer.errors import ConvergenceWarning, InvalidInput
from mercer.estimators.pca import exact as exact_pca
from mercer.gram import KernelOperator
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.operators import Dense
from mercer.testing import assert_close


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:1200] / 16.0


def textbook(kernel, X):
    """Chapter 000, (21.35) and (21.36), and chapter 001's step 4, to the letter."""
    n = len(X)
    K, ones = kernel(X), np.full((n, n), 1 / n)
    centered = K - ones @ K - K @ ones + ones @ K @ ones
    values, vectors = np.linalg.eigh(centered)
    return values[::-1] / n, vectors[:, ::-1], centered


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_equals_the_chapter(solver):
    X = load_iris().data
    kernel = Gaussian(gamma=0.3)
    variances, vectors, centered = textbook(kernel, X)
    model = KernelPCA(4, kernel, solver=solver, tol=1e-10 if solver == "dense" else 1e-7).fit(X)
    assert_close(model.explained_variance_, variances[:4], rtol=1e-9)
    assert_close(np.sum(model.dual_coef_**2, axis=0) * 150 * model.explained_variance_, 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(model.eigenvectors_ * vectors[:, :4], axis=0)), 1.0, atol=1e-8)
    np.testing.assert_allclose(model.transform(X), centered @ model.dual_coef_, atol=1e-6)


def test_transform_of_new_rows_is_the_chapters_formula():
    X, new = load_iris().data[:100], load_iris().data[100:]
    kernel = Polynomial(degree=3, gamma=0.1, coef0=1.0)
    model = KernelPCA(3, kernel).fit(X)
    K, C = kernel(X), kernel(new, X)
    centered = C - C.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    np.testing.assert_allclose(model.transform(new), centered @ model.dual_coef_, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_transform_of_the_training_rows_is_fit_transform(solver, digits):
    model = KernelPCA(10, Gaussian(gamma=0.05), solver=solver)
    scores = model.fit_transform(digits)
    np.testing.assert_allclose(model.transform(digits), scores, atol=2e-4 * np.abs(scores).max())
    assert_close(scores.var(axis=0), model.explained_variance_, rtol=1e-9)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_equals_scikit_learn(solver, digits):
    ours = KernelPCA(16, Polynomial(degree=2, gamma=1.0, coef0=1.0), solver=solver).fit(digits)
    theirs = Reference(16, kernel="poly", degree=2, gamma=1.0, coef0=1.0, eigen_solver="dense").fit(digits)
    assert_close(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(ours.transform(digits[:50])), np.abs(theirs.transform(digits[:50])), atol=2e-3)


def test_matrix_free_equals_stored(digits, monkeypatch):
    kernel = Gaussian(gamma=0.05)
    ways = {"dense": 9.0, "stored": 2.0, "matrix-free": 1.0}
    monkeypatch.setattr("mercer.planning.costs.eigen_ways", lambda *_: ways)
    monkeypatch.setattr("mercer.gram.tiled.TiledOperator.native", True)
    cheap = KernelPCA(5, kernel).fit(digits)
    assert "matrix-free" in cheap.report_.method
    assert "would not be 1.2 times as fast" in cheap.report_.reason
    ways["stored"] = 0.5
    stored = KernelPCA(5, kernel).fit(digits)
    free = KernelPCA(5, kernel, solver="krylov", memory=9_000_000).fit(digits)
    assert "stored" in stored.report_.method
    assert "matrix-free" in free.report_.method
    for model in (cheap, free):
        assert_close(model.eigenvalues_, stored.eigenvalues_, rtol=1e-6)


def test_the_linear_kernel_is_ordinary_pca():
    X = load_iris().data
    model, pca = KernelPCA(3, Linear()).fit(X), PCA(3).fit(X)
    assert_close(model.explained_variance_ * 150 / 149, pca.explained_variance_, rtol=1e-9)
    assert_close(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(pca.transform(X)), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rank_is_the_datas_in_both_precisions(dtype):
    X = np.random.default_rng(0).standard_normal((400, 3)).astype(dtype)
    model = KernelPCA(kernel=Linear()).fit(X)
    assert model.eigenvalues_.shape == (3,)
    assert model.report_.rank == 3
    more = KernelPCA(17, Linear()).fit(X)
    assert more.eigenvalues_.shape == (3,)
    assert any("17" in note for note in more.report_.notes)
    np.testing.assert_allclose(more.transform(X), more.fit_transform(X), atol=1e-4)


def test_signs_do_not_depend_on_the_solver_or_the_seed(digits):
    kernel = Gaussian(gamma=0.05)
    dense = KernelPCA(4, kernel, solver="dense").fit(digits)
    for seed in range(3):
        krylov = KernelPCA(4, kernel, solver="krylov", random_state=seed).fit(digits)
        assert np.all(np.sum(dense.eigenvectors_ * krylov.eigenvectors_, axis=0) > 0.99)


def test_a_large_common_offset_does_not_drown_small_eigenvalues():
    # K + 10⁶: the offset vanishes in the centred matrix, and its rounding in float32 must not take its place
    X = np.random.default_rng(0).standard_normal((300, 5))
    plain = KernelPCA(20, Gaussian(gamma=0.1)).fit(X)
    lifted = KernelPCA(20, Gaussian(gamma=0.1) + 1e6).fit(X)
    assert_close(lifted.eigenvalues_, plain.eigenvalues_, rtol=1e-6)


def test_ratios_count_what_was_not_kept(digits):
    everything = KernelPCA(kernel=Gaussian(gamma=0.05)).fit(digits[:300])
    few = KernelPCA(5, Gaussian(gamma=0.05)).fit(digits[:300])
    assert_close(everything.explained_variance_ratio_.sum(), 1.0, rtol=1e-9)
    assert_close(few.explained_variance_ratio_, everything.explained_variance_ratio_[:5], rtol=1e-9)


def test_circles_that_no_line_separates_are_separated_by_one_component():
    X, y = make_circles(300, factor=0.3, noise=0.05, random_state=0)
    score = KernelPCA(1, Gaussian(gamma=2.0)).fit_transform(X)[:, 0]
    assert max((score[y == 0].max() < score[y == 1].min()), (score[y == 1].max() < score[y == 0].min()))


def test_a_kernel_so_narrow_that_rows_are_alike_to_themselves_only():
    """K = I: all n − 1 components are equal, each of variance 1/n."""
    rows = np.random.default_rng(5).normal(size=(300, 3)) * 1e3
    model = KernelPCA(4, kernel=Gaussian(gamma=10.0)).fit(rows)
    assert_close(model.explained_variance_, 1 / 300)
    np.testing.assert_allclose(np.cov(model.transform(rows), rowvar=False, bias=True), np.eye(4) / 300, atol=1e-12)


def test_identical_rows_have_no_components():
    model = KernelPCA(2, Gaussian(gamma=1.0)).fit(np.ones((10, 3)))
    assert model.eigenvalues_.shape == (0,)
    assert model.transform(np.ones((4, 3))).shape == (4, 0)


@pytest.mark.parametrize("n", [300, 1200])
@pytest.mark.parametrize("kernel", ["-dot", "sqdist", "0*dot + 1", "linear of equal rows"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_a_positive_eigenvalue_there_is_no_component_and_no_search_for_one(kernel, n):
    # Such a fit went on to its step limit, of 300 products, and kept components of rounding.
    X = np.random.default_rng(0).standard_normal((n, 8))
    if kernel == "linear of equal rows":
        kernel, X = "linear", np.full((n, 8), 3.3)
    model = KernelPCA(3, kernel).fit(X)
    assert len(model.eigenvalues_) == 0
    assert model.transform(X).shape == (n, 0)
    assert model.report_.steps <= 3
    assert model.report_.residual == 0
    assert not any("residual" in warning for warning in model.report_.warnings)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_small_positive_eigenvalue_among_large_negative_ones_is_found():
    X = np.random.default_rng(0).standard_normal((1200, 4))
    K = -X @ X.T + 1e-3 * np.exp(-0.02 * ((X[:, None] - X[None]) ** 2).sum(2))
    J = np.eye(len(X)) - 1 / len(X)
    model = KernelPCA(2, "-dot + 0.001*exp(-0.02*sqdist)", solver="krylov").fit(X)
    assert_close(model.eigenvalues_, np.linalg.eigvalsh(J @ K @ J)[:-3:-1], rtol=1e-6)


@pytest.mark.parametrize(
    "bad", [{"n_components": 0}, {"n_components": 1.5}, {"solver": "arpack"}, {"random_state": -1}]
)
def test_bad_parameters(bad):
    options = {"n_components": 2, "solver": "krylov"} | bad
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        KernelPCA(**options).fit(load_iris().data)


def test_a_check_that_finds_more_than_the_tolerance_goes_on_and_then_says_so(digits, monkeypatch):
    exact, checks = exact_pca.checked, []

    def doubtful(*args):
        found = exact(*args)
        checks.append(float(found.pairs.residuals.max()))
        return found._replace(pairs=replace(found.pairs, residuals=np.full(len(found.pairs.values), 1e9)))

    monkeypatch.setattr(exact_pca, "checked", doubtful)
    with pytest.warns(ConvergenceWarning):
        report = KernelPCA(5, Gaussian(gamma=0.05)).fit(digits).report_
    assert len(checks) == 3
    assert checks[0] >= checks[1] >= checks[2]
    assert report.status == "stalled"
    assert report.residual > 1


@pytest.mark.parametrize("gamma", [1e-5, 1e-3])
def test_small_components_of_a_wide_kernel_are_those_of_lapack(rng, monkeypatch, gamma):
    """With γ = 10⁻⁵ entries differ by less than float32 tells apart, which is known before they are computed."""
    X, krylov, dtypes = rng.standard_normal((1500, 4)), exact_pca.CentredEigenproblem._krylov, []
    noted = lambda self, dtype: dtypes.append(dtype) or krylov(self, dtype)  # noqa: E731
    monkeypatch.setattr(exact_pca.CentredEigenproblem, "_krylov", noted)
    model, exact = (KernelPCA(12, Gaussian(gamma), solver=way).fit(X) for way in ("krylov", "dense"))
    assert dtypes == [np.float64 if gamma == 1e-5 else np.float32]
    assert_close(model.eigenvalues_, exact.eigenvalues_, rtol=1e-4)
    assert model.report_.status == "converged"
    assert ("float64 ones were used" in str(model.report_.notes)) == (gamma == 1e-5)


def test_small_eigenvalues_that_float64_has_no_room_for_are_doubted_not_refused(rng):
    model = KernelPCA(60, Gaussian(1e-2), solver="krylov", memory="100MB").fit(rng.standard_normal((2500, 2)))
    assert "memory= is too small for float64" in str(model.report_.notes)


def test_components_beyond_the_rank_are_left_out_not_float32_noise(rng):
    X = rng.standard_normal((1500, 4))
    report = KernelPCA(10, "linear", solver="krylov").fit(X).report_
    assert report.rank == 4


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem"])
def test_float32_rows_lose_no_components_that_they_have(rng, solver):
    """Down to 32 eps λ₁; three-dimensional rows in 20 columns have three."""
    X = rng.standard_normal((1500, 3)).astype(np.float32)
    model, exact = (KernelPCA(25, Gaussian(1e-2), solver=solver).fit(rows) for rows in (X, X.astype(np.float64)))
    assert exact.eigenvalues_[-1] < np.finfo(np.float32).eps * len(X) / 20 * exact.eigenvalues_[0]
    assert_close(model.eigenvalues_, exact.eigenvalues_, rtol=1e-5)
    cut = KernelPCA(60, Gaussian(1e-2), solver=solver).fit(X).eigenvalues_
    assert 25 <= len(cut) < 60
    assert cut[-1] > 32 * np.finfo(np.float32).eps * cut[0]
    flat = (X @ rng.standard_normal((3, 20)) + 100).astype(np.float32)
    assert KernelPCA(20, "linear", solver=solver).fit(flat).report_.rank == 3


@pytest.mark.parametrize("scale", [1e-100, 1e150])
def test_values_whose_squares_are_out_of_range_are_refused(rng, scale):
    with pytest.raises(InvalidInput, match="squares float64 does not hold"):
        KernelPCA(2, "linear").fit(rng.standard_normal((1500, 4)) * scale)


def test_what_float32_changes_in_the_check_is_seen_on_some_rows(digits):
    rng = np.random.default_rng(0)
    K, V = KernelOperator(Gaussian(gamma=0.05), digits), np.linalg.qr(rng.standard_normal((len(digits), 8)))[0]
    narrow = Dense(K.fill(np.empty(K.shape)).astype(np.float32), symmetric=True)
    found = exact_pca.checked(narrow, V, K)
    centred = V - V.mean(axis=0)
    whole = np.linalg.norm(narrow @ centred.astype(np.float32) - K @ centred, axis=0).max()
    assert found.rounding > 0
    assert_close(found.rounding, whole, rtol=0.5)
    exact = exact_pca.checked(K, V)
    assert exact.rounding == 0
    np.testing.assert_allclose(found.pairs.values, exact.pairs.values, rtol=0, atol=found.rounding)
    assert_close(found.column_means, exact.column_means, rtol=1e-5)


IN_FLOAT64 = ", float64 eigenvalues and residual"
SEEN = r"(\de-\d\d) λ₁ from those in float64 \(seen on 128 rows\)"


@pytest.mark.parametrize(
    ("cheap", "tol", "harmless", "says"),
    [
        (True, 3e-5, 0.1, "float32 products, " + SEEN),
        (True, 3e-5, 1e-6, "float32 products" + IN_FLOAT64),
        (True, 1e-7, 0.1, "float64 products" + IN_FLOAT64),
        (False, 3e-5, 0.1, "float32 entries, products " + SEEN),
        (False, 3e-5, 1e-6, "float32 entries" + IN_FLOAT64),
        (False, 1e-7, 0.1, "float64 entries" + IN_FLOAT64),
    ],
)
def test_the_report_says_in_what_the_check_was(digits, monkeypatch, cheap, tol, harmless, says):
    """And the residual is that of the matrix whose entries it names, beyond what it says that float32 changed."""
    if cheap and not is_native():
        pytest.skip("entries of the reference are never cheap")
    monkeypatch.setattr(exact_pca, "HARMLESS", harmless)
    monkeypatch.setattr("mercer.gram.tiled.CHEAP_COLUMNS", 100 if cheap else 10)
    ways = {"dense": 9.0, "stored": 2.0, "matrix-free": 1.0 if cheap else 3.0}
    monkeypatch.setattr("mercer.planning.costs.eigen_ways", lambda *_: ways)
    model = KernelPCA(5, Gaussian(gamma=0.05), solver="krylov", tol=tol).fit(digits)
    stated = re.fullmatch(says, model.report_.precision)
    assert stated, model.report_.precision
    entries = KernelOperator(Gaussian(gamma=0.05), digits, dtype=np.float32 if "float32 entries" in says else None)
    K = entries.toarray().astype(np.float64)
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    V, values = model.eigenvectors_, model.eigenvalues_
    residual = np.linalg.norm(centred @ V - V * values, axis=0).max() / values[0]
    changed = 2 * float(stated[1]) if says.endswith(SEEN) else 1e-12
    assert changed < 0.2 * tol
    assert abs(model.report_.residual - residual) <= changed
    assert_close(values, np.linalg.eigvalsh(centred)[:-6:-1], rtol=1e-7)
