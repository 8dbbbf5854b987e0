"""What rows on disk cost can be measured: fits and predictions from a file and from memory give the same outputs."""

from __future__ import annotations

import re
import sys

import pytest

from benchmarks import disk


@pytest.mark.parametrize("name", ["exact", "predictions"])
def test_work_from_disk_and_from_memory_is_compared(name, tmp_path, capsys):
    if name == "predictions":
        pytest.importorskip("pyarrow")
    if sys.platform != "linux" and disk.WORK[name].limit:
        pytest.skip("limits of a process are asked about on Linux")
    disk.main([str(tmp_path), "--only", name, "--scale", "0.002"])
    line = capsys.readouterr().out
    assert line.startswith(f"{name}, n = {int(disk.WORK[name].n * 0.002)}, d = 20: ")
    assert float(re.search(r"answers differ by (\S+)$", line)[1]) <= 1e-8
    assert list(tmp_path.iterdir()) == []


def test_a_fit_that_fails_says_why_and_leaves_no_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "write", lambda work, rows: None)
    with pytest.raises(RuntimeError, match=r"exact from disk failed:\n(.*\n)*.*targets.npy"):
        disk.in_process("exact", "disk", tmp_path / "rows", 0.002)
    assert not (tmp_path / "rows").exists()
