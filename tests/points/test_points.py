"""Every kind of points keeps the contract, and each promise of the contract has a fault that it catches."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.points import (
    KERNEL_VALUES,
    OBJECTS,
    VECTORS,
    DensePoints,
    Numbers,
    ObjectPoints,
    Points,
    Precomputed,
    SparsePoints,
    TablePoints,
    TensorPoints,
    points_of,
)
from mercer.points.precomputed import asymmetry
from mercer.testing import check_points

ROWS = [[0.0, 1.0, 3.0], [2.0, 0.0, 0.0], [1.0, 1.5, -7.0], [0.0, 0.0, 0.25], [1e-3, 2.0, 2.0]]
VALUES = [[2.0, 1.0, 0.0, 0.5], [1.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 1.0], [0.5, 0.0, 1.0, 3.0]]
NOT_FINITE = [[[0.0, np.nan], [1.0, 2.0]], [[0.0, np.inf], [1.0, 2.0]], [[0.0, 1e200], [1.0, 2.0]]]
FLOAT32 = np.array(ROWS, np.float32)


def dense(items, dtype=np.float64):
    return DensePoints(np.array(items, dtype))


def sparse(items, dtype=np.float64):
    return SparsePoints(sp.csr_array(np.array(items, dtype)))


def test_asymmetry_is_of_all_tiles_and_of_sparse_matrices_at_once():
    class Counted(sp.csr_array):
        cuts = 0

        def __getitem__(self, index):
            Counted.cuts += 1
            return super().__getitem__(index)

    K = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 3.0], [0.0, 3.25, 1.0]])
    for one in (K, K.T):
        assert asymmetry(one, step=1) == asymmetry(one) == asymmetry(sp.csr_array(one)) == 0.25
    assert asymmetry(Counted(K), step=1) == 0.25
    assert Counted.cuts <= 2


def with_stored_zeros():
    """The same values, some zeros of which are stored."""
    rows = np.array(ROWS)
    return SparsePoints(sp.csr_array((rows.ravel(), np.tile(np.arange(3), 5), np.arange(0, 16, 3)), shape=rows.shape))


def tensor(items):
    return TensorPoints(pytest.importorskip("torch").tensor(items, dtype=pytest.importorskip("torch").float64))


def pandas_table(items):
    return TablePoints(pytest.importorskip("pandas").DataFrame(items, columns=["a", "b", "c"]))


def polars_table(items):
    return TablePoints(pytest.importorskip("polars").DataFrame(items, schema=["a", "b", "c"], orient="row"))


MIXED = [[1.0, "x", "red"], [2.0, "y", "red"], [2.0, "y", "blue"], [3.0, "", "green"]]

KINDS = {
    "dense": (dense, ROWS, {"refused": NOT_FINITE, "others": [dense(ROWS, np.float32), sparse(ROWS)]}),
    "float32": (lambda items: dense(items, np.float32), FLOAT32.tolist(), {"refused": NOT_FINITE[:2]}),
    "columns first": (lambda items: DensePoints(np.asfortranarray(np.array(items))), ROWS, {"refused": NOT_FINITE}),
    "sparse": (
        sparse,
        ROWS,
        {"refused": NOT_FINITE, "others": [sparse(ROWS, np.float32), dense(ROWS), with_stored_zeros()]},
    ),
    "tensor": (tensor, ROWS, {}),
    "list of texts": (ObjectPoints, ["gatt", "aca", "tt", ""], {}),
    "array of texts": (lambda items: ObjectPoints(np.array(items, dtype=object)), ["gatt", "aca", "tt", ""], {}),
    "sets": (ObjectPoints, [np.ones((2, 1)), np.ones((1, 1)), np.zeros((1, 1)), np.zeros((3, 1))], {}),
    "mixed rows": (lambda items: ObjectPoints(np.array(items, dtype=object)), MIXED, {}),
    "pandas": (pandas_table, MIXED, {"refused": [[]]}),
    "polars": (polars_table, MIXED, {"refused": [[]]}),
    "precomputed": (lambda items: Precomputed(dense(items)), VALUES, {"refused": NOT_FINITE}),
    "precomputed, sparse": (lambda items: Precomputed(sparse(items)), VALUES, {"refused": NOT_FINITE}),
    "numbers": (lambda items: Numbers(np.array(items, np.intp), 9), [4, 0, 8, 2], {"refused": [[9, 1], [-1], [[0]]]}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_the_contract(kind):
    make, items, options = KINDS[kind]
    check_points(make, items, **options)


# ---- the contract catches what breaks it ----------------------------------------------------------------------------


class Wrong(DensePoints):
    """Correct, as a subclass: each fault overrides one promise."""

    def take(self, index, *, copy=True):
        return type(self)(super().take(index, copy=copy).rows)

    def run(self, first, last):
        return type(self)(self.rows[first:last])

    def stack(self, first, second):
        return type(self)(super().stack(first, second).rows)

    def validate(self, who):
        return type(self)(super().validate(who).rows)

    def astype(self, dtype):
        return type(self)(super().astype(dtype).rows)


class TooShort(Wrong):
    def __len__(self):
        return max(len(self.rows) - 1, 0)


class IntegerType(Wrong):
    dtype = np.dtype(np.int64)


class ForgetsTheType(Wrong):
    def run(self, first, last):
        return type(self)(self.rows[first:last].astype(np.float32))


class SortsWhatItTakes(Wrong):
    def take(self, index, *, copy=True):
        return super().take(np.sort(index), copy=copy)


class TakesOnce(Wrong):
    def take(self, index, *, copy=True):
        return super().take(np.array(list(dict.fromkeys(index.tolist())), np.intp), copy=copy)


class TakesViews(Wrong):
    def take(self, index, *, copy=True):
        return super().take(index, copy=False)


class RunsTooFar(Wrong):
    def run(self, first, last):
        return super().run(first, last + 1)


class JoinsBackwards(Wrong):
    def stack(self, first, second):
        return super().stack(second, first)


class LosesTheRest(Wrong):
    def blocks(self, size):
        step = max(1, size * len(self) // self.nbytes)
        for first in range(0, len(self) - step + 1, step):
            yield self.run(first, first + step)


class OneBlock(Wrong):
    def blocks(self, size):
        yield self


class ManyBlocks(Wrong):
    def blocks(self, size):
        return (self.run(i, i + 1) for i in range(len(self)))


class SameForAll(Wrong):
    def fingerprint(self):
        return str(self.rows.shape)


class BlindToOrder(Wrong):
    def fingerprint(self):
        return str(self.dtype) + str(np.sort(self.rows, axis=0).tolist())


class BlindToTypes(Wrong):
    def fingerprint(self):
        return str(self.rows.astype(np.float32).tolist())


class NewEachTime(Wrong):
    def fingerprint(self):
        return super().fingerprint() + str(id(self))


class NoDataSet(Wrong):
    def anchors(self):
        return DensePoints(np.zeros((9, 1)))


class Changeable(Wrong):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class TakesAnything(Wrong):
    def validate(self, who):
        return self


class SaysNotWho(Wrong):
    def validate(self, who):
        return super().validate("X")


class ChangesWhatIsValid(Wrong):
    def validate(self, who):
        return type(self)(super().validate(who).rows + 1)


class Transposed(Wrong):
    def dense(self):
        return self.rows[::-1]


class KeepsItsType(Wrong):
    def astype(self, dtype):
        return self


class Narrows(Wrong):
    def widened(self, dtype):
        return self.astype(dtype)


class NormsItself(Wrong):
    def squared_norms(self):
        return np.linalg.norm(self.rows, axis=1)


class SmallestInstead(Wrong):
    def largest(self):
        return float(np.abs(self.rows).min())


FAULTS = Wrong.__subclasses__()


def test_a_subclass_without_a_fault_passes():
    check_points(lambda items: Wrong(np.array(items)), ROWS, refused=NOT_FINITE, others=[dense(ROWS, np.float32)])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_caught(fault):
    with pytest.raises(AssertionError):
        check_points(
            lambda items: fault(np.array(items)), ROWS, refused=NOT_FINITE, others=[fault(np.array(ROWS, np.float32))]
        )


# ---- doors -----------------------------------------------------------------------------------------------------------


def test_the_kind_follows_from_the_data():
    table = pandas_table(MIXED).rows
    for data, kind in [
        (np.ones((2, 3)), DensePoints),
        (sp.csr_matrix(np.eye(2)), SparsePoints),
        (sp.csc_array(np.eye(2)), SparsePoints),
        (["a", "b"], ObjectPoints),
        (np.array(["a", "b"], dtype=object), ObjectPoints),
        (np.array(MIXED, dtype=object), ObjectPoints),
        (table, TablePoints),
        (table["a"], TablePoints),
    ]:
        points = points_of(data)
        assert type(points) is kind
        assert points_of(points) is points


def test_nothing_is_copied_to_make_points():
    X = np.random.default_rng(0).standard_normal((6, 2))
    points = points_of(X)
    assert points.rows is X
    assert points.dense() is X
    assert points.astype(np.float64) is points
    parts = [points.run(1, 3), points.take(np.arange(2, 5), copy=False), *points.blocks(32)]
    assert all(np.shares_memory(part.rows, X) for part in parts)
    assert VECTORS.pair(X, None, "test", list)[0].rows is X


def test_both_sides_have_one_form():
    x, z = VECTORS.pair(np.ones((2, 2), np.float32), np.ones((3, 2)), "test", list)
    assert x.rows.dtype == z.rows.dtype == np.float64
    with pytest.raises(InvalidInput, match="test: X has 2 columns and Z has 1"):
        VECTORS.pair(np.ones((2, 2)), np.ones((3, 1)), "test", list)
    x, z = KERNEL_VALUES.pair(np.ones((2, 4)), [3, 0], "test", list)
    assert isinstance(z, Numbers)
    assert len(x.anchors()) == 4
    with pytest.raises(InvalidInput, match="test: column 4 of 4 precomputed columns"):
        KERNEL_VALUES.pair(np.ones((2, 4)), [4], "test", list)
    assert OBJECTS.pair(("a", "b"), ("c",), "test", list)[1].rows == ["c"]


def test_given_values_may_not_be_symmetric():
    K = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert Precomputed(points_of(K)).symmetric
    assert not Precomputed(points_of(K + np.triu(0.1 * K, 1))).symmetric
    assert not Precomputed(points_of(K[:1])).symmetric
    assert Precomputed(points_of(sp.csr_array(K))).symmetric


def test_dense_and_sparse_rows_become_sparse():
    first, second = dense(ROWS[:2]), sparse(ROWS[2:])
    for one, other in ((first, second), (second, first)):
        both = one.join(other)
        assert isinstance(both, SparsePoints)
        assert np.array_equal(both.dense(), np.concatenate([one.dense(), other.dense()]))


def test_an_operator_reads_tensors_as_arrays():
    points, none = VECTORS.pair(tensor(ROWS).rows, None, "KernelOperator", list)
    assert isinstance(points, DensePoints)
    assert none is None
    with pytest.raises(InvalidInput, match=r"KernelOperator: row 0, column 0 is nan"):
        VECTORS.pair(tensor([[np.nan, 1.0]]).rows, None, "KernelOperator", list)


def test_points_are_abstract():
    with pytest.raises(TypeError):
        Points()
