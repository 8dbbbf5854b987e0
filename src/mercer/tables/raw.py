"""Reads the text of a file, gzipped or not, with clear messages for files that are not text."""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

from mercer.errors import InvalidInput, MemoryExceeded, message
from mercer.points import human, parse_memory

__all__ = ["STANDARD_INPUT", "decoded", "read_bytes", "read_text", "require_room", "shown_name", "stream_of"]

STANDARD_INPUT = Path("-")
CHUNK = 1 << 20
COPIES = 4
"""The memory to read a table, relative to its text."""
_GZIP = b"\x1f\x8b"
_KNOWN = {
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "end its name in .xlsx, .ods or .npz if it is such a file"),
    b"PAR1": ("a Parquet file", "end its name in .parquet"),
    b"ARROW1": ("an Arrow file", "end its name in .arrow"),
    b"\x93NUMPY": ("a NumPy file", "end its name in .npy"),
    b"\x89HDF": ("an HDF5 file", "export it as CSV"),
    b"%PDF": ("a PDF", "give the table itself, as CSV"),
    b"\xd0\xcf\x11\xe0": ("an old spreadsheet", "end its name in .xls"),
    b"\xfd7zXZ": ("compressed by xz", "decompress it, or compress it by gzip"),
    b"BZh": ("compressed by bzip2", "decompress it, or compress it by gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "decompress it, or compress it by gzip"),
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""Its byte order marks. Spreadsheets save "Unicode text" so."""


def read_text(path: Path, memory: Any = None) -> tuple[str, tuple[str, ...]]:
    """The text of a file, or of standard input for "-", and notes on how it was read; every line ends with "\\n".

    Reading, and unpacking, stops when the text exceeds the memory budget.

    Raises
    ------
    InvalidInput
        If the file does not exist or has no text.
    MemoryExceeded
        If the text is too long for the memory budget.

    Examples
    --------
    >>> read_text(Path("nowhere.csv"))
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: nowhere.csv: there is no such file; check the name and the folder.
    """
    return decoded(read_bytes(path, memory), shown_name(path))


def read_bytes(path: Path, memory: Any = None) -> bytes:
    """The contents of a file, or of standard input, unpacked if it is gzipped; raises as `read_text` does."""
    name = shown_name(path)
    data, zipped = _bytes(path, name, parse_memory(memory))
    if not zipped and path.suffix.lower() in (".gz", ".gzip"):
        given = "is named like a gzip file but is not one"
        raise InvalidInput(message(name, given, "rename it, or compress it again"))
    _require_text(data, name)
    return data


def decoded(data: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """The contents of a file as text, and notes; raises InvalidInput for what is not text."""
    for magic, (what, do) in _KNOWN.items():
        if data.startswith(magic):
            raise InvalidInput(message(name, f"is {what}", do))
    coding = "UTF-16" if data.startswith(_UTF16) else ""
    try:
        text = data.decode(coding or "utf-8-sig")
    except UnicodeDecodeError:
        text, coding = _latin(data, name)
    if "\0" in text:
        raise InvalidInput(message(name, "is a binary file, not text", "give a CSV, TSV, svmlight or FASTA file"))
    notes = (f"the text is not UTF-8; it was read as {coding}",) if coding else ()
    _require_text(text, name)  # the file can consist of a byte order mark only
    return (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text), notes


def stream_of(text: str) -> io.TextIOWrapper:
    """The text as a stream, in a byte for most characters; `StringIO` takes four for each."""
    data = io.BytesIO(text.encode("utf-8", "surrogatepass"))
    return io.TextIOWrapper(data, "utf-8", "surrogatepass", newline="\n")


def _require_text(read: bytes | str, name: str) -> None:
    if not read.strip():
        raise InvalidInput(message(name, "the file is empty", "give a table with a header and rows"))


def shown_name(path: Path) -> str:
    """The name of the file in messages."""
    return "standard input" if path == STANDARD_INPUT else path.name or str(path)


def _bytes(path: Path, name: str, budget: int) -> tuple[bytes, bool]:
    """The contents of the file, unpacked if it is gzipped, and whether it was."""
    try:
        with _opened(path) as file:
            zipped = file.peek(2)[:2] == _GZIP
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if zipped else file
            return _bounded(stream, name, budget, "unpacks to" if zipped else "has"), zipped
    except FileNotFoundError:
        given, do = "there is no such file", "check the name and the folder"
    except IsADirectoryError:
        given, do = "is a folder", "name a file in it"
    except PermissionError:
        given, do = (
            ("is a folder", "name a file in it") if path.is_dir() else ("may not be read", "change its permissions")
        )
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        given, do = f"the gzip file is damaged or cut short ({error})", "copy or download it again"
    except OSError as error:
        given, do = f"cannot be read ({error.strerror or error})", "check the file"
    raise InvalidInput(message(name, given, do))


def _opened(path: Path) -> io.BufferedReader:
    """The opened file; for standard input a reader that does not close it."""
    if path != STANDARD_INPUT:
        return path.open("rb")
    return io.BufferedReader(cast(io.RawIOBase, _Borrowed(sys.stdin.buffer)))


class _Borrowed(io.RawIOBase):
    """A stream that is not closed with its reader."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _bounded(stream: BinaryIO, name: str, budget: int, has: str) -> bytes:
    """The contents of a stream, read in chunks; raises if they are too long."""
    parts, size, most = [], 0, budget // COPIES
    while part := stream.read(CHUNK):
        size += len(part)
        if size > most:
            raise _exceeded(name, budget, has)
        parts.append(part)
    return b"".join(parts)


def require_room(data: bytes, name: str, memory: Any = None) -> None:
    """Raise if the data are an archive that unpacks to more than the memory budget has room for."""
    budget = parse_memory(memory)
    with contextlib.suppress(zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(one.file_size for one in archive.infolist())
        if unpacked > budget // COPIES:
            raise _exceeded(name, budget, "unpacks to")


def _exceeded(name: str, budget: int, has: str) -> MemoryExceeded:
    given = f"{has} more than {human(budget // COPIES)} of text, which is all that the memory budget of "
    given += f"{human(budget)} has room for as a table (about {COPIES} times the text)"
    return MemoryExceeded(message(name, given, "give fewer rows or columns, or raise memory= (--memory)"))


def _latin(data: bytes, name: str) -> tuple[str, str]:
    """The text in Windows-1252, which has € where Latin-1 has control characters, or in Latin-1, and which it was.

    Latin-1 decodes any bytes, so data with many control characters is refused.
    """
    strange = sum(data.count(bytes([code])) for code in range(32) if code not in (9, 10, 12, 13))
    if strange > len(data) / 1000:
        raise InvalidInput(message(name, "is a binary file, not text", "give a CSV, TSV, svmlight or FASTA file"))
    if any(bytes([code]) in data for code in range(0x80, 0xA0)):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode("cp1252"), "Windows-1252"
    return data.decode("latin-1"), "Latin-1"
