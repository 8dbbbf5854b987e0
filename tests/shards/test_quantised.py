"""Entries in 16 bits that workers hold: those of one process, whichever workers compute them."""

from __future__ import annotations

import numpy as np
import pytest
from held import KERNEL, N, V, X, Y, dask

from mercer import KernelOperator, KernelRidge
from mercer.errors import InvalidInput
from mercer.gram.sharded import quantised
from mercer.operators import Quantised
from mercer.operators.quantised import block_starts
from mercer.shards import cluster as clusters
from mercer.testing import assert_close, check_operator_contract
from mercer.ways import regularised

sizeof = pytest.importorskip("dask.sizeof").sizeof


def narrow(rows):
    return KernelOperator(KERNEL, rows, dtype=np.float32)


def test_products_are_those_of_one_process(elsewhere, monkeypatch):
    here, there = narrow(X).quantised(np.inf), narrow(dask(X)).quantised(np.inf)
    assert type(here) is Quantised
    assert type(there) is quantised.ShardedQuantised
    assert there.noise == pytest.approx(here.noise, rel=1e-3)
    assert_close(there @ V, KernelOperator(KERNEL, X) @ V, 2 * here.noise)
    wanted = there @ V
    np.testing.assert_array_equal(narrow(dask(X)).quantised(np.inf) @ V, wanted)
    threads = there._cluster.threads()
    monkeypatch.setattr(clusters, "FRESH", 0.0)
    for some_threads in (threads[:1], threads * 2, [*threads, threads[0]]):
        monkeypatch.setattr(clusters.Cluster, "threads", lambda self, own=some_threads: own)
        np.testing.assert_array_equal(there @ V, wanted)


@pytest.mark.parametrize("runs", [(0, 0), (2, 2), (4, 4)])
def test_any_number_of_runs(elsewhere, monkeypatch, runs):
    """Also more runs than blocks of rows."""
    monkeypatch.setattr(quantised, "RUNS", runs)
    K = narrow(dask(X[:700], 100)).quantised(np.inf)
    check_operator_contract(K, K @ np.eye(700))
    assert np.linalg.norm(K @ np.eye(700) - KERNEL(X[:700]), 2) < 1.1 * K.noise
    assert len(K._runs) == 2 ** runs[0]
    assert sum(sizeof(run.result()) for run in K._runs) >= 2 * block_starts(700)[-1]


def test_workers_stop_where_entries_are_too_noisy(elsewhere, monkeypatch):
    monkeypatch.setattr(quantised, "RUNS", (1, 1))
    blocks, plain = [], KernelOperator.block
    monkeypatch.setattr(KernelOperator, "block", lambda self, I, J: blocks.append(len(I)) or plain(self, I, J))
    K = narrow(dask(X)).quantised(1e-6)
    assert K.noise > 1e-6
    assert len(blocks) == 2  # the first of each run
    with pytest.raises(InvalidInput, match="raise `most`"):
        K @ V


@pytest.fixture
def stored_is_faster(monkeypatch):
    plain = regularised.conjugate_gradients
    told = lambda *own, stored=False, **more: plain(*own, stored=stored, **more) / (1e6 if stored else 1)  # noqa: E731
    monkeypatch.setattr(regularised, "conjugate_gradients", told)


def test_ridge_on_entries_that_workers_hold(elsewhere, stored_is_faster, monkeypatch):
    model = KernelRidge(KERNEL, alpha=10.0, solver="cg")
    wanted = model.fit(X, Y).dual_coef_
    model.fit(dask(X), Y)
    assert "on the workers" in model.report_.method
    assert model.report_.memory_planned < Quantised.bytes(N)
    assert_close(model.dual_coef_, wanted, 1e-8)
    monkeypatch.setattr(clusters, "_free", lambda client: [(10**9, 1), (10**6, 1)])  # the least counts
    model.fit(dask(X), Y)
    assert "matrix-free" in model.report_.method
    assert_close(model.dual_coef_, wanted, 1e-8)


def test_free_memory_and_threads_of_workers(elsewhere):
    limits = [one["memory_limit"] for one in elsewhere.scheduler_info["workers"].values()]
    free = clusters._free(elsewhere.get_client())
    assert [threads for _, threads in free] == [1, 1]
    assert all(0 < memory < limit for (memory, _), limit in zip(free, limits, strict=True))


def test_room_is_that_of_the_workers_within_the_budget_of_each(elsewhere, monkeypatch):
    K, rows = narrow(dask(X)), 3 * X.nbytes
    monkeypatch.setattr(clusters, "_free", lambda client: [(10**9, 1), (10**6, 2)])
    assert [K.room_elsewhere(most) for most in (10**12, 500)] == [2 * (10**6 - 2 * rows), 1000]
    for nothing in ([], [(10**9, 1), (rows, 1)], [(10**9, 1), (-5, 1)]):
        monkeypatch.setattr(clusters, "_free", lambda client, own=nothing: own)
        assert K.room_elsewhere(10**12) == 0
    assert KernelOperator(KERNEL, X).room_elsewhere(10**12) == 0
