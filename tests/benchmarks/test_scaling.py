"""What a second worker gains can be measured: each kind of work runs on clusters of one worker and of two."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")


def test_each_kind_of_work_is_timed_on_both_clusters(monkeypatch, capsys):
    from benchmarks import scaling

    few = {name: (timed, 2000) for name, (timed, _) in scaling.WORK.items()}
    monkeypatch.setattr(scaling, "WORK", few)
    for name in ("components", "features"):
        scaling.main(["--only", name, "--rounds", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0].split(":")[0] for line in lines] == ["components"] * 2 + ["features"] * 2
    assert lines[1].startswith("components, n = 2000: one worker ")
