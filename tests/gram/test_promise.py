"""Entries are right whatever the rows: 10⁻⁶ in float32 and 10⁻¹³ in float64, against sums in extended precision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import KernelOperator
from mercer.engine import backend
from mercer.gram.roundings import USUAL, most_roundings
from mercer.kernels import (
    Cauchy,
    Chi2,
    Gaussian,
    Hamming,
    Intersection,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)

PROMISE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-13}
SIZES = (3.0, 30.0, 1e3, 1e5)
CLUSTERED = ["two", "sorted", "many", "outlier", "column", "far", "constant"]


@dataclass
class Exact:
    """The pairings of all pairs in more precision, for `kernel.formula`."""

    X: np.ndarray
    Z: np.ndarray

    def _sum(self, term):
        wide = np.float64 if self.X.dtype == np.float32 else np.longdouble
        X, Z = self.X.astype(wide), self.Z.astype(wide)
        return np.array([term(x, Z).sum(axis=1) for x in X])

    @cached_property
    def dot(self):
        return self._sum(lambda x, Z: x * Z)

    @cached_property
    def sqdist(self):
        return self._sum(lambda x, Z: (x - Z) ** 2)

    @cached_property
    def l1(self):
        return self._sum(lambda x, Z: abs(x - Z))

    @cached_property
    def min_sum(self):
        return self._sum(np.minimum)

    @cached_property
    def chi2(self):
        return self._sum(lambda x, Z: (x - Z) ** 2 / np.where(x + Z > 0, x + Z, 1))

    @cached_property
    def mismatches(self):
        return self._sum(lambda x, Z: (x != Z) * 1.0)


def exact(kernel, X, Z):
    return np.asarray(kernel.formula(Exact(X, Z)))


def rows(kind, n, d, size, dtype, seed=0):
    """Rows of unit spread, moved apart by `size`; the last two are another one, and nearly so."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if kind == "two":
        X += size * np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    elif kind == "sorted":
        X += size * np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None]
    elif kind == "many":
        X += size * rng.standard_normal((7, d))[rng.integers(7, size=n)]
    elif kind == "outlier":
        X[n // 3] += size
    elif kind == "column":
        X[:, d // 2] *= size
    elif kind == "far":
        X += size
    else:  # all terms of a sum are alike, so that all roundings go one way
        X = size * rng.random((n, 1)) * np.ones(d)
    X[-1], X[-2] = X[0], X[1] + 0.01 * rng.standard_normal(d)
    return X.astype(dtype)


def error(K, true):
    """Of entries up to 1, in promises."""
    return float(abs(K - true).max()) / PROMISE[K.dtype]


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture
def each_isa(monkeypatch):
    """Every instruction set, in turn the one that runs."""

    def turns():
        for name in backend.engine().capabilities.instruction_sets:
            monkeypatch.setenv("MERCER_ISA", name)
            yield name

    return turns


def stationary(d):
    scale = d**-0.5
    return [
        Gaussian(gamma=0.5 / d), Gaussian(gamma=1.0), 0.5 * Gaussian(gamma=1e-3) + 0.5 * Gaussian(gamma=1.0),
        Cauchy(gamma=0.5 / d), RationalQuadratic(alpha=0.5, gamma=1 / d), Laplace(gamma=scale),
        Matern(nu=1.5, length_scale=1 / scale),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", CLUSTERED)
@pytest.mark.parametrize(
    ("d", "sizes"),
    [(2, SIZES), (17, SIZES), (100, SIZES), (600, SIZES[1::2]), (2000, SIZES[::2])],
    ids=["2", "17", "100", "600", "2000"],
)
def test_stationary_kernels(each_isa, dtype, d, sizes, kind):
    for size in sizes:
        X = rows(kind, 40 if d < 600 else 14, d, size, dtype)
        pair = Exact(X, X)
        for kernel in stationary(d):
            true = np.asarray(kernel.formula(pair))
            for isa in each_isa():
                what = f"{kernel!r}, size {size}, {isa}"
                assert error(KernelOperator(kernel, X).toarray(), true) <= 1, what
                assert error(KernelOperator(kernel, X, X[::-1]).toarray(), true[:, ::-1]) <= 1, what


@pytest.mark.parametrize("d", [20, 64, 300])
def test_a_large_entry_before_equal_ones(each_isa, dtype, d):
    """The sums of such rows are rounded to one side at every step."""
    rng = np.random.default_rng(d)
    for size, rest in ((1.0, 1e-3), (10.0, 0.3), (100.0, 1e-3)):
        X = rng.choice([-rest, rest], (60, 1)) * np.ones(d)
        X[:, 0] = size * (1 + 1e-3 * rng.standard_normal(60)) * rng.choice([-1, 1], 60)
        X = X.astype(dtype)
        pair = Exact(X, X)
        near = np.quantile(pair.sqdist[pair.sqdist > 0], [0.02, 0.3, 0.6]).astype(float)
        for gamma, isa in product(np.outer([0.3, 1, 3], 1 / near).ravel().tolist(), each_isa()):
            kernel = Gaussian(gamma)
            true = np.asarray(kernel.formula(pair))
            assert error(KernelOperator(kernel, X).toarray(), true) <= 1, f"size {size}, gamma {gamma}, {isa}"
            assert error(KernelOperator(kernel, X, X[:9]).toarray(), true[:, :9]) <= 1, f"size {size}, {gamma}, {isa}"


@pytest.mark.parametrize("d", [100, 300, 2000])
def test_long_sums_are_sums_of_short_ones(each_isa, dtype, d):
    """So a dot product has no more roundings than are counted where none are tried, also of such rows."""
    rng, unit = np.random.default_rng(d), np.finfo(dtype).eps / 2
    X = np.full((30, d), 0.3) * rng.uniform(0.9, 1.1, (30, 1))
    X[:, 0] = 100 * rng.uniform(0.9, 1.1, 30)
    X = X.astype(dtype)
    pair = Exact(X, X)
    most = most_roundings(d, np.dtype(dtype)) - USUAL[np.dtype(dtype).itemsize]
    for isa in each_isa():
        off = np.abs(KernelOperator(Linear(), X).toarray() - pair.dot)
        assert np.max(off / (unit * pair.dot)) <= most, isa


def test_a_few_such_rows_among_others(each_isa, dtype):
    """The rows with the largest norms are always tried."""
    X, few = np.random.default_rng(0).standard_normal((600, 64)), [7, 101, 303, 505]
    X[few, 0], X[few, 1:] = 10 * (1 + 1e-3 * np.arange(4)), 0.3
    X = X.astype(dtype)
    pair, units = Exact(X[few], X[few]), np.eye(600, dtype=dtype)[:, few]
    for gamma, _ in product((3e-3, 0.3, 3e4), each_isa()):
        kernel = Gaussian(gamma)
        assert error((KernelOperator(kernel, X) @ units)[few], np.asarray(kernel.formula(pair))) <= 1, gamma


@pytest.mark.parametrize("d", [2, 100, 2000])
@pytest.mark.parametrize("size", [1e-5, 1.0, 1e4])
def test_sums_over_columns(each_isa, dtype, d, size):
    """The other pairings, relative to √(k(x, x) k(z, z)); of d terms that may be all alike."""
    rng, total = np.random.default_rng(d), d * size
    kernels = [Laplace(gamma=1 / total, norm=1), Chi2(gamma=1 / total), Hamming(), Linear(), Intersection()]
    kernels.append(Polynomial(degree=3, gamma=1 / (d * size**2), coef0=1.0))
    for X in (rng.random((30, d)), rng.random((30, 1)) * np.ones(d), np.round(3 * rng.random((30, d)))):
        X = (X * size).astype(dtype)
        for kernel in kernels:
            true = exact(kernel, X, X)
            scale = np.sqrt(np.outer(np.diag(true), np.diag(true)))
            for isa in each_isa():
                off = abs(KernelOperator(kernel, X[:20], X).toarray() - true[:20]) / np.where(scale > 0, scale, 1)[:20]
                assert off.max() <= 2 * getattr(kernel, "degree", 1) * PROMISE[dtype], f"{kernel!r}, {isa}"


@pytest.mark.parametrize("kind", ["two", "sorted", "outlier", "many"])
def test_every_consumer(each_isa, dtype, kind):
    """What multiplies, adds up, or picks entries has the same ones."""
    n, kernel, promise = 420, Gaussian(gamma=0.01), PROMISE[dtype]
    X = rows(kind, n, 40, 300.0, dtype)
    true = exact(kernel, X, X).astype(float)
    for _ in each_isa():
        _check_consumers(KernelOperator(kernel, X), true, promise)
        _check_consumers(KernelOperator(kernel, X[:300], X[100:]), true[:300, 100:], promise)


def _check_consumers(K, true, promise):
    def close(found, expected, terms=1.0):
        np.testing.assert_allclose(found, expected, rtol=0, atol=promise * terms)

    m, row = true.shape[1], np.abs(true).sum(axis=1).max()
    units, labels = np.eye(m, dtype=K.dtype), np.arange(m) % 3
    close(K.toarray(), true)
    close(K @ units[:, :2], true[:, :2])
    close(K @ units[:, 5:25], true[:, 5:25])
    some, others = [3, 100, 7], [7, 8, m - 1, 3]
    close(K.block(some, others), true[np.ix_(some, others)])
    close(K.rows(slice(190, 200)), true[190:200])
    close(K.normal_product(units[:, :1]), true.T @ true[:, :1], 4 * row)
    close(K.group_sums(labels), true @ np.eye(3)[labels], row)
    entries = K.entries()
    if entries is not None:  # as minimal optimisation reads them
        out = np.empty((50, 60), K.dtype)
        entries.block(30, 80, 100, 160, out=out)
        close(out, true[30:80, 100:160])


def test_equal_rows_of_two_arrays(each_isa, dtype):
    """k(x, x) is what the formula says."""
    for d, _ in product((17, 100, 900), each_isa()):
        X = rows("two", 40, d, 1000.0, dtype)
        np.testing.assert_array_equal(np.diag(Gaussian(gamma=1.0)(X, X.copy())), np.ones(40, dtype))
        assert np.linalg.eigvalsh(Gaussian(gamma=0.5 / d)(X).astype(float)).min() > -1e-5


def test_distances_by_the_dot_products_of_another_pairing(each_isa, dtype):
    """A sum has the bits of its parts, also where distances are differences, or of rows less an origin or seen."""
    for d, kind, size in ((17, "column", 1.0), (40, "two", 30.0), (40, "far", 30.0), (2500, "two", 3.0)):
        X = rows(kind, 70, d, size, dtype)
        for gaussian in (Gaussian(gamma=0.5 / d), Gaussian(gamma=0.5 / d).on(range(1, d))):
            for _ in each_isa():
                found, parts = (
                    [KernelOperator(k, X, Z).toarray() for Z in (None, X[9:])] for k in (gaussian + Linear(), gaussian)
                )
                linear = [KernelOperator(Linear(), X, Z).toarray() for Z in (None, X[9:])]
                for whole, left, right in zip(found, parts, linear, strict=True):
                    np.testing.assert_array_equal(whole, left + right)


def test_huge_rows_beside_small_ones(each_isa, dtype):
    huge = 0.01 * np.finfo(dtype).max ** 0.5
    X = np.zeros((30, 40), dtype)
    X[1:9] = huge
    X[9:] = np.random.default_rng(0).standard_normal((21, 40))
    true = exact(Gaussian(gamma=0.1), X, X)
    for _ in each_isa():
        assert error(Gaussian(gamma=0.1)(X, X.copy()), true) <= 1


@pytest.mark.parametrize("d", [2, 40, 300])
def test_the_reference_and_sparse_rows(dtype, d):
    """`kernel.block`, and rows that stay sparse, too."""
    for kind in ("two", "outlier", "column"):
        X = rows(kind, 30, d, 1e4, dtype)
        Z = X[::-1].copy()
        for kernel in (Gaussian(gamma=0.5 / d), Cauchy(gamma=0.5 / d), Laplace(gamma=1.0)):
            true = exact(kernel, X, X)
            assert error(kernel.block(X, Z), true[:, ::-1]) <= 1
            assert error(kernel.block(sp.csr_array(X), sp.csr_array(Z)), true[:, ::-1]) <= 1
            assert error(kernel(sp.csr_array(X)), true) <= 1


@pytest.mark.parametrize("d", [40, 300])
def test_tensors(dtype, d):
    torch = pytest.importorskip("torch")
    for kind in ("two", "sorted", "many", "constant"):
        X = rows(kind, 30, d, 1e3, dtype)
        Z = X[::-1].copy()
        for kernel in (Gaussian(gamma=0.5 / d), Cauchy(gamma=0.5 / d), Laplace(gamma=d**-0.5)):
            assert error(kernel(torch.asarray(X), torch.asarray(Z)).numpy(), exact(kernel, X, Z)) <= 1
