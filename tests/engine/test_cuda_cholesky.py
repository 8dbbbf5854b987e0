"""Cholesky factors in a device's memory: against those of arrays, and landmark ridge that is preconditioned by one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import KernelOperator, KernelRidge
from mercer.approx.nystroem_ridge import held_root
from mercer.engine import backend
from mercer.engine.cuda import cholesky
from mercer.engine.cuda.arrays import DeviceArray
from mercer.engine.cuda.cholesky import DeviceCholesky
from mercer.engine.cuda.engine import CudaEngine
from mercer.errors import InvalidInput
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


@pytest.mark.parametrize("block", [16, 65, 130, 1024])
@pytest.mark.parametrize(("dtype", "given"), [(np.float32, {}), (np.float64, {}), (np.float32, TENSOR)])
def test_it_is_the_factor_of_the_matrix(shared_folder, monkeypatch, rng, dtype, given, block):
    used(monkeypatch, shared_folder, **given)
    monkeypatch.setattr(cholesky, "BLOCK", block)
    eps = float(np.finfo(dtype).eps)
    factor = KernelOperator("gaussian(gamma=0.3)", X.astype(dtype)).held_cholesky(SHIFT)
    L = np.linalg.cholesky(A)
    above = np.triu(np.ones((M, M), bool), 1)
    for first in range(0, M, block):  # the blocks on the diagonal are kept as their inverses only
        own = slice(first, first + block)
        above[own, own] = False
        inverse = np.asarray(factor.inverses[own])[:, : len(X[own])].astype(float)
        np.testing.assert_allclose(inverse @ L[own, own], np.eye(len(inverse)), atol=1e3 * eps)
    np.testing.assert_allclose(np.asarray(factor.upper)[above], L.T[above], atol=100 * eps)
    B = rng.standard_normal((M, 5)) * [1, 1e-50, 1e50, 0, 1]
    found = factor.solve(B)
    assert found.dtype == np.float64
    size = np.abs(B).max(axis=0)
    size[size == 0] = 1
    assert np.all(np.abs(A @ found - B) / size <= 3e4 * eps)  # the condition number of A is about 3000
    assert not found[:, 3].any()


@pytest.mark.parametrize("free", [1 << 30, 200_000])
def test_rows_that_do_not_fit_are_multiplied_in_parts(shared_folder, monkeypatch, free):
    device = used(monkeypatch, shared_folder)
    monkeypatch.setattr(cholesky, "BLOCK", 16)
    device.memory = free
    whole = KernelOperator("gaussian(gamma=0.3)", X).held_cholesky(SHIFT)
    B = np.ones((M, 1))
    np.testing.assert_allclose(A @ whole.solve(B), B, atol=1e-10)


def test_a_matrix_that_is_not_definite_has_none(shared_folder, monkeypatch):
    used(monkeypatch, shared_folder)
    monkeypatch.setattr(cholesky, "BLOCK", 16)
    assert KernelOperator("gaussian(gamma=1e-9)", X.astype(np.float32)).held_cholesky(1e-12) is None
    assert KernelOperator("-dot", X).held_cholesky(0.0) is None


def test_only_one_device_with_memory_of_its_own_keeps_one(shared_folder, monkeypatch):
    K = KernelOperator("gaussian(gamma=0.3)", X)
    assert (K.cholesky_rows, K.held_cholesky(SHIFT)) == (0, None)
    device = used(monkeypatch, shared_folder)
    device.memory = 500_000
    assert KernelOperator("gaussian(gamma=0.3)", X).cholesky_rows == int(np.sqrt(0.8 * 500_000 / 4))
    assert KernelOperator("spectrum(3)", ["abc", "abd"]).cholesky_rows == 0
    two = CudaEngine([device, HostDevice(shared_folder)], backend.engines()[0])
    monkeypatch.setattr(backend, "_cuda", lambda *_: two)
    mercer.use("cuda")
    K = KernelOperator("gaussian(gamma=0.3)", X)
    assert (K.cholesky_rows, K.held_cholesky(SHIFT)) == (0, None)


@pytest.mark.parametrize("along", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_differences_of_tables(shared_folder, rng, dtype, along):
    device, eps = HostDevice(shared_folder), float(np.finfo(dtype).eps)
    values = rng.standard_normal((70, 37)).astype(dtype)
    table = DeviceArray.of(device, values)
    part = table[3:60].columns(5, 30)
    given = values[3:60, 5:30].astype(float)
    part, given = (part, given) if along else (part.T, given.T)
    v = rng.standard_normal((given.shape[1], 4)).astype(dtype)
    start = rng.standard_normal((len(given), 4)).astype(dtype)
    out, there = (DeviceArray.of(device, start) for _ in range(2))
    part.times(DeviceArray.of(device, v), out, out)
    np.testing.assert_allclose(np.asarray(out), start - given @ v, atol=100 * eps)
    part.times(DeviceArray.of(device, v), there)
    np.testing.assert_allclose(np.asarray(there), given @ v, atol=100 * eps)
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
    monkeypatch.setattr(DeviceCholesky, "of", lambda *given, of=DeviceCholesky.of: kept.append(of(*given)) or kept[-1])
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
    monkeypatch.setattr(DeviceCholesky, "of", lambda *_: pytest.fail("the device has factored"))
    rows = rng.standard_normal((200, 3))
    KernelRidge(solver="nystroem", landmarks="uniform", n_landmarks=100).fit(rows, rows[:, 0])


def test_the_factor_is_raised_until_it_is_definite_in_float32(shared_folder, monkeypatch):
    used(monkeypatch, shared_folder)
    K = KernelOperator("gaussian(gamma=1e-4)", X)
    root, jitter = held_root(K, 1e-12, 1000.0, 1e-3)
    assert jitter > 0
    V = np.random.default_rng(1).standard_normal((M, 2))
    C = root.scale * (np.exp(-1e-4 * np.square(X[:, None] - X).sum(axis=2)) + root.shift * np.eye(M))
    np.testing.assert_allclose(C @ root.solve(V), V, atol=1e-5)
    np.testing.assert_allclose(root.norm, np.linalg.norm(C), rtol=0.7)
    with pytest.raises(InvalidInput, match="choose other landmarks"):
        held_root(KernelOperator("0 * dot", X), 1.0, 1000.0, 1e-3)
