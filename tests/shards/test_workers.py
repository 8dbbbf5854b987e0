"""Processes of workers that are killed at any moment of a fit; `test_dask.py` has a short version."""

from __future__ import annotations

import os
import threading
import time
import warnings

import numpy as np
import pytest

from mercer import KernelKMeans, KernelOperator, KernelPCA, KernelRidge
from mercer.gram import operator
from mercer.gram.sharded import operator as sharded
from mercer.kernels import Gaussian
from mercer.shards.workers import workers

config = pytest.importorskip("dask.config")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

X = np.random.default_rng(0).standard_normal((1500, 4))
Y = np.sin(X).sum(axis=1)
KERNEL = Gaussian(0.3)
MODELS = {
    "ridge": (KernelRidge(KERNEL, alpha=10.0, solver="cg"), "predict"),
    "components": (KernelPCA(3, kernel=KERNEL, solver="krylov", tol=1e-12), "transform"),
    "clusters": (KernelKMeans(3, kernel=KERNEL, n_landmarks=40), "predict"),
}


@pytest.fixture
def cluster(monkeypatch):
    """Two workers of one thread each, in processes of their own, which compute also the products of small matrices."""
    monkeypatch.setattr(sharded, "HERE", 0)
    monkeypatch.setattr(operator, "AHEAD", 0)
    with (
        warnings.catch_warnings(),
        # By default a worker tries for half a minute to reach one that is gone.
        config.set({"distributed.comm.timeouts.connect": "10s"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as one,
        distributed.Client(one),
    ):
        yield one


def test_workers_of_this_machine_keep_the_memory_of_their_tasks(monkeypatch):
    names = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
    for name in names:
        monkeypatch.delenv(name, raising=False)  # Dask leaves those of former workers, and they go before its settings
    with workers(None, 1):
        found = distributed.default_client().run(lambda: [os.environ.get(name) for name in names])
    assert list(found.values()) == [[str(1 << 28), str(1 << 25)]]


def fitted(name, table):
    model, output = MODELS[name]
    return getattr(model.fit(table, Y), output)(X)


def survives(cluster, name, share, victim=0):
    """Whether a model has the same bits if a worker is killed when this share of the time of a fit has passed."""
    table = da.from_array(X, chunks=(500, 4))
    start = time.perf_counter()
    wanted = fitted(name, table)
    worker = list(cluster.workers.values())[victim]  # its nanny starts another process
    timer = threading.Timer(share * (time.perf_counter() - start), worker.process.process._process.kill)
    timer.start()
    found = fitted(name, table)
    timer.join()
    return np.array_equal(found, wanted)


def test_entries_of_a_worker_that_died_are_made_again(cluster):
    K = KernelOperator(KERNEL, da.from_array(X, chunks=(500, 4)), dtype=np.float32).quantised(np.inf)
    wanted = K @ X
    next(iter(cluster.workers.values())).process.process._process.kill()
    for _ in range(3):
        np.testing.assert_array_equal(K @ X, wanted)
        time.sleep(0.5)


@pytest.mark.soak
@pytest.mark.parametrize("moment", range(20))
@pytest.mark.parametrize("name", MODELS)
def test_a_worker_dies_at_any_moment(cluster, name, moment):
    rng = np.random.default_rng([7, moment])
    assert survives(cluster, name, rng.random(), int(rng.integers(2)))
