"""Cholesky factors in a device's memory: against those of arrays, and landmark ridge that is preconditioned by them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import KernelOperator, KernelRidge
from mercer.approx.nystroem_ridge import held_root
from mercer.engine import backend
from mercer.engine.cuda import cholesky, source
from mercer.engine.cuda.arrays import DeviceArray
from mercer.engine.cuda.cholesky import DeviceFactors
from mercer.engine.cuda.engine import CudaEngine
from mercer.errors import InvalidInput
from mercer.factorizations.factor import noise
from mercer.ways import nystroem_ridge

sys.path.insert(0, str(Path(__file__).parent))
from host_device import COMPILER, HostDevice

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")

M, SHIFT, X = 130, 0.01, np.random.default_rng(0).standard_normal((130, 3))
A = np.exp(-0.3 * np.square(X[:, None] - X).sum(axis=2)) + SHIFT * np.eye(M)
TENSOR = {"side": 8, "tensor_features": 8, "optimise": "-O1"}


def used(monkeypatch, folder, **given):
    device = HostDevice(folder, **given)
    engine = CudaEngine([device], backend.engines()[0])
    monkeypatch.setattr(backend, "_cuda", lambda *_: engine)
    mercer.use("cuda")
    return device


@pytest.fixture(autouse=True)
def processor():
    yield
    mercer.use(None)


def whole(triangle):
    """T as an array."""
    T = np.triu(np.asarray(triangle.above).astype(float))
    for first in range(0, M, cholesky.BLOCK):
        own = slice(first, first + cholesky.BLOCK)
        T[own, own] = np.linalg.inv(np.asarray(triangle.inverses[own])[:, : len(X[own])].astype(float)).T
    return T


@pytest.mark.parametrize("block", [16, 65, 130, 1024])
@pytest.mark.parametrize(("dtype", "given"), [(np.float32, {}), (np.float64, {}), (np.float32, TENSOR)])
def test_they_are_the_factors_of_the_matrix(shared_folder, monkeypatch, rng, dtype, given, block):
    used(monkeypatch, shared_folder, **given)
    monkeypatch.setattr(cholesky, "BLOCK", block)
    eps = float(np.finfo(dtype).eps)
    found = KernelOperator("gaussian(gamma=0.3)", X.astype(dtype)).held_factors(SHIFT, 0.5)
    T, U = whole(found.T), whole(found.U)
    np.testing.assert_allclose(T, np.linalg.cholesky(A).T, atol=100 * eps)
    expected = np.linalg.cholesky(T @ T.T + 0.5 * np.eye(M)).T
    np.testing.assert_allclose(U, expected, atol=100 * eps * np.abs(expected).max())
    B = rng.standard_normal((M, 5)) * [1, 1e-50, 1e50, 0, 1]
    size = np.abs(B).max(axis=0)
    size[size == 0] = 1
    # They are exact solutions for what is stored: T⁻¹ and T⁻ᵀ belong together.
    for solved, matrix in ((found.solve, U @ T), (found.solve_transposed, (U @ T).T), (found.inverse, T.T @ T)):
        own = solved(B)
        assert own.dtype == np.float64
        assert not own[:, 3].any()
        assert np.all(np.abs(matrix @ own - B) / size <= 1e-10)


@pytest.mark.parametrize("free", [1 << 30, 200_000])
def test_rows_that_do_not_fit_are_multiplied_in_parts(shared_folder, monkeypatch, free):
    device = used(monkeypatch, shared_folder)
    monkeypatch.setattr(cholesky, "BLOCK", 16)
    device.memory = free
    found = KernelOperator("gaussian(gamma=0.3)", X).held_factors(SHIFT, 0.5)
    B = np.ones((M, 1))
    np.testing.assert_allclose(A @ found.inverse(B), B, atol=1e-10)
    np.testing.assert_allclose(A @ (A + 0.5 * np.eye(M)) @ found.solve(found.solve_transposed(B)), B, atol=1e-9)


def test_a_matrix_that_is_not_definite_has_none(shared_folder, monkeypatch):
    used(monkeypatch, shared_folder)
    monkeypatch.setattr(cholesky, "BLOCK", 16)
    assert KernelOperator("gaussian(gamma=1e-9)", X.astype(np.float32)).held_factors(1e-12, 1.0) is None
    assert KernelOperator("-dot", X).held_factors(0.0, 1.0) is None


def test_only_one_device_with_memory_of_its_own_keeps_one(shared_folder, monkeypatch):
    K = KernelOperator("gaussian(gamma=0.3)", X)
    assert (K.cholesky_rows, K.held_factors(SHIFT, 1.0)) == (0, None)
    device = used(monkeypatch, shared_folder)
    device.memory = 500_000
    assert KernelOperator("gaussian(gamma=0.3)", X).cholesky_rows == int(np.sqrt(0.8 * 500_000 / 4))
    assert KernelOperator("spectrum(3)", ["abc", "abd"]).cholesky_rows == 0
    two = CudaEngine([device, HostDevice(shared_folder)], backend.engines()[0])
    monkeypatch.setattr(backend, "_cuda", lambda *_: two)
    mercer.use("cuda")
    K = KernelOperator("gaussian(gamma=0.3)", X)
    assert (K.cholesky_rows, K.held_factors(SHIFT, 1.0)) == (0, None)


@pytest.mark.parametrize("along", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_differences_of_tables(shared_folder, rng, dtype, along):
    device, eps = HostDevice(shared_folder), float(np.finfo(dtype).eps)
    values = rng.standard_normal((70, 37)).astype(dtype)
    table = DeviceArray.of(device, values)
    part = table[3:60].columns(5, 30)
    given = values[3:60, 5:30].astype(float)
    part, given = (part, given) if along else (part.T, given.T)
    v, start = (rng.standard_normal((count, 4)) for count in given.shape[::-1])
    out, there = (DeviceArray.of(device, start) for _ in range(2))
    part.times(DeviceArray.of(device, v), out, out)
    np.testing.assert_allclose(np.asarray(out), start - given @ v, atol=1e-13)
    part.times(DeviceArray.of(device, v), there)
    np.testing.assert_allclose(np.asarray(there), given @ v, atol=1e-13)
    other = rng.standard_normal(given.shape).astype(dtype)
    part.subtract(DeviceArray.of(device, other))
    np.testing.assert_allclose(np.asarray(part), given - other, atol=4 * eps)
    part.write(DeviceArray.of(device, other))
    np.testing.assert_array_equal(np.asarray(part), other)
    kept = np.ones(values.shape, bool)
    kept[3:60, 5:30] = False
    np.testing.assert_array_equal(np.asarray(table)[kept], values[kept])


def test_rows_with_a_known_bound_are_split_by_one_scale(shared_folder, rng):
    device = HostDevice(shared_folder, **TENSOR)
    values = (0.3 * rng.standard_normal((40, 48))).clip(-0.7, 0.7).astype(np.float32)
    table, exact = DeviceArray.of(device, values), values.astype(float) @ values.T.astype(float)
    for bound in (None, 0.7, 1.0, 0.0):
        own = DeviceArray(device, table.address, table.shape, table.strides, table.dtype, table, bound)
        found = np.asarray(cholesky.dots(own, own).held(0, 40))
        np.testing.assert_allclose(found, exact, atol=16 * 2.0**-24 * np.abs(exact).max())


@pytest.mark.parametrize("features", [32, 33, 100])
def test_long_dot_products_are_added_where_they_are_written(shared_folder, monkeypatch, rng, features):
    """In runs of slices: no thread keeps sums of sums, so tiles stay as large as for short ones."""
    monkeypatch.setattr(source, "TENSOR_SLICES", 2)
    device, values = HostDevice(shared_folder, **TENSOR), rng.standard_normal((70, features)).astype(np.float32)
    table, exact = DeviceArray.of(device, values), values.astype(float) @ values.T.astype(float)
    tiles = cholesky.dots(table, table[:67])
    assert tiles.row_block == 8 * device.side
    np.testing.assert_allclose(np.asarray(tiles.held(3, 70)), exact[3:, :67], atol=16 * 2.0**-24 * exact.max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_landmark_ridge_is_the_processors(shared_folder, monkeypatch, rng, tol, weighted):
    rows = rng.standard_normal((400, 8))
    y, weights = np.sin(rows).sum(axis=1), rng.random(400) + 0.5 if weighted else None

    def fit():
        model = KernelRidge("gaussian(gamma=0.02)", alpha=0.05, solver="nystroem", landmarks="uniform", n_landmarks=100,
                            tol=tol)  # fmt: skip
        return model.fit(rows, y, sample_weight=weights)

    here = fit()
    used(monkeypatch, shared_folder, optimise="-O1")
    monkeypatch.setattr(nystroem_ridge, "LEAST_HELD", 100)
    monkeypatch.setattr(nystroem_ridge, "LEAST_TOL", tol)
    monkeypatch.setattr(cholesky, "BLOCK", 32)
    kept = []
    monkeypatch.setattr(DeviceFactors, "of", lambda *given, of=DeviceFactors.of: kept.append(of(*given)) or kept[-1])
    there = fit()
    assert len(kept) == 1
    assert there.report_.residual <= tol
    assert there.report_.memory_planned < here.report_.memory_planned
    scale = np.abs(here.predict(rows)).max()
    np.testing.assert_allclose(there.predict(rows), here.predict(rows), atol=20 * tol * scale)
    share = [float(m.report_.notes[-1].split(" of k(x, x)")[0].split()[-1]) for m in (here, there)]
    assert 0.5 * share[0] <= share[1] <= 3 * share[0] + 1e-3


def test_tight_tolerances_are_for_the_processors_factor_if_it_has_room(shared_folder, monkeypatch, rng):
    used(monkeypatch, shared_folder)
    monkeypatch.setattr(nystroem_ridge, "LEAST_HELD", 100)
    monkeypatch.setattr(DeviceFactors, "of", lambda *_: pytest.fail("the device has factored"))
    rows = rng.standard_normal((200, 3))
    KernelRidge(solver="nystroem", landmarks="uniform", n_landmarks=100).fit(rows, rows[:, 0])


def test_a_matrix_is_raised_until_it_is_definite(shared_folder, monkeypatch):
    used(monkeypatch, shared_folder)
    root, jitter = held_root(KernelOperator("gaussian(gamma=1e-4)", X), 1e-12, 1000.0)
    assert jitter == 0  # but for its rounding
    K = KernelOperator("exp(-0.01 * sqdist) - 0.01 * exp(-10 * sqdist)", X)  # with eigenvalues of about -0.01
    root, jitter = held_root(K, 1e-12, 1000.0)
    assert 0.005 <= jitter <= 0.2
    K, V = K.toarray() + (jitter + noise(1.0, M, np.dtype(np.float32))) * np.eye(M), np.ones((M, 1))
    np.testing.assert_allclose(K @ root.inverse(V), V, atol=1e-3)
    np.testing.assert_allclose(root.scale**2 * (K @ K) @ root.solve(root.solve_transposed(V)), V, atol=1e-3)
    np.testing.assert_allclose(root.norm, root.scale * np.linalg.norm(K), rtol=0.7)
    with pytest.raises(InvalidInput, match="choose other landmarks"):
        held_root(KernelOperator("0 * dot", X), 1.0, 1000.0)
