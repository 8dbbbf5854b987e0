"""Output files never replace an input or a file of another kind; `mercer.files` writes them whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from mercer.errors import InvalidInput, message
from mercer.tables.raw import STANDARD_INPUT

__all__ = ["check_output", "refuse_other_kind"]


def check_output(
    who: str,
    path: Path,
    inputs: Iterable[Path],
    what: str,
    is_such: Callable[[Path], bool],
    *,
    to_devices: bool = False,
) -> None:
    """Raise InvalidInput unless a file of this kind may be written here. It is called before long computations.

    Parameters
    ----------
    who : str
        The name of the output in messages, such as "--out".
    path : Path
    inputs : iterable of Path
        The files that the command reads. The output must not be one of them under any name or link.
    what, is_such : str and callable
        The kind of the file, and whether an existing file is of this kind, so that it may be replaced.
    to_devices : bool
        Whether the output may be a pipe or a device.
    """
    if str(path) == "-" and not to_devices:
        raise InvalidInput(message(who, '"-", which is standard output', "name a file: this is not written there"))
    if path.is_dir():
        raise InvalidInput(message(who, f"{path} is a folder", "name a file in it"))
    if not path.parent.is_dir():
        raise InvalidInput(message(who, f"there is no folder {path.parent}", "make it, or choose another"))
    if not _writable(path.parent, os.W_OK | os.X_OK):
        raise InvalidInput(message(who, f"the folder {path.parent} may not be written", "choose another"))
    for given in inputs:
        if _same(path, given):
            raise InvalidInput(message(who, f"{path} is also the file {given} of this command", "name another file"))
    refuse_other_kind(who, path, what, is_such, to_devices=to_devices)


def refuse_other_kind(
    who: str, path: Path, what: str, is_such: Callable[[Path], bool], *, to_devices: bool = False
) -> None:
    """Raise InvalidInput if the path exists and is neither a file of this kind nor an empty file."""
    if not path.exists():
        return
    if not path.is_file():
        if not to_devices and not path.is_dir():
            raise InvalidInput(message(who, f"{path.name} is a device or a pipe, not a file", "name a file"))
        return
    if path.stat().st_size and not is_such(path):
        given = f"{path.name} exists and is not {what}: it would be lost"
        raise InvalidInput(message(who, given, "name another file, or remove this one"))
    if not _writable(path, os.W_OK):
        do = "name another file, or change the permissions of this one"
        raise InvalidInput(message(who, f"{path.name} is write-protected", do))


def _writable(path: Path, mode: int) -> bool:
    """Whether this process, as the user that it acts for, may do this with a file or a folder."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _same(path: Path, other: Path) -> bool:
    """Whether two names mean the same file, with links and case resolved; files that do not exist compare by path."""
    with suppress(OSError, ValueError):
        if other == STANDARD_INPUT:
            return os.path.samestat(os.fstat(sys.stdin.fileno()), os.stat(path))
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)
