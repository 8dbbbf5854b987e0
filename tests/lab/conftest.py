"""A lab that runs as a user starts it: `mercer lab` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def table(tmp_path_factory) -> Path:
    """Houses: a price, and what it depends on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    price = 3 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
    rows = "\n".join(",".join(f"{value:.5f}" for value in row) for row in np.column_stack([X, price]))
    path = tmp_path_factory.mktemp("lab") / "houses.csv"
    path.write_text(f"width,<b>depth</b>,$$age$$,price\n{rows}\n")
    return path


@pytest.fixture(scope="module")
def lab(table):
    """The address of a lab on the houses."""
    pytest.importorskip("bokeh")
    for module in ("typer", "pandas", "rich", "safetensors"):
        pytest.importorskip(module)
    command = [sys.executable, "-m", "mercer", "lab", str(table), "--target", "price", "--threads", "1"]
    source = Path(__file__).resolve().parents[2] / "src"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        lines = [process.stdout.readline() for _ in range(2)]
        assert lines[1].startswith("http://127.0.0.1:"), (lines, process.stderr.read() if process.poll() else "")
        yield lines[1].strip()
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(20) == 130
        finally:
            process.kill()  # or the tests would wait for it without end
        said = process.stderr.read()
        assert said.strip() == "mercer: stopped.", said
