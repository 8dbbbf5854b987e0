"""Describes the machine of the figures, and whether other processes disturbed them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "pykeops")

SLOW = 0.85
"""A row is disturbed if a small sgemm, before or after it, ran at less than this share of its best rate."""
CROWDED = 0.1
"""A row is also disturbed if other processes took more than this share of the cores during it."""
LOOK, PAUSE = 1.0, 5.0
"""Seconds of work in which the load of others is measured, and of rest before the next measurement."""


@dataclass
class Quiet:
    """The rate of sgemm (GFLOP/s) before and after a row, and the share of the cores that other processes took."""

    before: float = 0.0
    after: float = 0.0
    others: float | None = None

    def disturbed(self, best: float) -> bool:
        return min(self.before, self.after) < SLOW * best or (self.others or 0.0) > CROWDED


@dataclass
class Probe:
    """Times the same small sgemm before and after every row."""

    size: int = 1536
    best: float = 0.0
    arrays: Any = field(default=None, repr=False)

    def pace(self) -> float:
        """GFLOP/s, the best of three."""
        if self.arrays is None:
            rng = np.random.default_rng(0)
            self.arrays = [rng.standard_normal((self.size, self.size), dtype=np.float32) for _ in range(3)]
            np.matmul(*self.arrays)
        rate = 2e-9 * self.size**3 / min(self._seconds() for _ in range(3))
        self.best = max(self.best, rate)
        return rate

    def _seconds(self) -> float:
        a, b, out = self.arrays
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        return time.perf_counter() - start

    def await_quiet(self, seconds: float) -> None:
        """Return once the cores are left to this process while it works, or after so many seconds."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            others, start = crowd(), time.perf_counter()
            while time.perf_counter() - start < LOOK:
                self.pace()
            if (others() or 0.0) <= CROWDED:
                return
            time.sleep(PAUSE)

    @contextlib.contextmanager
    def watch(self, quiet: Quiet) -> Iterator[None]:
        """Fill `quiet` with the rates before and after the block, and with the load of others during it."""
        quiet.before = self.pace()
        others = crowd()
        yield
        quiet.others = others()
        quiet.after = self.pace()


def crowd() -> Callable[[], float | None]:
    """A function that returns the share of the cores that others, the host included, took since this call."""
    start, busy, own = time.perf_counter(), _busy(), _own()

    def share() -> float | None:
        if busy is None:
            return None
        wall, cores = time.perf_counter() - start, os.cpu_count() or 1
        return max(0.0, (_busy() or 0.0) - busy - (_own() - own)) / (wall * cores)

    return share


def _busy() -> float | None:
    """CPU seconds of everything on the machine since boot, time stolen by its host included; None where unknown."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, fields)
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def describe(threads: int) -> dict[str, Any]:
    """CPU, cores, threads, instruction set, memory, BLAS and versions."""
    import mercer
    from mercer.engine.backend import instruction_set, is_native

    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": threads,
        "instruction set": instruction_set() if is_native() else "none: the NumPy reference ran",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "mercer": mercer.__version__,
        **{name: version for name in PACKAGES if (version := _version(name))},
        "BLAS": _blas(),
        "date": time.strftime("%Y-%m-%d"),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    number = f" (family {facts['cpu family']}, model {facts['model']})" if "cpu family" in facts else ""
    return facts.get("model name", platform.machine()) + number


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _blas() -> str:
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "unknown (threadpoolctl is not installed)"
    found = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    facts = ("internal_api", "version", "architecture", "num_threads")
    names = {" ".join(str(pool.get(fact, "?")) for fact in facts) + " threads" for pool in found}
    return "; ".join(sorted(names)) or "unknown"
