"""The CUDA engine on a device, where there is one: its contract, its promise, faults, and arrays of other libraries."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest

import mercer
from mercer import KernelOperator, KernelRidge
from mercer.engine import backend
from mercer.engine.cuda.engine import CudaEngine
from mercer.engine.cuda.nvidia import NvidiaDevice
from mercer.errors import DeviceError
from mercer.testing.engines import ENGINE_CHECKS


@lru_cache
def the_device():
    try:
        return NvidiaDevice(0)
    except DeviceError as error:
        return str(error)


@pytest.fixture
def device(monkeypatch):
    found = the_device()
    if isinstance(found, str):
        pytest.skip(f"there is no device of NVIDIA: the CUDA engine ran on the host alone ({found})")
    engine = CudaEngine([found], backend.engine())
    monkeypatch.setattr(backend, "engine", lambda: engine)
    monkeypatch.setattr(backend, "device_in_use", lambda: True)
    return found


@pytest.mark.parametrize("least", [1, 64, float("inf")], ids=["tensor cores", "both", "FP32 units"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_a_device_keeps_the_contract(device, monkeypatch, check, dtype, least):
    if dtype == "float64" and least != 64:
        pytest.skip("tensor cores do not multiply float64 rows")
    monkeypatch.setattr(device, "tensor_features", least)
    check(backend.engine(), np.dtype(dtype))


def exact(X, gamma):
    wide = X.astype(np.float64)
    return np.exp(-gamma * np.square(wide[:, None] - wide).sum(axis=2))


@pytest.mark.parametrize("features", [3, 20, 24, 25, 64, 100, 784, 1100])
@pytest.mark.parametrize("far", [0.0, 30.0], ids=["one cluster", "clusters"])
def test_entries_and_products_keep_the_promise(device, rng, features, far):
    """Entries err by at most 1e-6, products by at most that times the sum of the weights."""
    X = rng.standard_normal((300, features)) + far * rng.integers(-1, 2, (300, 1))
    X = X.astype(np.float32)
    v, gamma = rng.random((300, 1)), 1 / (2 * features)
    K, expected = KernelOperator(f"gaussian(gamma={gamma})", X), exact(X, gamma)
    assert np.abs(K.toarray() - expected).max() <= 1e-6
    first = K @ v
    np.testing.assert_array_equal(K @ v, first)
    assert np.abs(first - expected @ v).max() <= 1e-6 * v.sum()


@pytest.mark.parametrize("features", [20, 100])
def test_rows_that_pass_through_the_device_give_the_same(device, monkeypatch, rng, features):
    X, v = rng.standard_normal((20000, features)).astype(np.float32), rng.random(20000)
    whole = KernelOperator("gaussian(gamma=0.01)", X)
    expected = whole @ v
    last = KernelOperator("gaussian(gamma=0.01)", X, X[19000:]) @ v[19000:]
    monkeypatch.setattr(device, "free", lambda: 4 << 20)
    K = KernelOperator("gaussian(gamma=0.01)", X, X[:19000].copy())
    assert not K._tiles().room.whole
    np.testing.assert_allclose(K @ v[:19000] + last, expected, rtol=1e-6)


def test_more_memory_than_there_is(device):
    with pytest.raises(DeviceError, match=r"taking \d+ bytes of the device failed because the device is out of memory"):
        device.empty(1 << 45)
    K = KernelOperator("gaussian", np.eye(5))
    np.testing.assert_allclose(K @ np.ones(5), K.toarray().sum(axis=1))


def run(text):
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


FIT = """
import numpy as np, mercer
mercer.use("cuda")
X = np.random.default_rng(0).standard_normal((2000, 5))
print(float(mercer.KernelRidge("gaussian", 0.1, solver="cg").fit(X, X[:, 0]).predict(X[:1])[0]))
"""
LOSE = """
import numpy as np, mercer
from mercer.engine.cuda.nvidia import NvidiaDevice
from mercer.errors import DeviceError
device = NvidiaDevice(0)
bad = device.compiled('extern "C" __global__ void bad(long long* x) { *x = 1; }')
for call in (lambda: (bad.launch("bad", (1, 1), 1, [8]), device.fetch(device.empty(8), np.dtype("int8"), (8,))),
             lambda: device.empty(8), lambda: device.free()):
    try:
        call()
    except DeviceError as error:
        print(error)
"""


def test_two_processes_share_a_device(device):
    both = [run(FIT), run(FIT)]
    told = [one.communicate()[0].split()[-1] for one in both]
    assert told[0] == told[1]
    X = np.random.default_rng(0).standard_normal((2000, 5))
    expected = KernelRidge("gaussian", 0.1).fit(X, X[:, 0]).predict(X[:1])[0]
    np.testing.assert_allclose(float(told[0]), expected, rtol=1e-5)


def test_a_lost_device_stays_lost(device):
    lines = [line for line in run(LOSE).communicate()[0].splitlines() if line.startswith("cuda: ")]
    assert len(lines) == 3, lines
    assert all("the device was lost, for this process" in line for line in lines), lines


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_on_the_device_are_read_there(device, rng, library):
    own = pytest.importorskip(library)
    X, v = rng.standard_normal((200, 70)).astype(np.float32), rng.standard_normal(200).astype(np.float32)
    there = own.asarray(X) if library == "cupy" else own.asarray(X, device="cuda")
    K = KernelOperator("gaussian(gamma=0.01)", there)
    expected = KernelOperator("gaussian(gamma=0.01)", X) @ v
    weights = own.asarray(v) if library == "cupy" else own.asarray(v, device="cuda")
    found = K @ weights
    assert type(found) is type(there)
    np.testing.assert_allclose(np.asarray(found.get() if library == "cupy" else found.cpu()), expected, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge("gaussian(gamma=0.1)", 0.1),
        KernelRidge("gaussian(gamma=0.1)", 0.1, solver="cg"),
        KernelRidge("gaussian(gamma=0.1)", 0.1, solver="nystroem", n_landmarks=50),
        mercer.KernelPCA(3, "gaussian(gamma=0.1)"),
        mercer.SVC(kernel="gaussian(gamma=0.1)"),
        mercer.KernelKMeans(3, random_state=0),
    ],
    ids=repr,
)
def test_fits_are_those_of_the_processor(device, monkeypatch, rng, model):
    X = rng.standard_normal((1500, 10)).astype(np.float32)
    y = np.sign(X[:, 0] * X[:, 1] + 0.1) if isinstance(model, mercer.SVC) else np.sin(X[:, 0])

    def outputs():
        fitted = model.fit(X, y)
        give = getattr(fitted, "transform", None) or getattr(fitted, "decision_function", None) or fitted.predict
        return np.asarray(give(X), np.float64)

    found = outputs()
    monkeypatch.undo()
    expected = outputs()
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
