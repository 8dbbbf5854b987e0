"""Polynomial sketches against the kernel, their variance in closed form, and scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import PolynomialCountSketch

from mercer import PolynomialSketch, load, save
from mercer.approx.sketch import allot, draw_hashes, pair_variances, power_series, sketch_features
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import Constant, Gaussian, Linear, MonomialSum, Polynomial, Precomputed
from mercer.testing import assert_close

X = np.random.default_rng(0).standard_normal((60, 12)) / 3
KERNELS = [
    Linear(),
    Polynomial(2, coef0=0.0),
    Polynomial(3, gamma=0.5, coef0=1.0),
    Polynomial(4, gamma=0.1, coef0=0.3),
    MonomialSum(3),
    2.0 * Linear() ** 2 + 0.5 * MonomialSum(3),
    Linear() * Polynomial(2),
    Linear() + 1,
    (3.0 * Constant(2.0) * Linear() + Constant(0.5)) ** 2,
    Constant(2.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_power_series(kernel):
    a, s = power_series(kernel), X @ X.T
    np.testing.assert_allclose(sum(c * s**j for j, c in enumerate(a)), kernel(X), rtol=1e-10, atol=1e-12)


def draws(j, D, rows, count, exact=1):
    """⟨φ(x), φ(z)⟩ of one sketched degree for many seeds."""
    places, a = [0] * j + [D], np.eye(j + 1)[j]
    maps = [
        sketch_features(rows, a, places, exact, draw_hashes(places, exact, rows.shape[1], np.random.default_rng(s)))
        for s in range(count)
    ]
    return np.array([Phi @ Phi.T for Phi in maps])


@pytest.mark.parametrize(("j", "count"), [(1, 1000), (2, 1500), (3, 4000)])
def test_the_mean_over_hashes_is_the_power_and_the_variance_is_the_formulas(j, count):
    rows = X[:5] * 2
    found = draws(j, 64, rows, count)
    exact, V = (rows @ rows.T) ** j, found.var(axis=0)
    assert np.all(np.abs(found.mean(axis=0) - exact) < 5 * np.sqrt(V / len(found)) + 1e-12)
    assert_close(V.mean(), pair_variances(rows, j)[j] / 64, rtol=0.15)
    k = np.diag(exact)
    assert np.all(1.2 * 3**j * np.outer(k, k) / 64 >= V), "the bound of Pham & Pagh"


@pytest.mark.parametrize(("kernel", "D"), [(KERNELS[2], 40), (KERNELS[3], 40), (KERNELS[4], 40), (KERNELS[4], 2)])
def test_the_mean_over_seeds_is_the_kernel(kernel, D):
    """With fewer features than degrees too, which then share them."""
    rows = X[:20]
    maps = [PolynomialSketch(kernel, D, random_state=s).fit(rows).transform(rows) for s in range(100)]
    assert maps[0].shape == (20, D)
    found = np.array([Phi @ Phi.T for Phi in maps])
    error = np.abs(found.mean(axis=0) - kernel(rows))
    assert np.all(error < 5 * found.std(axis=0) / 10 + 1e-9)


def test_the_error_falls_as_one_over_the_root_of_the_features():
    kernel = Polynomial(3, gamma=1.0, coef0=0.0)
    Z, errors = np.random.default_rng(3).standard_normal((60, 40)), []
    for D in (64, 256, 1024):
        maps = [PolynomialSketch(kernel, D, random_state=s).fit(Z).transform(Z) for s in range(10)]
        errors.append(np.sqrt(np.mean([np.mean((Phi @ Phi.T - kernel(Z)) ** 2) for Phi in maps])))
    assert_close([errors[0] / errors[1], errors[1] / errors[2]], 2.0, rtol=0.3)


@pytest.mark.parametrize(
    ("d", "degree", "gamma", "coef0", "D", "most"),
    [
        (20, 3, 0.05, 1.0, 100, 0.7),
        (50, 2, 0.02, 1.0, 200, 0.6),
        (8, 3, 0.1, 1.0, 100, 0.4),
        (30, 2, 1.0, 0.0, 200, 1.1),
    ],
)
def test_no_worse_than_scikit_learn(d, degree, gamma, coef0, D, most):
    Z = np.random.default_rng(1).standard_normal((80, d))
    kernel, ours, theirs = Polynomial(degree, gamma=gamma, coef0=coef0), [], []
    for s in range(12):
        Phi = PolynomialSketch(kernel, D, random_state=s).fit_transform(Z)
        Psi = PolynomialCountSketch(degree=degree, gamma=gamma, coef0=coef0, n_components=D, random_state=s)
        Psi = Psi.fit_transform(Z)
        assert Phi.shape[1] <= Psi.shape[1]
        ours.append(np.mean((Phi @ Phi.T - kernel(Z)) ** 2))
        theirs.append(np.mean((Psi @ Psi.T - kernel(Z)) ** 2))
    assert np.sqrt(np.mean(ours) / np.mean(theirs)) < most


def test_enough_features_are_exact():
    for kernel in KERNELS:
        model = PolynomialSketch(kernel, 5000).fit(X)
        Phi = model.transform(X)
        assert Phi.shape[1] < 5000
        np.testing.assert_allclose(Phi @ Phi.T, kernel(X), rtol=1e-9, atol=1e-12)
        assert model.report_.residual < 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_equals_dense_in_both_precisions(dtype):
    rows = np.where(np.abs(X) > 0.2, X, 0.0).astype(dtype)
    dense = PolynomialSketch(Polynomial(3), 150).fit(rows)
    sparse = PolynomialSketch(Polynomial(3), 150).fit(sp.csr_array(rows))
    np.testing.assert_array_equal(dense.places_, sparse.places_)
    Phi = dense.transform(rows)
    assert Phi.dtype == dtype
    np.testing.assert_allclose(sparse.transform(sp.csr_array(rows)), Phi, atol=1e-5 if dtype == np.float32 else 1e-12)
    wide = PolynomialSketch(Polynomial(3), 150).fit(rows.astype(np.float64)).transform(rows.astype(np.float64))
    np.testing.assert_allclose(Phi, wide, atol=1e-4)


def test_rows_in_blocks_are_the_rows(monkeypatch):
    model = PolynomialSketch(Polynomial(3), 100).fit(X)
    whole = model.transform(X)
    monkeypatch.setattr("mercer.approx.sketch.CHUNK", 500)
    np.testing.assert_allclose(model.transform(X), whole, atol=1e-14)


def test_shares_follow_the_variances():
    e, places = allot(np.array([1.0, 1.0, 1.0]), np.array([0.0, 1.0, 9.0]), 1000, 44)
    assert (e, places) == (1, [1, 11, 32])
    assert sum(places) == 44
    e, places = allot(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 9.0]), 3, 9)
    assert (e, places) == (3, [0, 3, 6])


def test_report_names_files_and_refusals(tmp_path):
    model = PolynomialSketch(Polynomial(3, gamma=0.5), 90).fit(X)
    Phi, K = model.transform(X), Polynomial(3, gamma=0.5)(X)
    assert_close(model.report_.residual, np.linalg.norm(K - Phi @ Phi.T) / np.linalg.norm(K), rtol=1e-9)
    assert model.get_feature_names_out()[89] == "polynomialsketch89"
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").transform(X), Phi)
    for kernel in (Gaussian(), Precomputed(), Linear().normalized(), Linear() + Gaussian()):
        with pytest.raises(InvalidInput, match="Linear, Polynomial, MonomialSum"):
            PolynomialSketch(kernel).fit(X @ X.T)
    for bad in (0, 1.5, True):
        with pytest.raises(InvalidInput, match="n_components"):
            PolynomialSketch(n_components=bad).fit(X)
    with pytest.raises(MemoryExceeded, match="memory="):
        PolynomialSketch(memory=1000).fit(X)
    zeros = PolynomialSketch(Polynomial(2), 20).fit(np.zeros((5, 9)))
    assert_close(np.sum(zeros.transform(np.zeros((2, 9))) ** 2, axis=1), 1.0)


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(10**18, gamma=1e-30),
        MonomialSum(1000) * Linear(),
        Linear() ** 10**9,
        (Polynomial(30) + Linear()) ** 10**6,
    ],
)
def test_huge_degrees_are_refused_before_any_work(kernel):
    with pytest.raises(InvalidInput, match="degree of at most 1000"):
        power_series(kernel)


def test_coefficients_that_float64_does_not_hold_are_refused():
    for gamma in (1e60, 1e-60):
        with pytest.raises(InvalidInput, match="beyond the range of float64"):
            power_series(Polynomial(7, gamma=gamma))
    np.testing.assert_array_equal(power_series(Polynomial(7, gamma=1e40, coef0=0.0) * 0.0)[:7], 0)


@pytest.mark.parametrize("size", [1e-13, 1e5])
@pytest.mark.parametrize("degree", [3, 7])
def test_float32_rows_and_a_gamma_of_their_size(size, degree):
    """√aⱼ and φⱼ(x) are beyond float32, one above and one below; their product is not: it was NaN, or 0."""
    rows = np.float32(np.random.default_rng(0).normal(size=(6, 2)) * size)
    kernel = Polynomial(degree, gamma=1 / size**2)
    model = PolynomialSketch(kernel, 300).fit(rows)
    assert model.exact_ == degree + 1
    Phi, K = model.transform(rows), kernel(rows.astype(np.float64))
    assert Phi.dtype == np.float32
    assert np.abs(Phi @ Phi.T - K).max() <= 1e-5 * K.max()
