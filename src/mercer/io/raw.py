"""The text of a file, gzipped or not, and clear words for a file that has none."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from mercer.errors import InvalidInput, message

__all__ = ["read_text"]

_GZIP = b"\x1f\x8b"
_KNOWN = {
    b"PK\x03\x04": ("a zip archive or a spreadsheet (xlsx)", "export it as CSV"),
    b"PAR1": ("a Parquet file", "export it as CSV"),
    b"ARROW1": ("an Arrow file", "export it as CSV"),
    b"\x89HDF": ("an HDF5 file", "export it as CSV"),
    b"%PDF": ("a PDF", "give the table itself, as CSV"),
    b"\xd0\xcf\x11\xe0": ("an old spreadsheet (xls)", "export it as CSV"),
    b"\xfd7zXZ": ("compressed by xz", "decompress it, or compress it by gzip"),
    b"BZh": ("compressed by bzip2", "decompress it, or compress it by gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "decompress it, or compress it by gzip"),
    b"\xff\xfe": ("text in UTF-16", "save it as UTF-8"),
    b"\xfe\xff": ("text in UTF-16", "save it as UTF-8"),
}


def read_text(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and notes on how it was read.

    Raises
    ------
    InvalidInput
        When there is no such file, or no text in it.

    Examples
    --------
    >>> read_text(Path("nowhere.csv"))
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: nowhere.csv: there is no such file; check the name and the folder.
    """
    data = _bytes(path)
    if data[:2] == _GZIP:
        data = _unzipped(data, path.name)
    elif path.suffix.lower() in (".gz", ".gzip"):
        raise InvalidInput(
            message(path.name, "is named like a gzip file and is none", "rename it, or compress it again")
        )
    if not data.strip():
        raise InvalidInput(message(path.name, "the file is empty", "give a table with a header and rows"))
    for magic, (what, do) in _KNOWN.items():
        if data.startswith(magic):
            raise InvalidInput(message(path.name, f"is {what}", do))
    if b"\0" in data:
        raise InvalidInput(message(path.name, "is a binary file, not text", "give a CSV, TSV, svmlight or FASTA file"))
    try:
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return _latin(data, path.name), ("the text is not UTF-8; it was read as Latin-1",)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        given, do = "there is no such file", "check the name and the folder"
    except IsADirectoryError:
        given, do = "is a folder", "name a file in it"
    except PermissionError:
        given, do = (
            ("is a folder", "name a file in it") if path.is_dir() else ("may not be read", "change its permissions")
        )
    except OSError as error:
        given, do = f"cannot be read ({error.strerror or error})", "check the file"
    raise InvalidInput(message(path.name or str(path), given, do))


def _unzipped(data: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (EOFError, gzip.BadGzipFile, zlib.error, OSError) as error:
        given = f"the gzip file is damaged or cut short ({error})"
    raise InvalidInput(message(name, given, "copy or download it again"))


def _latin(data: bytes, name: str) -> str:
    """Latin-1 decodes anything: refuse what has control characters as no text has."""
    strange = sum(data.count(bytes([code])) for code in range(32) if code not in (9, 10, 12, 13))
    if strange > len(data) / 1000:
        raise InvalidInput(message(name, "is a binary file, not text", "give a CSV, TSV, svmlight or FASTA file"))
    return data.decode("latin-1")
