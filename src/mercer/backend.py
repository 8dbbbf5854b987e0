"""Which module does the loops, the compiled one or its NumPy twin, and how many threads BLAS has beside it."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

from threadpoolctl import ThreadpoolController

from mercer import _twin
from mercer.errors import InvalidInput, message

__all__ = ["engine", "instruction_set", "is_native", "one_blas_thread"]

WORTH_WAKING = 4e9
"""Operations of a BLAS call, 0.05 to 0.1 s of one thread, from which on more threads save more than they cost."""


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


@contextmanager
def one_blas_thread(operations: float = 0.0) -> Iterator[None]:
    """Where calls of BLAS and of the engine alternate: one thread for BLAS, unless `operations` are many for one call.

    The threads of OpenBLAS, of which NumPy's and SciPy's wheels have one each, look for more work for a tenth of a
    second before they sleep, and take cores from the engine meanwhile: on two cores a product of 10 000 rows takes
    twice as long then. Within such a section another one, of any thread of the program, changes nothing.
    """
    if operations >= WORTH_WAKING or not _limited.acquire(blocking=False):
        yield
        return
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _limited.release()


_limited = threading.Lock()
"""The number of threads is one for the process: of sections that overlap, the first one sets it and sets it back."""


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """Found once, which takes milliseconds; NumPy's and SciPy's are loaded by then."""
    return ThreadpoolController().select(user_api="blas")
