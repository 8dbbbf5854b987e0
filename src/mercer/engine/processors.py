"""How many processors this process may use, and how many of them others leave free."""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["allowed", "chosen", "free", "quota"]

SHORTEST, LONGEST = 0.25, 2.0
"""Seconds over which the use by others is averaged: Linux counts in hundredths, and the past says nothing of now."""

LOOKS = 5
"""Looks at who is running where no average is at hand. The least counts: what runs by chance is over soon."""


def chosen() -> bool:
    """Whether the environment names a number of threads: then nothing is chosen here.

    >>> isinstance(chosen(), bool)
    True
    """
    return any(os.environ.get(f"{name}_NUM_THREADS") for name in ("OMP", "OPENBLAS", "MKL"))


def allowed() -> int:
    """The processors that this process may run on at once, by its affinity and by the quota of its control group.

    >>> allowed() >= 1
    True
    """
    return max(1, math.ceil(min(len(_own()), quota())))


def free() -> int:
    """`allowed` less the processors that other processes use, at least 1; no fewer where that cannot be found out.

    >>> 1 <= free() <= allowed()
    True
    """
    most = allowed()
    return most if most == 1 else max(1, min(most, round(len(_own()) - _meter.others())))


@dataclass
class _Sample:
    """When, and the seconds that all processes and this one had by then on the processors of its affinity."""

    at: float
    busy: float
    own: float

    @classmethod
    def take(cls) -> _Sample:
        return cls(time.monotonic(), _busy_seconds(Path("/proc/stat").read_text(), _own()), time.process_time())


class _Meter:
    """Processors in use by others: the average since the last look, if that was a moment ago.

    Threads that look at once each find a number of their own, and need no lock.
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
    """The processors of this process's affinity; all where the system does not say."""
    with contextlib.suppress(AttributeError, OSError):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _busy_seconds(stat: str, processors: set[int]) -> float:
    """Seconds of some processors that were not idle, of a /proc/stat, with those that a virtual machine's host took."""
    ticks = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in processors:
            user, nice, system, _, _, *more = map(int, fields)
            ticks += user + nice + system + sum(more[:3])
    return ticks / os.sysconf("SC_CLK_TCK")


def _others_running() -> float:
    """Threads that run or wait for a processor, but for this one; those of other processors are taken to be as busy."""
    with contextlib.suppress(OSError, ValueError, LookupError):
        looks = [Path("/proc/loadavg").read_text().split()[3].partition("/")[0] for _ in range(LOOKS)]
        return (min(map(int, looks)) - 1) * len(_own()) / (os.cpu_count() or 1)
    return 0.0


@lru_cache(maxsize=1)
def quota() -> float:
    """The processors that the control groups of this process allow it at once, or infinity.

    Looked up once, for it takes as long as a small fit's kernel matrix.
    """
    return _quota()


def _quota(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> float:
    """The least quota, in processors, of any control group above this process, version 1 or 2; infinite without one."""
    try:
        lines = membership.read_text().splitlines()
    except (OSError, ValueError):
        return math.inf
    found: list[float] = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            base, names = root, ["cpu.max"]
        elif "cpu" in controllers.split(","):
            base, names = root / "cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            with contextlib.suppress(OSError, ValueError):
                granted, period = " ".join((folder / name).read_text().strip() for name in names).split()
                if int(granted) > 0:  # "max", or -1, is none
                    found.append(int(granted) / int(period))
            if folder == base:
                break
    return min(found, default=math.inf)


_meter = _Meter()
