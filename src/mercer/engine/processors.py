"""The processors that this process may use, and those of them that other processes leave free."""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mercer.engine import control_groups

__all__ = ["allowed", "chosen", "free", "quota"]

SHORTEST, LONGEST = 0.25, 2.0
"""Seconds over which the use by others is averaged: Linux counts in hundredths, and older use says little."""

SAMPLES = 5
"""The number of counts of running threads if no average is known. Their minimum is used, to ignore short tasks."""


def chosen() -> bool:
    """Whether an environment variable sets the number of threads; then mercer does not change it.

    Examples
    --------
    >>> isinstance(chosen(), bool)
    True
    """
    return any(os.environ.get(f"{name}_NUM_THREADS") for name in ("OMP", "OPENBLAS", "MKL"))


def allowed() -> int:
    """How many processors this process may use at once, by its affinity and by the quota of its control group.

    Examples
    --------
    >>> allowed() >= 1
    True
    """
    return max(1, math.ceil(min(len(_own()), quota())))


def free() -> int:
    """`allowed` less the processors that other processes use, at least 1; `allowed` if the system does not tell.

    Examples
    --------
    >>> 1 <= free() <= allowed()
    True
    """
    most = allowed()
    return most if most == 1 else max(1, min(most, round(len(_own()) - _meter.others())))


@dataclass
class _Sample:
    """A time, and the processor seconds until then: of all processes on this one's processors, and of this one."""

    at: float
    busy: float
    own: float

    @classmethod
    def take(cls) -> _Sample:
        return cls(time.monotonic(), _busy_seconds(Path("/proc/stat").read_text(), _own()), time.process_time())


class _Meter:
    """The processors that others use, on average since the last sample; if that is too old, by the running threads.

    It needs no lock: threads that call it at the same time may get slightly different averages.
    """

    def __init__(self) -> None:
        self._others, self._last = 0.0, self._sample()

    @staticmethod
    def _sample() -> _Sample | None:
        with contextlib.suppress(OSError, ValueError, LookupError):
            return _Sample.take()
        return None

    def others(self) -> float:
        last = self._last
        if last is None or time.monotonic() - last.at < SHORTEST:
            return self._others
        now = self._sample()
        if now is not None:
            passed = now.at - last.at
            used = (now.busy - last.busy - (now.own - last.own)) / passed
            self._others = max(used, 0.0) if passed <= LONGEST else _others_running()
        self._last = now
        return self._others


def _own() -> set[int]:
    """The processors of this process's affinity; all processors if the system has none."""
    with contextlib.suppress(AttributeError, OSError):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _busy_seconds(stat: str, processors: set[int]) -> float:
    """The busy seconds of some processors by /proc/stat, with those that the host of a virtual machine took."""
    ticks = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in processors:
            user, nice, system, _, _, *more = map(int, fields)
            ticks += user + nice + system + sum(more[:3])
    return ticks / os.sysconf("SC_CLK_TCK")


def _others_running() -> float:
    """How many other threads run or wait for a processor; all processors are assumed to be equally busy."""
    with contextlib.suppress(OSError, ValueError, LookupError):
        running = [Path("/proc/loadavg").read_text().split()[3].partition("/")[0] for _ in range(SAMPLES)]
        return (min(map(int, running)) - 1) * len(_own()) / (os.cpu_count() or 1)
    return 0.0


@lru_cache(maxsize=1)
def quota() -> float:
    """How many processors the control groups of this process allow it at once, or infinity.

    Read once, as it takes as long as the kernel matrix of a small fit.
    """
    return _quota()


def _quota(root: Path = control_groups.ROOT, membership: Path = control_groups.MEMBERSHIP) -> float:
    """The least quota of the control groups of this process, in processors; infinity without one."""
    found: list[float] = []
    for version, folder in control_groups.folders("cpu", root, membership):
        names = ["cpu.max"] if version == 2 else ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        with contextlib.suppress(OSError, ValueError):
            granted, period = " ".join((folder / name).read_text().strip() for name in names).split()
            if int(granted) > 0:  # "max" and -1 stand for no quota
                found.append(int(granted) / int(period))
    return min(found, default=math.inf)


_meter = _Meter()
