"""Real kills, at random moments, of fits within a checkpoint; in full it is ``python tests/robustness/kills.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked here")
SCRIPT = Path(__file__).with_name("kills.py")
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.soak)])
def test_fits_that_are_killed_end_with_the_same_bits(kills):
    command = [sys.executable, "-W", "ignore", str(SCRIPT), "--kills", str(kills)]
    ran = subprocess.run(
        command, env=os.environ | THREADS, capture_output=True, text=True, check=False, timeout=120 + 20 * kills
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["failures"] == []
    assert found["kills"] >= kills
