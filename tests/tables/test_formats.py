"""NumPy files, spreadsheets and plain text as tables, from files and from standard input."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from mercer.errors import InvalidInput, MemoryExceeded  # noqa: E402
from mercer.tables import read_sequences, read_table  # noqa: E402
from mercer.tables.delimited import left_out  # noqa: E402

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SHEET = f'<worksheet xmlns="{MAIN}"><sheetData>%s</sheetData></worksheet>'


def related(**targets):
    lines = [
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{file}"/>' for name, (kind, file) in targets.items()
    ]
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(lines)}</Relationships>'


PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"></Types>',
    "_rels/.rels": related(r1=("officeDocument", "xl/workbook.xml")),
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
    '<sheet name="Houses" sheetId="1" r:id="r1"/><sheet name="Other" sheetId="2" r:id="r2"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": related(
        r1=("worksheet", "worksheets/sheet1.xml"), r2=("worksheet", "worksheets/sheet2.xml")
    ),
}


def workbook(rows):
    """A workbook whose first sheet has these rows, and whose second is empty."""

    def cell(i, j, value):
        place = f'r="{chr(65 + j)}{i + 1}"'
        if value is None:
            return ""
        if isinstance(value, bool):
            return f'<c {place} t="b"><v>{int(value)}</v></c>'
        if isinstance(value, str):
            return f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c {place}><v>{value}</v></c>"

    lines = [
        f'<row r="{i + 1}">{"".join(cell(i, j, v) for j, v in enumerate(row))}</row>' for i, row in enumerate(rows)
    ]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, text in PARTS.items():
            file.writestr(name, text)
        file.writestr("xl/worksheets/sheet1.xml", SHEET % "".join(lines))
        file.writestr("xl/worksheets/sheet2.xml", SHEET % "")
    return out.getvalue()


def saved(*arrays, **named):
    out = io.BytesIO()
    (np.savez if named else np.save)(out, *arrays, **named)
    return out.getvalue()


def from_standard_input(data, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    return read_table("-")


ROWS = [["size", "town", "note"], [1, "A; b", None], [2.5, "B, c", None], [None, "C\nd", None], [None, None, None]]


@pytest.mark.parametrize("standard", [False, True])
def test_a_spreadsheet_is_its_first_sheet(tmp_path, monkeypatch, standard):
    pytest.importorskip("python_calamine")
    data = workbook([*ROWS[:1], *ROWS[1:]])
    (tmp_path / "houses.xlsx").write_bytes(data)
    table = from_standard_input(data, monkeypatch) if standard else read_table(tmp_path / "houses.xlsx")
    assert table.columns == ["size", "town", "note"]
    np.testing.assert_array_equal(table.frame["size"], [1, 2.5, np.nan])
    assert table.frame["town"].tolist() == ["A; b", "B, c", "C\nd"]
    assert table.notes[0] == "the first of 2 sheets, 'Houses'"


def test_an_empty_row_of_a_sheet_keeps_its_place(tmp_path):
    pytest.importorskip("python_calamine")
    for rows in ([["a", "b"], [1, 2], [None, None], [3, 4], [None, None]], [["a"], [1], [None], [3]]):
        (tmp_path / "n.xlsx").write_bytes(workbook(rows))
        np.testing.assert_array_equal(read_table(tmp_path / "n.xlsx").frame["a"], [1, np.nan, 3])


def test_whole_numbers_of_a_sheet_stay_whole(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "n.xlsx").write_bytes(workbook([["count", "yes"], [1, True], [2**40, False]]))
    frame = read_table(tmp_path / "n.xlsx").frame
    assert frame["count"].dtype.kind == "i"
    assert frame["count"].tolist() == [1, 2**40]
    assert frame["yes"].tolist() == [True, False]


@pytest.mark.parametrize("standard", [False, True])
def test_arrays_have_columns(tmp_path, monkeypatch, standard):
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)

    def read(data, ending):
        (tmp_path / f"a{ending}").write_bytes(data)
        return from_standard_input(data, monkeypatch) if standard else read_table(tmp_path / f"a{ending}")

    table = read(saved(X), ".npy")
    assert (table.columns, table.default_target) == (["c1", "c2", "c3"], None)
    np.testing.assert_array_equal(table.frame.to_numpy(), X)
    assert read(saved(X[:, 0]), ".npy").columns == ["c1"]
    both = read(saved(X=X, y=np.array(["a", "b", "a", "b", "a"])), ".npz")
    assert (both.columns, both.default_target) == (["X1", "X2", "X3", "y"], "y")
    assert both.split(None)[1].tolist() == ["a", "b", "a", "b", "a"]
    fields = read(saved(np.array([(1, 2.5, b"x")], [("a", "i4"), ("b", "f8"), ("c", "S1")])), ".npy")
    assert fields.frame.to_dict("list") == {"a": [1], "b": [2.5], "c": ["x"]}
    dates = read(saved(np.array(["2024-05-01", "2024-05-02"], "M8[D]")), ".npy")
    assert dates.frame["c1"].dtype.kind == "M"


@pytest.mark.parametrize("standard", [False, True])
def test_columns_of_parquet_come_from_standard_input_too(monkeypatch, standard):
    pytest.importorskip("pyarrow")
    frame, out = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), io.BytesIO()
    (frame.to_parquet if standard else frame.to_feather)(out)
    assert from_standard_input(out.getvalue(), monkeypatch).frame["b"].tolist() == ["x", "y"]


def test_plain_text_has_a_text_in_each_line(tmp_path):
    lines = "to be, or not to be\n\nthat is the question\nwhether 'tis nobler\n"
    (tmp_path / "a.txt").write_text(lines)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(lines.encode()))
    for name in ("a.txt", "a.txt.gz"):
        table = read_table(tmp_path / name)
        assert (table.format, table.of_sequences) == ("lines", True)
        assert table.frame["sequence"].tolist() == [one for one in lines.splitlines() if one]
    with pytest.raises(InvalidInput, match="without a target; give a FASTA file"):
        table.split(None)


@pytest.mark.parametrize(
    "text", ["a b\n1 2\n3 4\n", "1 2\n3 4\n", "x\n1\n2.5\n", "1\n2\n", "a;b\n1,5;2\n", "1 3:1\n-1 2:1\n"]
)
def test_tables_that_end_in_txt_stay_tables(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    assert read_table(tmp_path / "a.txt").format in ("delimited", "svmlight")


def test_texts_of_a_named_column_need_no_header(tmp_path, monkeypatch):
    data = "a fine film, really\na bad one\n"
    for name in ("a.txt", "a"):
        (tmp_path / name).write_text(data)
        assert read_table(tmp_path / name, texts="review").frame["review"].tolist() == data.splitlines()
    (tmp_path / "b.txt").write_text("review\n" + data.replace(",", ""))
    assert read_table(tmp_path / "b.txt", texts="review").frame["review"].tolist()[1] == "a bad one"


TABLES = ["id,pep,charge\n1,ACDE,2\n2,KLMN,3\n", "id;pep\n1;ACDE\n", "review,stars\na fine film,1\n"]
TABLES += ["Review\ngood\nbad\n", "1,a fine film,2\n" * 5]


@pytest.mark.parametrize("text", TABLES)
@pytest.mark.parametrize("name", ["a.txt", "a"])
def test_a_table_with_another_header_is_no_list_of_texts(tmp_path, name, text):
    """Its lines would be predicted as texts, the header among them."""
    (tmp_path / name).write_text(text)
    assert read_table(tmp_path / name, texts="review").format == "delimited"


@pytest.mark.parametrize("header", ["c1,c2\n", ""])
def test_identifiers_under_a_header_like_ours_are_those_of_the_rows(tmp_path, header):
    (tmp_path / "a.csv").write_text(header + "00123,1\n00124,2\n")
    assert read_table(tmp_path / "a.csv", kept=["c1"]).written["c1"].tolist() == ["00123", "00124"]


@pytest.mark.parametrize(
    "text", ["a great film\n", "it was long, and dull\nthe review, by him, is good\n", "ACDEF\n", "review\na, b\n"]
)
@pytest.mark.parametrize("name", ["a.txt", "a"])
def test_few_texts_are_no_table(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    table = read_table(tmp_path / name, texts="review")
    assert table.format == "lines"
    assert table.frame["review"].tolist() == [one for one in text.splitlines() if one != "review"]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.npy", b"1,2\n", "not a NumPy file"),
        ("a.npz", b"PK\x03\x04nonsense", "not a NumPy file"),
        ("a.npy", saved(np.array([{}], object)), "holds Python objects"),
        ("a.npy", saved(np.zeros((2, 2, 2))), "3 dimensions"),
        ("a.npy", saved(np.zeros((0, 2))), "no rows"),
        ("a.npz", saved(X=np.zeros((3, 2)), y=np.zeros(2)), "X 3, y 2 rows"),
        ("a.npz", saved(X=np.zeros((3, 2)), X1=np.ones(3)), "two columns named 'X1'; rename an array"),
        ("a.npy", saved(np.zeros(3, [("x", "f8", (2,)), ("x2", "f8")])), "two columns named 'x2'"),
        ("a.npy", b"", "empty"),
        ("a.xlsx", b"", "empty"),
        ("a.xlsx", b"PK\x03\x04nonsense", "cannot be read as a spreadsheet"),
        ("a.xlsx", workbook([]), "first sheet is empty"),
        ("a.csv", saved(np.zeros(3)), "end its name in .npy"),
        ("a.csv", workbook(ROWS), "end its name in .xlsx"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, data, words):
    if name.endswith("xlsx"):
        pytest.importorskip("python_calamine")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidInput, match=words):
        read_table(tmp_path / name)


def test_without_the_extra_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    (tmp_path / "a.xlsx").write_bytes(workbook(ROWS))
    with pytest.raises(InvalidInput, match=r'pip install "mercer\[excel\]", or export it as CSV'):
        read_table(tmp_path / "a.xlsx")


def test_a_far_cell_is_refused(tmp_path):
    """A table up to the last row and column would have 17 billion cells, for which the spreadsheet's reader aborts."""
    pytest.importorskip("python_calamine")
    with (
        zipfile.ZipFile(io.BytesIO(workbook([["a", "b"], [1, 2]]))) as near,
        zipfile.ZipFile(tmp_path / "far.xlsx", "w") as far,
    ):
        for one in near.namelist():
            far.writestr(one, near.read(one).replace(b'r="B2"', b'r="XFD1048576"'))
    with pytest.raises(InvalidInput, match="so far apart"):
        read_table(tmp_path / "far.xlsx", memory="500MB")


def test_archives_are_measured_before_they_are_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1000, 1000)))
    assert (tmp_path / "a.npz").stat().st_size < 20_000
    with pytest.raises(MemoryExceeded, match=r"unpacks to more than 2\.5 MB"):
        read_table(tmp_path / "a.npz", memory="10MB")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.svmlight", b"0 4267296:1\n1 2:1\n", "more than the 200000 columns of a table"),
        ("a.npy", saved(np.array(["a", "b"])).replace(b"a\0\0\0", b"a\xff\xff\xff"), "texts that are none"),
        ("a.npz", saved(X=np.zeros(3)).replace(b"\x93NUMPY", b"\x93NUMPX"), "not a NumPy file, or is damaged"),
        ("a.npy", saved(np.zeros(3)).replace(b"(3,)", b"(3*)"), "not a NumPy file, or is damaged"),
        ("a.npy", saved(np.zeros(3)).replace(b"(3,), }" + b" " * 24, b"(3" + b"0" * 24 + b",), }"), "damaged"),
    ],
)
def test_hostile_files_are_refused(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidInput, match=words):
        read_table(tmp_path / name)


def arrow_file(columns, metadata=None):
    """An Arrow file, not compressed."""
    pa = pytest.importorskip("pyarrow")
    table, out = pa.table(columns).replace_schema_metadata(metadata), io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as file:
        file.write_table(table)
    return out.getvalue()


OFFSETS = np.array([0, 2, 3], np.int32).tobytes()


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: arrow_file({"name": [1.0]}).replace(b"name", b"n\xffme"), "cannot be read as Arrow"),
        (lambda: arrow_file({}), "no rows"),
        (lambda: arrow_file({"this": [1.0], "that": ["x"]}).replace(b"that", b"this"), "two columns"),
        (lambda: arrow_file({"a": ["ab", "c"]}).replace(OFFSETS, OFFSETS[:-4] + b"\xff\xff\xff\x7f"), "as Arrow"),
        (lambda: b"PAR1" + bytes(200) + b"PAR1", "cannot be read as Parquet"),
    ],
    ids=["a name", "no columns", "one name", "offsets", "Parquet"],
)
def test_hostile_columns_are_refused(tmp_path, monkeypatch, standard, made, words):
    pytest.importorskip("pyarrow")
    data = made()
    path = tmp_path / ("a.parquet" if data.startswith(b"PAR1") else "a.arrow")
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=words):
        from_standard_input(data, monkeypatch) if standard else read_table(path)


def test_blank_lines_of_plain_text_are_counted(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("\nthe quick fox\n\nstocks fell in the afternoon\n\n")
    table = read_table(path)
    assert len(table.frame) == 2
    assert table.notes[-1] == "2 blank lines were left out"


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\f", "\v", "\x1c"])
def test_lines_end_only_where_lines_end(tmp_path, mark):
    text = f"the quick{mark}fox"
    for name, data in {"a.txt": f"{text}\nso lazy a dog\n", "a.fasta": f">one{mark}two\n{text}\n>b\nAC\n"}.items():
        (tmp_path / name).write_text(data, "utf-8", newline="")
        assert read_table(tmp_path / name).frame["sequence"].str.lower().tolist()[0] == text
        assert read_sequences(tmp_path / name, upper=False).sequences.tolist()[0] == text
    (tmp_path / "a.csv").write_text(f'x y\n1 "a{mark}b"\n2 c\n3 d\n', "utf-8", newline="")
    assert read_table(tmp_path / "a.csv").frame["y"].tolist() == [f"a{mark}b", "c", "d"]
    assert left_out(f"a{mark}{mark}b") == []


def test_an_index_without_a_name_is_no_comment_of_fasta(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}, index=[">1", ">2"])
    frame.to_csv(tmp_path / "a.csv", sep=";")
    frame.reset_index(drop=True).to_csv(tmp_path / "a.txt", sep=";")
    for name in ("a.csv", "a.txt"):
        assert read_table(tmp_path / name).columns == ["column 1", "a", "b"]
    (tmp_path / "a.fasta").write_text("; made by x; for y\n>one\nACGT\n")
    assert read_table(tmp_path / "a.fasta").format == "fasta"


def test_svmlight_may_begin_with_many_comments(tmp_path):
    (tmp_path / "a.svm").write_text("# why\n" * 25 + "1 1:2\n-1 2:1\n")
    assert read_table(tmp_path / "a.svm").format == "svmlight"


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_column_that_pandas_made_its_index_is_one(tmp_path, ending):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for key in ("a", None):
        index = pd.Index([3, 5], name=key)
        table = pa.Table.from_pandas(pd.DataFrame({"b": [1.0, 2.0]}, index=index))
        if ending == "parquet":
            parquet.write_table(table, tmp_path / "t.parquet")
        else:
            columns = dict(zip(table.column_names, table.columns, strict=True))
            (tmp_path / "t.arrow").write_bytes(arrow_file(columns, table.schema.metadata))
        frame = read_table(tmp_path / f"t.{ending}").frame
        assert frame.to_dict("list") == {"b": [1.0, 2.0], key or "__index_level_0__": [3, 5]}


def test_texts_in_a_struct_are_read(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parts = [{"p": 1, "q": "x", "r": {"s": "yz"}}] * 2
    parquet.write_table(pa.table({"a": [1.0, 2.0], "parts": parts}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").frame["parts"].tolist() == parts
