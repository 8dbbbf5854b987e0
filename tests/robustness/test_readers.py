"""Readers and bytes of any kind, in short; in full it is ``make fuzz HOURS=1``."""

from __future__ import annotations

import pytest

pytest.importorskip("safetensors")
pytest.importorskip("pandas")

import readers


@pytest.mark.parametrize("count", [60, pytest.param(20_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", readers.TARGETS)
def test_bytes_are_read_or_refused(name, count):
    found = {readers.wrong(name, data): data for data in readers.cases(name, count)}
    assert {why: data for why, data in found.items() if why} == {}


def test_the_harness_sees_what_is_wrong(monkeypatch):
    def hostile(data):
        if data == b"an error":
            raise KeyError(data)

    monkeypatch.setitem(readers.TARGETS, "hostile", (hostile, (b"an error",)))
    monkeypatch.setattr(readers, "LONGEST", -1.0)
    assert readers.wrong("hostile", b"an error").startswith("KeyError")
    assert readers.wrong("hostile", b"slow").endswith(" s")
