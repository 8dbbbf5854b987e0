"""Temporary files without a name, which are gone when nobody has them open: packed rows, and arrays about rows."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.points.budget import apart

__all__ = ["no_space", "require_space", "scratch", "temporary"]


def temporary(name: str, folder: str | None) -> BinaryIO:
    """An empty file for the rows of that name in the folder, by default the system's."""
    try:
        return tempfile.TemporaryFile(prefix="mercer-", dir=folder, buffering=0)  # type: ignore[return-value]
    except OSError as error:
        raise no_space(f"no file can be made there ({error.strerror})", name, folder) from error


def scratch(shape: tuple[int, ...], dtype: DTypeLike, name: str, folder: str | None) -> NDArray[Any]:
    """An array in a temporary file, which is gone with the array.

    >>> scratch((2, 3), float, "rows", None).shape
    (2, 3)
    """
    size = max(int(np.prod(shape)) * np.dtype(dtype).itemsize, 1)
    require_space(size, name, folder)
    with temporary(name, folder) as file:
        try:
            if hasattr(os, "posix_fallocate"):  # else a full disk would end the process when the array is written
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise no_space(f"writing failed ({error.strerror})", name, folder) from error
        return np.memmap(file, dtype, "r+", shape=shape)  # type: ignore[call-overload, no-any-return]


def require_space(size: int, name: str, folder: str | None) -> None:
    """Raise InvalidInput if the folder has less space."""
    free = shutil.disk_usage(folder or tempfile.gettempdir()).free
    if size > free:
        raise no_space("{} are needed and {} are free".format(*apart(size, free)), name, folder)


def no_space(given: str, name: str, folder: str | None) -> InvalidInput:
    """The error of a folder that has no space for what belongs to the rows of that name."""
    do = "name a folder with more space (folder=, or the environment's TMPDIR), or raise memory="
    return InvalidInput(message(name, f"cannot be packed in {folder or tempfile.gettempdir()}: {given}", do))
