"""The target column: exact classes, dates as days, and the reason for the task."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from mercer.errors import InvalidInput  # noqa: E402
from mercer.tables.targets import as_labels, as_target, infer_task, random_folds, target_numbers  # noqa: E402

SNOWFLAKES = [1234567890123456789, 1234567890123456790, 1234567890123456999]


@pytest.mark.parametrize("dtype", ["int64", "Int64", "uint64", "object"])
def test_long_labels_are_kept(dtype):
    target = pd.Series(SNOWFLAKES * 20, dtype=dtype)
    task, why = infer_task(target)
    assert task == "classification"
    assert dtype == "object" or "3 values" in why
    classes = as_target("t", target, "classification")
    assert np.unique(classes).astype(str).tolist() == [str(one) for one in SNOWFLAKES]


def test_labels_beyond_int64_are_kept_as_texts():
    largest = [2**64 - 2, 2**64 - 1]
    classes = as_target("t", pd.Series(largest * 5, dtype="uint64"), "classification")
    assert sorted(set(classes)) == [str(one) for one in largest]
    assert set(as_target("t", pd.Series([1e19, 2.0] * 5), "classification")) == {"1e+19", "2.0"}


def test_the_reason_counts_the_labels_as_they_are_written():
    target, labels = pd.Series([1, 1, 2] * 10), pd.Series(["01", "1", "2"] * 10)
    assert infer_task(target, "auto", labels)[1].startswith("the target is whole numbers of 3 values, taken as classes")
    assert infer_task(target)[1].startswith("the target has 2 values")


@pytest.mark.parametrize(
    ("labels", "classes", "found"),
    [
        ([1.0, 2.0], ["1.0", "1.5", "2.0"], ["1.0", "2.0"]),
        ([1.0, 1.5, 2.0], [1, 2], ["1", "1.5", "2"]),
        (["1", "001", "x"], ["01", "1.0", "x"], ["1.0", "001", "x"]),
        ([Decimal("1.50"), Decimal("2.00")], ["1.5", "2.0"], ["1.5", "2.0"]),
        ([2**62 + 1, 2**62], [2**62], [str(2**62 + 1), str(2**62)]),
    ],
)
def test_labels_are_compared_as_numbers_but_not_identifiers(labels, classes, found):
    assert as_labels(pd.Series(labels), classes).tolist() == found


def test_decimals_are_numbers():
    prices = pd.Series([Decimal(k) / 4 for k in range(7)] * 10)
    assert infer_task(prices) == infer_task(prices.astype(float))
    assert as_target("t", prices, "regression").tolist() == prices.astype(float).tolist()
    assert as_target("t", pd.Series([Decimal("1.0"), Decimal(2)] * 4), "classification").tolist() == [1, 2] * 4


DAYS = [19782.0, 19783.5, 19813.0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_are_days_since_1970_in_any_unit(unit):
    dates = pd.Series(np.array(["2024-02-29T00", "2024-03-01T12", "2024-03-31T00"], f"M8[{unit}]"))
    assert as_target("t", dates, "regression").tolist() == DAYS
    assert as_target("t", dates.dt.tz_localize("UTC"), "regression").tolist() == DAYS
    assert as_target("t", dates - pd.Timestamp("1970-01-01"), "regression").tolist() == DAYS
    assert infer_task(dates, "regression") == ("regression", "as requested, of dates as days since 1970")


@pytest.mark.parametrize(
    "dates",
    [["2024-02-29", "2024-03-01T12:00", "2024-03-31"], ["29.02.2024 00:00", "01.03.2024 12:00", "31.03.2024 00:00"]],
)
def test_dates_that_are_texts_are_days_since_1970(dates):
    assert as_target("t", pd.Series(dates), "regression").tolist() == DAYS


def test_digits_are_numbers_before_they_are_dates():
    assert target_numbers(pd.Series(["20240331", "20240401"])).tolist() == [20240331, 20240401]
    assert infer_task(pd.Series(["20240331", "20240401"]), "regression")[1] == "as requested"


def test_dates_in_doubt_and_words_are_refused():
    with pytest.raises(InvalidInput, match=r"write dates as 2024-03-31, for '3/4/2024' can be 2024-04-03 or"):
        as_target("t", pd.Series(["3/4/2024", "5/6/2024"]), "regression")
    with pytest.raises(InvalidInput, match=r"'soon' in row 31 .*is not a number"):
        as_target("t", pd.Series(["2024-02-29", "2024-03-01"] * 15 + ["soon"]), "regression")


def test_folds_that_leave_one_class_to_learn_from_are_refused():
    y = np.array(["yes"] * 9 + ["no"])
    with pytest.raises(InvalidInput, match=r"the class 'no' has 1 row, all in one fold, .*; give more rows"):
        random_folds(y, "classification", 0, 5)
    assert len(random_folds(np.array(["yes"] * 8 + ["no"] * 2), "classification", 0, 5)) == 5
    assert len(random_folds(np.array(["a"] * 8 + ["b"] * 8 + ["c"]), "classification", 0, 5)) == 5


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1e300, 2e299], "1e\\+300 in row 1 .*, and 1 more, which is 1e\\+150"),
        ([1.0, -1e200], "-1e\\+200 in row 2 .*, which is 1e\\+150"),
    ],
)
def test_targets_that_are_too_large_are_not_called_no_numbers(values, words):
    with pytest.raises(InvalidInput, match=words):
        as_target("t", pd.Series(values), "regression")
