"""The grid of choices: what a loss and an error are, and what the table says of them."""

from __future__ import annotations

import pytest
from benchmarks.grid import Cell, cells, summary


def test_the_loss_is_against_the_best_way_and_the_error_is_the_larger_ratio():
    cell = Cell("one", "a", {"x": 1.0, "y": 4.0}, 1.5, "X", predicted=1.0, taken=3.0)
    assert cell.loss == 1.5
    assert cell.error == 3.0
    assert Cell("one", "a", {"x": 1.0}, 0.9, "X").loss == 1.0  # the choice is a way, too
    assert Cell("one", "a", {"x": 1.0}, 0.9, "X").error is None


def test_the_table_counts_cells_by_environment():
    good, bad = Cell("one", "a", {"x": 1.0}, 1.0, "X", 1.0, 1.9), Cell("one", "b", {"x": 1.0}, 2.0, "X", 1.0, 2.1)
    row = summary([good, bad, Cell("two", "c", {"x": 1.0}, 1.0, "X")]).splitlines()[2]
    assert row == "| one | 2 | 50% | 2.0 (b) | 2 | 50% |"


@pytest.mark.parametrize("kind", ["ridge", "k-means", "PCA", "leave-one-out"])
def test_there_are_cells_of_each_kind_with_ways_to_choose_from(kind):
    found = [ways for name, _, ways in cells("300MB") if kind in name]
    assert found
    assert all(len(ways) >= 2 for ways in found)
