"""Fits in threads at once, in processes that were forked or spawned, and for a long time in one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("workload.py")
BITS = "other bits"
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked here")
linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a process holds is read from Linux")


def done(what: str, amount: int, threads: int = 1) -> dict:
    """What the script says; a run that hangs fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    command = [sys.executable, str(SCRIPT), what, str(amount)]
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120 + 40 * amount
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("amount", [25, pytest.param(1000, marks=pytest.mark.soak)])
def test_two_threads_at_once_get_the_same_bits(amount):
    assert done("threads", amount)["wrong"] == []


def test_two_threads_at_once_and_two_of_blas():
    """BLAS has one number of threads for the process, so that the bits may be others; nothing else may."""
    assert [why for why in done("threads", 12, threads=2)["wrong"] if BITS not in why] == []


@posix
@pytest.mark.parametrize("amount", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_forks_after_use_get_the_same_bits(amount):
    assert done("fork", amount)["wrong"] == []


@posix
def test_forks_of_a_process_with_threads():
    """Threads do not survive a fork: k-means by scikit-learn's OpenMP once waited for ever."""
    assert [why for why in done("fork", 8, threads=2)["wrong"] if BITS not in why] == []


@pytest.mark.parametrize("amount", [1, pytest.param(200, marks=pytest.mark.soak)])
def test_spawned_processes_get_the_same_bits(amount):
    assert done("spawn", amount)["wrong"] == []


@linux
@pytest.mark.parametrize(("seconds", "growth"), [(4, 0.1), pytest.param(3600, 0.01, marks=pytest.mark.soak)])
def test_nothing_is_leaked(seconds, growth):
    """Between the second and the last fifth of the time; allocators keep what the first fits took."""
    found = done("soak", seconds)
    assert found["wrong"] == []
    memory, files, threads = np.array(found["held"]).T
    fifth = len(memory) // 5
    assert np.median(memory[-fifth:]) <= (1 + growth) * np.median(memory[fifth : 2 * fifth])
    assert len({*files[fifth:]}) == len({*threads[fifth:]}) == 1
