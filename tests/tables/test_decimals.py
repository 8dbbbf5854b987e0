"""Numbers as people write them: decimal commas, as in much of Europe, thousands, and signs of currencies."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from mercer.errors import InvalidInput

pd = pytest.importorskip("pandas")

from mercer.io import TableEncoder, load, read_table, save  # noqa: E402
from mercer.tables.targets import infer_task  # noqa: E402


def read(folder, text):
    path = folder / "a.csv"
    path.write_text(text)
    return read_table(path)


def test_semicolons_and_decimal_commas(tmp_path):
    table = read(tmp_path, "a;b;t\n1,1;1;0,1\n-2,25;2;1.234,5\n;3;7\n")
    assert table.columns == ["a", "b", "t"]
    np.testing.assert_array_equal(table.frame["a"], [1.1, -2.25, np.nan])
    assert table.frame["b"].tolist() == [1, 2, 3]
    assert table.frame["t"].tolist() == [0.1, 1234.5, 7.0]
    assert table.notes == ("decimal commas in a, t",)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_without_a_header(tmp_path, delimiter):
    rows = [["1,1", "1", "0,1"], ["2,2", "3", "0,25"], ["3,0", "4", "0,5"]]
    table = read(tmp_path, "\n".join(delimiter.join(row) for row in rows))
    assert table.columns == ["c1", "c2", "c3"]
    assert table.frame["c3"].tolist() == [0.1, 0.25, 0.5]
    assert len(table.frame) == 3


def test_commas_are_found_to_be_within_numbers_however_many_there_are(tmp_path):
    table = read(tmp_path, "a;b\n1,5;2,5\n3,5;4,5\n")
    assert table.frame.to_numpy().tolist() == [[1.5, 2.5], [3.5, 4.5]]
    table = read(tmp_path, "1,5;2,5\n3,5;4,5\n")
    assert table.frame.to_numpy().tolist() == [[1.5, 2.5], [3.5, 4.5]]


@pytest.mark.parametrize("header", ['size;"price, net"', "size;price, net", '"size, m";price'])
@pytest.mark.parametrize("rows", ["1,5;2,25\n", "1,5;2,25\n2,5;3\n", "1,5;2,25\n" * 9])
def test_a_name_with_a_comma_does_not_hide_what_splits_the_table(tmp_path, header, rows):
    table = read(tmp_path, f"{header}\n{rows}")
    assert table.columns == header.replace('"', "").split(";")
    assert table.frame.iloc[0].tolist() == [1.5, 2.25]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_names_of_rows_without_a_name_are_told_whatever_splits_them(tmp_path, delimiter):
    """As R writes them: the header is one field shorter."""
    lines = [["a", "b"], ["r1", "1", "2"], ["r2", "3", "4"]]
    with pytest.raises(InvalidInput, match="names of rows, as R writes them"):
        read(tmp_path, "\n".join(map(delimiter.join, lines)))


def test_a_comma_stays_the_delimiter_where_it_splits_the_header(tmp_path):
    table = read(tmp_path, "a,b\nx;y,1\nz;w,2\n")
    assert table.frame["a"].tolist() == ["x;y", "z;w"]
    assert read(tmp_path, "a,b\n1,2\n3,4\n").notes == ()


def test_what_may_be_thousands_stays_text_and_is_said(tmp_path):
    table = read(tmp_path, "a;b\n1,234;1\n5,678;2\n")
    assert table.frame["a"].tolist() == ["1,234", "5,678"]
    assert "'1,234' can be 1.234 or 1234" in table.notes[0]
    table = read(tmp_path, "a;b\n1,234;0,5\n5,678;2\n")  # here b says what a comma is
    assert table.frame["a"].tolist() == [1.234, 5.678]


POINTED = [
    (["850", "3.014", "8.999"], [850.0, 3014.0, 8999.0]),
    (["850", "12.345", "1.234.567"], [850.0, 12345.0, 1234567.0]),
    (["-3.014", "", "2.000"], [-3014.0, np.nan, 2000.0]),
    (["0.125", "3.014", "8.999"], [0.125, 3.014, 8.999]),
    (["3.5", "3.014", "8.999"], [3.5, 3.014, 8.999]),
    (["1234", "3.014", "8.999"], [1234.0, 3.014, 8.999]),
    (["1.0", "2.0", "3.0"], [1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize(("fields", "numbers"), POINTED)
def test_points_between_thousands_beside_decimal_commas(tmp_path, fields, numbers):
    """Where a table has decimal commas a point is none, unless one of the column's numbers can only have one."""
    lines = [f"{x};{field}" for x, field in zip(["1,25", "2,5", "-0,75"], fields, strict=True)]
    table = read(tmp_path, "\n".join(["x;preis", *lines]) + "\n")
    assert table.frame["x"].tolist() == [1.25, 2.5, -0.75]
    np.testing.assert_array_equal(table.frame["preis"].to_numpy(float), numbers)
    assert ("marks between thousands in preis" in table.notes) == bool(np.nanmax(np.abs(numbers)) > 2000)


def test_points_between_thousands_and_decimal_commas_in_one_column(tmp_path):
    lines = ["€ 1.234.567"] * 30 + ["€ 1.234,50"]
    found = read(tmp_path, "\n".join(["x;preis", *(f"1;{line}" for line in lines)]) + "\n").frame["preis"]
    assert found.tolist() == [1234567.0] * 30 + [1234.5]


def test_points_are_decimal_where_no_comma_is(tmp_path):
    table = read(tmp_path, "x;preis\n1.25;3.014\n2.5;8.999\n")
    assert table.frame["preis"].tolist() == [3.014, 8.999]


def test_words_with_commas_are_words(tmp_path):
    table = read(tmp_path, "a;b\n1,5 m;1\n2,5 m;2\n")
    assert table.frame["a"].tolist() == ["1,5 m", "2,5 m"]
    assert table.notes == ()


def test_a_ragged_line_is_told_with_what_splits_it(tmp_path):
    with pytest.raises(InvalidInput, match="line 3 has 2 fields and the first line has 3, split by semicolons"):
        read(tmp_path, "a;b;t\n1,1;1;0,1\n1,2;1\n1,1;1;0,2\n")


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        (['"1,234"', "950", '"12,345.5"'], [1234, 950, 12345.5]),
        (['"$1,234.00"', "$950", '"-$2,000,000"'], [1234, 950, -2e6]),
        (['"1,234 €"', "950€", "€ 7.5"], [1234, 950, 7.5]),
        (['"12,5%"', "3 %", "100%"], [12.5, 3, 100]),
        (["5.125%", "6.250%", "7%"], [5.125, 6.25, 7]),
        (['"1.234,50 €"', '"0,99 €"', "12 €"], [1234.5, 0.99, 12]),
        (['"($1,234.50)"', "$950", "($7)"], [-1234.5, 950, -7]),
        (["1'234.50", "950", "12\u2019000"], [1234.5, 950, 12000]),
        (["1\u00a0234 €", "950 €", "1\u202f000\u202f000 €"], [1234, 950, 1000000]),
    ],
)
def test_thousands_and_signs(tmp_path, fields, numbers):
    rows = "\n".join(f"{field},{k}" for k, field in enumerate(fields))
    table = read(tmp_path, f"t,b\n{rows}\n")
    assert table.frame["t"].tolist() == numbers
    assert all(" in t" in note or " left out in t" in note for note in table.notes)
    assert table.notes


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        (["1,234.5", "950", "2,000"], [1234.5, 950, 2000]),
        (["1,234,567", "950", "2,000"], [1234567, 950, 2000]),
        (["$0.50", "$1,200.00", "$3"], [0.5, 1200, 3]),
        (["1.234,50 €", "0,5 €", "12 €"], [1234.5, 0.5, 12]),
        (["12,5%", "3 %", "100%"], [12.5, 3, 100]),
        (["1\u00a0234,5", "950", "0,25"], [1234.5, 950, 0.25]),
    ],
)
def test_thousands_and_signs_where_a_comma_may_be_decimal(tmp_path, fields, numbers):
    rows = "\n".join(f"{field};{k}" for k, field in enumerate(fields))
    assert read(tmp_path, f"t;b\n{rows}\n").frame["t"].tolist() == numbers


@pytest.mark.parametrize(
    "fields",
    [
        ["$5", "€6", "$7"],  # two currencies
        ["$5"] * 97 + ["€6"] * 3,
        ["€5"] * 97 + ["$6"] * 3,
        ["$1.234", "$5.678", "$9"],  # thousands, or a price of petrol
        ["1,234;5", "2,345", "3"],
        ["$1.2.3", "$4.5.6", "$7.8.9"],
        ["5 $ a day", "6 $ a day", "7 $ a day"],
        ["0,123", "0,456", "0,789"],  # no thousands begin with 0
        ["1,234"] * 40 + ["0,456"],  # nor if most could be thousands
        ["(5)", "6", "7"],
        ["it's 5", "6'000 m", "7"],
    ],
)
def test_what_is_no_number_stays_text(tmp_path, fields):
    rows = "\n".join(f'"{field}",{k}' for k, field in enumerate(fields))
    assert read(tmp_path, f"t,b\n{rows}\n").frame["t"].tolist() == fields


def test_a_few_words_among_prices_are_missing_values(tmp_path):
    fields = [f'"${k},000"' for k in range(1, 60)] + ["free"]
    table = read(tmp_path, "t,b\n" + "\n".join(f"{field},{k}" for k, field in enumerate(fields)) + "\n")
    assert table.frame["t"].tolist() == [*(f"{k}000" for k in range(1, 60)), "free"]
    encoder = TableEncoder().fit(table.frame)
    assert "t: text read as numbers, 'free' as missing" in encoder.summary_


def test_prices_are_a_target(tmp_path):
    rows = "\n".join(f'{k % 7},"${1000 * (k % 7) + 900 + k}.50"' for k in range(60))
    path = tmp_path / "a.csv"
    path.write_text(f"rooms,price\n{rows}\n")
    rest, target = read_table(path).split("price")
    assert infer_task(target)[0] == "regression"
    assert target.tolist()[:2] == [900.5, 1901.5]
    assert rest.columns == ["rooms"]


@pytest.mark.parametrize("field", ["1" * 300_000, "(" + "1" * 300_000, "$" + "1," * 150_000, "1'000" * 60_000])
def test_long_fields_take_linear_time(tmp_path, field):
    """Patterns that take quadratic time would take minutes; all characters are those of numbers."""
    field += "-"
    table = read(tmp_path, f'a;b\n"{field}";1\n"{field}";2\n')
    assert table.frame["a"].tolist() == [field, field]


def fitted(tmp_path, text, name="fit.csv"):
    """The encoder of a table, as `mercer fit` has it."""
    table = read(tmp_path, text)
    return TableEncoder().fit(table.frame).knowing(table.frame, table.marks)


EUROPEAN = "dose;cells\n" + "".join(f"{k % 9},{k % 10};{1 + k % 8}.{k:03d}\n" for k in range(40))


@pytest.mark.parametrize(
    ("later", "cells", "dose"),
    [
        ("dose;cells\n3;8.317\n4;850\n", [8317, 850], [3, 4]),  # no comma that tells
        ("dose;cells\n3;8317\n4;850\n", [8317, 850], [3, 4]),
        ("dose;cells\n3,5;8.317\n4;850\n", [8317, 850], [3.5, 4]),
        ("dose;cells\n3.5;8317\n4;850\n", [8317, 850], [3.5, 4]),  # decimal points, and no points between thousands
        ("dose,cells\n3.5,8317.0\n4,850\n", [8317, 850], [3.5, 4]),
        ("dose;cells\n1.250;8317\n;850\n", [8317, 850], [1250]),
    ],
)
def test_a_later_table_is_read_as_the_one_of_the_fit(tmp_path, later, cells, dose):
    """Whether 8.317 is eight or eight thousand is decided once."""
    encoder = fitted(tmp_path, EUROPEAN)
    assert encoder.written == {"dose": "0,0", "cells": "1.000"}
    path = tmp_path / "later.csv"
    path.write_text(later)
    table = read_table(path, like=encoder.written)
    assert table.frame["cells"].tolist() == cells
    assert table.frame["dose"].dropna().tolist() == dose
    commas = any("decimal commas" in note for note in table.notes)
    assert commas == ("3,5;" in later)


def test_a_point_that_does_not_stand_between_thousands_is_refused_where_the_fit_had_such(tmp_path):
    encoder = fitted(tmp_path, EUROPEAN)
    path = tmp_path / "later.csv"
    path.write_text("dose;cells\n3,5;0.998\n4;8.317\n")
    with pytest.raises(InvalidInput, match=r"later.csv: '0.998' in the column 'cells'.*give its numbers"):
        read_table(path, like=encoder.written)


def test_commas_between_thousands_are_remembered(tmp_path):
    encoder = fitted(tmp_path, "price;n\n" + "".join(f"{k * 40_321:,};{k % 7}\n" for k in range(1, 40)))
    assert encoder.written == {"price": "1,000", "n": ""}
    path = tmp_path / "later.csv"
    path.write_text("price;n\n122,514;1\n80,642;2\n")
    table = read_table(path, like=encoder.written)
    assert table.frame["price"].tolist() == [122514, 80642]
    assert table.notes == ("marks between thousands in price",)


def test_a_doubt_of_a_later_table_is_about_its_new_columns_alone(tmp_path):
    encoder = fitted(tmp_path, EUROPEAN)
    path = tmp_path / "later.csv"
    path.write_text("dose;cells;new\n3,5;850;1,234\n4,5;8.317;5,678\n")
    table = read_table(path, like=encoder.written)
    assert table.frame["dose"].tolist() == [3.5, 4.5]
    assert table.frame["new"].tolist() == ["1,234", "5,678"]
    assert "decimal commas in dose" in table.notes
    assert sum(note.startswith("new: text, for '1,234'") for note in table.notes) == 1


def test_percent_that_a_later_table_has_not_is_said(tmp_path):
    encoder = fitted(tmp_path, "share;k\n" + "".join(f"{k} %;{k % 3}\n" for k in range(30)))
    assert encoder.written["share"] == "%"
    path = tmp_path / "later.csv"
    for text, said in (("share,k\n0.12,1\n0.5,2\n", True), ("share;k\n12%;1\n50%;2\n", False)):
        path.write_text(text)
        notes = " ".join(read_table(path, like=encoder.written).notes)
        assert ("share: without the sign %" in notes) == said


def test_categories_that_look_like_numbers_stay_texts_in_a_later_table(tmp_path):
    rows = [
        f"{code},{flag},{k}" for k, (code, flag) in enumerate([("001", "TRUE"), ("02", "FALSE"), ("A1", "may")] * 9)
    ]
    encoder = fitted(tmp_path, "code,flag,x\n" + "\n".join(rows) + "\n")
    path = tmp_path / "later.csv"
    path.write_text("x,flag,code\n1,TRUE,001\n2,FALSE,02\n")
    plain, like = read_table(path), read_table(path, like=encoder.written)
    assert plain.frame["code"].tolist() == [1, 2]
    assert like.frame["code"].tolist() == ["001", "02"]
    assert encoder.unlike_the_fit(like.frame) == []
    features = encoder.feature_names_out_
    assert encoder.transform(like.frame)[0, [features.index("code=001"), features.index("flag=TRUE")]].tolist() == [
        1,
        1,
    ]


def test_an_encoder_keeps_its_marks(tmp_path):
    encoder = fitted(tmp_path, EUROPEAN)
    assert encoder.without("dose").written == {"cells": "1.000"}
    assert clone(encoder).fit(pd.DataFrame({"dose": [1.0, 2.0]})).written == {"dose": ""}
    save(encoder, tmp_path / "e")
    assert load(tmp_path / "e").written == encoder.written
    assert clone(encoder).fit(pd.DataFrame({"dose": [1.0, 2.0]})).target_mark_ == ""
    told = encoder.knowing(pd.DataFrame({"dose": [1.0], "cells": [1.0]}), {"price": "0,0"}, "price")
    save(told.without("dose"), tmp_path / "t")
    assert load(tmp_path / "t").target_mark_ == "0,0"
    del told.target_mark_  # as in files of earlier versions
    save(told, tmp_path / "old")
    assert load(tmp_path / "old").without("dose").target_mark_ == ""
    del encoder.marks_  # as in files of earlier versions
    assert encoder.written == {"dose": "", "cells": ""}


def test_codes_of_missing_values_may_be_many():
    numbers = [f"{k / 7:.2f}" for k in range(60)]
    odd = ["n.d." if k % 6 == 0 else "<0.5" if k % 6 == 1 else one for k, one in enumerate(numbers)]
    encoder = TableEncoder().fit(pd.DataFrame({"x": odd}))
    assert encoder.kinds_ == ["number"]
    assert "'<0.5', 'n.d.' as missing" in " ".join(encoder.summary_)
    assert encoder.transform(pd.DataFrame({"x": ["n.d.", "3"]}))[0, 1] == 1
    grades = TableEncoder().fit(pd.DataFrame({"x": ["1", "2", "3", "A"] * 10}))
    assert grades.kinds_ == ["category"]
    many = [f"w{k % 5}" if k % 4 == 0 else one for k, one in enumerate(numbers)]
    assert TableEncoder().fit(pd.DataFrame({"x": many, "k": ["a", "b"] * 30})).kinds_[0] == "category"


def test_iso_dates_are_read_whatever_the_form_of_the_fit():
    days = pd.Series(pd.date_range("2023-01-01", periods=60))
    encoder = TableEncoder().fit(pd.DataFrame({"d": days.dt.strftime("%d.%m.%Y")}))
    texts = pd.DataFrame({"d": ["2023-02-01", "02.02.2023"]})
    dates = encoder.transform(pd.DataFrame({"d": pd.to_datetime(["2023-02-01", "2023-02-02"])}))
    np.testing.assert_array_equal(encoder.transform(texts), dates)


def test_only_a_text_is_nearly_numbers():
    days = pd.Series(pd.date_range("2024-01-01", periods=60))
    assert infer_task(pd.Series([f"{k / 7:.3f}" for k in range(59)] + ["err"]))[0] == "regression"
    for target in (days[:2].repeat(30), pd.Series(["a", "b"] * 30, dtype="category"), days > days[9]):
        assert infer_task(target)[0] == "classification"
    for target in (days, days.dt.strftime("%Y-%m-%d")):
        assert infer_task(target) == ("regression", "the target is dates of 60 values, as days since 1970")


def test_decimal_commas_in_quotes_where_commas_delimit(tmp_path):
    rows = "".join(f'"{k},{k % 10}","1,{k:03d}",{k}\n' for k in range(30))
    table = read(tmp_path, "a,b,c\n" + rows)
    assert table.frame["a"].tolist() == [k + k % 10 / 10 for k in range(30)]
    assert table.frame["b"].tolist() == [1000 + k for k in range(30)]
    assert table.notes[0] == "decimal commas in a"


def test_signs_and_spaces_of_word_processors(tmp_path):
    table = read(tmp_path, "a,b\n\u22121.5,5.12\u00a0\n2,\u00a06\n\u22123,7\n")
    assert table.frame["a"].tolist() == [-1.5, 2, -3]
    assert table.frame["b"].tolist() == [5.12, 6, 7]
