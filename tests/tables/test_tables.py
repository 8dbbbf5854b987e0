"""Reading tables: what is in them is found, and what is wrong with them is said."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from mercer.errors import InvalidInput

pytest.importorskip("pandas")

from mercer.io import read_table


def write(folder, name, content):
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.txt"])
def test_the_delimiter_is_found(tmp_path, delimiter, name):
    lines = [["size", "kind"], ["1.5", "x"], ["2", "y"]]
    table = read_table(write(tmp_path, name, "\n".join(delimiter.join(line) for line in lines)))
    assert table.columns == ["size", "kind"]
    assert table.frame["size"].tolist() == [1.5, 2.0]


def test_quoted_fields_may_hold_delimiters_and_lines(tmp_path):
    table = read_table(write(tmp_path, "a.csv", 'name,x\n"Doe, Jane",1\n"two\nlines",2\n'))
    assert table.frame["name"].tolist() == ["Doe, Jane", "two\nlines"]


def test_missing_values_are_found(tmp_path):
    table = read_table(write(tmp_path, "a.csv", "x,y\n1,?\n,2\nNA,3\n"))
    assert table.frame.isna().sum().tolist() == [2, 1]


def test_a_byte_order_mark_and_blank_lines_are_no_data(tmp_path):
    table = read_table(write(tmp_path, "a.csv", b"\xef\xbb\xbf\nx,y\r\n\r\n1,2\r\n"))
    assert table.columns == ["x", "y"]
    assert len(table.frame) == 1


def test_spaces_and_no_header(tmp_path):
    table = read_table(write(tmp_path, "a.gz", "6.0 -1.0 0.5\n 5.0  1.0 0.25 \n"))
    assert table.columns == ["c1", "c2", "c3"]
    assert table.frame["c1"].tolist() == [6.0, 5.0]
    assert "no header" in " ".join(table.notes) or "named c1 to c3" in " ".join(table.notes)


def test_latin_text_is_read_and_said(tmp_path):
    table = read_table(write(tmp_path, "a.csv", "ort,x\nKöln,1\n".encode("latin-1")))
    assert table.frame["ort"].tolist() == ["Köln"]
    assert "Latin-1" in table.notes[0]
    table = read_table(write(tmp_path, "b.csv", "ort,prix €\n“Köln”,1\n".encode("cp1252")))
    assert table.columns == ["ort", "prix €"]
    assert table.frame["ort"].tolist() == ["“Köln”"]
    assert "Windows-1252" in table.notes[0]
    table = read_table(write(tmp_path, "c.csv", b"ort,x\nK\xf6ln\x81,1\n"))
    assert table.frame["ort"].tolist() == ["Köln\x81"]


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_of_a_spreadsheet_in_utf_16_is_read_and_said(tmp_path, coding):
    mark = b"" if coding == "utf-16" else "\ufeff".encode(coding)
    text = "Größe\tOrt 😀\r\n1,5\tKöln\r\n2,25\tBonn\r\n"
    table = read_table(write(tmp_path, "a.txt", mark + text.encode(coding)))
    assert table.columns == ["Größe", "Ort 😀"]
    assert table.frame["Größe"].tolist() == [1.5, 2.25]
    assert "UTF-16" in table.notes[0]


def test_the_delimiter_that_a_spreadsheet_tells(tmp_path):
    table = read_table(write(tmp_path, "a.csv", "sep=;\r\na;b\r\n1,5;x\r\n"))
    assert table.columns == ["a", "b"]
    assert table.frame["a"].tolist() == [1.5]


@pytest.mark.parametrize("name", ["a.svmlight", "a.svmlight.gz"])
def test_svmlight(tmp_path, name):
    table = read_table(write(tmp_path, name, "-1 3:1 5:2.5 # a comment\n+1 1:1\n"))
    assert table.format == "svmlight"
    rest, y = table.split(None)
    assert rest.columns == ["f1", "f2", "f3", "f4", "f5"]
    assert rest.frame["f5"].tolist() == [2.5, 0.0]
    assert y.tolist() == [-1, 1]


def test_svmlight_from_zero(tmp_path):
    assert read_table(write(tmp_path, "a.svm", "1 0:1 2:1\n2 1:3\n")).columns == ["label", "f0", "f1", "f2"]


BAD = {
    "empty.csv": (b"", "empty"),
    "blank.csv": (b"\n \n", "empty"),
    "mark.csv": (b"\xef\xbb\xbf", "empty"),
    "mark and lines.csv": (b"\xef\xbb\xbf\n \n", "empty"),
    "quotes.csv": (b'""\n', "lines are blank"),
    "one quote.csv": (b'"\n', "lines are blank"),
    "header.csv": (b"a,b,c\n", "no rows"),
    "title.csv": (b"Yield 2024\na,b,c\n1,2,3\n4,5,6\n", r"most lines have 3 fields.*delete the lines above the header"),
    "comment.csv": (b"# a, of 2024\na,b,c\n1,2,3\n4,5,6\n", r"most lines have 3.*delete the lines above"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "two columns are named 'a'"),
    "long.csv": (b"a,b\n1,2\n3,4\n1,2,3\n", "line 4 has 3 fields"),
    "short.csv": (b"a,b,c\n1,2,3\n4,5\n7,8,9\n", "line 3 has 2 fields"),
    "binary.csv": (bytes(range(256)) * 4, "binary"),
    "control.csv": (b"\x80\x01\x02\x03" * 50, "binary"),
    "sheet.csv": (b"PK\x03\x04" + b"\0" * 50, "spreadsheet"),
    "cut.csv": ("a,b\n1,2\n".encode("utf-16")[:-1], "binary"),
    "four bytes.csv": ("a,b\n1,2\n".encode("utf-32"), "binary"),
    "wide mark.csv": (b"\xff\xfe", "empty"),
    "commas.csv": (b"size\n1,5\n2,5\n", "line 2 has 2 fields"),
    "quote.csv": (b'a,b\n1,"2\n3,4\n', "quotes"),
    "bad.svmlight": (b"1 1:1 2:1\n1 2:1 1:x\n", "svmlight"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_what_is_wrong_is_said(tmp_path, name):
    data, words = BAD[name]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=words) as raised:
        read_table(path)
    assert str(raised.value).startswith(name)


def test_one_column_is_a_table(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("seq\nACGT\n\nTTGA\n\n\nGG\n")
    table = read_table(path)
    assert table.frame["seq"].tolist() == ["ACGT", "TTGA", "GG"]
    assert table.notes == ("3 blank lines were left out",)
    path.write_text('x\n1.5\n""\n2\n')
    assert read_table(path).frame["x"].isna().tolist() == [False, True, False]
    path.write_text("1.5\n2\n")
    assert read_table(path).notes == ("the first line is all numbers, so the column is named c1",)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="folder"):
        read_table(tmp_path)


def test_a_gzip_that_is_none_or_cut_short(tmp_path):
    plain = tmp_path / "plain.csv.gz"
    plain.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="named like a gzip"):
        read_table(plain)
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20])
    with pytest.raises(InvalidInput, match="cut short"):
        read_table(cut)


def test_gzip_is_known_by_its_content(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_table(path).columns == ["a", "b"]


def test_a_target_that_is_not_there(tmp_path):
    table = read_table(write(tmp_path, "a.csv", "price,size\n1,2\n"))
    with pytest.raises(InvalidInput, match="did you mean 'price'"):
        table.split("prise")
    with pytest.raises(InvalidInput, match="did you mean 'price'"):
        table.split("PRICE")
    with pytest.raises(InvalidInput, match="the columns are price, size"):
        table.split("weight of it")
    with pytest.raises(InvalidInput, match="--target"):
        table.split(None)


def test_a_target_without_values_and_without_company(tmp_path):
    with pytest.raises(InvalidInput, match="no values"):
        read_table(write(tmp_path, "a.csv", "price,size\n,2\n,3\n")).split("price")
    with pytest.raises(InvalidInput, match="only column"):
        read_table(write(tmp_path, "b.csv", "price,size\n1,2\n")).split("price")[0].split("size")


def test_rows_without_a_target_are_left_out_and_said(tmp_path):
    rest, y = read_table(write(tmp_path, "a.csv", "price,size\n1,2\n,3\ninf,4\n")).split("price")
    assert y.tolist() == [1.0]
    assert rest.frame["size"].tolist() == [2]
    assert "2 of 3 rows have no price (in 1 it is infinite) and were left out" in rest.notes[-1]
    assert np.isfinite(y).all()


def test_infinite_numbers_are_missing_and_said(tmp_path):
    table = read_table(write(tmp_path, "a.csv", "x,y,z\n1,inf,1\n-inf,2,2\n3,1e200,3\n,4,4\n"))
    assert table.notes == (
        "x: -inf in row 2 (counted from 1): infinite or at least 1e150, treated as missing",
        "y: inf in row 1 (counted from 1) and 1 more: infinite or at least 1e150, treated as missing",
    )
    assert (
        "the like in 3 more columns"
        in read_table(write(tmp_path, "b.csv", ",".join("abcdefghi") + "\n" + ",".join(["inf"] * 9) + "\n")).notes[-1]
    )
    assert "f2: inf in row 1" in read_table(write(tmp_path, "a.svmlight", "1 1:1 2:inf\n-1 1:2\n")).notes[-1]


def test_a_wide_table_is_not_looked_at_column_by_column(tmp_path, monkeypatch):
    """One line of 12 bytes can name a hundred thousand columns."""
    import pandas as pd

    path = tmp_path / "wide.svmlight"
    path.write_text("1 4000:1e200 5000:1\n")
    looked, found = [], pd.DataFrame.__getitem__
    monkeypatch.setattr(pd.DataFrame, "__getitem__", lambda *a, **k: looked.append(1) or found(*a, **k))
    table = read_table(path)
    assert len(table.columns) == 5001
    assert table.notes[-1].startswith("f4000: 1e+200 in row 1")
    assert len(looked) < 100


def test_numbers_of_a_wide_text_are_one_array(tmp_path):
    """With an array for each column, pandas takes rows of a hundred thousand columns in a second each time."""
    frame = read_table(write(tmp_path, "a.csv", "x,y,z\n1.5,2.5,3.5\n4.5,5.5,6.5\n")).frame
    assert np.shares_memory(frame.to_numpy(), frame["x"].to_numpy())
