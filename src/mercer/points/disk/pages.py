"""What the pages of Parquet columns say that they take: Arrow takes it at once, and a few bytes can ask for 2 GB."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from mercer.errors import InvalidInput, message
from mercer.points.budget import human

__all__ = ["Pages", "pages_of"]

MOST, TIMES = 1 << 26, 20
"""A page may take `MOST` bytes and `TIMES` its bytes in the file. Writers end a page at 1 MB, or after one value; but
fastparquet writes a row group as one page, and such a page is refused if it is longer and repeats itself."""
SLACK = 100
"""Bytes that the first writers left out of the size of a column, as in Arrow."""
SHORT, LONG = 256, 1 << 17
"""Bytes of a header, as a rule and with long texts in its statistics."""

# Headers are in Thrift's compact protocol: each field begins with its distance to the one before and its type, a struct
# ends with 0. One expression takes a header; a parser in Python would take several times as long. It has no way
# back, and counts what it repeats: so many fields that their numbers overflow would give a size again.
_INT = rb"(?>[\x80-\xff]{0,3}[\x00-\x7f]|[\x80-\xff]{4}[\x00-\x0f])"


def _fields(*types: int) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % (16 * distance + kind) for distance in range(1, 16) for kind in types) + b"]"


_TEXTS = b"|".join(
    re.escape(bytes([length])) + b".{%d}" % length for length in sorted(range(128), key=lambda n: n != 8)
)
_FLAT = rb"(?>%s[\x80-\xff]{0,9}[\x00-\x7f]|%s|%s(?:%s))" % (_fields(4, 5, 6), _fields(1, 2), _fields(8), _TEXTS)
_STRUCT = _fields(12)
_HEADER = re.compile(
    rb"\x15([\x00\x04\x06])\x15(%s)\x15(%s)((?:\x15%s)?+.)\x15(%s)\x15(%s)(?:\x15%s\x15(%s))?+" % ((_INT,) * 7)
    + rb"(?>%s|%s%s{0,20}+\x00){0,20}+(\x00\x00)?+" % (_FLAT, _STRUCT, _FLAT),
    re.DOTALL,
)
"""Type, size unpacked and packed, checksum and the struct of this type, its first fields, and whether it ends."""
_TOKEN = re.compile(rb"%s{0,20}+(?:(\x00)|(%s)|%s(%s))" % (_FLAT, _STRUCT, _fields(8), _INT), re.DOTALL)
_DICTIONARY, _SECOND = b"\x04", b"\x06"
_STRUCTS = {
    (kind, check): kind + bytes([16 * (far - check) + 12])
    for kind, far in ((b"\0", 2), (_DICTIONARY, 4), (_SECOND, 5))
    for check in (False, True)
}
"""The type of a page and the byte that begins its struct, without and with a checksum before it."""
_BY_PLACE, _BY_PREFIX = (b"\x04", b"\x10"), b"\x0e"
"""Encodings whose values are places in the dictionary, or share letters with the value before."""


class Pages(NamedTuple):
    """What the pages of a column in a row group say.

    Attributes
    ----------
    largest : int
        Bytes of the largest page, unpacked.
    values : int
    dictionary, entries : int
        Bytes and entries of the dictionary.
    total, each : int
        Bytes of all pages, unpacked, and for each value in the page with the longest ones.
    shared : bool
        Whether values share bytes in another way than by a dictionary that the first page of values uses.

    Examples
    --------
    >>> Pages(8, 1, 0, 0, 8, 8, False).entries
    0
    """

    largest: int
    values: int
    dictionary: int
    entries: int
    total: int
    each: int
    shared: bool


def pages_of(read: Callable[[int, int], bytes], start: int, size: int, values: int, column: str, name: str) -> Pages:
    """What the headers of the pages of a column say that hold so many values.

    Parameters
    ----------
    read : callable
        ``read(length, at)`` gives bytes of the file.
    start, size : int
        Where the pages are in the file.
    values : int
        How many values are read.
    column, name : str
        The column, and the file, in messages.

    Raises
    ------
    InvalidInput
        If a page says that it takes far more than its bytes can hold, or has no header.

    Examples
    --------
    >>> page = bytes.fromhex("1500 1510 1510 2c 1502 1500 1506 1506 00 00") + bytes(8)
    >>> pages_of(lambda length, at: page[at : at + length], 0, len(page), 1, "x", "a.parquet")
    Pages(largest=8, values=1, dictionary=0, entries=0, total=8, each=8, shared=False)
    """
    at, end, largest, total, each, seen, dictionary, entries = start, start + size, 0, 0, 0, 0, 0, 0
    encodings: list[bytes] = []
    while seen < values and at < end:
        found = _HEADER.match(read(SHORT, at))
        if found is not None and found[8]:
            length = found.end()
        else:
            found, length = _long_header(read(LONG, at), column, name)
        kind, is_unpacked, is_packed, struct, number, second, fourth, _ = found.groups()
        unpacked, packed, count = _number(is_unpacked), _number(is_packed), _number(number)
        if kind + struct[-1:] != _STRUCTS[kind, len(struct) > 1] or (unpacked | packed | count) < 0:
            raise _damaged(column, name)
        at += length + packed
        if at > end + SLACK:
            raise _damaged(column, name)
        if unpacked > MOST + TIMES * packed or (kind == _DICTIONARY and count > unpacked):
            given = f"a page of column {column!r} says that its {packed} bytes unpack to {human(unpacked)}"
            given += f" and {count} values" if kind == _DICTIONARY else ""
            do = "write it with smaller row groups or pages, unless it is damaged or made to harm"
            raise InvalidInput(message(name, given, do))
        if kind == _DICTIONARY:
            dictionary, entries = dictionary + unpacked, entries + count
        else:
            seen += count
            encodings.append(second if kind != _SECOND else fourth)
            if unpacked > each * count or not each:
                each = -(-unpacked // max(count, 1))
        if unpacked > largest:
            largest = unpacked
        total += unpacked
    plain_first = bool(encodings) and encodings[0] not in _BY_PLACE
    shared = _BY_PREFIX in encodings or (plain_first and any(one in encodings for one in _BY_PLACE))
    return Pages(largest, seen, dictionary, entries, total, each, shared)


def _damaged(column: str, name: str) -> InvalidInput:
    given = f"a page of column {column!r} has no header, or one that is damaged"
    return InvalidInput(message(name, given, "write it again: it may be cut off"))


def _long_header(data: bytes, column: str, name: str) -> tuple[re.Match[bytes], int]:
    """The beginning of a header whose statistics have long texts, and the length of the header."""
    found = _HEADER.match(data)
    length = 0 if found is None else found.end() if found[8] else _end(data, found.end())
    if found is None or not length:
        raise _damaged(column, name)
    return found, length


def _end(data: bytes, at: int) -> int:
    """Where a header ends whose statistics have long texts; 0 if it does not."""
    depth = 2
    for _ in range(64):
        found = _TOKEN.match(data, at)
        if found is None:
            return 0
        at = found.end()
        if found[1]:
            depth -= 1
        elif found[2]:
            depth += 1
        else:
            at += _raw(found[3])
        if depth == 0:
            return at
    return 0


def _raw(digits: bytes) -> int:
    """A number of Thrift: 7 bits a byte, the lowest ones first."""
    return sum((byte & 127) << 7 * place for place, byte in enumerate(digits))


@lru_cache(4096)
def _number(digits: bytes) -> int:
    """A number with a sign, which is the lowest bit."""
    raw = _raw(digits)
    return -1 if raw & 1 else raw >> 1
