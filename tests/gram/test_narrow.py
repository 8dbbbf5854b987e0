"""The linear kernel and its kin on rows with few columns: products without entries are those of the entries."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge

from mercer import KernelLMS, KernelLogisticRegression, KernelOperator, KernelPCA, KernelPerceptron, KernelRidge
from mercer.engine import backend
from mercer.errors import ConvergenceWarning, InvalidInput
from mercer.kernels import Constant, Gaussian, Linear, Polynomial, factors
from mercer.ways import nystroem_ridge, regularised

ROOM = 1e8
KERNELS = [
    Linear(),
    0.3 * Linear(),
    Linear() + Constant(2.0),
    (Linear() + Constant(0.5)).normalized(),
    Linear() + Linear(),
]


def rows(rng, n, kind, dtype=np.float64):
    X = rng.standard_normal((n, 3)) * (rng.random((n, 3)) < 0.7)
    return sp.csr_array(X.astype(dtype)) if kind == "sparse" else X.astype(dtype)


def no_entries(monkeypatch):
    monkeypatch.setattr(type(backend.engine()), "plan", lambda *_: pytest.fail("entries were planned"))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_products_are_those_of_the_entries(rng, monkeypatch, kernel, dtype, kind):
    X, Z = rows(rng, 90, kind, dtype), rows(rng, 60, kind, dtype)
    V, index = rng.standard_normal((90, 2)), np.array([3, 88, 3, 0])
    K, across = KernelOperator(kernel, X), KernelOperator(kernel, X, Z)
    exact, other = (one.toarray().astype(float) for one in (K, across))
    eps = 40 * float(np.finfo(dtype).eps)
    no_entries(monkeypatch)
    for factored in (False, True):
        if factored:
            assert K.keep_factors(ROOM)
            assert across.keep_factors(ROOM)
            np.testing.assert_allclose(K.rows(index), exact[index], atol=eps * np.abs(exact).max())
        np.testing.assert_allclose(K @ V, exact @ V, atol=90 * eps * np.abs(exact).max())
        np.testing.assert_allclose(across @ V[:60], other @ V[:60], atol=90 * eps * np.abs(exact).max())
        np.testing.assert_allclose(across.T @ V, other.T @ V, atol=90 * eps * np.abs(exact).max())


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.0), Polynomial(2), Linear() * Linear(), Linear() + Gaussian(1.0)], ids=repr
)
def test_other_kernels_have_no_factors(rng, kernel):
    assert not KernelOperator(kernel, rows(rng, 90, "dense")).keep_factors(ROOM)


def test_many_columns_or_little_room_leave_entries(rng):
    wide = rng.standard_normal((90, 30))
    assert not KernelOperator(Linear(), wide).keep_factors(ROOM)
    assert not KernelOperator(Linear(), wide).is_narrow
    for dtype in (np.float64, np.float32):  # a quarter of the room is 2000 bytes, and the factor takes 2160
        assert not KernelOperator(Linear(), wide[:, :3].astype(dtype)).keep_factors(8000.0)
    assert KernelOperator(Linear(), wide[:, :3]).keep_factors(9000.0)
    assert not KernelOperator(Linear(), wide[:, :3], wide[:5, :3]).is_narrow


def words(rng, n, d=3000, numbers=12):
    """Rows like those of texts: many columns, of which few are not zero, and some words are in most of the rows."""
    columns = rng.zipf(1.3, (n, numbers)) % d
    X = sp.csr_array((rng.random(n * numbers), columns.ravel(), np.arange(0, n * numbers + 1, numbers)), shape=(n, d))
    X.sum_duplicates()
    return X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_products_of_sparse_rows_take_the_numbers_that_are_stored(rng, monkeypatch, kernel, dtype):
    X, Z = words(rng, 250).astype(dtype), words(rng, 200).astype(dtype)
    V = rng.standard_normal((250, 5))
    K, across = KernelOperator(kernel, X), KernelOperator(kernel, X, Z)
    exact = kernel(X.toarray().astype(float), X.toarray().astype(float))
    other = kernel(X.toarray().astype(float), Z.toarray().astype(float))
    no_entries(monkeypatch)
    monkeypatch.setattr(factors, "TABLE", 2 * 3000)  # two vectors at a time
    monkeypatch.setattr(factors, "TOGETHER", 500)
    eps = 500 * float(np.finfo(dtype).eps)
    for factored in (False, True):
        if factored:
            assert K.keep_factors(ROOM)
        np.testing.assert_allclose(K @ V, exact @ V, atol=eps * np.abs(exact).max())
        np.testing.assert_allclose(across @ V[:200], other @ V[:200], atol=eps * np.abs(other).max())
    assert K.is_narrow
    assert not KernelOperator(kernel, X[:40]).is_narrow


def test_the_work_of_a_product_counts_what_is_stored(rng):
    X, dense = words(rng, 300), rng.standard_normal((300, 5))
    numbers = X.nnz
    K = KernelOperator(Linear(), X)
    assert K.product_work(3) == 3 * 2 * numbers
    assert K.product_columns == 1
    assert K.pair_columns == -(-2 * numbers // 300) < 25
    gauss = KernelOperator(Gaussian(1.0), X)
    assert gauss.product_work(3) == 300**2 * (gauss.pair_columns + 3)
    assert gauss.product_columns == gauss.pair_columns == K.pair_columns
    assert KernelOperator(Gaussian(1.0), dense).product_work(20) == 300**2 * 25
    assert KernelOperator(Linear(), dense).product_work(20) == 20 * 2 * dense.size


def test_products_copy_some_rows_at_a_time(rng, monkeypatch):
    X, v = rng.standard_normal((40_000, 25)).astype(np.float32), rng.standard_normal(40_000)
    exact = X.astype(float) @ (X.T.astype(float) @ v)
    monkeypatch.setattr(factors, "TOGETHER", 50_000)
    K = KernelOperator(Linear(), X)
    tracemalloc.start()
    try:
        found = K @ v
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found, exact, atol=1e-9 * np.abs(exact).max())
    assert peak < X.nbytes  # all rows in float64 would take twice as much


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_ridge_is_that_of_the_columns(rng, monkeypatch, kind):
    """Not one entry of the n × n matrix is computed, and predictions take none."""
    X, new = rows(rng, 3000, kind), rows(rng, 200, kind)
    y = np.asarray(X @ np.array([1.0, -2.0, 0.5])) + 0.1 * rng.standard_normal(3000) + 3
    no_entries(monkeypatch)
    model = KernelRidge("linear", alpha=2.0, fit_intercept=True).fit(X, y)
    assert "by factors of K" in model.report_.method
    assert "pivots" not in model.report_.method  # the factors are the preconditioner, a third of the time
    theirs = Ridge(2.0, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.predict(new), theirs.predict(new), atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["auto", "cg"])
@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_ridge_on_sparse_rows_takes_no_entries(rng, monkeypatch, solver, weighted, alpha):
    X, new = words(rng, 900), words(rng, 200)
    y = X @ rng.standard_normal(3000) + 0.1 * rng.standard_normal(900) + 3
    weights = rng.random(900) + 0.1 if weighted else None
    no_entries(monkeypatch)
    model = KernelRidge("linear", alpha=alpha, fit_intercept=True, solver=solver).fit(X, y, weights)
    assert model.report_.status == "converged"
    assert ("pivots" in model.report_.method) == (alpha < 1)
    theirs = Ridge(alpha, tol=1e-12, solver="svd").fit(X.toarray(), y, weights)
    np.testing.assert_allclose(model.predict(new), theirs.predict(new.toarray()), atol=1e-7)


def test_sparse_rows_are_not_written_out_for_products(rng):
    """An array of them takes 48 MB, and was made to see what its copies would take."""
    X = words(rng, 2000)
    y = X @ rng.standard_normal(3000)
    KernelRidge("linear").fit(X[:600], y[:600])
    tracemalloc.start()
    try:
        report = KernelRidge("linear", memory=6_000_000).fit(X, y).report_
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.status == "converged"
    assert peak < 2 * report.memory_planned < 12_000_000
    assert not KernelOperator(Linear(), X).runs_as_program
    assert KernelOperator(Gaussian(1.0), X).runs_as_program
    assert KernelOperator(Linear(), rows(rng, 300, "sparse")).runs_as_program


@pytest.mark.parametrize(("memory", "way"), [(None, "Cholesky"), (4_000_000, "pivots")])
def test_ridge_on_sparse_rows_of_unequal_size_has_another_way(rng, monkeypatch, memory, way):
    """Steps without a preconditioner do not converge: Cholesky follows, or pivots if no matrix fits."""
    monkeypatch.setattr(regularised, "MANY_STEPS", 20)
    monkeypatch.setattr(regularised, "refined_cholesky", lambda *_, **__: 0.0)
    X = words(rng, 900, 5000) @ sp.diags_array(10.0 ** rng.uniform(-1, 1, 5000))
    y = X @ rng.standard_normal(5000)
    model = KernelRidge("linear", alpha=1e-3, memory=memory).fit(X, y)
    assert way in model.report_.method
    theirs = Ridge(1e-3, fit_intercept=False, solver="svd").fit(X.toarray(), y)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X.toarray()), atol=1e-6 * np.abs(y).max())


def test_a_linear_kernel_is_exact_for_any_number_of_rows(rng, monkeypatch):
    """Entries would be too dear; products by the rows are not, so no landmarks are taken, and nothing is warned."""
    monkeypatch.setattr(nystroem_ridge, "DEAREST", 1e6)
    X = rng.standard_normal((800, 4))
    y = X.sum(axis=1)
    for rows in (X, sp.csr_array(X), words(rng, 800)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not KernelRidge("linear").fit(rows, y).restricted_
            assert "landmarks" not in KernelLogisticRegression("linear").fit(rows, y > 0).report_.method


def test_steps_take_products_by_the_rows_instead_of_a_stored_matrix(rng):
    X = rng.standard_normal((700, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.standard_normal(700)
    for rows in (X, sp.csr_array(X)):
        model = KernelLogisticRegression("linear", alpha=0.5).fit(rows, y > 0)
        theirs = LogisticRegression(C=2.0, tol=1e-12, max_iter=1000).fit(X, y > 0)
        np.testing.assert_allclose(model.decision_function(rows), theirs.decision_function(X), atol=1e-5)
        assert model.report_.memory_planned < 8 * 700 * 100  # K has rank 4, and pivots for it, not for 700 rows
        steps = KernelLMS("linear", tol=1e-9, max_iter=2000).fit(rows, y)
        np.testing.assert_allclose(steps.predict(rows), X @ np.linalg.lstsq(X, y)[0], atol=1e-6)
        perceptron = KernelPerceptron("linear", method="gradient", tol=1e-3).fit(rows, y > 0)
        for one in (model, steps, perceptron):
            assert "matrix-free" in one.report_.method
            assert "fewer numbers" in one.report_.reason


@pytest.mark.parametrize("alpha", [1e-4, 1e6])
def test_ridge_with_any_penalty_is_that_of_the_columns(rng, alpha):
    X = rows(rng, 2000, "dense")
    y = X @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.standard_normal(2000)
    weights = rng.random(2000) + 0.1
    model = KernelRidge("linear", alpha=alpha).fit(X, y, weights)
    theirs = Ridge(alpha, fit_intercept=False, solver="cholesky").fit(X, y, weights)
    assert model.report_.status == "converged"
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-6, atol=1e-9)


def unequal(rng, n, kind):
    """Rows like those of a table that nobody scaled, and targets of their small columns."""
    X = rng.standard_normal((n, 8))
    if kind == "far":
        X += 1e4
    else:
        X[:, 0] = rng.lognormal(11, 1, n) if kind == "incomes" else 1e5 * rng.random(n)
    return X, X[:, 1:].sum(axis=1) + rng.standard_normal(n)


@pytest.mark.parametrize("kind", ["column", "far", "incomes"])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("n", [60, 700, 2500])
def test_ridge_on_columns_of_unequal_size_says_how_exact_it_is(rng, n, alpha, kind):
    """float64 carries a residual of ε‖K‖/α, and predictions are as far off: that is said, and takes few steps."""
    X, y = unequal(rng, n, kind)
    model = KernelRidge("linear", alpha=alpha, fit_intercept=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        report = model.fit(X, y).report_
    right = Ridge(alpha, solver="svd").fit(X, y).predict(X)
    off = np.sqrt(np.mean((model.predict(X) - right) ** 2) / np.mean(y**2))
    assert off < 1e-6 or ("scale columns" in str(caught[0].message) and off < 30 * report.residual)
    assert ("Cholesky" in report.method) if n <= 500 else (report.steps <= 50 and "by factors" in report.method)


@pytest.mark.parametrize("kind", ["column", "incomes"])
@pytest.mark.parametrize("n", [60, 700])
def test_ridge_that_float64_cannot_solve_is_refused(rng, n, kind):
    """ε tr K/α is above 10⁴, so that every residual is rounding. K + αI is definite, which is not the reason then."""
    with pytest.raises(InvalidInput, match=r"alpha = .*; raise alpha, or centre and scale columns"):
        KernelRidge("linear", alpha=1e-8, fit_intercept=True).fit(*unequal(rng, n, kind))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [1e-25, 1e-22, 1.0])
def test_normalised_rows_in_float32_are_those_in_float64(rng, scale, kind):
    """Their squares are below what float32 has."""
    X, Z = (rows(rng, n, kind) for n in (400, 300))
    X, Z = (one.multiply(scale).tocsr() if kind == "sparse" else one * scale for one in (X, Z))
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    v, kernel = rng.standard_normal(300), Linear().normalized()
    np.testing.assert_allclose(kernel.diagonal(X), kernel.diagonal(X.astype(float)), rtol=1e-6)
    wide = (KernelOperator(kernel, X.astype(float), Z.astype(float)) @ v).astype(float)
    K = KernelOperator(kernel, X, Z, dtype=np.float64)
    np.testing.assert_allclose(K @ v, wide, rtol=1e-12, atol=1e-12)
    assert K.keep_factors(ROOM)
    np.testing.assert_allclose(K @ v, wide, rtol=1e-12, atol=1e-12)


def test_components_are_the_singular_vectors(rng, monkeypatch):
    X = rows(rng, 3000, "dense") * [3.0, 2.0, 1.0]
    no_entries(monkeypatch)
    model = KernelPCA(2, "linear").fit(X)
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(model.eigenvalues_, values[:2] ** 2, rtol=1e-8)


@pytest.mark.parametrize("first", [300.0, 1e3, 1e4])
@pytest.mark.parametrize("solver", ["auto", "krylov", "dense"])
@pytest.mark.parametrize("n", [300, 1500])
def test_a_small_component_beside_a_large_one_is_found(rng, n, solver, first):
    """λ₂ = 10⁻⁵ λ₁ to 10⁻⁸ λ₁ is below the residual, over λ₁, that the tolerance allows, and below float32."""
    X = rng.standard_normal((n, 4)) * [first, 1.1, 1.0, 0.9]
    model = KernelPCA(2, "linear", solver=solver).fit(X)
    U, sizes, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    values, residual = (
        sizes[:2] ** 2,
        1.5 * model.report_.residual * sizes[0] ** 2,
    )  # of float32, too
    assert residual < values[1] / 2
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7, atol=residual)
    np.testing.assert_allclose(np.abs(U[:, :2].T @ model.eigenvectors_), np.eye(2), atol=1e-7 + residual / values[1])
