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


def done(number: int = 1, **amounts: int) -> dict:
    """What the script says, with this number of threads of BLAS and the engine; a run that hangs fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(number), "OPENBLAS_NUM_THREADS": str(number)}
    command = [sys.executable, str(SCRIPT), *(str(word) for pair in amounts.items() for word in pair)]
    most = 120 + 40 * sum(amounts.values())
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=most)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


FEW, MANY = {"threads": 14, "fork": 8, "spawn": 1}, {"threads": 1000, "fork": 200, "spawn": 200}


@posix
@pytest.mark.parametrize("amounts", [FEW, pytest.param(MANY, marks=pytest.mark.soak)], ids=["few", "many"])
def test_threads_at_once_and_processes_after_use_get_the_same_bits(amounts):
    assert done(**amounts)["wrong"] == []


@posix
def test_two_threads_at_once_and_forks_of_them_with_two_of_blas():
    """BLAS has one number of threads for the process, so that the bits may be others; nothing else may.

    Threads do not survive a fork: k-means by scikit-learn's OpenMP once waited for ever.
    """
    assert [why for why in done(2, threads=7, fork=4)["wrong"] if BITS not in why] == []


@linux
@pytest.mark.parametrize(("seconds", "growth"), [(3, 0.1), pytest.param(3600, 0.01, marks=pytest.mark.soak)])
def test_nothing_is_leaked(seconds, growth):
    """Between the second and the last fifth of the time; allocators keep what the first fits took."""
    found = done(soak=seconds)
    assert found["wrong"] == []
    memory, files, threads = np.array(found["held"]).T
    fifth = len(memory) // 5
    assert np.median(memory[-fifth:]) <= (1 + growth) * np.median(memory[fifth : 2 * fifth])
    assert len({*files[fifth:]}) == len({*threads[fifth:]}) == 1
