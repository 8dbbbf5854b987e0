"""The text of files: bounded by the memory budget, whatever ends its lines."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

pytest.importorskip("pandas")

from mercer.errors import InvalidInput, MemoryExceeded
from mercer.io import read_sequences, read_table
from mercer.tables.delimited import parse_delimited


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """60 kB that unpack to 60 MB."""
    path = tmp_path_factory.mktemp("raw") / "zeros.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"a,b\n")
        for _ in range(60):
            file.write(b"0,0\n" * 250_000)
    assert path.stat().st_size < 100_000
    return path


@pytest.mark.parametrize("read", [read_table, read_sequences])
def test_a_file_that_unpacks_to_more_than_the_budget_is_refused_before_it_is_unpacked(bomb, read):
    tracemalloc.start()
    try:
        with pytest.raises(MemoryExceeded, match=r"unpacks to more than 2 MB of text.*budget of 8 MB"):
            read(bomb, memory="8MB")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


def test_a_plain_file_is_bounded_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 2000)
    with pytest.raises(MemoryExceeded, match="has more than"):
        read_table(path, memory=20_000)
    with pytest.raises(MemoryExceeded, match="a table of 2001 rows × 2 columns"):
        read_table(path, memory=100_000)
    assert len(read_table(path, memory=150_000).frame) == 2000


def test_a_text_is_read_in_a_byte_for_a_character():
    text = "a,b\n" + "".join(f"{'x' * 100_000},{i}\n" for i in range(10))
    parse_delimited(text, "a.csv")
    tracemalloc.start()
    try:
        parse_delimited(text, "a.csv")
        assert tracemalloc.get_traced_memory()[1] < 3.5 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_on_any_machine(tmp_path, end):
    (tmp_path / "a.csv").write_bytes(end.join(["a,b", "1,x", '2,"y', 'z"', ""]).encode())
    assert read_table(tmp_path / "a.csv").frame.to_numpy().tolist() == [[1, "x"], [2, "y\nz"]]
    (tmp_path / "a.fasta").write_bytes(end.join([">1", "ACGT", "AC", ">0", "TT", ""]).encode())
    assert read_sequences(tmp_path / "a.fasta").sequences.tolist() == ["ACGTAC", "TT"]


def test_a_long_field(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n" + "x" * 300_000 + ",1\ny,2\n")
    assert read_table(tmp_path / "a.csv").frame["a"].str.len().tolist() == [300_000, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,c\n1,2,3\n4,5\n", "line 3 has 2 fields and the first line has 3, split by commas"),
        ("a\tb\n1\t2\n3\n4\n5\t6\n", "line 3 has 1 field and the first line has 2, split by tabs, and 1 more"),
        ("a,b,c\n1,2,3,\n4,5,6,\n", "line 2 has 4 fields"),
        ('a;b\n"x\ny";2\n3\n1;2\n', "line 4 has 1 field"),
        ("a,b,c\n" + "1,2,3\n" * 20 + "\n\n1,2\n", "line 24 has 2 fields"),
    ],
)
def test_a_ragged_row_is_named_by_its_line(tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InvalidInput, match=words):
        read_table(tmp_path / "a.csv")
