"""The charts show the rows of docs/benchmarks.json, and their labels lead to the rows of docs/benchmarks.md."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("matplotlib")
DOCS = Path(__file__).resolve().parents[2] / "docs"
ROWS = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))["results"]


@pytest.fixture
def draw(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("draw_benchmarks")


def test_the_page_has_each_area_once():
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\{benchmarks\} (.*)", page)) == sorted({row["group"] for row in ROWS})


def test_labels_lead_to_the_rows(draw):
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    rows = draw.rows_of("Fits", True)
    assert {row["key"] for row in rows} == {
        row["key"] for row in ROWS if (row["group"], row["figure"]) == ("Fits", "speedup")
    }
    drawn = draw.inline(draw.svg(rows, True), "fits")
    for row in rows:
        assert f'"benchmarks.html#{draw.anchor(row["key"])}"' in drawn
        assert f'<a id="{draw.anchor(row["key"])}"></a>' in page
        assert draw.said(row) in drawn


def test_a_chart_takes_the_colour_of_its_page_and_has_ids_of_its_own(draw):
    drawn = draw.inline(draw.svg(draw.rows_of("Large fits", False), False), "large")
    assert "currentColor" in drawn
    assert draw.TEXT not in drawn
    assert all(name.startswith("large-") for name in re.findall(r'\bid="([^"]*)"', drawn))


@pytest.mark.parametrize(("met", "target", "colour"), [(True, 3, "MET"), (False, 3, "MISSED"), (None, None, "PLAIN")])
def test_colours_say_whether_a_target_is_met(draw, met, target, colour):
    assert draw.colour({"met": met, "target": target}) == getattr(draw, colour)
