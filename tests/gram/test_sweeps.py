"""Sweeps come in bounded pieces that say how far they are, need little memory beside the data, and can be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import numpy as np
import pytest

from mercer import KernelOperator
from mercer.engine import contract
from mercer.errors import Cancelled
from mercer.events import TilesDone, observe
from mercer.gram import tiles
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.testing import assert_close

X = np.random.default_rng(0).standard_normal((2000, 3))


class Listener:
    def __init__(self, cancel_after=None):
        self.heard, self.cancel_after = [], cancel_after

    def on_event(self, event):
        self.heard.append(event)
        if len(self.heard) == self.cancel_after:
            raise Cancelled("enough")


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(contract, "PIECE", 1e5)
    monkeypatch.setattr(tiles, "NARROWEST", 400)


SWEEPS = {
    "one vector": lambda K: K @ np.ones(K.shape[1]),
    "many vectors": lambda K: K @ np.ones((K.shape[1], 7)),
    "normal product": lambda K: K.normal_product(np.ones(K.shape[1]), np.ones(K.shape[0])),
    "toarray": lambda K: K.toarray(),
    "group_sums": lambda K: K.group_sums(np.zeros(K.shape[1], int)),
    "rows": lambda K: K.rows(slice(100, 1900)),
}


@dataclass(frozen=True, repr=False)
class ByBlock(Kernel):
    """Not traced, and cheap."""

    def block(self, A, B):
        return A @ B.T + 1.0


KERNELS = {"traced": Gaussian(gamma=0.5), "not traced": ByBlock()}


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("columns", [None, X[:700]], ids=["square", "rectangle"])
def test_pieces_tell_how_far_they_are(name, kernel, columns, small_pieces):
    if name == "normal product" and columns is None:
        pytest.skip("of a symmetric matrix it is two products, one sweep after the other")
    K = KernelOperator(KERNELS[kernel], X, columns)
    whole = KernelOperator(KERNELS[kernel], X, columns)
    listener = Listener()
    with observe(listener):
        got = SWEEPS[name](K)
    done = [event.done for event in listener.heard]
    assert len(done) > 3
    assert all(isinstance(event, TilesDone) for event in listener.heard)
    assert done == sorted(done)
    assert {event.total for event in listener.heard} == {done[-1]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract, "PIECE", 1e12)
        for a, b in zip(np.atleast_1d(got), np.atleast_1d(SWEEPS[name](whole)), strict=True):
            assert_close(a, b, rtol=1e-10)


def test_a_product_can_be_cancelled(small_pieces):
    K = KernelOperator(Gaussian(gamma=0.5), X)
    listener = Listener(cancel_after=2)
    with observe(listener), pytest.raises(Cancelled):
        K @ np.ones(2000)
    assert len(listener.heard) == 2


@pytest.mark.parametrize("threads", [1, 2, 64])
def test_pieces_are_bounded_in_work_and_memory(threads, monkeypatch):
    monkeypatch.setattr(tiles.backend, "engine", lambda: type("Engine", (), {"threads": staticmethod(lambda: threads)}))
    block = 192
    for n in (10, 5000, 10**6, 10**7):
        for r in (1, 40, 1000, 30000):
            for work in (1.0, 40.0, 2000.0):
                height, width, symmetric = tiles._piece(contract.PIECE, block, n, n, r, work, True)
                assert height % block == 0
                assert width % block == 0 or width == n
                if symmetric:
                    assert 8 * r * threads * min(width, n) <= tiles.OTHERS
                # A tenth of a second for each thread, or one row block for each against the narrowest piece.
                least = block * threads * (tiles.NARROWEST + block) * work
                assert min(height, n) * min(width, n) * work <= max(1.01 * contract.PIECE * threads, least)


def test_too_many_vectors_for_a_symmetric_sweep(monkeypatch):
    """Beyond the bytes that the threads may hold for other rows, every pair is computed twice instead."""
    K = KernelOperator(Linear(), X)
    V = np.random.default_rng(1).standard_normal((2000, 30))
    expected = K @ V
    monkeypatch.setattr(tiles, "OTHERS", 1000)
    assert not tiles._piece(contract.PIECE, 192, 2000, 2000, 30, 1.0, True)[2]
    np.testing.assert_allclose(K @ V, expected, rtol=1e-10, atol=1e-9)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_memory_beside_the_data(dtype):
    """K @ v of 20000 rows needs the packed rows of both sides and what is per row, and none of the 3 GB of K."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the sanitizer has its own memory")
    code = f"""
        import resource, sys
        import numpy as np
        from mercer import KernelOperator
        from mercer.kernels import Gaussian
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        X = np.random.default_rng(0).standard_normal((20_000, 40)).astype("{dtype}")
        KernelOperator(Gaussian(gamma=0.1), X[:500]) @ np.ones(500)
        before = peak()
        K = KernelOperator(Gaussian(gamma=0.1), X)
        K @ np.ones(len(X))
        print((peak() - before) / X.nbytes)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    # Centred rows while they are packed, both sides packed, and some bytes per row and thread.
    assert float(ran.stdout) < 5.0
