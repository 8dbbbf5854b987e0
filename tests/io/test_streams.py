"""Predictions stream from a file to a file: they are those of the rows in memory, and faults leave no file."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mercer import SVC, KernelPCA, KernelRidge
from mercer.errors import InvalidInput
from mercer.io import stream
from mercer.points import read_points

RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 3))
Y = np.sin(X).sum(axis=1)
MEMORY = 32 * 24 * 100
"""A budget of which a window has 100 rows."""


def written(path, suffix):
    if suffix == ".npy":
        return np.load(path)
    pd = pytest.importorskip("pandas")
    frame = (
        pd.read_csv(path) if suffix == ".csv" else pytest.importorskip("pyarrow.parquet").read_table(path).to_pandas()
    )
    return frame.to_numpy()[:, 0] if frame.shape[1] == 1 else frame.to_numpy()


@pytest.fixture
def rows(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return read_points(tmp_path / "x.npy")


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
def test_outputs_are_those_of_the_rows_in_memory(suffix, rows, tmp_path):
    for model, method in ((KernelRidge().fit(X[:50], Y[:50]), "predict"), (KernelPCA(2).fit(X[:50]), "transform")):
        done = stream(model, rows, tmp_path / f"out{suffix}", method=method, memory=MEMORY)
        assert done == (900, X.nbytes)
        np.testing.assert_allclose(written(tmp_path / f"out{suffix}", suffix), getattr(model, method)(X), rtol=1e-10)


def test_classes_are_written_as_they_are(rows, tmp_path):
    model = SVC().fit(X[:50], np.where(Y[:50] > 0, "up", "down"))
    for suffix in (".npy", ".parquet", ".csv"):
        stream(model, rows, tmp_path / f"out{suffix}", memory=MEMORY)
        np.testing.assert_array_equal(written(tmp_path / f"out{suffix}", suffix), model.predict(X))


def test_parquet_has_dictionaries_of_what_repeats(rows, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    classes = np.where(Y[:50] > 0, "up", "down")
    for model, repeats in ((SVC().fit(X[:50], classes), True), (KernelRidge().fit(X[:50], Y[:50]), False)):
        stream(model, rows, tmp_path / "out.parquet")
        column = parquet.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0)
        assert column.has_dictionary_page == repeats


class Odd(KernelRidge):
    """With a method that says nothing of each row."""

    def shape_of(self, rows):
        return rows.shape


@pytest.mark.parametrize("given", [X, X.tolist(), "x.npy", iter([X])])
def test_rows_in_memory_are_refused(given, tmp_path):
    with pytest.raises(InvalidInput, match=r"stream: rows is a \w+, .*; give what mercer\.points\.read_points returns"):
        stream(KernelRidge().fit(X[:50], Y[:50]), given, tmp_path / "o.npy")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("model", "method", "said"),
    [
        (KernelRidge(), "transform", "which KernelRidge does not have; give predict"),
        (KernelPCA(), "predict", "which KernelPCA does not have; give transform"),
        (SVC(), "n_iter_", "which SVC does not have; give predict or decision_function"),
        (KernelRidge(), "fit", "which would fit the model to each chunk; give predict"),
        (Odd(), "shape_of", "not one row of outputs for each row; give predict"),
    ],
)
def test_a_method_that_has_no_outputs_of_rows_is_refused(rows, tmp_path, model, method, said):
    model.fit(X[:50], Y[:50] > 0)
    with pytest.raises(InvalidInput, match=f"stream: method='{method}', .*{said}"):
        stream(model, rows, tmp_path / "o.npy", method=method)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_labels_that_are_objects_are_no_array_on_disk(rows, tmp_path):
    model = SVC().fit(X[:50], np.where(Y[:50] > 0, "up", "down").astype(object))
    with pytest.raises(InvalidInput, match=r"Python objects, which a \.npy file does not hold; give a name"):
        stream(model, rows, tmp_path / "o.npy")
    assert os.listdir(tmp_path) == ["x.npy"]
    stream(model, rows, tmp_path / "o.parquet")
    np.testing.assert_array_equal(written(tmp_path / "o.parquet", ".parquet"), model.predict(X))


def test_nothing_is_left_after_a_fault(tmp_path):
    def broken():
        yield X
        yield np.full((1, 3), np.nan)

    model = KernelRidge().fit(X[:50], Y[:50])
    for suffix in (".npy", ".csv", ".parquet"):
        with pytest.raises(InvalidInput, match="KernelRidge: chunks, row 900, column 0 is nan"):
            stream(model, read_points(broken), tmp_path / f"out{suffix}", memory=MEMORY)
    with pytest.raises(InvalidInput, match=r"stream: out='x.doc'; name a file that ends in .parquet, .csv, .npy"):
        stream(model, read_points(broken), "x.doc")
    assert os.listdir(tmp_path) == []


def test_the_file_of_the_rows_is_not_replaced(rows, tmp_path):
    (tmp_path / "link.npy").symlink_to(tmp_path / "x.npy")
    model = KernelRidge().fit(X[:50], Y[:50])
    for name in ("x.npy", "link.npy"):
        with pytest.raises(InvalidInput, match="is also the file"):
            stream(model, rows, tmp_path / name)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)


def test_links_permissions_and_files_of_others_are_kept(rows, tmp_path):
    model, there = KernelRidge().fit(X[:50], Y[:50]), tmp_path / "there.npy"
    there.write_bytes(b"")
    there.chmod(0o600)
    (tmp_path / "link.npy").symlink_to(there)
    for name in (".there.npy.part", ".link.npy.part"):
        (tmp_path / name).write_text("mine")
    stream(model, rows, tmp_path / "link.npy")
    assert (tmp_path / "link.npy").is_symlink()
    assert there.stat().st_mode & 0o777 == 0o600
    np.testing.assert_allclose(np.load(there), model.predict(X), rtol=1e-10)
    stream(model, rows, there)
    assert all((tmp_path / name).read_text() == "mine" for name in (".there.npy.part", ".link.npy.part"))
    stream(model, rows, tmp_path / "new.npy")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "new.npy").stat().st_mode & 0o777 == 0o666 & ~mask
