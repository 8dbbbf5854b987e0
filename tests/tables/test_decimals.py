"""Tables as much of Europe writes them: semicolons between the fields, commas in the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import InvalidInput

pd = pytest.importorskip("pandas")

from mercer.io import read_table  # noqa: E402


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


def test_words_with_commas_are_words(tmp_path):
    table = read(tmp_path, "a;b\n1,5 m;1\n2,5 m;2\n")
    assert table.frame["a"].tolist() == ["1,5 m", "2,5 m"]
    assert table.notes == ()


def test_a_ragged_line_is_told_with_what_splits_it(tmp_path):
    with pytest.raises(InvalidInput, match="line 3 has 2 fields and the first line has 3, split by semicolons"):
        read(tmp_path, "a;b;t\n1,1;1;0,1\n1,2;1\n1,1;1;0,2\n")
