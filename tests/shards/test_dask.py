"""Dask's arrays and data frames: the answers of arrays in memory, whichever workers compute them."""

from __future__ import annotations

import asyncio
import pickle
from contextlib import nullcontext

import numpy as np
import pytest
from held import KERNEL, N, V, W, X, Y, Z, dask, two_workers
from typer.testing import CliRunner

from mercer import KernelKMeans, KernelOperator, KernelPCA, KernelRidge, KernelRidgeClassifier, Nystroem
from mercer.cli.app import app
from mercer.errors import ClusterLost
from mercer.events import TilesDone, observe
from mercer.factorizations import LowRankInverse, SpectralInverse, preconditioner
from mercer.gram import ShardedOperator, operator
from mercer.gram.sharded import operator as sharded
from mercer.gram.sharded.factor import ShardedFactor
from mercer.io import load
from mercer.kernels import Gaussian
from mercer.shards import cluster as clusters
from mercer.shards import direct, points, reading
from mercer.shards.direct import Direct, Parcel
from mercer.shards.workers import LOCAL, workers
from mercer.testing import assert_close, check_operator_contract, check_points

config = pytest.importorskip("dask.config")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [KERNEL, 0.5 * KERNEL + Gaussian(2.0) * 1.0, "laplace(gamma=0.5)"], ids=repr)
def test_products_are_those_in_memory(elsewhere, kernel, dtype):
    K, D = KernelOperator(kernel, X, dtype=dtype), KernelOperator(kernel, dask(X), dtype=dtype)
    assert isinstance(D, ShardedOperator)
    assert type(D.astype(np.float32)) is ShardedOperator
    assert D.symmetric
    assert_close(D @ V, K.astype(np.float64) @ V, 1e-12 if dtype == np.float64 else 1e-5)
    np.testing.assert_array_equal(D @ V, KernelOperator(kernel, dask(X), dtype=dtype) @ V)


def test_products_with_other_points(elsewhere, rng):
    K, weights = KernelOperator(KERNEL, X, Z), rng.random(N)
    for D in (KernelOperator(KERNEL, dask(X), Z), KernelOperator(KERNEL, dask(X), dask(Z, 20))):
        assert_close(D @ W, K @ W, 1e-12)
        assert_close(D.T @ V, K.T @ V, 1e-12)
        assert_close(D.normal_product(W, weights), K.normal_product(W, weights), 1e-12)
        assert_close(D.normal_product(W[:, 0]), K.normal_product(W[:, 0]), 1e-12)
        np.testing.assert_array_equal(D.toarray(), K.toarray())
        np.testing.assert_array_equal(D.rows([5, 3]), K.rows([5, 3]))


def test_sums_by_group_and_parts(elsewhere):
    K, D, labels = KernelOperator(KERNEL, X), KernelOperator(KERNEL, dask(X)), np.arange(N) % 5
    assert_close(D.group_sums(labels), K.group_sums(labels), 1e-12)
    np.testing.assert_array_equal(D.block([3, 900], [0, 4]), K.block([3, 900], [0, 4]))
    np.testing.assert_array_equal(D.diagonal(), K.diagonal())
    assert_close(D.rows_times([3, 900], V), K.rows_times([3, 900], V), 1e-12)


def test_correlations_of_what_a_factor_on_workers_leaves(elsewhere, monkeypatch):
    D = KernelOperator(Gaussian(0.1), dask(X))
    found = D.low_rank(40)
    F, K = found.F @ np.eye(40), KernelOperator(Gaussian(0.1), X).toarray()
    scale = np.linspace(0.5, 1.5, N)
    some, left = np.array([3, 700, 1400]), found.left * scale
    wanted = ((K - scale[:, None] * F @ F.T * scale)[some] ** 2 / np.maximum(left, 1e-300))[:, left > 0].sum(axis=1)
    monkeypatch.setattr(ShardedOperator, "rows", None)  # what is computed here
    assert isinstance(found.F, ShardedFactor)
    assert_close(found.F.scaled(scale).squared_correlations(D, some, left), wanted / left[some], 1e-9)
    assert 0 < found.correlation(D) < N


def test_each_pair_is_computed_once(elsewhere, monkeypatch):
    tasks = []
    original = sharded.Cluster.run
    monkeypatch.setattr(
        sharded.Cluster, "run", lambda self, some, *own: tasks.extend(some) or original(self, some, *own)
    )
    K = KernelOperator(KERNEL, dask(X))
    tasks.clear()
    K @ V
    names = [function.__name__ for function, *_ in tasks]
    assert (names.count("_pair"), names.count("_product")) == (3, 3)


def test_each_thread_gets_its_share_as_one_task(elsewhere, monkeypatch):
    K, sent = KernelOperator(KERNEL, dask(X)), []
    original = clusters.Cluster._sent
    monkeypatch.setattr(clusters.Cluster, "_sent", lambda self, some, on: sent.append(on) or original(self, some, on))
    wanted = K @ V
    assert [len(set(on)) for on in sent] == [len(on) for on in sent] == [2]
    monkeypatch.setattr(clusters, "BATCH", 1)
    np.testing.assert_array_equal(K @ V, wanted)
    assert [len(on) for on in sent] == [2, 6]


def test_brief_work_goes_past_the_scheduler_where_rows_are_held(elsewhere, monkeypatch):
    monkeypatch.setattr(clusters, "FRESH", 3600.0)
    K, sent = KernelOperator(KERNEL, dask(X)), []
    original = clusters.Cluster._sent
    monkeypatch.setattr(clusters.Cluster, "_sent", lambda self, some, on: sent.append(on) or original(self, some, on))
    wanted = K @ V
    assert len(sent) == 1
    np.testing.assert_array_equal(K @ V, wanted)
    np.testing.assert_array_equal(K @ (2 * V), 2 * wanted)
    assert len(sent) == 1
    monkeypatch.setattr(clusters, "FRESH", 0.0)
    K @ V
    assert len(sent) == 2


def test_rows_go_from_worker_to_worker_while_pivots_are_chosen(elsewhere, monkeypatch):
    monkeypatch.setattr(clusters, "FRESH", 3600.0)
    monkeypatch.setattr(operator, "AHEAD", 1)
    K, wanted = KernelOperator(KERNEL, dask(X)), KernelOperator(KERNEL, dask(X)) @ V
    K.low_rank(20)
    monkeypatch.setattr(clusters.Cluster, "_sent", lambda self, some, on: pytest.fail("a worker lacked rows"))
    np.testing.assert_array_equal(K @ V, wanted)


def test_rows_go_from_worker_to_worker_before_the_first_block_of_components(elsewhere, monkeypatch):
    seen = []
    for owner, name in ((clusters.Cluster, "beside"), (sharded.ShardedOperator, "_matmat")):
        call = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, name=name, call=call: seen.append(name) or call(*given))
    KernelPCA(2, kernel=KERNEL, solver="krylov", tol=1e-3).fit(dask(X))
    assert seen[:2] == ["beside", "_matmat"]


def test_sums_are_sent_in_the_dtype_of_the_product(elsewhere, monkeypatch):
    sums, run = [], clusters.Cluster.run

    def watched(self, *given):
        results = list(run(self, *given))
        sums.extend(part for result in results for part in (result if isinstance(result, tuple) else [result]))
        return iter(results)

    K, here = (KernelOperator(KERNEL, rows, dtype=np.float32) for rows in (dask(X), X))
    monkeypatch.setattr(clusters.Cluster, "run", watched)
    for dtype in (np.float32, np.float64):
        sums.clear()
        found = K @ V.astype(dtype)
        assert {part.dtype for part in sums} == {np.dtype(dtype)} == {found.dtype}
        assert_close(found, here @ V.astype(dtype), 1e-6)  # entries are rounded by blocks


def test_what_a_worker_cannot_do_is_left_to_the_scheduler(elsewhere, monkeypatch):
    monkeypatch.setattr(direct, "PATIENCE", 0.1)
    client, (one, other) = elsewhere.get_client(), elsewhere.scheduler_info["workers"]
    there, gone = client.submit(np.ones, 3, workers=[one]), client.submit(np.ones, 3, workers=[one])
    assert (there.result().sum(), gone.result().sum()) == (3.0, 3.0)
    sums, lost, wrong = (Parcel.of([(np.sum, rows)]) for rows in (there, gone, "no rows"))
    del gone  # the parcel holds it
    lost.futures[("a key", "of nobody")] = lost.futures.pop(next(iter(lost.futures)))
    asks, nobody = Direct(client), "tcp://127.0.0.1:9"
    asks.learn(one, sums)
    asks.learn(nobody, sums)
    asks.learn(one, lost)
    assert [asks.knows(at, sums) for at in (one, other, nobody)] == [True, False, True]
    assert asks.results([sums, lost, wrong, sums], [one, one, one, nobody]) == [[3.0], None, None, None]
    assert [asks.knows(one, sums), asks.knows(nobody, sums), asks.knows(one, lost)] == [True, False, False]


def test_messages_go_past_the_scheduler_to_workers_that_answer(elsewhere, monkeypatch):
    monkeypatch.setattr(clusters, "FRESH", 3600.0)
    K, client, relayed, direct_gathers = KernelOperator(KERNEL, dask(X)), reading.current_client(), [], []
    run, gather = client.run, client.gather
    monkeypatch.setattr(client, "run", lambda *a, **k: relayed.append(k["workers"]) or run(*a, **k))
    monkeypatch.setattr(client, "gather", lambda some, direct: direct_gathers.append(direct) or gather(some))
    wanted = K @ V  # by the scheduler, which brings rows to workers
    np.testing.assert_array_equal(K @ V, wanted)
    assert (len(relayed), direct_gathers) == (0, [True])
    K._cluster._direct._near.update(dict.fromkeys(elsewhere.scheduler_info["workers"], False))  # as behind a firewall
    np.testing.assert_array_equal(K @ V, wanted)
    assert len(relayed) == 2
    stranger = Direct(client)
    stranger.meet(["tcp://127.0.0.1:9", *elsewhere.scheduler_info["workers"]])
    assert [stranger.near(some) for some in ([], ["tcp://127.0.0.1:9"], list(elsewhere.scheduler_info["workers"]))] == [
        False,
        False,
        True,
    ]


def test_a_worker_that_vanished_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(direct, "PATIENCE", 0.01)

    class Client:
        async def run(self, function, *message, workers, on_error):
            if workers == ["gone"]:
                await asyncio.Event().wait()  # a connection to it is tried for longer than anybody waits
            return {workers[0]: [1.0]}

        async def nthreads(self):
            return {"there": 1}

    answers = Direct(Client())._answers([Parcel([], {})] * 2, ["there", "gone"])
    assert asyncio.run(asyncio.wait_for(answers, 30)) == [[1.0], None]


def test_rows_that_come_again_are_those_from_before():
    def identity(name, rows):
        return direct.together([[id, direct._Key("rows")]], [(name, "rows")], [rows])[0]

    rows = np.ones(3)
    assert identity("a", rows) == identity("a", rows.copy()) == id(rows)
    again = rows.copy()
    assert identity("b", again) == id(again)
    del rows
    assert identity("a", again) == id(again)


def test_a_fit_on_landmarks_leaves_the_rows_where_they_are(elsewhere, monkeypatch):
    model = KernelRidge(KERNEL, alpha=10.0, solver="nystroem", n_landmarks=20)
    wanted = model.fit(X, Y).predict(Z)
    monkeypatch.setattr(points, "FEW", 1.0)
    monkeypatch.setattr(points.Shards, "whole", lambda self: pytest.fail("all rows were fetched"))
    assert_close(model.fit(dask(X), Y).predict(Z), wanted, 1e-8)


def test_operators_keep_their_contract(elsewhere, rng):
    K = KernelOperator(KERNEL, dask(X[:200], 100))
    check_operator_contract(K, KernelOperator(KERNEL, X[:200]).toarray())
    factor = K.low_rank(20).F
    assert isinstance(factor, ShardedFactor)
    check_operator_contract(factor.scaled(rng.random(200)))


def test_points_in_shards_keep_their_contract(cluster):
    rows = [[0.0, 1.0, 3.0], [2.0, 0.0, 0.0], [1.0, 1.5, -7.0], [0.0, 0.0, 0.25], [1e-3, 2.0, 2.0]]
    refused = [[[0.0, bad], [1.0, 2.0]] for bad in (np.nan, np.inf, 1e200)]

    def make(items):
        return reading.sharded(da.from_array(np.array(items), chunks=(2, -1)), "points")

    others = [reading.sharded(da.from_array(np.array(rows, np.float32)), "points")]
    check_points(make, rows, refused=refused, others=others)


@pytest.mark.parametrize("shift", [1.0, 1e-12])
def test_factors_and_preconditioners_are_spread(elsewhere, shift, rng):
    K = KernelOperator(KERNEL, dask(X))
    found = K.low_rank(60)
    F, P, own = found.F.toarray(), found.pivots, KernelOperator(KERNEL, X)
    assert_close(F @ F[P].T, own.block(np.arange(N), P), 1e-7)
    assert_close(found.left, np.maximum(own.diagonal() - np.sum(F**2, axis=1), 0.0), 1e-7)
    assert found.residual_trace < 1.1 * own.low_rank(60).residual_trace
    assert found.norm() == pytest.approx(np.linalg.norm(F, 2) ** 2, rel=0.1)
    D = shift * (1 + rng.random(N))
    M, wanted = preconditioner(found.F, D), preconditioner(F.copy(), D)
    assert type(M.A) is type(wanted.A) is (LowRankInverse if shift == 1 else SpectralInverse)
    assert_close(M @ V, wanted @ V, 1e-6)
    assert_close(found.correlation(K), own.low_rank(60).correlation(own), 0.5)


def test_each_worker_adds_up_its_part_of_the_factors_gram(elsewhere, rng, monkeypatch):
    F, scale = KernelOperator(KERNEL, dask(X, 150)).low_rank(30).F, rng.random(N)
    assert isinstance(F, ShardedFactor)
    scaled, values = F.scaled(scale), scale[:, None] * F.toarray()
    G = scaled.gram(np.dtype(np.float64))
    assert_close(G, values.T @ values, 1e-12)
    sent, threads, original = [], F._cluster.threads(), clusters.Cluster._sent
    monkeypatch.setattr(clusters.Cluster, "_sent", lambda self, some, on: sent.append(on) or original(self, some, on))
    monkeypatch.setattr(clusters, "FRESH", 0.0)
    scaled.gram(np.dtype(np.float64))
    assert [len(on) for on in sent] == [2]
    for some_threads in (threads[:1], threads * 2):
        monkeypatch.setattr(clusters.Cluster, "threads", lambda self, own=some_threads: own)
        np.testing.assert_array_equal(scaled.gram(np.dtype(np.float64)), G)


def test_features_and_grams_are_spread(elsewhere, rng):
    K, D, some = KernelOperator(KERNEL, X, Z), KernelOperator(KERNEL, dask(X), Z), np.arange(0, N, 7)
    R, w = rng.standard_normal((70, 9)), rng.random(len(some))
    assert_close(D.features(R), K.toarray() @ R, 1e-12)
    start = np.asfortranarray(np.triu(W @ W.T))
    assert_close(D.add_gram(some, w, start.copy(order="F")), start + np.triu(K.rows(some).T * w @ K.rows(some)), 1e-12)


MODELS = {
    "ridge": (KernelRidge(KERNEL, alpha=10.0, solver="cg"), "predict"),
    "ridge on landmarks": (KernelRidge(KERNEL, alpha=10.0, solver="nystroem", n_landmarks=60), "predict"),
    "components": (KernelPCA(3, kernel=KERNEL, solver="krylov", tol=1e-12), "transform"),
    "landmark features": (Nystroem(KERNEL, 40), "transform"),
    "clusters": (KernelKMeans(3, kernel=KERNEL, n_landmarks=40), "predict"),
}


@pytest.mark.parametrize("name", MODELS)
def test_estimators_answer_as_in_memory(elsewhere, name):
    model, output = MODELS[name]
    wanted = getattr(model.fit(X, Y), output)(X)
    answers = [getattr(model.fit(dask(X), da.from_array(Y, chunks=300)), output)(dask(X)) for _ in range(2)]
    assert answers[0].shape == wanted.shape
    assert answers[0].chunks[0] == (500, 500, 500)
    assert_close(answers[0].compute(), wanted, 1e-8)
    np.testing.assert_array_equal(answers[0].compute(), answers[1].compute())
    assert model.n_features_in_ == 4


def test_classes_and_weights(cluster, rng):
    labels, weights = np.where(Y > 0, "up", "down"), rng.random(N)
    wanted = KernelRidgeClassifier(KERNEL).fit(X, labels, weights)
    model = KernelRidgeClassifier(KERNEL).fit(dask(X), da.from_array(labels), da.from_array(weights))
    answer = model.predict(dask(X))
    assert isinstance(answer, da.Array)
    np.testing.assert_array_equal(answer.compute(), wanted.predict(X))
    assert_close(model.decision_function(dask(X)).compute(), wanted.decision_function(X), 1e-8)


def test_a_model_is_local(elsewhere):
    model = KernelRidge(KERNEL, 10.0, solver="cg", tol=1e-3).fit(dask(X), Y)
    assert type(model.to_local().X_fit_) is np.ndarray
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(Z), model.to_local().predict(Z))


def test_progress_is_told(elsewhere):
    class Told:
        def __init__(self):
            self.events = []

        def on_event(self, event):
            self.events.append(event)

    told = Told()
    with observe(told):
        KernelOperator(KERNEL, dask(X)) @ V
    shards = [event for event in told.events if isinstance(event, TilesDone) and event.what == "shards"]
    assert shards[-1].done == shards[-1].total == 6


def test_without_a_client_the_rows_are_computed(monkeypatch):
    monkeypatch.setattr("mercer.shards.reading.current_client", lambda: None)
    model = KernelRidge(KERNEL).fit(dask(X), da.from_array(Y, chunks=300))
    wanted = KernelRidge(KERNEL).fit(X, Y)
    np.testing.assert_array_equal(model.dual_coef_, wanted.dual_coef_)
    for scheduler in ("synchronous", "threads"):
        assert_close(model.predict(dask(X)).compute(scheduler=scheduler), wanted.predict(X), 1e-12)


QUICK = KernelRidge(KERNEL, alpha=10.0, solver="cg", tol=1e-3)


class AtFirstShard:
    """Calls a function when the first result of a worker is here."""

    def __init__(self, call):
        self.call = call

    def on_event(self, event):
        if isinstance(event, TilesDone) and event.what == "shards" and self.call:
            call, self.call = self.call, None
            call()


def test_a_cluster_that_grows_is_used(elsewhere, monkeypatch):
    monkeypatch.setattr(sharded, "SENT", 0)  # vectors are tasks, which a worker without rows gets, too
    monkeypatch.setattr(clusters, "FRESH", 0.0)
    table = dask(X, 200)
    wanted, client = QUICK.fit(table, Y).dual_coef_, elsewhere.get_client()

    def grow():
        elsewhere.scale(3)
        client.wait_for_workers(3, timeout=60)

    with observe(AtFirstShard(grow)):
        found = QUICK.fit(table, Y).dual_coef_
    executed = client.run(lambda dask_worker: dask_worker.state.executed_count)
    elsewhere.scale(2)
    assert len(executed) == 3
    assert min(executed.values()) > 0
    np.testing.assert_array_equal(found, wanted)


def test_a_worker_that_is_lost_costs_its_own_work_only(elsewhere):
    wanted, lost = QUICK.fit(dask(X), Y).dual_coef_, []

    async def lose(dask_scheduler):
        worker = next(iter(dask_scheduler.workers))
        await dask_scheduler.remove_worker(worker, stimulus_id="lost")
        return worker

    with two_workers() as own:
        client = own.get_client()
        with client.as_current(), observe(AtFirstShard(lambda: lost.append(client.run_on_scheduler(lose)))):
            found = QUICK.fit(dask(X), Y).dual_coef_
        assert lost[0] not in client.scheduler_info()["workers"]
    np.testing.assert_array_equal(found, wanted)


def test_a_client_that_closes_is_one_clear_error(elsewhere):
    client = distributed.Client(elsewhere, set_as_default=False)
    with client.as_current():
        model = KernelRidge(KERNEL, alpha=10.0, solver="cg")
        with pytest.raises(ClusterLost, match="client was closed"), observe(AtFirstShard(client.close)):
            model.fit(dask(X), Y)
    assert not hasattr(model, "dual_coef_")


def test_the_command_line_fits_on_workers(elsewhere, tmp_path):
    place, models = tmp_path / "table.csv", [tmp_path / "here.mercer", tmp_path / "there.mercer"]
    pd.DataFrame(X[:400], columns=list("abcd")).assign(y=Y[:400]).to_csv(place, index=False)
    for out, more in zip(models, ([], ["--dask", elsewhere.scheduler_address]), strict=True):
        own = ["fit", str(place), "--target", "y", "--kernel", "gaussian(gamma=0.3)", "--alpha", "0.1", *more]
        result = CliRunner().invoke(app, [*own, "--out", str(out)])
        assert result.exit_code == 0, result.output
    here, there = (load(out).predict(pd.DataFrame(X[:9], columns=list("abcd"))) for out in models)
    assert_close(there, here, 1e-8)
    both = CliRunner().invoke(app, ["fit", str(place), "--dask", elsewhere.scheduler_address, "--workers", "2"])
    assert both.exit_code != 0
    assert "both --dask and --workers" in both.output


def test_workers_of_this_machine_have_settings_of_their_own(monkeypatch):
    def made(**options):
        found.append((options["n_workers"], *map(setting, LOCAL)))
        return nullcontext()

    def setting(name):
        return config.get(name, None)

    found, before = [], [setting(name) for name in LOCAL]
    monkeypatch.setattr(distributed, "LocalCluster", made)
    monkeypatch.setattr(distributed, "Client", nullcontext)
    with workers(None, 3):
        assert found == [(3, *LOCAL.values())]
    assert [setting(name) for name in LOCAL] == before
