"""Files that appear whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mercer.errors import InvalidInput, message

__all__ = ["appearing", "permissions", "write_whole"]


@contextmanager
def appearing(path: Path, who: str, called: str | None = None) -> Iterator[Path]:
    """A new file in the same folder, which is renamed to `path` at the end; keeps symbolic links and permissions.

    After a fault it is deleted, and what was there before stays. Errors name it by `called`, or by its path.
    """
    given, path = called or path, Path(os.path.realpath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
    except OSError as error:
        told = f"the folder of {given} cannot be written ({error.strerror})"
        raise InvalidInput(message(who, told, "make it, or choose another")) from error
    try:
        os.close(handle)
        yield Path(temporary)
        os.chmod(temporary, permissions(path))
        os.replace(temporary, path)
    except OSError as error:
        told = f"{given} cannot be written ({error.strerror})"
        raise InvalidInput(message(who, told, "choose another place, or make room")) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def write_whole(path: Path, data: bytes, who: str, called: str | None = None) -> None:
    """Write a file whole or not at all: see `appearing`."""
    with appearing(path, who, called) as beside, beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def permissions(path: Path) -> int:
    """The permissions of the existing file, or those of a new one."""
    with suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
