"""A new kind of points is one class and one line in the contract suite: here the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from mercer import SVC, KernelOperator, KernelPCA, KernelRidge, table_kernel
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Precomputed
from mercer.points import DensePoints, ObjectPoints, TablePoints, VectorPoints, points_of
from mercer.testing import check_points

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((60, 3)), RNG.standard_normal((7, 3))
Y = np.sin(X).sum(axis=1)


@dataclass(frozen=True, eq=False)
class MappedPoints(VectorPoints):
    """Rows of an array in a file of NumPy's."""

    path: Path
    first: int = 0
    last: int | None = None

    @cached_property
    def rows(self):
        return np.load(self.path, mmap_mode="r")[self.first : self.last]

    def validate(self, who):
        for block in self.blocks(1 << 20):
            DensePoints(np.array(block.rows)).validate(who)
        return self

    def take(self, index, *, copy=True):
        return DensePoints(np.array(self.rows[index]))

    def run(self, first, last):
        return replace(self, first=self.first + first, last=self.first + last)

    def dense(self):
        return self.rows

    def astype(self, dtype):
        return self if self.rows.dtype == dtype else DensePoints(self.rows.astype(dtype))

    def stack(self, first, second):
        return DensePoints(np.concatenate([first.dense(), second.dense()]))

    def fingerprint(self):
        return DensePoints(self.rows).fingerprint()


@pytest.fixture
def mapped(tmp_path):
    """mapped(rows): the points of a new file."""

    def make(rows):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, np.asarray(rows, np.float64))
        return MappedPoints(path)

    return make


def test_they_keep_the_contract(mapped):
    rows = X[:6].tolist()
    check_points(mapped, rows, refused=[[[np.nan, 0.0], [1.0, 2.0]]], others=[points_of(X[:6].astype(np.float32))])


def test_operators_compute_with_them(mapped, rng):
    x, z = mapped(X), mapped(NEW)
    V = rng.standard_normal((60, 2))
    for K, wanted in (
        (KernelOperator("gaussian", x), KernelOperator("gaussian", X)),
        (KernelOperator(Gaussian(0.5), z, x), KernelOperator(Gaussian(0.5), NEW, X)),
    ):
        np.testing.assert_array_equal(K @ V, wanted @ V)
        np.testing.assert_array_equal(K.toarray(), wanted.toarray())
        np.testing.assert_array_equal(K.block([3, 1], [0, 2]), wanted.block([3, 1], [0, 2]))
    np.testing.assert_array_equal(Gaussian(0.5)(z, x), Gaussian(0.5)(NEW, X))


@pytest.mark.parametrize("model", [KernelRidge("gaussian"), KernelPCA(2, "gaussian"), SVC()], ids=repr)
def test_estimators_fit_them(model, mapped):
    y = (Y > 0).astype(int) if isinstance(model, SVC) else Y
    output = "transform" if isinstance(model, KernelPCA) else "predict"
    wanted = getattr(model.fit(X, y), output)(NEW)
    np.testing.assert_array_equal(getattr(model.fit(mapped(X), y), output)(mapped(NEW)), wanted)
    assert model.n_features_in_ == 3


def test_they_are_checked_like_arrays(mapped):
    with pytest.raises(InvalidInput, match="KernelOperator: row 1, column 0 is nan"):
        KernelOperator("linear", mapped([[0.0, 1.0], [np.nan, 1.0]]))
    with pytest.raises(InvalidInput, match="KernelOperator: X has 3 columns and Z has 1"):
        KernelOperator(Gaussian(1.0), mapped(X), X[:, :1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRidge().fit(mapped(X), Y[1:])
    with pytest.raises(ValueError, match="X has 2 features, but KernelRidge is expecting 3"):
        KernelRidge().fit(X, Y).predict(mapped(X[:, :2]))


def test_they_may_be_kernel_values(mapped):
    K = Gaussian(0.5)(X)
    np.testing.assert_array_equal(KernelOperator(Precomputed(), mapped(K)).toarray(), K)
    wanted = KernelRidge(Precomputed()).fit(K, Y).dual_coef_
    np.testing.assert_array_equal(KernelRidge(Precomputed()).fit(mapped(K), Y).dual_coef_, wanted)


def test_objects_are_given_as_points():
    words, new = ["gatt", "aca", "tt", "gaga", "acat", "tttt"], ["gat", "aac"]
    wanted = KernelRidge("spectrum(k=2)").fit(words, Y[:6]).predict(new)
    model = KernelRidge("spectrum(k=2)").fit(ObjectPoints(words), Y[:6])
    np.testing.assert_array_equal(model.predict(ObjectPoints(new)), wanted)
    K = KernelOperator("spectrum(k=2)", ObjectPoints(words)).toarray()
    np.testing.assert_array_equal(K, KernelOperator("spectrum(k=2)", words).toarray())


def test_tables_are_given_as_points():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "red", "blue")})
    kernel = table_kernel(frame)
    wanted = KernelRidge(kernel).fit(frame, Y).predict(frame[:5])
    np.testing.assert_array_equal(
        KernelRidge(kernel).fit(TablePoints(frame), Y).predict(TablePoints(frame[:5])), wanted
    )
