"""How many processors are free: by affinity, quota, and what others use."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mercer.engine import processors
from mercer.engine.processors import _busy_seconds, _Meter, _quota, _Sample

STAT = """cpu  600 20 40 5000 7 0 3 9 50 0
cpu0 100 10 20 3000 5 1 2 4 50 0
cpu1 500 10 20 2000 2 0 1 5 0 0
intr 12345 0 0
ctxt 99
"""


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of two processors, without a quota."""
    monkeypatch.setattr(processors, "_own", lambda: {0, 1})
    monkeypatch.setattr(processors, "quota", lambda: float("inf"))


def test_busy_is_what_is_not_idle_and_not_waiting_for_disks() -> None:
    tick = os.sysconf("SC_CLK_TCK")
    assert _busy_seconds(STAT, {0}) * tick == 100 + 10 + 20 + 1 + 2 + 4
    assert _busy_seconds(STAT, {0, 1}) * tick == 137 + 500 + 10 + 20 + 0 + 1 + 5
    assert _busy_seconds(STAT, {7}) == 0


@pytest.mark.parametrize(("others", "free"), [(0.0, 2), (0.4, 2), (0.6, 1), (1.3, 1), (2.0, 1), (9.0, 1)])
def test_free_is_what_others_leave_and_at_least_one(
    two: None, monkeypatch: pytest.MonkeyPatch, others: float, free: int
) -> None:
    monkeypatch.setattr(processors, "_meter", type("Fixed", (), {"others": lambda self: others})())
    assert processors.free() == free


def test_use_by_others_is_averaged_without_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    meter = _Meter()
    meter._last = _Sample(now - 1.0, busy=10.0, own=3.0)
    monkeypatch.setattr(meter, "_sample", lambda: _Sample(now, busy=11.9, own=3.6))
    assert meter.others() == pytest.approx(1.3)
    monkeypatch.setattr(meter, "_sample", lambda: pytest.fail("it was looked a moment ago"))
    assert meter.others() == pytest.approx(1.3)


def test_what_was_busy_long_ago_is_not_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    now, meter = time.monotonic(), _Meter()
    meter._last = _Sample(now - 3600, busy=0.0, own=0.0)
    monkeypatch.setattr(meter, "_sample", lambda: _Sample(now, busy=3000.0, own=0.0))
    monkeypatch.setattr(processors, "_others_running", lambda: 0.25)
    assert meter.others() == 0.25


def test_a_system_that_does_not_say_leaves_all_free(two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise OSError

    monkeypatch.setattr(Path, "read_text", nothing)
    monkeypatch.setattr(processors, "_meter", _Meter())
    assert processors.free() == 2
    assert processors._others_running() == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/stat")
def test_processes_that_compute_are_seen() -> None:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in processors._own()]
    try:
        meter, until = _Meter(), time.monotonic() + 10
        while meter.others() < 0.6 * len(spinning) and time.monotonic() < until:
            time.sleep(0.3)
        assert meter.others() >= 0.6 * len(spinning)
    finally:
        for one in spinning:
            one.kill()
            one.wait()


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/job/step", {"job/cpu.max": "150000 100000", "job/step/cpu.max": "max 100000"}, 1.5),
        ("0::/job", {"job/cpu.max": "max 100000"}, float("inf")),
        ("3:cpu,cpuacct:/job", {"cpu/job/cpu.cfs_quota_us": "50000", "cpu/job/cpu.cfs_period_us": "100000"}, 0.5),
        ("3:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, float("inf")),
        ("4:memory:/job", {"cpu.max": "100000 100000"}, float("inf")),
    ],
)
def test_the_least_quota_above_counts(tmp_path: Path, lines: str, files: dict[str, str], expected: float) -> None:
    membership, root = tmp_path / "membership", tmp_path / "groups"
    membership.write_text(lines + "\n")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    assert _quota(root, membership) == expected


def test_no_groups_are_no_quota(tmp_path: Path) -> None:
    assert _quota(tmp_path, tmp_path / "missing") == float("inf")


def test_a_quota_bounds_what_is_allowed(two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for quota, allowed in ((0.5, 1), (1.0, 1), (1.5, 2), (64.0, 2)):
        monkeypatch.setattr(processors, "quota", lambda quota=quota: quota)
        assert processors.allowed() == allowed
