"""What other libraries lose to rounding, or call a kernel though it is none."""

from __future__ import annotations

import copy
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import ArrayPair, Cauchy, Gaussian, Laplace, Matern, Periodic


def exact_sqdist(X, Z):
    X, Z = X.astype(np.longdouble), Z.astype(np.longdouble)
    return ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=-1)


def naive_sqdist(X, Z):
    return (X**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * X @ Z.T


@pytest.fixture(params=[3, 20, 100])
def far_rows(request):
    rng = np.random.default_rng(request.param)
    return (1000 + rng.normal(size=(60, request.param))).astype(np.float32)


@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.05), Laplace(gamma=0.3), Cauchy(gamma=0.1), Matern(nu=2.5)], ids=repr
)
def test_float32_far_from_the_origin(kernel, far_rows, no_engine):
    """Pitfall 8: kernel error ≤ 4e-7 and no negative eigenvalue at mean 1000."""
    K, exact = kernel(far_rows), kernel(far_rows.astype(np.float64))
    assert K.dtype == np.float32
    assert np.abs(K - exact).max() <= 4e-7
    assert np.array_equal(np.diag(K), np.ones(60, dtype=np.float32))
    assert np.linalg.eigvalsh(K.astype(np.float64)).min() > -1e-5
    cross = kernel(far_rows[:20], far_rows[10:40].copy())
    assert np.abs(cross - exact[:20, 10:40]).max() <= 4e-7


def test_the_bound_sees_the_usual_expansion(far_rows):
    K = np.exp(np.float32(-0.05) * naive_sqdist(far_rows, far_rows))
    assert np.abs(K - Gaussian(gamma=0.05)(far_rows.astype(np.float64))).max() > 1e-4


@pytest.mark.parametrize("d", [2, 40])
def test_squared_distances_are_accurate_relative_to_themselves(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(30, d))
    Z = np.concatenate([X[:5], X[5:10] + 1e-9, X[10:15] + 1e-5, rng.normal(size=(10, d))])
    for rows, others in ((X, Z), (Z, X), (sp.csr_array(X), sp.csr_array(Z))):
        D = ArrayPair(rows, others).sqdist
        exact = exact_sqdist(*(M.toarray() if sp.issparse(M) else M for M in (rows, others)))
        np.testing.assert_allclose(D, exact.astype(float), rtol=1e-7)
    assert np.array_equal(np.diag(ArrayPair(X, Z).sqdist)[:5], np.zeros(5))
    assert not np.allclose(naive_sqdist(X, Z), exact_sqdist(X, Z).astype(float), rtol=1e-7, atol=0)


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("d", [3, 50])
def test_self_distances_are_zero_and_none_is_negative(wrap, d, dtype):
    X = wrap((100 + np.random.default_rng(0).normal(size=(40, d))).astype(dtype))
    D = ArrayPair(X, X).sqdist
    assert np.array_equal(np.diag(D), np.zeros(40))
    assert D.min() >= 0
    assert np.array_equal(D, D.T)
    equal = ArrayPair(X, copy.deepcopy(X)).sqdist
    assert np.array_equal(np.diag(equal), np.zeros(40))


def test_all_rows_equal():
    X = np.full((50, 40), 0.1)
    assert np.array_equal(Laplace(gamma=1.0)(X), np.ones((50, 50)))
    assert np.array_equal(ArrayPair(X, X.copy()).sqdist, np.zeros((50, 50)))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_periodic_is_a_kernel_in_every_dimension(d):
    """Pitfall 6: sin² of the Euclidean distance has the eigenvalue −4.9; the sum over coordinates has none."""
    X = np.random.default_rng(3).uniform(0, 5, (80, d))
    assert np.linalg.eigvalsh(Periodic(period=1.3)(X)).min() > -1e-10
    if d > 1:
        euclidean = np.exp(-2 * np.sin(np.pi * np.sqrt(exact_sqdist(X, X).astype(float)) / 1.3) ** 2)
        assert np.linalg.eigvalsh(euclidean).min() < -0.1


def test_periodic_far_from_the_origin():
    X = np.array([[0.25], [0.5]])
    for shift in (7.0, 2.0**40):
        np.testing.assert_allclose(Periodic(period=1.0)(X, X + shift), Periodic(period=1.0)(X, X), rtol=1e-9)


def test_positive_kernels_have_positive_matrices(kernel):
    X = np.random.default_rng(5).random((40, 3)).round(1)
    if kernel.properties.definiteness.is_mercer:
        eigenvalues = np.linalg.eigvalsh(kernel(X))
        assert eigenvalues[0] > -1e-12 * max(1.0, eigenvalues[-1])


@pytest.mark.parametrize("kind", ["l1", "min_sum", "chi2", "mismatches", "sqdist"])
def test_pairings_need_no_array_of_all_differences(kind):
    X, Z = np.random.default_rng(0).random((600, 60)), np.random.default_rng(1).random((400, 60))
    ArrayPair(X[:2], Z[:2])
    tracemalloc.start()
    getattr(ArrayPair(X, Z), kind)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 600 * 400 * 8 * 6  # all differences would be 60
