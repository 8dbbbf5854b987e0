"""Sequences from files: FASTA, or plain text with one sequence a line; gzipped or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.io.raw import read_text

__all__ = ["SequenceFile", "read_sequences"]


@dataclass(frozen=True, eq=False)
class SequenceFile:
    """Sequences, their headers, and where they came from.

    Parameters
    ----------
    sequences : array of str
    headers : array of str
        The text after ">" of each; empty for plain text.
    path : str
    format : "fasta" or "lines"
    notes : tuple of str
        What a reader of the results should know about how the file was read.
    """

    sequences: NDArray[np.object_]
    headers: NDArray[np.object_]
    path: str
    format: str = "fasta"
    notes: tuple[str, ...] = ()


def read_sequences(path: str | Path, *, upper: bool | None = None) -> SequenceFile:
    """Read a FASTA file, or plain text with one sequence in each line, gzipped or not.

    In FASTA a line that begins with ">" is the header of the sequence in the lines below it; lines that begin with ";"
    are comments. Blank lines of plain text are left out.

    Parameters
    ----------
    path : path-like
    upper : bool, optional
        Whether letters become upper case. By default those of FASTA do, because lower case there marks repeats and is
        the same letter, and those of plain text don't.

    Raises
    ------
    InvalidInput
        For a file that is missing, empty or not text, and for FASTA with a header that no sequence follows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "reads.fasta"
    >>> _ = path.write_text(">1\\nACgt\\nAC\\n>0\\nTTTT\\n")
    >>> file = read_sequences(path)
    >>> file.sequences.tolist(), file.headers.tolist()
    (['ACGTAC', 'TTTT'], ['1', '0'])
    """
    name = Path(path).name
    text, notes = read_text(Path(path))
    fasta = text.lstrip()[:1] in (">", ";")
    headers, sequences = _fasta(text, name) if fasta else _lines(text)
    if (upper is None and fasta) or upper:
        sequences = [one.upper() for one in sequences]
    return SequenceFile(_objects(sequences), _objects(headers), name, "fasta" if fasta else "lines", notes)


def _fasta(text: str, name: str) -> tuple[list[str], list[str]]:
    headers: list[str] = []
    parts: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
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
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [""] * len(lines), lines


def _objects(values: list[str]) -> NDArray[np.object_]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
