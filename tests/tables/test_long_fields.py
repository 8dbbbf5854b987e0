"""A long field, header or name costs no more than its length; each of these tests would never end otherwise."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from mercer.errors import InvalidInput  # noqa: E402
from mercer.io import TableEncoder, read_table  # noqa: E402
from mercer.tables import texts  # noqa: E402
from mercer.tables.columns import plan_column  # noqa: E402
from mercer.tables.identifiers import identifying_columns  # noqa: E402

LONG = 300_000
RUNS = ["x", "9", "ab ", "1.", "1,", "-", "''", "1,234", "1e"]


def with_a_long_one(field: str, rows: int = 160) -> np.ndarray:
    return np.array([field, *["short 1"] * (rows - 1)], dtype=object)


def test_many_long_fields_are_no_dates():
    fields = np.array(["x" * 100_000 + " 1"] * 2000 + ["short 1"] * 100_000, dtype=object)
    assert texts.date_form(fields) == ("", "")
    assert texts.date_form(with_a_long_one("x" * LONG)) == ("", "")


def test_no_pattern_of_dates_sees_a_long_field(monkeypatch):
    seen = []
    share = texts.share
    monkeypatch.setattr(texts, "share", lambda pattern, some: seen.extend(map(len, some)) or share(pattern, some))
    assert texts.date_form(np.array(["x" * LONG, *["2024-03-01"] * 159], dtype=object)) == ("ISO8601", "")
    assert max(seen) <= texts.LONGEST_DATE


@pytest.mark.parametrize("run", RUNS)
def test_a_long_field_is_read_and_encoded(tmp_path, run):
    field = (run * LONG)[:LONG]
    rows = [f'{i},"{field if i == 3 else "room 1"}","{field if i == 5 else f"room {i}"}"' for i in range(100)]
    (tmp_path / "long.csv").write_text("\n".join(["a,b,c", *rows]))
    frame = read_table(tmp_path / "long.csv").frame
    identifying_columns(frame)
    assert len(TableEncoder(keep_text=True).fit(frame).transform(frame)) == 100


def test_a_long_category_takes_room_once():
    values = pd.Series(with_a_long_one("x" * LONG, 100_000), dtype=object)  # 120 GB as an array of texts
    plan = plan_column("a", values, 20, 0.01, True)
    assert plan.kind == "category"
    assert plan.encode(values).sum() == 100_000


def test_long_names_are_not_compared(tmp_path):
    (tmp_path / "wide.csv").write_text(f"{'ab' * LONG},y\n1,2\n3,4\n")
    with pytest.raises(InvalidInput, match="has no column"):
        read_table(tmp_path / "wide.csv").split("ba" * LONG)
    assert texts.near_names("pirce", ["price", "x" * LONG]) == ["price"]
