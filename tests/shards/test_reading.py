"""Which of Dask's arrays and data frames become rows in shards, and what is refused."""

from __future__ import annotations

import itertools
import logging
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from held import KERNEL, N, X, Y, dask

from mercer import KernelCCA, KernelOperator, KernelRidge, KernelRidgeClassifier, hsic_test
from mercer.errors import InvalidInput
from mercer.shards import reading
from mercer.shards.reading import boundaries
from mercer.testing import assert_close

config = pytest.importorskip("dask.config")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
delayed = pytest.importorskip("dask").delayed
pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame(X, columns=list("abcd"))


def frame(table):
    return dd.from_pandas(table, npartitions=3)


def partitions(*tables):
    """A data frame whose description is that of the first."""
    return dd.from_map(lambda i: tables[i], range(len(tables)), meta=tables[0][:0])


KINDS = {
    "Float64": FRAME.astype("Float64"),
    "Float32": FRAME.astype("Float32"),
    "Int64": FRAME.round().astype("Int64"),
    "boolean": FRAME.assign(a=(FRAME.a > 0).astype("boolean"), b=FRAME.b > 0),
    "objects": FRAME.astype({"a": object}),
    "categories": FRAME.round().astype("category"),
    "sparse columns": FRAME.astype(pd.SparseDtype(float, 0.0)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_any_numbers_are_read(cluster, kind):
    with config.set({"dataframe.convert-string": False}):
        table = frame(KINDS[kind])
    wanted = KernelRidge(KERNEL).fit(KINDS[kind].astype(float), Y)
    model = KernelRidge(KERNEL).fit(table, Y)
    assert_close(model.dual_coef_, wanted.dual_coef_, 1e-8)
    assert_close(model.predict(table).compute(), wanted.predict(KINDS[kind].astype(float)), 1e-8)


@pytest.mark.parametrize("client", [True, False])
def test_columns_of_partitions_go_by_their_names(cluster, monkeypatch, client):
    if not client:
        monkeypatch.setattr(reading, "current_client", lambda: None)
    tables = FRAME[:0], FRAME[list("dcba")][:500], FRAME[500:]
    table, wanted = partitions(*tables), KernelRidge(KERNEL).fit(FRAME, Y)
    model = KernelRidge(KERNEL).fit(partitions(*tables), Y)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert_close(model.dual_coef_, wanted.dual_coef_, 1e-8)
    assert_close(model.predict(table).compute(), wanted.predict(FRAME), 1e-8)
    other = dd.from_map(lambda i: tables[i + 1], range(2), meta=tables[0])  # described otherwise than it begins
    assert reading.local(other).columns.tolist() == list("abcd")


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("rows", [500, N, np.nan])
def test_sparse_blocks_are_as_in_memory(cluster, kind, rows):
    if np.isnan(rows):
        blocks = [da.from_delayed(delayed(kind)(part), (rows, 4), meta=kind((0, 4))) for part in (X[:500], X[500:])]
        table = da.concatenate(blocks)
    else:
        table = dask(X, rows).map_blocks(kind)
    wanted, model = KernelRidge(KERNEL).fit(kind(X), Y), KernelRidge(KERNEL).fit(table, Y)
    assert_close(model.dual_coef_, wanted.dual_coef_, 1e-8)
    assert_close(model.predict(table).compute(), wanted.predict(X), 1e-8)


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


@pytest.mark.parametrize("cut", [0, 100])
@pytest.mark.parametrize("rows", [(N,), (0, 1, N - 1), (100,) * 15, (3, 900, 0, 597), (1499, 1)])
def test_shards_have_the_rows_of_any_chunks(cluster, monkeypatch, rows, cut):
    monkeypatch.setattr(reading, "CUT", cut)
    shards = reading.sharded(da.from_array(X, chunks=(rows, (1, 3))), "points").shards
    starts = boundaries(N, sum(size > 0 for size in rows))
    np.testing.assert_array_equal(shards.starts, starts)
    for future, first, last in zip(shards.futures, starts[:-1], starts[1:], strict=True):
        np.testing.assert_array_equal(future.result(), X[first:last])


def test_rows_in_chunks_smaller_than_a_tile(cluster):
    rows = np.tile(X, (2, 1))[:2000]
    K = KernelOperator(KERNEL, da.from_array(rows, chunks=(100, 4)))
    assert_close(K @ rows, KernelOperator(KERNEL, rows) @ rows, 1e-12)


def test_partitions_of_unknown_or_no_rows(cluster):
    keep = X[:, 0] > 0
    table = da.concatenate([da.from_array(X[:0]), dask(X, 100), dask(X[:1])])
    wanted = KernelRidge(KERNEL).fit(X[keep], Y[keep]).dual_coef_
    chosen = dask(X)[da.from_array(keep, chunks=500)]
    assert_close(KernelRidge(KERNEL).fit(chosen, Y[keep]).dual_coef_, wanted, 1e-8)
    assert KernelOperator(KERNEL, table).shape == (N + 1, N + 1)
    model = KernelRidge(KERNEL).fit(X, Y)
    assert model.predict(da.concatenate([da.from_array(X[:0]), dask(X[:5])])).compute().shape == (5,)


def test_rows_and_targets_of_unknown_number_are_computed_together(cluster, caplog):
    """They share keys, and two graphs that do are said to fail or to wait for ever."""
    kept = X[:, 0] > 0
    mask = dask(X)[:, 0] > 0
    with caplog.at_level(logging.WARNING, "distributed.scheduler"):
        model = KernelRidge(KERNEL).fit(dask(X)[mask], dask(Y)[mask])
    assert "run_spec" not in caplog.text
    assert_close(model.dual_coef_, KernelRidge(KERNEL).fit(X[kept], Y[kept]).dual_coef_, 1e-8)


@pytest.mark.parametrize("client", [True, False])
@pytest.mark.parametrize("kind", ["string", "Int64", "object"])
def test_labels_of_every_type(cluster, monkeypatch, client, kind):
    if not client:
        monkeypatch.setattr(reading, "current_client", lambda: None)
    names = {"Int64": [2**60, 2**60 + 1]}.get(kind, ["no", "yes"])
    y = pd.Series(np.array(names, dtype=object)[(Y > 0).astype(int)]).astype(kind)
    with config.set(scheduler=None if client else "synchronous"):
        model = KernelRidgeClassifier(KERNEL).fit(frame(FRAME), dd.from_pandas(y, npartitions=3))
    assert model.classes_.tolist() == names
    assert_close(model.decision_function(X), KernelRidgeClassifier(KERNEL).fit(X, Y > 0).decision_function(X), 1e-8)


def shuffled_anew():
    """A data frame of a source that orders its rows anew each time, as a query without ORDER BY does."""
    rng, whole = np.random.default_rng(0), pd.DataFrame(X, columns=list("abcd")).assign(y=Y, w=1.0 + (Y > 0))

    def part(i):
        return whole[400 * i : 400 * (i + 1)].iloc[rng.permutation(len(whole[400 * i : 400 * (i + 1)]))]

    return dd.from_map(part, range(-(-N // 400)), meta=whole[:0])


@pytest.mark.parametrize("client", [True, False])
def test_rows_targets_and_weights_are_of_one_computation(cluster, monkeypatch, client):
    """A row had the target of another: R² -1 of a model that is right. A shuffle without a client does it, too."""
    if not client:
        monkeypatch.setattr(reading, "current_client", lambda: None)
    table, columns = shuffled_anew(), list("abcd")
    with config.set(scheduler=None if client else "synchronous"):
        weighted = KernelRidge(KERNEL).fit(table[columns], table["y"], sample_weight=table["w"])
        model = KernelRidge(KERNEL).fit(table[columns], table["y"])
        score = model.score(table[columns], table["y"], sample_weight=table["w"])
        statistic = hsic_test(table[["a"]], table[["y"]], KERNEL, KERNEL, n_permutations=9).statistic
        pair = KernelCCA(1, "linear").fit(table[columns], table[["y"]])
    wanted = KernelRidge(KERNEL).fit(X, Y)
    assert_close(model.predict(X), wanted.predict(X), 1e-8)
    assert_close(weighted.predict(X), KernelRidge(KERNEL).fit(X, Y, 1.0 + (Y > 0)).predict(X), 1e-8)
    assert score == pytest.approx(wanted.score(X, Y, 1.0 + (Y > 0)), abs=1e-10)
    expected = hsic_test(X[:, :1], Y[:, None], KERNEL, KERNEL, n_permutations=9).statistic
    assert statistic == pytest.approx(expected, rel=1e-9)
    assert_close(pair.correlations_, KernelCCA(1, "linear").fit(X, Y[:, None]).correlations_, 1e-8)


@pytest.mark.parametrize("kind", ["frame", "unknown", "known"])
def test_scores_of_dasks_data(cluster, kind):
    held = pd.DataFrame(X, columns=list("abcd")) if kind == "frame" else X
    model = KernelRidge(KERNEL).fit(held, Y)
    if kind == "frame":
        rows, targets = (dd.from_pandas(one, npartitions=3) for one in (held, pd.Series(Y)))
    else:
        some = da.from_array(np.ones(N, bool), chunks=500) if kind == "unknown" else slice(None)
        rows, targets = dask(X)[some], dask(Y)[some]
    expected = model.score(held, Y)
    assert model.score(rows, targets) == pytest.approx(expected, abs=1e-12)
    assert model.score(rows, Y, sample_weight=da.ones(N, chunks=500)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (lambda: dask(np.where(np.arange(N)[:, None] == 900, np.nan, X)), "rows 384 to 959: row 516, column 0 is nan"),
        (lambda: da.from_array(X[:0]), "shape (0, 4)"),
        (lambda: da.from_array(Y), "a dask array of 1 dimension;"),
        (lambda: frame(FRAME.assign(a="x")), "data frame with 1 column of no numbers: 'a'; give numbers"),
        (lambda: frame(FRAME.assign(b=pd.Timestamp(2026, 1, 1, tz="UTC"))), "1 column of no numbers: 'b'"),
        (lambda: frame(FRAME.assign(c=pd.Categorical(["x"] * N))), "could not convert string to float: 'x'"),
        (lambda: frame(FRAME.where(FRAME < 3.0).astype("Float64")), "row 54, column 3 is nan"),
        (lambda: partitions(FRAME[:500], FRAME[500:].rename(columns={"a": "z"})), "do not all have the column 'a'"),
        (lambda: dask(X).map_blocks(sp.csr_array, meta=np.empty((0, 0))), "a block of type csr_array"),
    ],
    ids=["NaN", "no rows", "one dimension", "text", "dates", "categories", "missing", "names", "undeclared"],
)
def test_what_is_refused(cluster, table, says):
    with pytest.raises(InvalidInput) as error:
        KernelRidge(KERNEL).fit(table(), Y)
    assert says in str(error.value)


def test_shards_depend_on_the_data_alone():
    many = itertools.product((1, 193, 1537, 2000, 3100, 20_000, 10**6), (1, 5, 9, 20, 1000))
    for n, chunks in (*many, (10**9, 7)):
        starts = boundaries(n, chunks)
        assert starts[0] == 0
        assert starts[-1] == n
        assert np.all(np.diff(starts) > 0)
        assert np.all(starts[:-1] % 192 == 0)
        assert len(starts) <= 1025
