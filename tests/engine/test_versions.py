"""`show_versions`: what a report of a bug needs, and no paths."""

from pathlib import Path

import numpy as np

import mercer
from mercer.engine import backend
from mercer.planning.machine import Machine


def test_versions_threads_and_settings_without_paths(capsys, monkeypatch, tmp_path):
    Machine.documented().save(tmp_path / "rates.json")
    monkeypatch.setenv("MERCER_MACHINE", str(tmp_path / "rates.json"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    mercer.show_versions()
    text = capsys.readouterr().out
    lines = dict(line.split(": ", 1) for line in text.splitlines())
    assert lines["mercer"] == mercer.__version__
    assert lines["numpy"] == np.__version__
    assert lines["engine"].endswith(backend.instruction_set())
    assert lines["threads"].startswith(f"{backend.engine().threads()}, of ")
    assert (lines["MERCER_MACHINE"], lines["OMP_NUM_THREADS"], lines["rates"]) == ("a file", "1", "of a file")
    assert str(tmp_path) not in text
    assert str(Path(mercer.__file__).parent) not in text


def test_packages_that_are_not_installed(capsys, monkeypatch):
    from mercer.engine import versions

    monkeypatch.setattr(versions, "OPTIONAL", ("a package that is not there",))
    mercer.show_versions()
    assert "a package that is not there: not installed" in capsys.readouterr().out
