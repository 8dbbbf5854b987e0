"""Predicted seconds in the report of a fit."""

from __future__ import annotations

import mercer.ways.report as report


def test_nothing_is_predicted_where_a_device_computes(monkeypatch):
    own = report.Report()
    monkeypatch.setattr(report, "device_in_use", lambda: True)
    own.predict(2.0, "solve")
    assert own.predicted == {}
    monkeypatch.setattr(report, "device_in_use", lambda: False)
    own.predict(2.0, "solve")
    assert own.predicted == {"solve": 2.0}
