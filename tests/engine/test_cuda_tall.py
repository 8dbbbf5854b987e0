"""Factors of preconditioners on the device: the products of arrays, and no copy of a factor while it is applied."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import KernelOperator, KernelRidge
from mercer.engine import backend
from mercer.engine.cuda import engine as engines
from mercer.engine.cuda import tall
from mercer.engine.cuda.engine import CudaEngine
from mercer.factorizations import LowRankInverse, SpectralInverse, preconditioner
from mercer.factorizations.held import HeldFactor
from mercer.testing import assert_close, check_operator_contract

sys.path.insert(0, str(Path(__file__).parent))
from host_device import COMPILER, HostDevice

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")

N, X = 130, np.random.default_rng(0).standard_normal((130, 3))


@pytest.fixture(params=["on the device", "on the host", "on both"])
def device(request, shared_folder, monkeypatch):
    """The device in use, with room for all blocks of a factor, for none, or for some."""
    device = HostDevice(shared_folder)
    room = {"on the device": 1 << 20, "on the host": 2, "on both": 8_000}[request.param]
    monkeypatch.setattr(tall.TallMatrix, "room", lambda _: room)
    monkeypatch.setattr(tall, "BLOCK", 5_000)
    engine = CudaEngine([device], backend.engine())
    monkeypatch.setattr(backend, "_cuda", lambda *_: engine)
    mercer.use("cuda")
    yield device
    mercer.use(None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_arrays(device, dtype, rng):
    K, R = KernelOperator("gaussian(gamma=0.3)", X.astype(dtype), X[:20].astype(dtype)), rng.standard_normal((20, 20))
    F = backend.engine().kept_product(K._tiles(), R)
    assert len(F.blocks) >= 2
    there = [one.nbytes for one in F.blocks if not isinstance(one, np.ndarray)]
    assert sum(there) <= tall.TallMatrix.room(device)
    assert there or tall.TallMatrix.room(device) < 1000
    exact = np.exp(-0.3 * np.square(X[:, None] - X[:20]).sum(axis=2)) @ R
    V, U, s = rng.standard_normal((20, 3)), rng.standard_normal((N, 2)), rng.random(N) + 0.5
    index = np.array([0, 129, 50, 7, 50])
    pairs = {
        "times": (F.times(V.astype(dtype)), exact @ V),
        "transposed_times": (F.transposed_times(U.astype(dtype)), exact.T @ U),
        "gram": (F.gram(s, np.dtype(np.float64)), exact.T @ (s[:, None] ** 2 * exact)),
        "turned": (F.turned(R).times(V.astype(dtype)), exact @ R @ V),
        "squares": (F.squares(), np.square(exact).sum(axis=1)),
        "rows": (F.rows(index), exact[index]),
    }
    for name, (found, expected) in pairs.items():
        most = (1e-13 if dtype == np.float64 else 1e-5) * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=most, err_msg=name)


@pytest.mark.parametrize("shift", [1.0, 1e-15])
def test_a_preconditioner_moves_vectors_only(device, shift, rng):
    K = KernelOperator("gaussian(gamma=0.3)", X)
    found = K.low_rank(13)
    F, P = found.F.toarray(), found.pivots
    exact = np.exp(-0.3 * np.square(X[:, None] - X).sum(axis=2))
    assert_close(F @ F[P].T, exact[:, P], 1e-7)
    assert_close(found.left, np.maximum(1 - np.square(F).sum(axis=1), 0), 1e-7)
    D, v = shift * (1 + rng.random(N)), rng.standard_normal((N, 1))
    M, wanted = preconditioner(found.F, D), preconditioner(F.copy(), D)
    assert isinstance(found.F, HeldFactor)
    assert type(M.A) is type(wanted.A) is (LowRankInverse if shift == 1 else SpectralInverse)
    device.moved.clear()
    applied = M @ v
    assert_close(applied, wanted @ v, 1e-6)
    blocks = M.A.F._held.blocks if shift == 1 else M.A.U._held.blocks
    if not any(isinstance(one, np.ndarray) for one in blocks):
        assert max(device.moved) <= N * 8  # a vector at most, and no n × r array in sum
        assert sum(device.moved) < F.nbytes
    if isinstance(blocks[0], np.ndarray) is not isinstance(blocks[-1], np.ndarray):
        check_operator_contract(found.F.scaled(D))


def test_fits_use_it_and_their_plans_do_not_count_it(device):
    y = np.sin(X).sum(axis=1)

    def fit():
        return KernelRidge("gaussian(gamma=0.3)", alpha=0.1, solver="cg", tol=1e-6).fit(X, y)

    there = fit()
    mercer.use("native")
    here = fit()
    assert "preconditioned by 13 pivots" in there.report_.method
    assert there.report_.residual <= 1e-6
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-5)
    assert there.report_.steps <= 1.5 * here.report_.steps
    planned = here.report_.memory_planned - min(4 * N * 13, tall.TallMatrix.room(None) // 2)  # float32, and turned
    assert there.report_.memory_planned == planned


def test_plans_of_the_host_do_not_count_copies_on_the_device(device, monkeypatch):
    """As rows go to the device, a part of them is turned at a time."""
    monkeypatch.setattr(engines, "STAGED", 1000)
    there = KernelOperator("gaussian(gamma=0.3)", X).copies
    values_only = KernelOperator("exp(-0.3 * sqdist) * xx * zz", X).copies
    mercer.use("native")
    assert there == 1000 < KernelOperator("gaussian(gamma=0.3)", X).copies
    assert values_only == 1000 + 2 * 8 * N
