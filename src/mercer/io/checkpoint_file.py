"""Checkpoint files: numbers and arrays with a checksum, written beside and renamed, the last two of them kept."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.files import permissions

__all__ = [
    "Contents", "Damaged", "alone", "former", "kept_beside", "latest", "remove", "require_own", "to_delete", "write",
]  # fmt: skip

MAGIC = b"mercer-checkpoint-1\n"
DIGEST, PIECE = 32, 1 << 22
KINDS = "biufcU"
"""Kinds of arrays that have no objects in them."""


class Damaged(Exception):
    """A file that is not a complete checkpoint; the message says why."""


@dataclass(frozen=True)
class Contents:
    """What a checkpoint holds: values of JSON, and arrays by name."""

    document: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    path: Path | None = None
    """The file that they were read from: where the last one is gone or damaged, the one before it."""


def former(path: Path) -> Path:
    """Where the checkpoint before the last one is.

    >>> former(Path("run.checkpoint")).name
    'run.checkpoint.before'
    """
    return path.with_name(path.name + ".before")


def to_delete(path: Path) -> str:
    """The files to delete so that a run begins anew. The one before is among them: without the last one it is read.

    A kill between two renames leaves it alone, so that it cannot be told from one whose last was deleted by hand.
    """
    return " and ".join(one.name for one in (path, former(path)) if os.path.lexists(one)) or path.name


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _lock(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def kept_beside(path: Path) -> tuple[Path, ...]:
    """The files that a checkpoint has beside it for a while: they are replaced, and deleted at the end."""
    return _beside(path), former(path), _lock(path)


def require_own(path: Path) -> None:
    """Raise InvalidInput if a file beside this checkpoint has the name of one of its own, but is not: it would be lost.

    A part that a kill has left may be of any length, and a lock is empty.
    """
    for one in kept_beside(path):
        head = b""
        with suppress(OSError):  # what cannot be read is told of where it is written
            if one.is_file() and not one.is_symlink():
                with one.open("rb") as file:
                    head = file.read(len(MAGIC))
        if not MAGIC.startswith(head) or (head and one == _lock(path)):
            given = f"{one.name} exists and is not of a checkpoint: it would be lost"
            raise InvalidInput(message("checkpoint", given, "name another file, or move that one"))


def write(path: Path, contents: Contents, *, keeps: bool = True) -> None:
    """Write a checkpoint, complete or not at all.

    At each moment the file or the one before it is whole on the disk, also if the machine stops.

    Parameters
    ----------
    path : Path
    contents : Contents
    keeps : bool
        Whether the file that is there is whole, and is kept as the one before.

    Raises
    ------
    OSError
        If the disk is full, or fails. What was there is still there.
    """
    beside = _beside(path)
    try:
        with suppress(FileNotFoundError):
            os.unlink(beside)  # what a kill left; a link or a pipe is not written through
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), permissions(path))
        try:
            for piece in _pieces(contents):
                _put(handle, piece)
            os.fsync(handle)
        finally:
            os.close(handle)
        if keeps and path.exists():
            os.replace(path, former(path))
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    _flush_folder(path.parent)


def _put(handle: int, piece: bytes | memoryview) -> None:
    left = memoryview(piece)
    while len(left):
        left = left[os.write(handle, left[:PIECE]) :]


def _flush_folder(folder: Path) -> None:
    """Flush the names in a folder. Windows can't open one, and some file systems don't flush them."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _pieces(contents: Contents) -> Iterator[bytes | memoryview]:
    """The bytes of the file: what it is, the header after its length, the arrays, and BLAKE2b of all that."""
    digest = hashlib.blake2b(digest_size=DIGEST)
    for piece in _unsigned(contents):
        digest.update(piece)
        yield piece
    yield digest.digest()


def _unsigned(contents: Contents) -> Iterator[bytes | memoryview]:
    stored = {name: _stored(array) for name, array in contents.arrays.items()}
    layout = [[name, array.dtype.str, list(array.shape), order] for name, (array, order) in stored.items()]
    header = json.dumps({"document": contents.document, "arrays": layout}).encode()
    yield MAGIC
    yield len(header).to_bytes(8, "little")
    yield header
    for array, order in stored.values():
        yield np.ascontiguousarray(array.T if order == "F" else array).reshape(-1).view(np.uint8).data


def _stored(array: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """The array and its order in memory, which sums depend on."""
    assert array.dtype.kind in KINDS, f"a state has an array of {array.dtype}"
    return array, "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def latest(path: Path) -> tuple[Contents | None, str | None]:
    """The last whole checkpoint, and why it isn't the newest one. None without any; (contents, None) as a rule.

    Raises
    ------
    InvalidInput
        If there are files, and none is a whole checkpoint.
    """
    found, reason = _tried(path)
    if found is not None:
        return found, None
    before, other = _tried(former(path))
    if before is not None:
        return before, reason
    if reason is None and other is None:
        return None, None
    name, told = (path.name, reason) if reason is not None else (former(path).name, other)
    do = f"name another file, or delete {to_delete(path)} to begin anew"
    raise InvalidInput(message("checkpoint", f"{name} {told}", do))


def _tried(path: Path) -> tuple[Contents | None, str | None]:
    if path.exists() and not path.is_file():
        return None, "is not a file"  # reading a pipe would wait for ever
    try:
        return _read(path), None
    except FileNotFoundError:
        return None, None
    except Damaged as error:
        return None, str(error)
    except OSError as error:
        return None, f"cannot be read ({error.strerror})"


def _read(path: Path) -> Contents:
    """A checkpoint. Nothing of it is looked at before its checksum, and nothing in it is executed."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(MAGIC)) != MAGIC:
            raise Damaged("is not a checkpoint of this version, or is damaged")
        end = size - DIGEST
        if _digest(file, end) != file.read(DIGEST):
            raise Damaged("is damaged or cut short: its checksum does not fit")
        file.seek(len(MAGIC))
        try:
            return replace(_parsed(file, end), path=path)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError, SyntaxError) as error:
            raise Damaged(f"is damaged ({type(error).__name__})") from error


def _digest(file: BinaryIO, end: int) -> bytes:
    digest, left = hashlib.blake2b(digest_size=DIGEST), end
    file.seek(0)
    while left > 0 and (piece := file.read(min(left, PIECE))):
        digest.update(piece)
        left -= len(piece)
    return digest.digest()


def _parsed(file: BinaryIO, end: int) -> Contents:
    length = int.from_bytes(file.read(8), "little")
    if length > end - file.tell():
        raise Damaged("is damaged: its header is longer than the file")
    header = json.loads(file.read(length))
    arrays = {}
    for name, text, shape, order in header["arrays"]:
        dtype = np.dtype(text)
        if dtype.kind not in KINDS or not dtype.itemsize or not all(type(one) is int and one >= 0 for one in shape):
            raise Damaged("is damaged: it has an array of unknown kind")
        size = math.prod(shape) * dtype.itemsize
        if size > end - file.tell():
            raise Damaged("is damaged: its arrays are longer than the file")
        flat = np.frombuffer(bytearray(file.read(size)), dtype) if size else np.zeros(math.prod(shape), dtype)
        arrays[name] = flat.reshape(shape[::-1]).T if order == "F" else flat.reshape(shape)
    if not isinstance(header["document"], dict):
        raise Damaged("is damaged: it has no document")
    return Contents(header["document"], arrays)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the place of a checkpoint: two runs would replace and delete each other's.

    A file beside it is locked, and deleted at the end. If a process is killed, the system gives the lock back.

    Raises
    ------
    InvalidInput
        If another run holds it, in this process or another one.
    """
    name = _lock(path)
    handle = _locked(name)
    try:
        yield
    finally:
        if handle is not None:
            with suppress(OSError):
                os.unlink(name)
            with suppress(OSError):
                os.close(handle)


def _locked(name: Path) -> int | None:
    """An open file that no other run has locked; None if files cannot be locked here, or the disk fails."""
    try:
        import fcntl
    except ImportError:
        return None
    while True:
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.path.exists(name) and os.path.samestat(os.fstat(handle), os.stat(name))
        except OSError as error:
            os.close(handle)
            if not isinstance(error, BlockingIOError):
                return None
            given = f"another run keeps its states in {name.name.removesuffix('.lock')}"
            raise InvalidInput(message("checkpoint", given, "wait for its end, or name another file")) from None
        if held:
            return handle
        os.close(handle)  # the run that had it has just ended, and deleted it


def remove(path: Path) -> None:
    """Delete a checkpoint, the one before it and what is left of one that was not written to its end.

    Raises
    ------
    OSError
        If they cannot be deleted.
    """
    for one in (_beside(path), former(path), path):
        one.unlink(missing_ok=True)
