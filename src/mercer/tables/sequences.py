"""Reads sequences from files: FASTA, or plain text with one sequence per line, gzipped or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.atomic import Atomic
from mercer.errors import InvalidInput, message
from mercer.mixins import BaseEstimator, TransformerMixin
from mercer.numerals import counted
from mercer.points.sequences import as_sequences
from mercer.schemas import Count, Schema, Texts
from mercer.tables.raw import read_text, shown_name, stream_of

__all__ = ["SequenceEncoder", "SequenceFile", "is_fasta", "parse_fasta", "read_sequences"]

ENDINGS = ".fasta", ".fa", ".fna", ".ffn", ".faa"
"""Of files of FASTA, whatever they begin with."""


@dataclass(frozen=True, eq=False)
class SequenceFile:
    """Sequences, their headers, and their source.

    Parameters
    ----------
    sequences : array of str
    headers : array of str
        The text after ">" for each sequence; empty for plain text.
    path : str
    format : "fasta" or "lines"
    notes : tuple of str
        Notes on how the file was read.

    Examples
    --------
    >>> SequenceFile(np.array(["ACGT"], object), np.array(["one"], object), "one.fa", "fasta", ()).headers[0]
    'one'
    """

    sequences: NDArray[np.object_]
    headers: NDArray[np.object_]
    path: str
    format: str = "fasta"
    notes: tuple[str, ...] = ()


def read_sequences(path: str | Path, *, upper: bool | None = None, memory: Any = None) -> SequenceFile:
    """Read a FASTA file, or plain text with one sequence in each line, gzipped or not, or standard input as "-".

    In FASTA a line that begins with ">" is the header of the sequence in the lines below it; lines that begin with ";"
    are comments. Blank lines of plain text are left out.

    Parameters
    ----------
    path : path-like
    upper : bool, optional
        Whether letters are made upper case. By default those of FASTA are, because its lower case only marks repeats;
        those of plain text are not.
    memory : int or str, optional
        Memory budget, such as "2GB"; by default half of the free memory.

    Returns
    -------
    SequenceFile

    Raises
    ------
    InvalidInput
        For a file that is missing, empty, not text or FASTQ, for a FASTA header without a sequence, and for a sequence
        without a header in a file with an ending of FASTA.
    MemoryExceeded
        For a file whose (unpacked) text exceeds the budget.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "reads.fasta"
    >>> _ = path.write_text(">1\\nACgt\\nAC\\n>0\\nTTTT\\n")
    >>> file = read_sequences(path)
    >>> file.sequences.tolist(), file.headers.tolist()
    (['ACGTAC', 'TTTT'], ['1', '0'])
    """
    name = shown_name(Path(path))
    text, notes = read_text(Path(path), memory)
    fasta = is_fasta(text, name)
    headers, sequences = parse_fasta(text, name) if fasta else _lines(text)
    if (upper is None and fasta) or upper:
        sequences = [one.upper() for one in sequences]
    return SequenceFile(_objects(sequences), _objects(headers), name, "fasta" if fasta else "lines", notes)


def is_fasta(text: str, name: str) -> bool:
    """Whether a file is FASTA, by its ending or its text.

    >>> is_fasta("ACGT\\n", "a.fa.gz"), is_fasta("ACGT\\n", "a.txt")
    (True, False)

    Raises
    ------
    InvalidInput
        For FASTQ, whose qualities would be read as sequences.
    """
    lines = text[: 1 << 16].split("\n", 3)
    if len(lines) == 4 and lines[0].startswith("@") and lines[2].startswith("+"):
        do = 'write its sequences as FASTA, a header line that begins with ">" above each'
        raise InvalidInput(message(name, "is FASTQ, which has qualities beside the sequences", do))
    return name.lower().removesuffix(".gz").endswith(ENDINGS) or looks_like_fasta(text)


def looks_like_fasta(text: str) -> bool:
    """Whether a text begins with a header or a comment of FASTA, and is no table with an empty first name.

    >>> looks_like_fasta(">a\\nACGT\\n"), looks_like_fasta("a,b\\n1,2\\n"), looks_like_fasta(";a;b\\n0;1;2\\n")
    (True, False, False)
    """
    if (begins := text.lstrip()[:1]) != ";":
        return begins == ">"
    below = next((line for line in stream_of(text) if line.strip() and not line.startswith(";")), "")
    return below.startswith(">") or ";" not in below


def parse_fasta(text: str, name: str) -> tuple[list[str], list[str]]:
    """The headers and the sequences of a FASTA text.

    >>> parse_fasta(">a\\nAC\\ngt\\n", "a.fasta")
    (['a'], ['ACgt'])
    """
    headers: list[str] = []
    parts: list[list[str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(">"):
            _check_last(headers, parts, name)
            headers.append(line[1:].strip())
            parts.append([])
        elif line.strip() and not line.startswith(";"):
            if not parts:
                given = f"line {number} has a sequence without a header"
                raise InvalidInput(message(name, given, 'begin each sequence with a line ">name"'))
            parts[-1].append(line.strip())
    _check_last(headers, parts, name)
    if not parts:
        raise InvalidInput(message(name, "holds comments and no sequence", "give a FASTA file"))
    return headers, ["".join(part) for part in parts]


def _check_last(headers: list[str], parts: list[list[str]], name: str) -> None:
    if parts and not parts[-1]:
        given = f"the header {headers[-1]!r:.60} has no sequence"
        raise InvalidInput(message(name, given, "write one below it, or leave the header out"))


def _lines(text: str) -> tuple[list[str], list[str]]:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return [""] * len(lines), lines


class SequenceEncoder(Atomic, TransformerMixin, BaseEstimator):
    """The unchanged column "sequence" of a data frame, for kernels on sequences. In a model it replaces `TableEncoder`.

    Attributes
    ----------
    columns_, feature_names_out_ : list of str
    summary_ : list of str
        A description of the sequences.

    Examples
    --------
    >>> import pandas as pd
    >>> encoder = SequenceEncoder().fit(pd.DataFrame({"sequence": ["ab", "abc"]}))
    >>> encoder.summary_
    ['2 to 3 characters, 3 distinct ones']
    """

    fitted: ClassVar[Schema] = Schema(
        Count("n_features_in_", "columns"),
        Texts("columns_", "columns"),
        Texts("feature_names_out_", "columns"),
        Texts("summary_", "sentences"),
    )

    heading = "Sequences"

    def fit(self, frame: Any, y: Any = None) -> Self:
        """Check and describe the sequences; y is ignored."""
        found = self._column(frame)
        lengths = [len(one) for one in found]
        self.columns_ = self.feature_names_out_ = ["sequence"]
        self.n_features_in_ = 1
        distinct = len(set().union(*found))
        least, most = min(lengths), max(lengths)
        each = f"{least} to {most} characters" if least < most else f"{counted(most, 'character')} each"
        self.summary_ = [f"{each}, {counted(distinct, 'distinct one')}"]
        return self

    def transform(self, frame: Any) -> NDArray[Any]:
        """The sequences of a data frame; other columns are ignored."""
        check_is_fitted(self)
        return self._column(frame)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The name of the column."""
        return np.array(["sequence"], dtype=object)

    def ignored(self, frame: Any) -> list[str]:
        """The columns of a data frame that `transform` ignores."""
        return [str(name) for name in frame.columns if str(name) != "sequence"]

    def unlike_the_fit(self, frame: Any) -> list[str]:
        """An empty list, because the kernel handles new symbols."""
        return []

    def _column(self, frame: Any) -> NDArray[Any]:
        if "sequence" not in getattr(frame, "columns", ()):
            given = "a table without a column 'sequence'"
            raise InvalidInput(message("SequenceEncoder", given, "give a FASTA file, or a column with this name"))
        return as_sequences(frame["sequence"], "SequenceEncoder")


def _objects(values: list[str]) -> NDArray[np.object_]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
