"""Dask's arrays and data frames: the answers of arrays in memory, whichever workers compute them."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from mercer import KernelKMeans, KernelOperator, KernelPCA, KernelRidge, KernelRidgeClassifier, Nystroem
from mercer.cli.app import app
from mercer.errors import ClusterLost, InvalidInput
from mercer.events import TilesDone, observe
from mercer.gram import ShardedOperator, sharded
from mercer.io import load
from mercer.kernels import Gaussian
from mercer.shards.reading import boundaries
from mercer.testing import assert_close

config = pytest.importorskip("dask.config")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N = 1500
X, V = RNG.standard_normal((N, 4)), RNG.standard_normal((N, 3))
Z, W = RNG.standard_normal((70, 4)), RNG.standard_normal((70, 2))
Y = np.sin(X).sum(axis=1)
KERNEL = Gaussian(0.3)


@pytest.fixture(scope="module")
def cluster():
    """Two workers of one thread each."""
    with (
        warnings.catch_warnings(),
        # By default a worker tries for half a minute to reach one that is gone.
        config.set({"distributed.comm.timeouts.connect": "10s"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as one,
        distributed.Client(one),
    ):
        yield one


@pytest.fixture
def elsewhere(cluster, monkeypatch):
    """Workers compute also the products of small matrices."""
    monkeypatch.setattr(sharded, "HERE", 0)
    return cluster


def dask(rows, chunks=500):
    return da.from_array(rows, chunks=(chunks, *rows.shape[1:]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [KERNEL, 0.5 * KERNEL + Gaussian(2.0) * 1.0, "laplace(gamma=0.5)"], ids=repr)
def test_products_are_those_in_memory(elsewhere, kernel, dtype):
    K, D = KernelOperator(kernel, X, dtype=dtype), KernelOperator(kernel, dask(X), dtype=dtype)
    assert isinstance(D, ShardedOperator)
    assert type(D.astype(np.float32)) is ShardedOperator
    assert D.symmetric
    assert_close(D @ V, K.astype(np.float64) @ V, 1e-12 if dtype == np.float64 else 1e-5)
    np.testing.assert_array_equal(D @ V, KernelOperator(kernel, dask(X), dtype=dtype) @ V)


def test_products_with_other_points(elsewhere):
    K, weights = KernelOperator(KERNEL, X, Z), RNG.random(N)
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


def test_each_pair_is_computed_once(elsewhere, monkeypatch):
    tasks = []
    original = sharded.Cluster.submit
    monkeypatch.setattr(sharded.Cluster, "submit", lambda self, *task: tasks.append(task) or original(self, *task))
    K = KernelOperator(KERNEL, dask(X))
    tasks.clear()
    K @ V
    names = [function.__name__ for function, *_ in tasks]
    assert (names.count("_held"), names.count("_pair"), names.count("_product")) == (3, 3, 3)


MODELS = {
    "ridge": (KernelRidge(KERNEL, alpha=10.0, solver="cg"), "predict"),
    "ridge on landmarks": (KernelRidge(KERNEL, alpha=10.0, solver="nystroem", n_landmarks=60), "predict"),
    "components": (KernelPCA(3, kernel=KERNEL, solver="krylov", tol=1e-12), "transform"),
    "landmark features": (Nystroem(KERNEL, 40), "transform"),
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


def test_classes_and_weights(cluster):
    labels, weights = np.where(Y > 0, "up", "down"), RNG.random(N)
    wanted = KernelRidgeClassifier(KERNEL).fit(X, labels, weights)
    model = KernelRidgeClassifier(KERNEL).fit(dask(X), da.from_array(labels), da.from_array(weights))
    answer = model.predict(dask(X))
    assert isinstance(answer, da.Array)
    np.testing.assert_array_equal(answer.compute(), wanted.predict(X))
    assert_close(model.decision_function(dask(X)).compute(), wanted.decision_function(X), 1e-8)


def test_data_frames_keep_their_names(cluster):
    frame = pd.DataFrame(X, columns=list("abcd"))
    table = dd.from_pandas(frame, npartitions=3)
    model = KernelRidge(KERNEL).fit(table, dd.from_pandas(pd.Series(Y), npartitions=2))
    assert model.feature_names_in_.tolist() == list("abcd")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = model.predict(table)
        assert_close(answer.compute(), KernelRidge(KERNEL).fit(frame, Y).predict(frame), 1e-8)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[list("dcba")])


def test_partitions_of_unknown_or_no_rows(cluster):
    keep = X[:, 0] > 0
    table = da.concatenate([da.from_array(X[:0]), dask(X, 100), dask(X[:1])])
    wanted = KernelRidge(KERNEL).fit(X[keep], Y[keep]).dual_coef_
    chosen = dask(X)[da.from_array(keep, chunks=500)]
    assert_close(KernelRidge(KERNEL).fit(chosen, Y[keep]).dual_coef_, wanted, 1e-8)
    assert KernelOperator(KERNEL, table).shape == (N + 1, N + 1)
    model = KernelRidge(KERNEL).fit(X, Y)
    assert model.predict(da.concatenate([da.from_array(X[:0]), dask(X[:5])])).compute().shape == (5,)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (lambda: dask(np.where(np.arange(N)[:, None] == 900, np.nan, X)), "rows 576 to 1151: row 324, column 0 is nan"),
        (lambda: da.from_array(X[:0]), "shape (0, 4)"),
        (lambda: da.from_array(Y), "a dask array of 1 dimension;"),
        (lambda: dd.from_pandas(pd.DataFrame({"a": ["x", "y"]}), npartitions=1), "data frame of dtype"),
    ],
    ids=["NaN", "no rows", "one dimension", "text"],
)
def test_what_is_refused(cluster, table, says):
    with pytest.raises(InvalidInput) as error:
        KernelRidge(KERNEL).fit(table(), Y)
    assert says in str(error.value)


def test_a_model_is_local(elsewhere):
    model = KernelRidge(KERNEL, solver="cg").fit(dask(X), Y)
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


def test_shards_depend_on_the_data_alone():
    for n, chunks in ((1, 1), (193, 5), (10**6, 1), (10**9, 7)):
        starts = boundaries(n, chunks)
        assert starts[0] == 0
        assert starts[-1] == n
        assert np.all(np.diff(starts) > 0)
        assert np.all(starts[:-1] % 192 == 0)
        assert len(starts) <= 1025


def test_without_a_client_the_rows_are_computed(monkeypatch):
    monkeypatch.setattr("mercer.shards.reading.current_client", lambda: None)
    model = KernelRidge(KERNEL).fit(dask(X), da.from_array(Y, chunks=300))
    wanted = KernelRidge(KERNEL).fit(X, Y)
    np.testing.assert_array_equal(model.dual_coef_, wanted.dual_coef_)
    for scheduler in ("synchronous", "threads"):
        assert_close(model.predict(dask(X)).compute(scheduler=scheduler), wanted.predict(X), 1e-12)


def test_nothing_of_dask_is_imported_unless_used():
    code = "import sys, mercer; mercer.KernelRidge().fit([[0.0], [1.0]], [0.0, 1.0]).predict([[0.5]])"
    code += "; print([m for m in sys.modules if m.partition('.')[0] in ('dask', 'distributed')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def kill_one(cluster, after):
    """End the process of a worker after some seconds; its nanny starts another."""

    def end():
        time.sleep(after)
        worker = next(iter(cluster.workers.values()))
        worker.process.process._process.kill()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    return thread


def survives(cluster, name, after):
    """Whether a model has the same bits if a worker is killed during its fit."""
    model, output = {**MODELS, "clusters": (KernelKMeans(3, kernel=KERNEL, n_landmarks=40), "predict")}[name]
    cluster.wait_for_workers(2, timeout=120)
    table = dask(X)
    wanted = getattr(model.fit(table, Y), output)(X)
    killer = kill_one(cluster, after)
    found = getattr(model.fit(table, Y), output)(X)
    killer.join()
    return np.array_equal(found, wanted)


def test_a_worker_that_dies_costs_its_own_work_only(elsewhere):
    assert survives(elsewhere, "ridge", 0.1)


@pytest.mark.soak
@pytest.mark.parametrize("moment", range(20))
@pytest.mark.parametrize("name", ["ridge", "components", "clusters"])
def test_a_worker_dies_at_any_moment(elsewhere, name, moment):
    assert survives(elsewhere, name, float(np.random.default_rng([7, moment]).uniform(0, 1.5)))


def test_a_client_that_closes_is_one_clear_error(cluster, monkeypatch):
    monkeypatch.setattr(sharded, "HERE", 0)
    client = distributed.Client(cluster, set_as_default=False)
    with client.as_current():
        K = KernelOperator(KERNEL, dask(X))
    client.close()
    with pytest.raises(ClusterLost, match="client was closed"):
        K @ V


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
