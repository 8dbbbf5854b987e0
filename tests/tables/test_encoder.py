"""Columns become numbers as the summary says."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import InvalidInput

pd = pytest.importorskip("pandas")

from mercer.io import TableEncoder  # noqa: E402
from mercer.tables.columns import ColumnPlan, as_numbers, plan_column  # noqa: E402
from mercer.tables.texts import date_form  # noqa: E402
from mercer.testing import assert_close  # noqa: E402


def summary(encoder):
    return " | ".join(encoder.summary_)


def test_numbers_are_filled_and_standardised():
    x = np.array([1.0, 2.0, np.nan, 3.0, 6.0])
    encoder = TableEncoder(log_skewed=False).fit(pd.DataFrame({"x": x}))
    Z = encoder.transform(pd.DataFrame({"x": x}))
    assert encoder.feature_names_out_ == ["x", "x is missing"]
    np.testing.assert_allclose(Z[:, 0].mean(), 0, atol=1e-15)
    assert_close(Z[:, 0].std(), 1)
    filled = np.where(np.isnan(x), 2.5, x)
    assert_close(Z[:, 0], (filled - filled.mean()) / filled.std())
    assert Z[:, 1].tolist() == [0, 0, 1, 0, 0]
    assert "20.0% missing, filled by the median" in summary(encoder)


def test_few_missing_values_have_no_indicator():
    x = np.arange(1000.0)
    x[3] = np.nan
    assert TableEncoder().fit(pd.DataFrame({"x": x})).feature_names_out_ == ["x"]


def test_numbers_declared_as_text_may_have_any_size():
    encoder = TableEncoder(keep_text=True, text=("x",)).fit(pd.DataFrame({"x": [1e300, 2.0, np.nan, 3.0]}))
    assert encoder.transform(pd.DataFrame({"x": [-(2.0**63), 2.0**63]})).ravel().tolist() == [
        "-9.223372036854776e+18",
        "9.223372036854776e+18",
    ]
    assert encoder.transform(pd.DataFrame({"x": [5.0, np.nan]})).ravel().tolist() == ["5", ""]


def test_infinite_and_huge_values_are_missing():
    encoder = TableEncoder()
    Z = encoder.fit_transform(pd.DataFrame({"x": [1.0, 2.0, np.inf, -1e200, 4.0]}))
    assert np.isfinite(Z).all()
    assert Z[:, 1].tolist() == [0, 0, 1, 1, 0]


def test_skewed_columns_take_their_logarithm_and_small_new_values_stay_finite():
    x = np.exp(np.random.default_rng(0).normal(size=500) * 2)
    encoder = TableEncoder().fit(pd.DataFrame({"x": x}))
    assert "logarithm" in summary(encoder)
    assert np.isfinite(encoder.transform(pd.DataFrame({"x": [-5.0, 0.0, 1e9]}))).all()
    assert "logarithm" not in summary(TableEncoder(log_skewed=False).fit(pd.DataFrame({"x": x})))


def test_constant_and_empty_columns_are_dropped_and_said():
    frame = pd.DataFrame({"x": [1, 2, 3], "same": [7, 7, 7], "none": [None] * 3, "word": ["a"] * 3})
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_ == ["x"]
    assert "same, word: dropped: constant" in summary(encoder)
    assert "none: dropped: no values" in summary(encoder)
    with pytest.raises(InvalidInput, match="no column is left"):
        TableEncoder().fit(frame[["same"]])


def test_truth_is_zero_or_one():
    frame = pd.DataFrame({"a": [True, False, True], "b": [0, 1, 1], "c": ["True", None, "False"]})
    encoder = TableEncoder()
    Z = encoder.fit_transform(frame)
    assert Z[:, 0].tolist() == [1, 0, 1]
    assert Z[:, 1].tolist() == [0, 1, 1]
    assert encoder.feature_names_out_ == ["a", "b", "c", "c is missing"]


def test_categories_missing_and_unseen():
    encoder = TableEncoder().fit(pd.DataFrame({"k": ["a", "b", None, "a"]}))
    assert encoder.feature_names_out_ == ["k=a", "k=b", "k is missing"]
    Z = encoder.transform(pd.DataFrame({"k": ["b", "new", None]}))
    assert Z.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_rare_categories_are_pooled():
    kinds = ["a"] * 50 + ["b"] * 40 + list("cdefgh")
    encoder = TableEncoder(max_categories=3).fit(pd.DataFrame({"k": kinds}))
    assert encoder.feature_names_out_ == ["k=a", "k=b", "k is another"]
    assert encoder.transform(pd.DataFrame({"k": ["c", "new", "a"]}))[:, 2].tolist() == [1, 1, 0]
    assert "8 categories" in summary(encoder)


def test_names_are_dropped_and_texts_of_numbers_are_numbers():
    n = 60
    frame = pd.DataFrame({"id": [f"row {i}" for i in range(n)], "x": [str(i) for i in range(n - 1)] + ["unknown"]})
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_ == ["x"]
    assert "60 distinct values in 60 rows" in summary(encoder)
    assert "'unknown' as missing" in summary(encoder)


@pytest.mark.parametrize("numbers", [np.arange(40.0), [str(i) for i in range(40)], [True, False] * 20])
def test_a_text_that_is_no_number_is_refused_later(numbers):
    encoder = TableEncoder().fit(pd.DataFrame({"x": numbers, "k": ["a", "b"] * 20}))
    good = encoder.transform(pd.DataFrame({"x": [None] * 9, "k": "a"}))
    markers = ["", " ", "NA", "n/a", "NaN", "null", "None", "?", None]
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"x": markers, "k": "a"})), good)
    bad = pd.DataFrame({"x": ["1", "0", "many", "?", "more"], "k": "a"})
    with pytest.raises(InvalidInput, match=r"column 'x': 'many' in row 3 .*and 1 more is not a number.*leave it empty"):
        encoder.transform(bad)
    with pytest.raises(InvalidInput, match=r"'2020-01-01' in row 1 .*pandas.to_datetime"):
        encoder.transform(pd.DataFrame({"x": ["2020-01-01"], "k": "a"}))
    huge = encoder.transform(pd.DataFrame({"x": ["inf", "-1e200"], "k": "a"}))
    np.testing.assert_array_equal(huge, good[:2])


def test_what_stood_for_missing_at_the_fit_still_does():
    x = [str(i) for i in range(39)] + ["unknown"]
    encoder = TableEncoder().fit(pd.DataFrame({"x": x}))
    found = encoder.transform(pd.DataFrame({"x": ["Unknown", None, "5"]}))
    np.testing.assert_array_equal(found[0], found[1])
    with pytest.raises(InvalidInput, match="'unheard' in row 2"):
        encoder.transform(pd.DataFrame({"x": ["5", "unheard"]}))


DAYS = [f"2024-01-{day:02d}" for day in range(1, 31)]
SHARES = [f"{k / 2} %" for k in range(30)]


@pytest.mark.parametrize("written", [DAYS, SHARES, [str(k) for k in range(30)]])
def test_an_odd_word_among_dates_percentages_and_numbers_is_missing(written):
    """The fit must not refuse in `transform` what it was fitted on."""
    frame = pd.DataFrame({"x": [*written, "tbd"]})
    encoder = TableEncoder().fit(frame)
    assert "'tbd' as missing" in summary(encoder)
    found = encoder.transform(frame)
    np.testing.assert_array_equal(found[-1:], encoder.transform(pd.DataFrame({"x": [None]})))
    assert len(np.unique(found[:-1, 0])) == 30
    with pytest.raises(InvalidInput, match="'unheard' in row 1"):
        encoder.transform(pd.DataFrame({"x": ["unheard"]}))


@pytest.mark.parametrize("written", [DAYS, SHARES, [str(k) for k in range(30)]])
def test_an_encoder_can_know_words_of_other_rows(written):
    encoder = TableEncoder().fit(pd.DataFrame({"x": written, "k": ["a", "b", "c"] * 10, "z": np.arange(30.0)}))
    later = pd.DataFrame({"x": [written[0], "lost", "na", "lost"], "k": ["new"] * 4, "z": 1.0})
    knowing = encoder.knowing(later)
    assert knowing.summary_ == [*encoder.summary_, "x: 'lost' as missing, too"]
    found = knowing.transform(later)
    np.testing.assert_array_equal(found, encoder.transform(later.assign(x=[written[0], None, None, None])))
    with pytest.raises(InvalidInput, match="'lost' in row 2"):  # a copy
        encoder.transform(later)
    assert knowing.knowing(later).summary_ == knowing.summary_


def test_a_doubt_about_dates_is_shown_by_a_date_that_has_it():
    days = np.array(["01/01/2024", "02/03/2024", "05/05/2024"], dtype=object)
    assert date_form(days) == ("", "'02/03/2024' can be 2024-03-02 or 2024-02-03")
    assert date_form(days[[0, 2]])[0]


@pytest.mark.parametrize("form", ["%d.%m.%y", "%d.%m.%y %H:%M"])
def test_dates_with_a_year_of_two_digits(form):
    days = pd.Series(pd.date_range("2023-11-05 10:30", periods=60, freq="D"))
    encoder = TableEncoder().fit(pd.DataFrame({"when": days.dt.strftime(form)}))
    assert encoder.forms_ == [form]
    whole = days if "H" in form else days.dt.normalize()
    same = TableEncoder().fit(pd.DataFrame({"when": whole})).transform(pd.DataFrame({"when": whole}))
    np.testing.assert_allclose(encoder.transform(pd.DataFrame({"when": days.dt.strftime(form)})), same, rtol=1e-12)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Vienna", "America/New_York"])
@pytest.mark.parametrize("written", [False, True])
def test_dates_are_the_same_in_a_text_and_in_a_column_of_dates(written, zone):
    """A file of columns keeps dates as dates, a text file does not; a time zone moves the clock, not the instant."""
    instants = pd.Series(pd.date_range("2023-01-01", periods=60, freq="17h", tz="UTC"))
    dates = instants.dt.tz_localize(None) if zone is None else instants.dt.tz_convert(zone)
    text = dates.map(lambda one: one.isoformat())
    fitted, other = (text, dates) if written else (dates, text)
    encoder = TableEncoder().fit(pd.DataFrame({"when": fitted}))
    assert_close(encoder.transform(pd.DataFrame({"when": other})), encoder.transform(pd.DataFrame({"when": fitted})))
    plain = TableEncoder().fit(pd.DataFrame({"when": instants.dt.tz_localize(None)}))
    assert_close(encoder.transform(pd.DataFrame({"when": instants})), plain.transform(pd.DataFrame({"when": instants})))
    with pytest.raises(InvalidInput, match=r"'soon' in row 1 .* is not a date"):
        encoder.transform(pd.DataFrame({"when": ["soon"]}))


@pytest.mark.parametrize("unit", ["s", "us", "arrow"])
def test_far_dates_and_those_of_arrow_are_days(unit):
    """In nanoseconds the last day that stands for "never" would overflow."""
    dates = np.array(["1970-01-02", "9999-12-31", "NaT"], "datetime64[s]")
    if unit == "arrow":
        kind = pd.ArrowDtype(pytest.importorskip("pyarrow").date32())
        column = pd.Series([None if np.isnat(one) else one.item().date() for one in dates], dtype=kind)
    else:
        column = pd.Series(dates.astype(f"datetime64[{unit}]"))
    np.testing.assert_array_equal(as_numbers(column), [1.0, 2932896.0, np.nan])


def test_dates_are_days():
    days = pd.to_datetime(["2020-01-01", "2020-01-03", None])
    encoder = TableEncoder()
    Z = encoder.fit_transform(pd.DataFrame({"d": days}))
    assert np.isfinite(Z).all()
    assert "days since 1970" in summary(encoder)


def test_columns_by_name_in_any_order_others_ignored():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "k": ["a", "b", "a"]})
    encoder = TableEncoder().fit(frame)
    more = frame[["k", "x"]].assign(extra=1)
    np.testing.assert_array_equal(encoder.transform(more), encoder.transform(frame))
    assert encoder.ignored(more) == ["extra"]


def test_missing_columns_are_named_with_what_they_may_be_called():
    encoder = TableEncoder().fit(pd.DataFrame({"price": [1.0, 2.0], "size": [1.0, 3.0]}))
    with pytest.raises(InvalidInput, match=r"'price'.*is 'prices' meant"):
        encoder.transform(pd.DataFrame({"prices": [1.0], "size": [2.0]}))


def test_polars_frames_are_taken():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"x": [1.0, 2.0, None], "k": ["a", "b", "a"]})
    found = TableEncoder().fit_transform(frame)
    np.testing.assert_array_equal(found, TableEncoder().fit_transform(pd.DataFrame(frame.to_dict(as_series=False))))
    assert found.shape == (3, 4)


@pytest.mark.parametrize("bad", [np.ones((2, 2)), "text", None])
def test_what_is_no_frame_is_refused(bad):
    with pytest.raises(InvalidInput, match="data frame"):
        TableEncoder().fit(bad)


def test_no_rows_and_two_columns_of_one_name():
    with pytest.raises(InvalidInput, match="without rows"):
        TableEncoder().fit(pd.DataFrame({"x": []}))
    with pytest.raises(InvalidInput, match="two columns named 'x'"):
        TableEncoder().fit(pd.DataFrame([[1, 2]], columns=["x", "x"]))
    with pytest.raises(InvalidInput, match="two columns named '1'"):
        TableEncoder().fit(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    two_levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    with pytest.raises(InvalidInput, match="names of 2 levels; give each column one name"):
        TableEncoder().fit(two_levels)


def test_columns_of_any_size_are_standardised():
    """Of numbers whose squares are below the range, and of times in seconds, which are far from 0."""
    columns = {
        "small": 1e-200 * np.arange(1.0, 17.0),
        "smallest": 1e-310 * np.arange(1.0, 17.0),
        "seconds": 1.7e9 + np.arange(16.0),
        "large": 1e149 * np.arange(-8.0, 8.0),
    }
    found = TableEncoder().fit_transform(pd.DataFrame(columns))
    expected = (np.arange(16) - 7.5) / np.arange(16.0).std()
    for column, name in zip(found.T, columns, strict=True):
        assert np.abs(column - expected).max() < 1e-12, name


def test_missing_flags_are_the_more_frequent_value():
    for often, seldom in ((1.0, 0.0), (0.0, 1.0)):
        column = [often, often, often, seldom, None] * 4
        encoder = TableEncoder(missing_indicator=0.5).fit(pd.DataFrame({"flag": column}))
        assert encoder.transform(pd.DataFrame({"flag": [None, seldom]})).ravel().tolist() == [often, seldom]


def test_a_table_of_numbers_is_encoded_at_once(monkeypatch):
    """Column by column, a hundred thousand columns took seconds."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 4)), columns=list("abcd")).astype({"b": np.float32})
    frame = frame.assign(skewed=np.exp(3 * rng.normal(size=30)), whole=rng.integers(0, 9, 30), flag=frame["a"] > 0)
    encoder = TableEncoder().fit(frame)
    frame.loc[3, "a"], frame.loc[4, "skewed"] = np.inf, np.nan
    said = ["a: missing in 1 of 30 rows, filled by", "skewed: missing in 1 of 30 rows, filled by"]
    assert [line[: len(start)] for line, start in zip(encoder.unlike_the_fit(frame), said, strict=True)] == said
    plans = encoder._plans()
    expected = np.hstack([plan.encode(frame[plan.name]) for plan in plans])
    monkeypatch.setattr(TableEncoder, "_plans", None)
    turned = frame[frame.columns[::-1]]
    monkeypatch.setattr(type(turned.columns), "__iter__", None)  # names are found at once, too
    np.testing.assert_array_equal(encoder.transform(turned), expected)
    assert [plan.name for plan in plans if plan.numbers[4] > 0] == ["skewed"]


def test_numbers_beside_other_columns_are_planned_and_encoded_at_once(monkeypatch):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(40, 5)), columns=list("abcde"))
    frame = frame.assign(skewed=np.exp(3 * rng.normal(size=40)), flag=[0, 1] * 20, same=2, kind=["x", "y"] * 20)
    for place, name in enumerate(["b", "c", "skewed", "flag"]):
        frame.loc[place : 2 * place, name] = np.nan
    alone = [plan_column(name, values, 20, 0.01, True) for name, values in frame.items()]
    asked = []
    monkeypatch.setattr("mercer.tables.encoder.plan_column", lambda *of: asked.append(of[0]) or plan_column(*of))
    encoder = TableEncoder().fit(frame)
    assert asked == ["kind"]
    assert [vars(plan) | {"said": ""} for plan in alone if plan.kind != "dropped"] == [
        vars(plan) for plan in encoder._plans()
    ]
    expected = np.hstack([plan.encode(frame[plan.name]) for plan in encoder._plans()])
    monkeypatch.setattr(ColumnPlan, "encode", lambda plan, values: plan._one_hot(values))
    np.testing.assert_array_equal(encoder.transform(frame), expected)


def test_what_is_unlike_the_fit_is_found_beside_other_columns_in_any_order():
    encoder = TableEncoder().fit(pd.DataFrame({"kind": ["a", "b", "a"], "size": [1.0, 2.0, 4.0], "n": [1, 2, 4]}))
    frame = pd.DataFrame({"more": ["?", "?"], "n": [5, 6], "size": [None, 1.5], "kind": ["a", "c"]})
    assert [line.split(":")[0] for line in encoder.unlike_the_fit(frame)] == ["kind", "size"]


def test_kinds_of_columns_are_looked_up_by_name_whatever_their_order():
    encoder = TableEncoder().fit(pd.DataFrame({"kind": ["a", "b", "a"], "size": [1.0, 2.0, 4.0], "n": [1, 2, 4]}))
    texts = pd.DataFrame({"size": ["4", "?"], "n": [1, 2], "kind": ["a", "b"]})
    numbers = pd.DataFrame({"kind": ["a", "b"], "size": [4.0, np.nan], "n": [1, 2]})
    np.testing.assert_array_equal(encoder.transform(texts), encoder.transform(numbers))
    assert encoder.unlike_the_fit(texts) == encoder.unlike_the_fit(numbers)


@pytest.mark.parametrize("values", [[1 + 2j, 2, 3], np.array([1 + 2j, 2, "x"], object)])
def test_complex_numbers_are_refused(values):
    encoder, frame = TableEncoder(), pd.DataFrame({"size": values, "kind": ["a", "b", "a"]})
    with pytest.raises(InvalidInput, match="'size': complex numbers"):
        encoder.fit(frame)
    encoder.fit(pd.DataFrame({"size": [1.0, 2.0, 4.0], "kind": ["a", "b", "a"]}))
    with pytest.raises(InvalidInput, match="'size': complex numbers"):
        encoder.transform(frame)
