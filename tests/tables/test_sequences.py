"""FASTA and plain text."""

from __future__ import annotations

import gzip

import pytest

from mercer import errors
from mercer.io import read_sequences, read_table


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.fasta", "a.fasta.gz"])
def test_fasta(tmp_path, name):
    file = read_sequences(write(tmp_path / name, "; a comment\n>one two\nAc\n gT \n\n>2\r\nNN-*\r\n"))
    assert file.sequences.tolist() == ["ACGT", "NN-*"]
    assert file.headers.tolist() == ["one two", "2"]
    assert (file.format, file.path) == ("fasta", name)
    assert read_sequences(tmp_path / name, upper=False).sequences[0] == "AcgT"


def test_lines(tmp_path):
    file = read_sequences(write(tmp_path / "a.txt", "To be\n\nor nöt \n"))
    assert file.sequences.tolist() == ["To be", "or nöt"]
    assert file.headers.tolist() == ["", ""]
    assert file.format == "lines"
    assert read_sequences(tmp_path / "a.txt", upper=True).sequences[1] == "OR NÖT"


@pytest.mark.parametrize("text", ["", ">a\n>b\nA\n", ">a\nA\n>b\n", "; only\n", ";c\nA\n"])
def test_refused(tmp_path, text):
    with pytest.raises(errors.InvalidInput, match=r"a\.fasta: .*; "):
        read_sequences(write(tmp_path / "a.fasta", text))


@pytest.mark.parametrize("name", ["r.fastq", "r.fq.gz", "r.txt"])
def test_fastq_is_refused(tmp_path, name):
    """Its qualities would be sequences of their own."""
    data = b"@r1\nACGT\n+\nIIII\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for read in (read_sequences, read_table):
        with pytest.raises(errors.InvalidInput, match=r"is FASTQ, .* write its sequences as FASTA"):
            read(tmp_path / name)


@pytest.mark.parametrize("name", ["q.fasta", "q.FA", "q.fna.gz", "q.faa"])
def test_an_ending_of_fasta_needs_a_header_at_first(tmp_path, name):
    data = b"ACG\n>a\nTT\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for read in (read_sequences, read_table):
        with pytest.raises(errors.InvalidInput, match="line 1 has a sequence without a header"):
            read(tmp_path / name)
