"""Files and iterators of rows as strangers write them: memory, names, dtypes, parts, and what is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelRidge
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.io import stream
from mercer.points import DensePoints, FilePoints, read_points

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 2))
Y = X @ [1.0, -2.0]


def parquet(path, columns, **options):
    pa, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(pa.table(columns), path, **{"row_group_size": 200, **options})
    return path


def arrow(path, columns, size=None, **options):
    pa, ipc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.ipc")
    table = pa.table(columns)
    with ipc.new_file(str(path), table.schema, options=ipc.IpcWriteOptions(**options)) as file:
        file.write_table(table, max_chunksize=size)
    return path


def zarr(path, rows, chunks):
    array = pytest.importorskip("zarr").create_array(str(path), shape=rows.shape, chunks=chunks, dtype=rows.dtype)
    array[:] = rows
    return path


def csv(path, text):
    pytest.importorskip("pyarrow")
    path.write_text(text)
    return path


def ab(rows):
    return {"a": rows[:, 0], "b": rows[:, 1]}


# ---- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "do"),
    [
        (
            lambda path, rows: parquet(path / "x.parquet", dict(enumerate_names(rows)), row_group_size=20_000),
            "smaller pages",
        ),
        (lambda path, rows: arrow(path / "x.arrow", dict(enumerate_names(rows))), "smaller batches"),
        (lambda path, rows: zarr(path / "x.zarr", rows, rows.shape), "smaller chunks"),
    ],
    ids=["parquet", "arrow", "zarr"],
)
def test_a_piece_that_does_not_fit_in_the_budget_is_refused(make, do, tmp_path):
    rows = np.random.default_rng(0).standard_normal((20_000, 30))
    points = read_points(make(tmp_path, rows))
    with pytest.raises(MemoryExceeded, match=rf"x\.\w+: .*the memory budget is 2 MB; write it with {do}, or raise"):
        KernelRidge(solver="nystroem", n_landmarks=5, memory="2MB").fit(points, rows[:, 0])
    with pytest.raises(MemoryExceeded, match=do):
        stream(KernelRidge().fit(rows[:9], rows[:9, 0]), points, tmp_path / "out.npy", memory="2MB")
    assert len(points.within("1GB").validate("test")) == len(rows)


def enumerate_names(rows):
    return ((f"c{place}", column) for place, column in enumerate(rows.T))


def test_a_target_is_read_within_the_budget(tmp_path):
    path = parquet(tmp_path / "x.parquet", {"a": np.arange(1e5), "y": np.arange(1e5)}, row_group_size=100_000)
    with pytest.raises(MemoryExceeded, match="smaller pages"):
        read_points(path, target="y", memory="100kB")
    assert len(read_points(path, target="y", memory="100MB")[1]) == 100_000


MEASURED = """
import sys
from mercer.points import read_points

def peak():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))

points = read_points(sys.argv[1]).within(sys.argv[2])
before = peak()
for _ in points.checked("test", points.window_rows(int(sys.argv[2]))):
    pass
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is in a file of Linux")
def test_what_is_read_takes_no_more_than_the_budget(tmp_path):
    rows = np.random.default_rng(0).standard_normal((250_000, 20))
    path = zarr(tmp_path / "x.zarr", rows, (125_000, 20))
    taken = 4 * rows.nbytes // 2  # a stored chunk as it is stored, unpacked and in the rows, and the one before
    with pytest.raises(MemoryExceeded, match="needs 80 MB"):
        read_points(path).within(taken - 1).validate("test")
    told = subprocess.run([sys.executable, "-c", MEASURED, path, str(taken)], capture_output=True, check=True)
    assert int(told.stdout) < 1.1 * taken


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["1GB", 100_000], ids=["in memory", "packed"])
def test_names_of_columns_are_those_of_data_frames(memory, tmp_path):
    pd = pytest.importorskip("pandas")
    rows, new = parquet(tmp_path / "x.parquet", ab(X)), parquet(tmp_path / "new.parquet", ab(X[:, ::-1]))
    swapped = parquet(tmp_path / "swapped.parquet", {"b": X[:, 1], "a": X[:, 0]})
    other = parquet(tmp_path / "other.parquet", {"a": X[:, 0], "c": X[:, 1]})
    options = {"alpha": 1e-9, "solver": "nystroem", "n_landmarks": 2}
    frame = pd.DataFrame(ab(X))
    of_file = KernelRidge("linear", memory=memory, **options).fit(read_points(rows).within(memory), Y)
    of_frame = KernelRidge("linear", **options).fit(frame, Y)
    assert of_file.feature_names_in_.tolist() == ["a", "b"]
    for model in (of_file, of_frame):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(model.predict(read_points(rows)), Y, atol=1e-4)
            np.testing.assert_allclose(model.predict(read_points(swapped, columns=["a", "b"])), Y, atol=1e-4)
            model.predict(read_points(new))
            model.predict(frame)
            stream(model, read_points(rows), tmp_path / "out.npy")
        np.testing.assert_allclose(np.load(tmp_path / "out.npy"), Y, atol=1e-4)
        for path in (swapped, other):
            with pytest.raises(ValueError, match="feature names should match"):
                model.predict(read_points(path))
            with pytest.raises(ValueError, match="feature names should match"):
                stream(model, read_points(path), tmp_path / "refused.npy")
    assert not (tmp_path / "refused.npy").exists()


def test_rows_without_names_have_none(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelRidge("linear").fit(read_points(tmp_path / "x.npy"), Y)
        model.predict(X)
    assert not hasattr(model, "feature_names_in_")


# ---- iterators -------------------------------------------------------------------------------------------------------


def test_an_iterator_that_does_not_begin_again_is_refused():
    parts = np.array_split(X, 4)
    one, rest, none = iter(parts), iter(parts), iter(parts[:1])
    given = "chunks: the function does not begin again with the first chunk; give a function that makes a new iterator"
    with pytest.raises(InvalidInput, match=given):
        read_points(lambda: one)
    for function in (lambda: (part for part in rest), lambda: map(np.asarray, none)):
        points = read_points(function)
        with pytest.raises(InvalidInput, match=given):
            points.validate("test")
    np.testing.assert_array_equal(read_points(lambda: parts).dense(), X)


@pytest.mark.parametrize(
    "later",
    [
        np.ones((1, 2)),
        np.full((1, 2), 1e300),
        np.ones((1, 2), np.int64),
        np.ones((1, 2), complex),
        np.array([["1", "2"]]),
        np.array([["2020-01-01"] * 2], "datetime64[D]"),
        np.array([[1, 2]], object),
    ],
    ids=lambda one: str(one.dtype),
)
def test_a_later_chunk_of_another_dtype_is_refused(later):
    points = read_points(lambda: iter([X.astype(np.float32), later]))
    with pytest.raises(
        InvalidInput, match=r"chunks: chunk 2 has dtype .*, and rows are float32 .*; give chunks of one"
    ):
        points.validate("test")


def test_later_chunks_whose_numbers_are_kept_are_read():
    later = [np.ones((1, 2), dtype) for dtype in (np.float32, np.int64, bool)]
    assert len(read_points(lambda: iter([X, *later])).validate("test")) == len(X) + 3
    small = [np.ones((1, 2), dtype) for dtype in (np.float16, np.int8)]
    assert len(read_points(lambda: iter([X.astype(np.float32), *small])).validate("test")) == len(X) + 2


def test_later_data_frames_have_the_same_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ab(X))
    for later in (frame[["b", "a"]], frame.rename(columns={"a": "c"}), X):
        points = read_points(lambda later=later: iter([frame, later]))
        with pytest.raises(InvalidInput, match=r"chunk 2 has other names of columns than the first one.*; give chunks"):
            points.validate("test")
    assert KernelRidge("linear").fit(read_points(lambda: [frame]), Y).feature_names_in_.tolist() == ["a", "b"]


# ---- tables ----------------------------------------------------------------------------------------------------------


def test_parts_with_whole_and_decimal_numbers_are_parts_of_one_table(tmp_path):
    parts = [csv(tmp_path / "1.csv", "a,b,y\n1,2,3\n"), csv(tmp_path / "2.csv", "a,b,y\n1.5,2,3.5\n")]
    points, y = read_points(parts, target="y")
    np.testing.assert_array_equal(points.dense(), [[1, 2], [1.5, 2]])
    np.testing.assert_array_equal(y, [3, 3.5])
    parts = [
        parquet(tmp_path / "1.parquet", {"a": np.float32([1.1]), "b": np.float32([2])}),
        parquet(tmp_path / "2.parquet", {"a": [1.1], "b": [2]}),
    ]
    points = read_points(parts)
    assert points.dtype == np.float64
    np.testing.assert_array_equal(points.dense(), [[np.float32(1.1), 2], [1.1, 2]])
    with pytest.raises(
        InvalidInput, match=r"3\.csv: has other columns than 1\.csv, or other types of them; give parts"
    ):
        read_points([tmp_path / "1.csv", csv(tmp_path / "3.csv", "a,b,y\n1,2,no\n")], target="y")


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_named_columns_are_found_wherever_they_are(kind, tmp_path):
    parts = [{"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0, 1]}, {"y": [1], "b": [6.0], "c": ["x"], "a": [5.0]}]
    paths = [tmp_path / f"{place}.{kind}" for place in range(2)]
    for path, columns in zip(paths, parts, strict=True):
        if kind == "csv":
            lines = zip(*columns.values(), strict=True)
            csv(path, "\n".join([",".join(columns), *(",".join(map(str, line)) for line in lines)]))
        else:
            {"parquet": parquet, "arrow": arrow}[kind](path, columns)
    points, y = read_points(paths, columns=["b", "a"], target="y")
    np.testing.assert_array_equal(points.dense(), [[3, 1], [4, 2], [6, 5]])
    np.testing.assert_array_equal(y, [0, 1, 1])
    with pytest.raises(InvalidInput, match=rf"1\.{kind}: has other columns than 0\.{kind}"):
        read_points(paths)


def test_true_false_and_dates_of_text_are_what_they_are(tmp_path):
    path = csv(tmp_path / "x.csv", "a,b,y,d\n1,True,False,2020-01-01\n2,False,True,2020-01-02\n")
    points, y = read_points(path, target="y", without=["d"])
    np.testing.assert_array_equal(points.dense(), [[1, 1], [2, 0]])
    assert y.tolist() == [False, True]
    assert y.dtype == bool
    _, days = read_points(path, target="d")
    assert days.dtype.kind == "M"


def test_a_later_value_of_another_type_is_told(tmp_path):
    path = csv(tmp_path / "x.csv", "a,b\n" + "1,2\n" * 300_000 + "no,2\n")
    with pytest.raises(InvalidInput, match=r"x\.csv: .*conversion error to double.*; give values of one type"):
        read_points(path).validate("test")


@pytest.mark.parametrize(
    ("values", "kind"), [([1, 0, 2], "i"), ([1.5, 0, 2], "f"), ([1, "", 2], "f"), ([1, 2**60, 2], "f")]
)
def test_whole_numbers_of_a_target_are_integers(values, kind, tmp_path):
    path = csv(tmp_path / "x.csv", "a,y\n" + "".join(f"0,{value}\n" for value in values))
    _, y = read_points(path, target="y")
    assert y.dtype.kind == kind
    np.testing.assert_array_equal(y, [np.nan if value == "" else value for value in values])


def test_parts_of_a_folder_are_in_the_order_of_their_numbers(tmp_path):
    for place in (10, 2, 1):
        parquet(tmp_path / f"part.{place}.parquet", {"a": [float(place)]})
    np.testing.assert_array_equal(read_points(tmp_path).dense()[:, 0], [1, 2, 10])


# ---- as objects ------------------------------------------------------------------------------------------------------


def test_points_can_be_pickled_after_a_fit(tmp_path):
    np.save(tmp_path / "x.npy", X)
    for points in (read_points(tmp_path / "x.npy"), read_points(parquet(tmp_path / "x.parquet", ab(X)))):
        for memory, kind in (("1GB", DensePoints), (60_000, FilePoints)):
            given = points.within(memory)
            kept = given.validate("test")
            data = pickle.dumps(given)
            found = pickle.loads(data)
            assert isinstance(kept, kind)
            assert isinstance(found.validate("test"), kind)
            assert len(data) < X.nbytes
            np.testing.assert_array_equal(found.dense(), X)


def test_scikit_learn_splits_rows_on_disk(tmp_path):
    pytest.importorskip("pandas")
    model = KernelRidge("gaussian", alpha=0.1, solver="nystroem", n_landmarks=20, random_state=0)
    rows = read_points(parquet(tmp_path / "x.parquet", ab(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(cross_val_score(model, rows, Y), cross_val_score(model, X, Y), rtol=1e-8)
        found = GridSearchCV(model, {"alpha": [0.1, 10.0]}, cv=3).fit(rows, Y)
    assert found.best_params_ == GridSearchCV(model, {"alpha": [0.1, 10.0]}, cv=3).fit(X, Y).best_params_
    with pytest.raises(InvalidInput, match=r"x\.parquet: rows are asked for in another order .*; give growing numbers"):
        cross_val_score(model, rows, Y, cv=ShuffleSplit(2), error_score="raise")
    with pytest.raises(
        InvalidInput, match=r"x\.parquet: rows on disk, where rows in memory are read; give points\.den"
    ):
        make_pipeline(StandardScaler(), model).fit(rows, Y)
    np.testing.assert_array_equal(rows[[3, 7]].dense(), X[[3, 7]])
    np.testing.assert_array_equal(rows[5:1500].within(30_000).dense(), X[5:1500])
    assert rows[5:9].names == ["a", "b"]


def test_row_groups_and_parts_without_rows_are_passed_over(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": X[:300, 0], "b": X[:300, 1]})
    with pq.ParquetWriter(tmp_path / "groups.parquet", table.schema) as writer:
        for part in (table[:0], table[:100], table[100:100], table[100:], table[:0]):
            writer.write_table(part)
    (tmp_path / "parts").mkdir()
    for name, part in (("a", table[:150]), ("b", table[:0]), ("c", table[150:])):
        pq.write_table(part, tmp_path / "parts" / f"{name}.parquet")
    plain = KernelRidge("gaussian(gamma=0.5)").fit(X[:300], Y[:300])
    for path in (tmp_path / "groups.parquet", tmp_path / "parts"):
        model = KernelRidge("gaussian(gamma=0.5)").fit(read_points(path), Y[:300])
        assert np.array_equal(model.X_fit_, X[:300])
        assert np.allclose(model.dual_coef_, plain.dual_coef_)
    pq.write_table(table[:0], tmp_path / "none.parquet")
    with pytest.raises(InvalidInput, match="has no rows; give at least one row"):
        KernelRidge().fit(read_points(tmp_path / "none.parquet"), [])
