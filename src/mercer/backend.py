"""Which module does the loops: the compiled one, or its NumPy twin."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any

from mercer import _twin
from mercer.errors import InvalidInput, message

__all__ = ["engine", "instruction_set", "is_native"]


def _load() -> ModuleType | None:
    try:
        return importlib.import_module("mercer._core")
    except ImportError:
        return None


_native = _load()


def engine() -> Any:
    """The compiled module, or the twin where it was not built or ``MERCER_CORE=off`` is in the environment."""
    off = os.environ.get("MERCER_CORE", "").lower() == "off"
    return _twin if off or _native is None else _native


def is_native() -> bool:
    """Whether the compiled module runs."""
    return engine() is not _twin


def instruction_set() -> str:
    """The instruction set in use: the machine's best, or the one that ``MERCER_ISA`` names.

    Raises
    ------
    InvalidInput
        If ``MERCER_ISA`` names one that this machine does not have.
    """
    names: list[str] = engine().instruction_sets()
    wanted = os.environ.get("MERCER_ISA", "")
    if not wanted or not is_native():
        return names[-1]
    if wanted not in names:
        given = f"{wanted!r} on a machine with {names}"
        raise InvalidInput(message("MERCER_ISA", given, "unset it, or choose one of these"))
    return wanted
