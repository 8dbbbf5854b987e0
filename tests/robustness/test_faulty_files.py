"""Nothing of before is lost, and one error tells it, wherever in the work with files the disk fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT, LAYER = (Path(__file__).with_name(name) for name in ("faulty_files.py", "faults.c"))
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None or "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="NOT TESTED: the failing file layer needs Linux and a C compiler",
)
for needed in ("pandas", "pyarrow", "safetensors"):
    pytest.importorskip(needed)


@pytest.fixture(scope="module")
def layer(tmp_path_factory):
    built = tmp_path_factory.mktemp("layer") / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", built, LAYER, "-ldl"], check=True)
    return built


@pytest.mark.parametrize("most", [5, pytest.param(2000, marks=pytest.mark.soak)])
def test_the_nth_operation_fails(layer, most):
    environment = {**os.environ, "LD_PRELOAD": str(layer), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(most)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=3600)
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(found) == 16
    assert [one for one in found if one[3]] == []
    assert min(operations for _, _, operations, _ in found) >= 3  # the layer is there, and counts
