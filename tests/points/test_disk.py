"""Points on disk: every kind of file gives the answers of the same rows in memory, and faults leave nothing behind."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from mercer import (
    SVC,
    SVR,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLogisticRegression,
    KernelOperator,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
)
from mercer.errors import InvalidInput
from mercer.gram import data, operator
from mercer.kernels import Chi2, Gaussian, Laplace
from mercer.points import DensePoints, DiskPoints, FilePoints, ahead, points_of, read_points
from mercer.points.disk import ChunkSource, NpySource, scratch
from mercer.points.disk import points as disk_points
from mercer.solvers import DualCoordinateDescent
from mercer.testing import assert_close, check_points

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3000, 5))
Y = np.sin(X).sum(axis=1)
NAMES = [f"c{place}" for place in range(5)]
SMALL = 40_000
"""A budget in bytes of which the rows take three times as much: they are packed."""


WINDOWS = 120_000
"""A budget for 1000 rows, in windows of some hundred rows."""


def packed(rows, memory=SMALL):
    """The rows of an iterator, packed in a temporary file and read in windows of a few rows."""
    return DiskPoints(ChunkSource(lambda: iter(np.array_split(rows, 7))), memory).validate("test")


def table(rows, y=None):
    pa = pytest.importorskip("pyarrow")
    columns = {name: rows[:, place] for place, name in enumerate(NAMES)}
    return pa.table(columns if y is None else {**columns, "y": y})


def npy(rows, path):
    np.save(path / "x.npy", rows)
    return path / "x.npy"


def parquet(rows, path):
    target = path / "x.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(table(rows), target, row_group_size=700)
    return target


def shards(rows, path):
    writer = pytest.importorskip("pyarrow.parquet")
    for place, part in enumerate(np.array_split(rows, 3)):
        writer.write_table(table(part), path / f"part-{place}.parquet", row_group_size=300)
    return path


def arrow(rows, path):
    target = path / "x.arrow"
    ipc, made = pytest.importorskip("pyarrow.ipc"), table(rows)
    with ipc.new_file(str(target), made.schema) as file:
        file.write_table(made, max_chunksize=400)
    return target


def csv(rows, path):
    pytest.importorskip("pyarrow.csv").write_csv(table(rows), path / "x.csv")
    return path / "x.csv"


def zarr(rows, path):
    array = pytest.importorskip("zarr").create_array(
        str(path / "x.zarr"), shape=rows.shape, chunks=(450, 3), dtype=rows.dtype
    )
    array[:] = rows
    return path / "x.zarr"


KINDS = {one.__name__: one for one in (npy, parquet, shards, arrow, csv, zarr)}


@pytest.fixture(params=KINDS)
def written(request, tmp_path):
    """written(rows): the path of a new file of one kind."""
    return lambda rows: KINDS[request.param](rows, tmp_path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of temporary files, in which nothing may be left."""
    place = tmp_path / "temporary"
    place.mkdir()
    yield str(place)
    assert os.listdir(place) == []


@pytest.mark.parametrize("memory", [1 << 30, 1], ids=["in memory", "packed"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_they_keep_the_contract(memory, dtype):
    def make(items):
        rows = np.array(items, dtype).reshape(len(items), -1)
        return DiskPoints(ChunkSource(lambda: iter([rows[:1], rows[1:]])), memory)

    refused = [[[0.0, np.nan], [1.0, 2.0]], [[0.0, 1.0], [1.0, np.inf]]]
    others = [points_of(X[:6].astype(np.float32 if dtype == np.float64 else np.float64))]
    items = X[:6].astype(dtype).tolist()
    check_points(make, items, refused=refused, others=others)
    check_points(lambda items: make(items).validate("test"), items, others=others)


def test_what_fits_is_in_memory_and_what_does_not_is_a_file(tmp_path):
    points = read_points(npy(X, tmp_path))
    assert isinstance(points.within("1GB").validate("test"), DensePoints)
    assert isinstance(points.within(SMALL).validate("test"), FilePoints)
    assert points.within(SMALL).validate("test").file.reading.get("bytes packed") is None  # it is read in place
    found = read_points(npy(np.asfortranarray(X), tmp_path)).within(SMALL).validate("test")
    assert found.file.reading["bytes packed"] == X.nbytes


@pytest.mark.parametrize("memory", ["1GB", 450_000], ids=["in memory", "packed"])
def test_every_kind_of_file_gives_the_answer_of_its_rows_in_memory(written, memory):
    options = {"alpha": 0.1, "solver": "nystroem", "n_landmarks": 30}
    wanted = KernelRidge("gaussian", **options).fit(X, Y)
    found = KernelRidge("gaussian", memory=memory, **options).fit(read_points(written(X)), Y)
    np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-8, atol=1e-9)
    assert isinstance(found.X_fit_, np.ndarray)
    assert ("reading" in str(found.report_)) == (memory != "1GB")


def test_files_are_read_in_order_and_in_their_own_dtype(written):
    rows = X.astype(np.float32)
    points = read_points(written(rows))
    assert points.dtype == (np.float64 if points.source.name == "x.csv" else np.float32)
    np.testing.assert_allclose(points.dense(), rows, rtol=1e-6)
    assert len(points) == len(rows)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplace(0.2), Gaussian(0.1).on([1, 3]), Gaussian(0.2) * 2 + 1])
def test_operators_on_windows_are_those_of_arrays(kernel, rng):
    rows, Z, V, W = X[:1000], X[:600], rng.standard_normal((1000, 2)), rng.standard_normal((600, 2))
    x, z = packed(rows, WINDOWS), packed(Z, WINDOWS // 2)
    assert KernelOperator(kernel, x).copies < rows.nbytes
    for mine, theirs, v in (
        (KernelOperator(kernel, x), KernelOperator(kernel, rows), V),
        (KernelOperator(kernel, x, Z), KernelOperator(kernel, rows, Z), W),
        (KernelOperator(kernel, Z, x), KernelOperator(kernel, Z, rows), V),
        (KernelOperator(kernel, x, z), KernelOperator(kernel, rows, Z), W),
    ):
        groups = np.arange(theirs.shape[1]) % 4
        np.testing.assert_allclose(mine @ v, theirs @ v, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(mine.diagonal(), theirs.diagonal(), rtol=1e-12)
        np.testing.assert_allclose(mine.rows([5, 3, 550]), theirs.rows([5, 3, 550]), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(mine.block([7, 2], [500, 1]), theirs.block([7, 2], [500, 1]), rtol=1e-10)
        np.testing.assert_allclose(mine.normal_product(v), theirs.normal_product(v), rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(mine.group_sums(groups), theirs.group_sums(groups), rtol=1e-10)
    whole = KernelOperator(kernel, z).toarray()
    np.testing.assert_allclose(whole, KernelOperator(kernel, Z).toarray(), rtol=1e-12)
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(KernelOperator(kernel, z).packed().toarray(), whole)


def test_symmetric_products_compute_each_pair_of_windows_once():
    x = packed(X[:1000], WINDOWS)
    K, before = KernelOperator(Gaussian(0.3), x), x.reading["rows"]
    K @ np.ones(1000)
    windows = [192] * 5 + [40]
    assert x.reading["rows"] - before == sum(sum(windows[place:]) for place in range(6))


def test_norms_are_kept_for_the_next_pass(monkeypatch, rng):
    rows = rng.standard_normal((1000, 20))
    K, whole = (KernelOperator(Gaussian(0.1), x, rows[:50]) for x in (packed(rows, WINDOWS), rows))
    v, calls = rng.standard_normal(50), []
    for _ in range(2):
        np.testing.assert_allclose(K.normal_product(v), whole.normal_product(v), rtol=1e-12, atol=1e-12)
        monkeypatch.setattr(data, "_squared_norms", lambda rows: calls.append(rows))
    assert calls == []


def test_kernels_check_all_windows():
    rows = np.abs(X)
    assert KernelOperator(Chi2(1.0), packed(rows)).shape == (3000, 3000)
    rows[-1, 0] = -1.0
    with pytest.raises(InvalidInput, match="Chi2: negative entries"):
        KernelOperator(Chi2(1.0), packed(rows))


def test_rows_are_taken_in_any_order(rng):
    points = packed(X)
    index = rng.integers(0, len(X), 500)
    np.testing.assert_array_equal(points.take(index).rows, X[index])
    np.testing.assert_array_equal(points[index[:5]], X[index[:5]])
    np.testing.assert_array_equal(points[10:20:3], X[10:20:3])
    np.testing.assert_array_equal(points[7], X[7])
    np.testing.assert_array_equal(np.asarray(points), X)


def test_some_rows_stay_in_the_file_unless_they_are_few(rng):
    points, index = packed(X), rng.permutation(len(X))[:2000]
    some = points.among(index)
    assert isinstance(some, FilePoints)
    assert isinstance(points.among(index[:5]), DensePoints)
    np.testing.assert_array_equal(some.dense(), X[index])
    np.testing.assert_array_equal(some.run(50, 400).rows, X[index[50:400]])
    np.testing.assert_array_equal(some.among(np.arange(1500)[::-1]).take(np.array([3, 0])).rows, X[index[[1496, 1499]]])


def test_results_are_kept_beside_the_rows(folder):
    points = DiskPoints(ChunkSource(lambda: iter([X])), SMALL, folder).validate("test")
    found = points.scratch((3000, 4), np.float32)
    found[:] = 1
    assert isinstance(found, np.memmap)
    kept = points.kept(Y)
    assert isinstance(kept, np.memmap)
    assert points_of(X).kept(Y) is Y
    np.testing.assert_array_equal(kept, Y)
    assert not isinstance(points_of(X).scratch((3, 4), np.float32), np.memmap)
    with pytest.raises(InvalidInput, match=r"chunks: cannot be packed in .* are needed and .* are free; name a folder"):
        points.scratch((10**9, 10**6), np.float64)


LANDMARKS = {"solver": "nystroem", "n_landmarks": 40, "memory": "10MB"}
CLASSES = (Y > 0).astype(int) + (Y > 2)


@pytest.mark.parametrize(
    ("make", "y", "output"),
    [
        (KernelPCA(3, "gaussian(gamma=0.05)", **LANDMARKS), None, "transform"),
        (KernelPCA(3, "linear", **LANDMARKS), None, "transform"),
        (KernelKMeans(3, "gaussian(gamma=0.05)", **LANDMARKS), None, "transform"),
        (KernelKMeans(3, "gaussian(gamma=0.05)", batch_size=500, **LANDMARKS), None, "transform"),
        (SVC(kernel="gaussian(gamma=0.05)", **LANDMARKS), CLASSES, "decision_function"),
        (SVR(kernel="gaussian(gamma=0.05)", **LANDMARKS), Y, "predict"),
        (KernelDiscriminantAnalysis("gaussian(gamma=0.05)", **LANDMARKS), CLASSES, "transform"),
        (KernelRidgeClassifier("gaussian(gamma=0.05)", **LANDMARKS), CLASSES, "decision_function"),
        # By other steps: of c > 2 classes each is one pass over a file, and a few products with an array.
        (KernelLogisticRegression("gaussian(gamma=0.05)", tol=1e-18, **LANDMARKS), CLASSES, "decision_function"),
        (KernelRidgeCV("gaussian(gamma=0.05)", [1.0, 10.0], fit_intercept=True, **LANDMARKS), Y, "predict"),
        (KernelRidgeClassifierCV("gaussian(gamma=0.05)", [0.1, 1.0], **LANDMARKS), CLASSES, "decision_function"),
        (KernelRidge("gaussian(gamma=0.05)", alpha=0.1, solver="cg"), Y, "predict"),
        (KernelPerceptron("gaussian(gamma=0.05)", max_iter=10, memory="30MB"), CLASSES, "decision_function"),
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "fit") else "",
)
def test_estimators_on_windows_give_the_answers_of_arrays(make, y, output, monkeypatch):
    monkeypatch.setattr(disk_points, "LOADED_SHARE", 10**6)
    monkeypatch.setattr(disk_points, "LARGEST_WINDOW", 20_000)
    chunks = DiskPoints(ChunkSource(lambda: iter(np.array_split(X, 7))))
    weights = {} if y is None or output == "transform" else {"sample_weight": np.where(np.arange(3000) % 5, 1.0, 0.0)}
    found, wanted = (clone(make).fit(*((rows,) if y is None else (rows, y)), **weights) for rows in (chunks, X))
    assert_close(getattr(found, output)(X), getattr(wanted, output)(X), rtol=1e-8)
    assert found.report_.reading["rows"] > 0
    if isinstance(make, SVC):  # the features are in a file
        assert found.report_.memory_planned < wanted.report_.memory_planned - 4 * 2000 * 40


def test_a_support_vector_machine_on_a_file_has_its_state_in_memory_and_no_more(monkeypatch):
    monkeypatch.setattr(disk_points, "LOADED_SHARE", 10**6)
    monkeypatch.setattr(disk_points, "LARGEST_WINDOW", 20_000)
    held, step = [], DualCoordinateDescent.step

    def measured(*own):
        held.append([trace.size for trace in tracemalloc.take_snapshot().traces])
        return step(*own)

    monkeypatch.setattr(DualCoordinateDescent, "step", measured)
    rows, y = np.random.default_rng(0).standard_normal((20_000, 2)), np.arange(20_000) % 2
    chunks = DiskPoints(ChunkSource(lambda: iter(np.array_split(rows, 7))))
    tracemalloc.start()
    try:
        SVC(kernel="gaussian", solver="nystroem", n_landmarks=10, tol=1e-3, memory="30MB").fit(chunks, y)
    finally:
        tracemalloc.stop()
    large = [size for size in held[-1] if size >= 4 * len(rows)]
    assert large == [8 * len(rows)] * 2  # β, and the order of its entries


def test_features_of_discriminant_analysis_are_in_a_file(monkeypatch):
    monkeypatch.setattr(disk_points, "LOADED_SHARE", 10**6)
    model = KernelDiscriminantAnalysis("gaussian(gamma=0.05)", delta=1.0, **LANDMARKS)
    asked = []
    monkeypatch.setattr(FilePoints, "scratch", lambda self, *shape: asked.append(shape) or np.empty(*shape))
    found = clone(model).fit(DiskPoints(ChunkSource(lambda: iter(np.array_split(X, 7)))), CLASSES)
    assert asked == [((3000, 40), np.float64)]
    assert_close(found.transform(X), clone(model).fit(X, CLASSES).transform(X), rtol=1e-8)


def test_a_target_is_a_column_of_the_table(tmp_path):
    writer = pytest.importorskip("pyarrow.parquet")
    writer.write_table(table(X, Y), tmp_path / "x.parquet")
    points, y = read_points(tmp_path / "x.parquet", target="y", without=["c1"])
    np.testing.assert_array_equal(y, Y)
    assert points.names == ["c0", "c2", "c3", "c4"]
    with pytest.raises(InvalidInput, match="no column 'z' among 'c0'"):
        read_points(tmp_path / "x.parquet", target="z")


# ---- faults ----------------------------------------------------------------------------------------------------------


def test_a_bad_number_in_the_last_chunk_is_named(written, folder):
    rows = X.copy()
    rows[-1, 2] = np.nan
    points = read_points(written(rows), folder=folder)
    with pytest.raises(InvalidInput, match=r"KernelPCA: .*row 2999, column ('c2'|2) is nan; fill it in"):
        KernelPCA(2, n_landmarks=20, solver="nystroem", memory=180_000).fit(points)


def test_a_header_that_is_no_header(tmp_path):
    data = npy(X, tmp_path).read_bytes()
    (tmp_path / "b.npy").write_bytes(data.replace(b"'shape': (", b"'shape': (["))
    with pytest.raises(InvalidInput, match=r"b\.npy: cannot be read as \.npy"):
        read_points(tmp_path / "b.npy")


@pytest.mark.parametrize("kind", [npy, parquet, shards, arrow], ids=lambda kind: kind.__name__)
def test_a_file_that_is_cut_off(kind, tmp_path):
    given = kind(X, tmp_path)
    path = given / "part-1.parquet" if given.is_dir() else given
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInput, match=rf"{path.name}: cannot be read as .*cut off"):
        read_points(given)


def test_parts_that_are_missing(tmp_path):
    path = shards(X, tmp_path)
    with pytest.raises(InvalidInput, match=r"part-9.parquet: cannot be read .No such file"):
        read_points([path / "part-0.parquet", path / "part-9.parquet"])
    points = read_points(path)
    (path / "part-2.parquet").unlink()
    with pytest.raises(InvalidInput, match=r"part-2.parquet: cannot be read .No such file"):
        points.validate("test")
    path = zarr(X, tmp_path)
    next(one for one in sorted(path.rglob("*")) if one.is_file() and one.name != "zarr.json").unlink()
    with pytest.raises(InvalidInput, match=r"x.zarr: 1 of 14 stored chunks are missing"):
        read_points(path)


def test_a_file_that_changes(tmp_path, folder):
    path = npy(X, tmp_path)
    points = read_points(path).within(SMALL)
    found = points.validate("test")
    np.save(path, X + 1)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InvalidInput, match=r"x.npy: changed while it was read; fit again"):
        found.run(0, 5)
    with pytest.raises(InvalidInput, match=r"x.npy: changed while it was read; fit again"):
        read_points(path).source.chunks(5) and list(points.source.chunks(5))


def test_no_space_for_the_packed_file(folder, monkeypatch):
    class Full:
        free = 1000

    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda place: Full)
    points = DiskPoints(ChunkSource(lambda: iter([X])), SMALL, folder)
    with pytest.raises(
        InvalidInput, match=r"cannot be packed in .*1.24 kB are needed and 1 kB are free; name a folder"
    ):
        points.validate("test")


def test_a_disk_that_is_full_while_rows_are_packed(folder, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            closed.append(True)

    closed = []
    monkeypatch.setattr(disk_points, "temporary", lambda *_: Full())
    with pytest.raises(InvalidInput, match=r"cannot be packed in .* writing failed \(No space left on device\); name"):
        DiskPoints(ChunkSource(lambda: iter([X])), SMALL, folder).validate("test")
    assert closed == [True]


def test_an_error_of_the_iterator_is_the_callers(folder):
    def broken():
        yield X
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        DiskPoints(ChunkSource(broken), SMALL, folder).validate("test")


def test_what_is_not_a_table_of_numbers(tmp_path):
    pa, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(pa.table({"a": [1.0], "b": ["x"]}), tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match=r"x.parquet: 1 column holds no numbers: 'b'; encode them"):
        read_points(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(InvalidInput, match=r"x.npy: has shape \(3,\)"):
        NpySource(tmp_path / "x.npy")
    with pytest.raises(InvalidInput, match=r"read_points: files \['x.doc'\]; give files that all end in .parquet"):
        read_points("x.doc")
    with pytest.raises(InvalidInput, match=r"columns .* of an array without names"):
        read_points(lambda: iter([X]), target="y")
    with pytest.raises(InvalidInput, match="chunks: no chunk; give arrays"):
        ChunkSource(lambda: iter([]))


def test_reading_ahead_keeps_the_order_and_the_error():
    assert list(ahead(iter(range(50)))) == list(range(50))
    taken = []

    def some():
        yield 1
        raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        taken.extend(ahead(some()))


def test_features_of_windows_are_those_of_arrays_to_the_bit(monkeypatch):
    """Far rows are computed in another way, together with the others of their panel of rows."""
    monkeypatch.setattr(operator, "FEATURES", 20 * 1999)
    rows = np.random.default_rng(1).standard_normal((10_000, 20))
    far = rows[np.argsort(-np.linalg.norm(rows, axis=1))[:20]]
    points = packed(rows, 3_000_000)
    assert 0 < points.window < rows.nbytes / 10
    found, wanted = (
        KernelOperator("gaussian(gamma=0.05)", x, far, dtype=np.float32).features(np.eye(20)) for x in (points, rows)
    )
    np.testing.assert_array_equal(found, wanted)
