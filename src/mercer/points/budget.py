"""Available memory, memory budgets, and the check of a plan against the budget before anything is allocated."""

from __future__ import annotations

import contextlib
import math
import numbers
import os
import re
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from mercer.engine import control_groups
from mercer.errors import InvalidInput, MemoryExceeded, message

__all__ = ["available_memory", "human", "parse_memory", "require"]

_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")
_UNITS = {"": 1, "b": 1} | {
    letter + tail: base**power
    for power, letter in enumerate("kmgtp", start=1)
    for tail, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_AMOUNT = re.compile(r"\s*([0-9][0-9_]*\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)
LATELY = 0.5
"""Seconds for which the available memory is remembered: asking takes a tenth of the time of a fit of 200 rows."""
_LAST_RESORT = 2**30
_NO_LIMIT = 2**60  # control groups of version 1 have a number near 2**63 for "no limit"
_GROUP_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


def parse_memory(memory: float | str | None) -> int:
    """The memory budget in bytes.

    Parameters
    ----------
    memory : float, str or None
        A number of bytes, or a text such as "2GB" or "512 MiB"; None for half of the available memory. kB, MB, GB, TB
        and PB are powers of 1000 (the B may be left out), KiB, MiB, GiB, TiB and PiB powers of 1024.

    Raises
    ------
    InvalidInput
        If `memory` is anything else, or less than one byte.

    Examples
    --------
    >>> parse_memory("1.5 gb"), parse_memory("512MiB"), parse_memory(1e6)
    (1500000000, 536870912, 1000000)
    """
    if memory is None:
        return max(_lately_available(int(time.monotonic() / LATELY)) // 2, 1)
    advice = 'give bytes, a text such as "2GB" or "512MiB", or None for half of the available memory'
    if isinstance(memory, str):
        amount = _AMOUNT.fullmatch(memory)
        unit = _UNITS.get(amount[2].lower()) if amount else None
        if amount is None or unit is None:
            raise InvalidInput(message("memory", f"{memory!r} is not an amount of memory", advice))
        size = float(amount[1]) * unit
    elif isinstance(memory, numbers.Real) and not isinstance(memory, bool):
        size = float(memory)
    else:
        raise InvalidInput(message("memory", f"{memory!r} is not an amount of memory", advice))
    if not (math.isfinite(size) and size >= 1):
        raise InvalidInput(message("memory", f"{memory!r} is not a positive, finite number of bytes", advice))
    return int(size)


def human(size: float, digits: int = 3) -> str:
    """A number of bytes for people to read, in units that are powers of 1000.

    Parameters
    ----------
    size : float
        Bytes.
    digits : int, default 3

    Examples
    --------
    >>> human(425_269_448), human(999), human(2**30), human(-1500)
    ('425 MB', '999 B', '1.07 GB', '-1.5 kB')
    """
    sign, size = ("-", -size) if size < 0 else ("", size)
    for unit in _DECIMAL:
        if size < 999.5 or unit == _DECIMAL[-1]:
            return f"{sign}{size:.0f} B" if unit == "B" else f"{sign}{size:.{digits}g} {unit}"
        size /= 1000
    raise AssertionError


def apart(*sizes: float) -> tuple[str, ...]:
    """Numbers of bytes that are compared, for people to read, with so many digits that different ones read differently.

    Parameters
    ----------
    *sizes : float
        Bytes.

    Returns
    -------
    tuple of str
        At least three digits each.

    Examples
    --------
    >>> apart(30_040_000, 30_000_000), apart(2e9, 1e9), apart(5e6, 5e6)
    (('30.04 MB', '30 MB'), ('2 GB', '1 GB'), ('5 MB', '5 MB'))
    """
    for digits in range(3, 17):
        told = tuple(human(size, digits) for size in sizes)
        if len(set(told)) == len(set(sizes)):
            break
    return told


def require(needed: int, budget: int, what: str, alternatives: str | Sequence[str]) -> None:
    """Raise MemoryExceeded if a plan needs more bytes than the budget; call it before allocating.

    Parameters
    ----------
    needed, budget : int
        Bytes.
    what : str
        The purpose of the memory; the message begins with it.
    alternatives : str or sequence of str
        What the user can do instead, each an imperative.

    Raises
    ------
    MemoryExceeded
        If `needed` is larger than `budget`. The message has both figures and the alternatives.

    Examples
    --------
    >>> require(10_000**2 * 8, 2 * 10**9, "KernelRidge's matrix of 10000 x 10000", 'set solver="cg"')
    >>> require(10**10, 2 * 10**9, "KernelRidge's matrix", ['set solver="cg"', "use float32"])
    Traceback (most recent call last):
        ...
    mercer.errors.MemoryExceeded: KernelRidge's matrix: needs 10 GB, and the memory budget is 2 GB; set solver="cg", \
or use float32, or raise memory= to 10 GB or more.
    """
    if needed <= budget:
        return
    choices = [alternatives] if isinstance(alternatives, str) else list(alternatives)
    advice = ", or ".join([*choices, f"raise memory= to {_rounded_up(needed)} or more"])
    need, most = apart(needed, budget)
    raise MemoryExceeded(message(what, f"needs {need}, and the memory budget is {most}", advice))


def _rounded_up(size: int) -> str:
    """The size in three digits, rounded up, so that it suffices as `memory=`."""
    step = 10 ** max(len(str(size)) - 3, 0)
    return human(-(-size // step) * step)


@lru_cache(maxsize=1)
def _lately_available(moment: int) -> int:
    return available_memory()


def available_memory() -> int:
    """Bytes that this process can allocate now: the least of the system's, the containers' and the process's limits.

    It never fails: if the system tells nothing, the result is 1 GiB.

    Examples
    --------
    >>> available_memory() > 0
    True
    """
    found = [_system_free(), _cgroup_free(), _address_space_free()]
    return max(min((size for size in found if size is not None), default=_LAST_RESORT), 0)


def _system_free() -> int | None:
    with contextlib.suppress(OSError, ValueError, LookupError, AttributeError):
        if sys.platform == "linux":
            return _meminfo_available(Path("/proc/meminfo").read_text())
    with contextlib.suppress(OSError, ValueError, LookupError, AttributeError):
        if sys.platform == "win32":
            return _windows_available()
    with contextlib.suppress(OSError, ValueError, LookupError, AttributeError):
        return _sysconf_free()
    return None


def _meminfo_available(text: str) -> int:
    """MemAvailable of /proc/meminfo, in bytes; old kernels do not have it, so that MemFree + Cached stands for it."""
    rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    names = ["MemAvailable"] if "MemAvailable" in rows else ["MemFree", "Cached"]
    return sum(int(rows[name].split()[0]) for name in names) * 1024


def _sysconf_free() -> int:
    """The free pages in bytes if the system counts them; otherwise, as on macOS, half of all pages."""
    page = os.sysconf("SC_PAGE_SIZE")
    if "SC_AVPHYS_PAGES" in os.sysconf_names:
        return page * os.sysconf("SC_AVPHYS_PAGES")
    return page * os.sysconf("SC_PHYS_PAGES") // 2


def _windows_available() -> int:
    """GlobalMemoryStatusEx's ullAvailPhys."""
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [("dwLength", ctypes.c_ulong), ("dwMemoryLoad", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong)
            for name in ("total", "avail", "total_page", "avail_page", "total_virtual", "avail_virtual", "extended")
        ]

    status = Status(dwLength=ctypes.sizeof(Status))
    windll = getattr(ctypes, "windll")  # noqa: B009 - it exists on Windows only
    if not windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        raise OSError("GlobalMemoryStatusEx")
    return int(status.avail)


def _cgroup_free(root: Path = control_groups.ROOT, membership: Path = control_groups.MEMBERSHIP) -> int | None:
    """The least memory that a control group of this process leaves; None if no group has a limit."""
    found: list[int] = []
    for version, folder in control_groups.folders("memory", root, membership):
        with contextlib.suppress(OSError, ValueError):
            found.append(_left_in_group(folder, *_GROUP_FILES[version]))
    return min(found, default=None)


def _left_in_group(folder: Path, limit_name: str, usage_name: str, cache_name: str) -> int:
    """limit − (usage − reclaimable file cache); ValueError if the cgroup has no limit."""
    limit = int((folder / limit_name).read_text())
    if limit >= _NO_LIMIT:
        raise ValueError("no limit")
    usage = int((folder / usage_name).read_text())
    cache = 0
    with contextlib.suppress(OSError, ValueError):
        pairs = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
        cache = next((int(size) for name, size in pairs if name == cache_name), 0)
    return max(limit - max(usage - cache, 0), 0)


def _address_space_free(statm: Path = Path("/proc/self/statm")) -> int | None:
    """The address space that `ulimit -v` leaves; None if it is not set, or the system does not tell."""
    with contextlib.suppress(ImportError, OSError, ValueError, AttributeError, LookupError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        return max(limit - int(statm.read_text().split()[0]) * resource.getpagesize(), 0)
    return None
