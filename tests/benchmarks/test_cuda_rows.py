"""`make bench-cuda` refuses clearly without a device, and its rows run on the host's shim."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import mercer
from mercer.engine import backend
from mercer.engine.cuda.engine import CudaEngine
from mercer.errors import DeviceError

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from host_device import COMPILER, HostDevice

SMALL = ["--rows", "70", "--exact-rows", "60", "--landmark-rows", "80", "--landmarks", "10", "--answer-rows", "60"]


def test_without_a_device_nothing_is_measured(monkeypatch, capsys):
    from benchmarks import cuda

    def absent(*_, **__):
        raise DeviceError("cuda: there is no such device; see nvidia-smi -L.")

    monkeypatch.setattr(mercer, "use", absent)
    assert cuda.main(["--write"]) == 2
    assert "nothing was measured: cuda: there is no such device" in capsys.readouterr().err


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
def test_every_row_runs_on_the_shim(monkeypatch, capsys, tmp_path, shared_folder):
    from benchmarks import cuda

    shim = CudaEngine([HostDevice(shared_folder, 8, tensor_features=64, optimise="-O1")], backend.engines()[0])

    def use(name, **_):
        monkeypatch.setattr(backend, "engine", lambda: shim if name == "cuda" else backend._host())

    monkeypatch.setattr(mercer, "use", use)
    page = tmp_path / "benchmarks.md"
    page.write_text(f"above\n{cuda.BEGIN}\nold\n{cuda.END}\nbelow")
    monkeypatch.setattr(cuda, "DOCS", tmp_path)
    assert cuda.main([*SMALL, "--write"]) == 0
    written, failures = page.read_text(), capsys.readouterr().err
    assert written.startswith("above\n")
    assert written.endswith("\nbelow")
    assert "Toy sizes" in written
    assert "failed" not in written, failures
    rows = [line for line in written.splitlines() if line.startswith("| <a id")]
    assert len(rows) >= 9, written
    errors = [float(found) for line in rows for found in re.findall(r"\| (\d\.\de-\d+) \|", line)]
    assert len(errors) >= 9
    assert max(errors) < 1e-3
