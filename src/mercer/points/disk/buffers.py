"""What the record batches of an Arrow file say that they take: Arrow takes it at once, and 8 bytes can ask for 2 GB."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

from mercer.errors import InvalidInput, message
from mercer.points.budget import human

__all__ = ["blocks_of"]

MOST, TIMES, WIDTH = 1 << 26, 20, 16
"""Numbers unpack to at most `MOST` bytes and `TIMES` their bytes in the file, or to `WIDTH` bytes for each value."""
TAIL = 10
"""Bytes after the footer: its length, and "ARROW1"."""
MARK = b"\xff" * 4
"""Newer versions write it before the length of a description."""
DICTIONARIES, BATCHES = 2, 3
"""Fields of the footer, and kinds of blocks too."""


class _Table:
    """A table of a flatbuffer, whose fields are found by their numbers; struct.error for what lies outside."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at + self._read("<I", at)[0]

    def _read(self, form: str, at: int) -> tuple[Any, ...]:
        if at < 0:
            raise struct.error("an offset before the first byte")
        return struct.unpack_from(form, self.data, at)

    def _field(self, field: int) -> int:
        """Where a field is; 0 if it is not there."""
        places = self.at - self._read("<i", self.at)[0]
        if 4 + 2 * field >= self._read("<H", places)[0]:
            return 0
        far = self._read("<H", places + 4 + 2 * field)[0]
        return self.at + far if far else 0

    def has(self, field: int) -> bool:
        return self._field(field) > 0

    def number(self, field: int, form: str) -> int:
        return int(self._read(form, at)[0]) if (at := self._field(field)) else 0

    def table(self, field: int) -> _Table:
        return _Table(self.data, self._field(field))

    def structs(self, field: int, form: str) -> list[tuple[Any, ...]]:
        if not (at := self._field(field)):
            return []
        start = at + self._read("<I", at)[0]
        count, size = self._read("<I", start)[0], struct.calcsize(form)
        if start + 4 + count * size > len(self.data):
            raise struct.error("a list that is longer than the file")
        return [self._read(form, start + 4 + size * i) for i in range(count)]


def blocks_of(file: BinaryIO, size: int, name: str) -> tuple[list[int], list[int]]:
    """The bytes that the dictionaries and the record batches of a file take: their numbers, and 8 for each value.

    Parameters
    ----------
    file : binary file
    size : int
        Its bytes.
    name : str
        The file in messages.

    Raises
    ------
    InvalidInput
        If a block says that it takes far more than its bytes can hold, or if dictionaries overlap.
    struct.error
        If it is no Arrow file.

    Examples
    --------
    >>> import io
    >>> blocks_of(io.BytesIO(b"no table"), 8, "a.arrow")
    Traceback (most recent call last):
        ...
    struct.error: a part outside of the file
    """
    length = struct.unpack("<i", _part(file, size, size - TAIL, 4))[0]
    footer = _Table(_part(file, size, size - TAIL - length, length))
    dictionaries, batches = (footer.structs(kind, "<qi4xq") for kind in (DICTIONARIES, BATCHES))
    if sum(stored for *_, stored in dictionaries) > size:
        raise InvalidInput(message(name, "its dictionaries overlap", "write it again: it is damaged"))
    return [_taken(file, size, name, *one) for one in dictionaries], [_taken(file, size, name, *one) for one in batches]


def _part(file: BinaryIO, size: int, at: int, length: int) -> bytes:
    if at < 0 or length < 0 or at + length > size:
        raise struct.error("a part outside of the file")
    file.seek(at)
    return file.read(length)


def _taken(file: BinaryIO, size: int, name: str, at: int, described: int, stored: int) -> int:
    """The bytes that a block takes; its description begins at a place, and its numbers follow."""
    text = _part(file, size, at, described)
    said = _Table(text[8 if text.startswith(MARK) else 4 :])
    batch = said.table(2).table(1) if said.number(1, "<B") == DICTIONARIES else said.table(2)
    values = [max(count, 0) for count, _ in batch.structs(1, "<qq")]
    rows = max(0, batch.number(0, "<q"), *values)
    taken = 8 * max(rows, sum(values))
    for first, length in batch.structs(2, "<qq"):
        unpacked = length
        if batch.has(3) and length >= 8:
            unpacked = max(length, *struct.unpack("<q", _part(file, size, at + described + first, 8)))
        if length < 0 or unpacked > max(MOST + TIMES * length, WIDTH * rows):
            given = f"{length} bytes of numbers say that they unpack to {human(unpacked)}"
            raise InvalidInput(message(name, given, "write it again: it is damaged, or made to harm"))
        taken += unpacked
    return taken
