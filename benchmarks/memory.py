"""Peak memory of one call above the memory in use after its data were loaded, in a process of its own."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def peak(key: str, side: str, *, threads: int, quick: bool, data: Path | None) -> float:
    """Megabytes that "ours" or "peer" of the row `key` takes above its data and the loaded libraries."""
    command = [sys.executable, "-m", "benchmarks.one_peak", key, side, "--threads", str(threads)]
    command += ["--quick"] if quick else []
    command += ["--data", str(data)] if data else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the memory of {side} in {key} could not be measured:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def in_use() -> tuple[float, float]:
    """Megabytes resident now, and at the most since the process began.

    Linux's own file rather than ``getrusage``: there a child's ``ru_maxrss`` starts at what its parent had in use.
    """
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        return most, most
    now, most = (int(re.search(rf"{name}:\s+(\d+) kB", text)[1]) * 1024e-6 for name in ("VmRSS", "VmHWM"))
    return now, most


@contextmanager
def watched() -> Iterator[Callable[[], float]]:
    """Megabytes that the body of the with statement took in this process; NaN if the system does not tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak starts anew
    except OSError:
        yield lambda: math.nan
        return
    before, _ = in_use()
    most = before

    def taken() -> float:
        return most - before

    yield taken
    _, most = in_use()
