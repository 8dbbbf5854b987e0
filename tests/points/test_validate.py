"""What may come in as rows, what it becomes, and what is refused with advice."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.points import as_rows, is_torch, same_columns

TABLE = [[1, 2], [3, 4], [5, 6]]


BECOMES = {
    np.float32: np.float32,
    np.float64: np.float64,
    np.longdouble: np.float64,
    np.int8: np.float64,
    np.uint64: np.float64,
    np.bool_: np.float64,
}
DENSE_ONLY = {np.float16: np.float32, ">f4": np.float32, ">f8": np.float64}


@pytest.mark.parametrize(("given", "becomes"), (BECOMES | DENSE_ONLY).items())
def test_dtypes(given, becomes):
    table = np.array(TABLE, dtype=given)
    rows = as_rows(table)
    assert rows.dtype == becomes
    assert rows.dtype.isnative
    np.testing.assert_array_equal(rows, table.astype(becomes))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize(("given", "becomes"), BECOMES.items())
def test_sparse_dtypes(given, becomes, kind):
    table = np.array(TABLE, dtype=given)
    rows = as_rows(kind(table))
    assert rows.format == "csr"
    assert rows.dtype == becomes
    np.testing.assert_array_equal(rows.toarray(), table.astype(becomes))


@pytest.mark.parametrize("table", [TABLE, tuple(map(tuple, TABLE)), np.asfortranarray(TABLE)])
def test_what_is_a_table(table):
    rows = as_rows(table)
    assert type(rows) is np.ndarray
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, TABLE)


@pytest.mark.parametrize(
    "X", [np.ones((3, 2)), np.ones((3, 2), np.float32), sp.csr_array(np.eye(3)), sp.csr_matrix(np.eye(3))]
)
def test_nothing_is_copied_that_is_in_form(X):
    rows = as_rows(X)
    if sp.issparse(X):
        assert np.shares_memory(rows.data, X.data)
    else:
        assert np.shares_memory(rows, X)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_numpy_matrix_becomes_an_array():
    assert type(as_rows(np.matrix(TABLE))) is np.ndarray


def test_strided_rows_become_contiguous():
    X = np.arange(24.0).reshape(4, 6)[::2, ::3]
    rows = as_rows(X)
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, X)


def test_a_read_only_array_is_welcome():
    X = np.ones((2, 2))
    X.setflags(write=False)
    assert as_rows(X) is not None


@pytest.mark.parametrize("dtype", [np.float32, "float64"])
@pytest.mark.parametrize("X", [TABLE, sp.csr_array(TABLE)])
def test_the_dtype_asked_for(X, dtype):
    assert as_rows(X, dtype=dtype).dtype == dtype


def test_another_dtype_is_refused():
    with pytest.raises(InvalidInput, match="float32 or float64"):
        as_rows(TABLE, dtype=np.int32)


def test_sparse_is_made_canonical_without_touching_the_original():
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    rows = as_rows(X)
    assert rows.has_canonical_format
    np.testing.assert_array_equal(rows.data, [4.0, 3.0])
    assert X.nnz == 3


def test_sparse_can_be_refused():
    with pytest.raises(InvalidInput, match="toarray"):
        as_rows(sp.eye_array(3), accept_sparse=False)


REFUSED = {
    "one dimension": ([1.0, 2.0], r"shape \(2,\); reshape it, to \(-1, 1\)"),
    "three dimensions": (np.ones((2, 3, 4)), r"reshape\(len\(X\), -1\)"),
    "a number": (3.0, "rows of type float"),
    "no rows": (np.ones((0, 2)), "0 rows of 2 columns"),
    "no columns": (np.ones((2, 0)), "2 rows of 0 columns"),
    "nothing": ([], "shape"),
    "no sparse rows": (sp.csr_array((0, 2)), "0 rows"),
    "ragged": ([[1, 2], [3]], "rows of equal length"),
    "text": ([["a", "b"]], "text"),
    "a text": ("abc", "rows of type str"),
    "bytes": (np.array([[b"a"]]), "text"),
    "objects": ([[1, None]], r"astype\(float\)"),
    "decimals": ([[decimal.Decimal(1)]], r"astype\(float\)"),
    "none": (None, "NoneType"),
    "a dictionary": ({"a": [1, 2]}, "dict"),
    "a generator": ((row for row in TABLE), "generator"),
    "dates": (np.array([["2020-01-01"]], dtype="M8[D]"), "dates"),
    "python dates": ([[datetime.date(2020, 1, 1)]], "objects"),
    "durations": (np.array([[1]], dtype="m8[s]"), "time"),
    "records": (np.zeros((1, 1), dtype=[("a", float)]), "fields"),
    "complex": (np.ones((2, 2), complex), "real and the imaginary"),
    "complex sparse": (sp.csr_array(np.ones((2, 2), complex)), "real and the imaginary"),
    "masked": (np.ma.array(np.ones((2, 2)), mask=np.eye(2)), "masked"),
    "NaN": ([[1.0, 2.0], [3.0, np.nan]], "row 1, column 1 is nan; fill it in"),
    "infinity": ([[1.0, -np.inf], [3.0, np.inf]], "row 0, column 1 is -inf, and 1 more are not finite; replace it"),
    "sparse NaN": (sp.csr_array(np.array([[0, 0], [0, 0], [0, np.nan]])), "row 2, column 1 is nan"),
    "large": (np.array([[1.0], [-1e160]]), "row 1 .* overflows float64; standardise"),
    "large float32": (np.array([[1e20]], np.float32), "overflows float32; standardise .*, or use float64"),
    "large sparse": (sp.csr_array([[0, 1e160]]), "row 0 .* overflows float64"),
}


@pytest.mark.parametrize(("X", "advice"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.filterwarnings("error")
def test_refused_with_advice(X, advice):
    with pytest.raises(InvalidInput, match=advice) as caught:
        as_rows(X, who="Gaussian")
    assert str(caught.value).startswith("Gaussian: ")


def test_too_large_for_the_dtype_asked_for_is_not_called_infinite():
    with pytest.raises(InvalidInput, match="overflows float32"):
        as_rows([[1e150]], dtype=np.float32)


@pytest.mark.parametrize("value", [1e150, -1e150, 1e-320, 5e-324])
def test_large_and_small_values_whose_squares_are_finite_pass(value):
    assert as_rows([[value, 0.0]])[0, 0] == value


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": pd.array([3, 4], dtype="Int64"), "d": [0.5, 1.5]})
    np.testing.assert_array_equal(as_rows(frame), [[1, 1, 3, 0.5], [2, 0, 4, 1.5]])
    assert as_rows(frame).dtype == np.float64
    assert as_rows(frame[["d"]].astype("float32")).dtype == np.float32
    assert as_rows(frame[["d"]].astype("Float32")).dtype == np.float32
    assert as_rows(frame[["d"]].astype(pd.SparseDtype("float64", 0.0))).shape == (2, 1)


def test_pandas_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(InvalidInput, match="2 columns hold no numbers: 'city', 'when'"):
        as_rows(pd.DataFrame({"a": [1], "city": ["Rome"], "when": [pd.Timestamp(0)]}))
    with pytest.raises(InvalidInput, match="1 column holds no numbers: 'c'"):
        as_rows(pd.DataFrame({"c": pd.Categorical(["x"])}))
    with pytest.raises(InvalidInput, match="row 1, column 0 is nan"):
        as_rows(pd.DataFrame({"a": pd.array([3, None], dtype="Int64")}))
    with pytest.raises(InvalidInput, match="complex"):
        as_rows(pd.DataFrame({"a": [1j]}))
    with pytest.raises(InvalidInput, match="reshape"):
        as_rows(pd.Series([1.0, 2.0]))
    with pytest.raises(InvalidInput, match="empty"):
        as_rows(pd.DataFrame(index=[0, 1]))


def test_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, 2], "b": [True, False], "c": [decimal.Decimal("0.5"), decimal.Decimal("1.5")]})
    rows = as_rows(frame)
    np.testing.assert_array_equal(rows, [[1, 1, 0.5], [2, 0, 1.5]])
    assert rows.flags.c_contiguous
    assert rows.dtype == np.float64
    assert as_rows(frame.select(pl.col("a").cast(pl.Float32))).dtype == np.float32


def test_polars_refused():
    pl = pytest.importorskip("polars")
    with pytest.raises(InvalidInput, match="1 column holds no numbers: 'city'"):
        as_rows(pl.DataFrame({"a": [1], "city": ["Rome"]}))
    with pytest.raises(InvalidInput, match="row 1, column 0 is nan"):
        as_rows(pl.DataFrame({"a": [1, None]}))
    with pytest.raises(InvalidInput, match="row 0, column 0 is nan"):
        as_rows(pl.DataFrame({"a": [None, True]}))
    with pytest.raises(InvalidInput, match="collect"):
        as_rows(pl.LazyFrame({"a": [1]}))


def test_tensors_pass_through():
    torch = pytest.importorskip("torch")
    X = torch.ones((3, 2), dtype=torch.float32)
    assert is_torch(X)
    assert as_rows(X) is X
    for wrong, advice in (
        (torch.ones(3), "reshape"),
        (torch.ones((2, 2), dtype=torch.int64), "double"),
        (X[:0], "empty"),
    ):
        with pytest.raises(InvalidInput, match=advice):
            as_rows(wrong)


def test_same_columns():
    same_columns(sp.eye_array(3).tocsr(), np.ones((1, 3)))
    with pytest.raises(InvalidInput, match="KernelRidge: X has 1 column and Z has 2"):
        same_columns(np.ones((2, 1)), np.ones((2, 2)), who="KernelRidge")
