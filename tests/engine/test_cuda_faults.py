"""Faults of devices: each is one clear error, nothing is computed elsewhere, and the fitted model stays as it was."""

from __future__ import annotations

import gc
import os
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mercer import KernelOperator, KernelRidge
from mercer.engine import backend
from mercer.engine.contract import TilePairing, TileProgram, TileRows
from mercer.engine.cuda.engine import CudaEngine
from mercer.engine.opcodes import Pairing
from mercer.errors import DeviceError

sys.path.insert(0, str(Path(__file__).parent))
from fake_driver import Driver, FakeStream
from host_device import COMPILER, HostDevice

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
RNG = np.random.default_rng(0)
X, V = RNG.standard_normal((90, 5)), RNG.standard_normal((90, 2))


@pytest.fixture(scope="module")
def host(shared_folder):
    return HostDevice(shared_folder)


@pytest.fixture
def driver(host):
    return Driver(host)


def use(driver, monkeypatch):
    """The engine of this driver in the place of every other."""
    device = driver.install(monkeypatch)
    engine = CudaEngine([device], backend.engines()[0])
    monkeypatch.setattr(backend, "engine", lambda: engine)
    return device


def _fits(model, told):
    """Whether a fit ends; if it does not, the error is clear."""
    try:
        model.fit(X, V)
    except DeviceError as error:
        if not re.match(rf"cuda: .*{told}", str(error)):
            raise
        return False
    return True


@pytest.mark.parametrize("error", ["CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_LAUNCH_FAILED"])
def test_whichever_call_fails_the_model_stays_as_it_was(driver, monkeypatch, error):
    driver.error = error
    model = KernelRidge("gaussian(gamma=0.3)", alpha=0.1).fit(X[:50], V[:50, 0])
    before = vars(model).copy()
    use(driver, monkeypatch)
    last, told = driver.calls, "lost.*start Python again" if error.endswith("FAILED") else "out of memory.*give fewer"
    for n in range(1, 1000):
        driver.fails = last + n
        if _fits(model, told):
            break
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
        driver.fails = 0
        if error.endswith("FAILED"):  # a lost device stays lost, without a call
            calls = driver.calls
            assert not _fits(model, told)
            assert driver.calls == calls
            use(driver, monkeypatch)
        last = driver.calls
    assert 30 < n < 999, n  # each call of a whole fit has failed once
    monkeypatch.undo()
    np.testing.assert_allclose(model.predict(X), KernelRidge("gaussian(gamma=0.3)", alpha=0.1).fit(X, V).predict(X))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("CUDA_ERROR_OUT_OF_MEMORY: x", "out of memory.*give fewer rows"),
        ("CUDA_ERROR_DEVICE_UNAVAILABLE: x", "another process has the device.*nvidia-smi -c DEFAULT"),
        ("CUDA_ERROR_NO_DEVICE: x", "no such device.*nvidia-smi -L"),
        ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: x", "driver is too old.*install a driver"),
        ('Function "cuMemAllocAsync" not found', "driver is too old"),
        ("CUDA_ERROR_ECC_UNCORRECTABLE: x", "was lost.*start Python again"),
        ("CUDA_ERROR_ASSERTION_OF_ANOTHER_KIND", "see what nvidia-smi says"),
    ],
)
def test_each_fault_says_what_to_do(driver, monkeypatch, error, told):
    device = driver.install(monkeypatch)
    driver.fails, driver.error = driver.calls + 1, error
    with pytest.raises(DeviceError, match=rf"cuda: taking 8 bytes of the device failed.*{told}.*use\(.native.\)"):
        device.empty(8)


def test_an_old_driver_and_a_missing_device_are_found_at_the_start(driver, monkeypatch):
    driver.version = 12080
    with pytest.raises(DeviceError, match=r"too old: it is of CUDA 12\.8, and NVRTC of 13\.5; install"):
        driver.install(monkeypatch)
    driver.version = 13000
    driver.install(monkeypatch)
    with pytest.raises(DeviceError, match="opening device 7 failed because there is no such device"):
        type(driver.install(monkeypatch))(7)


def test_a_forked_process_is_told(driver, monkeypatch):
    device = driver.install(monkeypatch)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(DeviceError, match="forked process"):
        device.free()


def plan(device, rows, columns, dtype=np.float32):
    program = TileProgram(np.dtype(dtype), (TilePairing(Pairing.DOT),))
    x, z = (TileRows(len(one), (one.astype(dtype),)) for one in (rows, columns))
    return CudaEngine([device], backend.engines()[0]).plan(program, x, z)


@pytest.mark.parametrize("memory", [1 << 30, 800_000], ids=["whole", "streamed"])
def test_plans_take_no_more_than_they_say(driver, monkeypatch, memory, rng):
    """Rows larger than the device pass through it: same products, within the plan, and copied while kernels run."""
    driver.memory = memory
    device = driver.install(monkeypatch)
    A, B = rng.random((250, 300)), rng.random((330, 300))
    tiles = plan(device, A, B)
    assert tiles.room.whole == (memory > 1e6)
    assert tiles.room.planned <= 0.8 * memory
    K, w = A @ B.T, rng.random((330, 3))
    out = np.zeros((250, 3))
    tiles.multiply(0, 250, 0, 330, v=w, out=out, symmetric=False)
    np.testing.assert_allclose(out, K @ w, rtol=1e-6)
    square, block, groups = np.zeros((330, 3)), np.empty((200, 320), np.float32), np.zeros((250, 6))
    tiles.normal_product(0, 250, v=w, weights=None, out=square)
    np.testing.assert_allclose(square, K.T @ (K @ w), rtol=1e-6)
    tiles.block(10, 210, 3, 323, out=block)
    np.testing.assert_allclose(block, K[10:210, 3:323], rtol=1e-6)
    start = np.array([0, 40, 40, 41, 200, 290, 330])
    tiles.group_sums(0, 250, start=start, weights=None, out=groups)
    parts = [K[:, a:b].sum(axis=1) for a, b in pairwise(start)]
    np.testing.assert_allclose(groups, np.stack(parts, axis=1), rtol=1e-6)
    assert driver.peak <= tiles.room.planned
    assert tiles.room.whole or driver.peak > 0.6 * tiles.room.planned
    assert tiles.room.whole or driver.overlapped > 20


def test_memory_stays_while_a_kernel_may_read_it(driver, monkeypatch, rng):
    """An interrupt between the start of a kernel and its end."""
    device = driver.install(monkeypatch)
    rows, out = rng.random((20, 5)), np.empty((20, 20), np.float32)
    tiles = plan(device, rows, rows)
    before = driver.used

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        kernels, sync = driver.streams[0], FakeStream.sync
        patch.setattr(FakeStream, "sync", lambda one: interrupted() if one is kernels else sync(one))
        with pytest.raises(KeyboardInterrupt):
            tiles.block(0, 20, 0, 20, out=out)
    gc.collect()
    assert driver.used > before + out.nbytes  # the table of addresses, too
    tiles.block(0, 20, 0, 20, out=out)
    assert driver.used == before
    np.testing.assert_allclose(out, rows @ rows.T, rtol=1e-6)


def test_symmetric_matrices_larger_than_the_device(driver, monkeypatch, rng):
    driver.memory = 240_000
    use(driver, monkeypatch)
    rows = rng.standard_normal((300, 40)).astype(np.float32)
    K = KernelOperator("gaussian(gamma=0.02)", rows)
    v = rng.standard_normal(300)
    squares = np.square(rows.astype(float)).sum(axis=1)
    exact = np.exp(-0.02 * (squares[:, None] + squares - 2 * rows.astype(float) @ rows.T.astype(float)))
    np.testing.assert_allclose(K @ v, exact @ v, atol=1e-5)
    np.testing.assert_allclose(K.normal_product(v), exact @ (exact @ v), atol=1e-4)
    assert not K._tiles().room.whole
    assert driver.overlapped > 10


def test_rows_that_do_not_fit_even_in_parts(driver, monkeypatch):
    driver.memory = 50_000
    device = driver.install(monkeypatch)
    with pytest.raises(DeviceError, match=r"0.05 MB free, and even a few rows need .* MB; give fewer rows"):
        plan(device, np.ones((40, 900)), np.ones((40, 900)))
