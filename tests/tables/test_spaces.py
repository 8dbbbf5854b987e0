"""Tables whose fields are divided by spaces, and may be quoted."""

from __future__ import annotations

import io

import pytest

pd = pytest.importorskip("pandas")

from mercer.errors import InvalidInput  # noqa: E402
from mercer.tables import read_table  # noqa: E402

QUOTED = {
    "of R": '"n" "place" "y"\n0.758 "far away" 0.421\n-1 "near" 2\n3 "" 1\n',
    "with a bare header": 'n place y\n0.758 "far away" 0.421\n-1 near 2\n3 "a ""b"" c" 1\n',
    "with runs of spaces in quotes": 'n place y\n0.758 "far  away" 0.421\n-1 near 2\n',
    "with commas in quotes": 'n place y\n0.758 "far, away" 0.421\n-1 "near, by" 2\n',
    "with spaces in a name": 'n "the place" y\n0.758 "far away" 0.421\n-1 near 2\n',
}


@pytest.mark.parametrize("name", QUOTED)
@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_quoted_fields_may_hold_spaces(tmp_path, name, ending):
    (tmp_path / f"t.{ending}").write_text(QUOTED[name])
    table = read_table(tmp_path / f"t.{ending}")
    pd.testing.assert_frame_equal(table.frame, pd.read_csv(io.StringIO(QUOTED[name]), sep=" "))
    assert "split by spaces" in table.notes


def test_runs_of_spaces_between_quoted_fields_divide_once(tmp_path):
    (tmp_path / "t.csv").write_text('n  place y \n 0.758   "far away" \t 0.421\n-1 near 2\n')
    assert read_table(tmp_path / "t.csv").frame.to_numpy().tolist() == [[0.758, "far away", 0.421], [-1, "near", 2]]


def test_a_quote_in_prose_or_between_commas_makes_no_table_of_words(tmp_path):
    (tmp_path / "t.txt").write_text('He said "so be\nit, and\n"went on" his long way.\n')
    assert read_table(tmp_path / "t.txt").format == "lines"
    (tmp_path / "t.csv").write_text('name of a,b\n"x y z",1\n"u v w",2\n')
    assert read_table(tmp_path / "t.csv").columns == ["name of a", "b"]


def test_names_of_rows_without_a_name_are_refused_with_a_hint(tmp_path):
    (tmp_path / "t.csv").write_text('"n" "place"\n"1" 0.5 "far away"\n"2" 1.5 "near"\n"3" 2.5 "near"\n')
    with pytest.raises(InvalidInput, match="if the first fields are names of rows, as R writes them, give them a name"):
        read_table(tmp_path / "t.csv")
