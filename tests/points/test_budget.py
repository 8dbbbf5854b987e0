"""The memory budget: the free memory, what the user gave, and the refusal."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from mercer.errors import InvalidInput, MemoryExceeded, MercerError
from mercer.points import available_memory, budget, human, parse_memory, require


@pytest.mark.parametrize(
    ("memory", "size"),
    [
        (1, 1),
        (1e9, 10**9),
        (np.int64(4096), 4096),
        (np.float32(512.0), 512),
        ("1024", 1024),
        ("2GB", 2 * 10**9),
        ("2 gb ", 2 * 10**9),
        ("1.5 gb", 1_500_000_000),
        (".5TB", 5 * 10**11),
        ("512MiB", 512 * 2**20),
        ("8k", 8000),
        ("8KiB", 8192),
        ("3G", 3 * 10**9),
        ("1e9", 10**9),
        ("1e3 MB", 10**9),
        ("100 B", 100),
    ],
)
def test_parse_memory(memory, size):
    assert parse_memory(memory) == size


def test_no_memory_given_is_half_of_what_is_free(monkeypatch):
    for free, expected in ((1000, 500), (0, 1)):
        monkeypatch.setattr(budget, "available_memory", lambda free=free: free)
        budget._lately_available.cache_clear()
        assert parse_memory(None) == expected
    budget._lately_available.cache_clear()


def test_what_is_free_is_looked_up_once_in_a_while(monkeypatch):
    looks, now = [], [100.0]
    monkeypatch.setattr(budget, "available_memory", lambda: looks.append(1) or 1000)
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    budget._lately_available.cache_clear()
    parse_memory(None)
    parse_memory(None)
    assert len(looks) == 1
    now[0] += budget.LATELY
    parse_memory(None)
    assert len(looks) == 2
    budget._lately_available.cache_clear()


@pytest.mark.parametrize(
    "memory",
    [
        0,
        -1,
        0.4,
        float("nan"),
        float("inf"),
        True,
        "",
        "GB",
        "2 apples",
        "-2GB",
        "0 MB",
        "1..5GB",
        "2GB!",
        [1],
        1j,
        b"2GB",
    ],
)
def test_parse_memory_refuses_with_advice(memory):
    with pytest.raises(InvalidInput, match=r'^memory: .*; give bytes, a text such as "2GB"'):
        parse_memory(memory)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_600, "1 MB"),
        (1_234_567, "1.23 MB"),
        (8e8, "800 MB"),
        (5e19, "5e+04 PB"),
    ],
)
def test_human(size, text):
    assert human(size) == text


def test_human_can_be_given_back():
    assert parse_memory(human(123_456_789)) == 123_000_000


def test_what_is_compared_reads_differently():
    with pytest.raises(MemoryExceeded, match=r"needs 30\.0001 MB, and the memory budget is 30 MB; .* to 30\.1 MB or"):
        require(30_000_100, 30_000_000, "matrix", "use less")


def test_require_lets_pass_what_fits():
    require(10, 10, "matrix", "use less")


@pytest.mark.parametrize("alternatives", ["take fewer rows", ["take fewer rows"], ("take fewer rows", "use float32")])
def test_require_refuses_with_numbers_and_alternatives(alternatives):
    with pytest.raises(MemoryExceeded) as caught:
        require(123_456_789, 10**8, "the matrix of 3928 x 3928", alternatives)
    text = str(caught.value)
    assert text.startswith(
        "the matrix of 3928 x 3928: needs 123 MB, and the memory budget is 100 MB; take fewer rows, or "
    )
    assert "raise memory= to 124 MB or more" in text
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, MercerError)


def test_the_memory_advised_is_enough():
    needed = 123_456_789
    with pytest.raises(MemoryExceeded) as caught:
        require(needed, 1, "matrix", [])
    advised = str(caught.value).split("memory= to ")[1].removesuffix(" or more.")
    require(needed, parse_memory(advised), "matrix", [])


def test_available_memory_is_a_sensible_number():
    assert isinstance(available_memory(), int)
    assert 2**20 < available_memory() < 2**50


def test_available_memory_never_fails(monkeypatch):
    def broken(*arguments, **more):
        raise OSError("not here")

    monkeypatch.setattr(budget.Path, "read_text", broken)
    monkeypatch.setattr(budget.os, "sysconf", broken, raising=False)
    assert available_memory() == 2**30


@pytest.mark.parametrize("platform", ["darwin", "win32", "sunos"])
def test_available_memory_elsewhere(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert available_memory() > 0


def test_pages_without_free_count(monkeypatch):
    monkeypatch.setattr(budget.os, "sysconf_names", {"SC_PHYS_PAGES": 1}, raising=False)
    monkeypatch.setattr(budget.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 10}.__getitem__, raising=False)
    assert budget._sysconf_free() == 20480


def test_meminfo():
    assert budget._meminfo_available("MemTotal: 9 kB\nMemAvailable:    5 kB\n") == 5120
    assert budget._meminfo_available("MemTotal: 9 kB\nMemFree: 2 kB\nCached: 1 kB\n") == 3072


def files(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_cgroup_v2_takes_the_tightest_ancestor(tmp_path):
    root = tmp_path / "cgroup"
    files(tmp_path, membership="0::/a/b\n")
    files(root / "a" / "b", memory__max="max\n", memory__current="10\n")
    files(root / "a", memory__max="1000\n", memory__current="700\n", memory__stat="anon 5\ninactive_file 200\n")
    files(root, memory__max="5000\n", memory__current="100\n")
    assert budget._cgroup_free(root, tmp_path / "membership") == 500


def test_cgroup_v1(tmp_path):
    root = tmp_path / "cgroup"
    files(tmp_path, membership="3:cpu,cpuacct:/x\n2:hugetlb,memory:/x\n")
    files(root / "memory" / "x", **{"memory__limit_in_bytes": "1000", "memory__usage_in_bytes": "1200"})
    files(root / "memory", **{"memory__limit_in_bytes": str(2**63 - 4096), "memory__usage_in_bytes": "1"})
    assert budget._cgroup_free(root, tmp_path / "membership") == 0


@pytest.mark.parametrize("membership", [None, "", "nonsense\n", "0::/\n", "1:name=systemd:/\n"])
def test_no_cgroup_limit(tmp_path, membership):
    if membership is not None:
        files(tmp_path, membership=membership)
    assert budget._cgroup_free(tmp_path / "cgroup", tmp_path / "membership") is None


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is asked about on Linux")
def test_the_address_space_limit_counts():
    code = (
        "import resource; from mercer.points import available_memory;"
        "from mercer.points.budget import _address_space_free;"
        "resource.setrlimit(resource.RLIMIT_AS, (2**36, 2**36)); free = _address_space_free();"
        "assert 0 < free < 2**36, free; assert available_memory() <= 2**36"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
