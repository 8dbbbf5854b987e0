"""Rows that are kept: the same rows, computed once while there is room."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.operators import CachedRows, Dense, LowRank, StoredLater, Submatrix

RNG = np.random.default_rng(0)
S = RNG.standard_normal((30, 30))
S = S + S.T


@pytest.mark.parametrize("places", [0, 1, 7, 30, 100])
def test_rows_are_those_of_the_operator_whatever_was_asked_before(places, rng):
    A = CachedRows(Dense(S), places * 30 * 8)
    for _ in range(200):
        index = rng.integers(0, 30, rng.integers(1, 12))
        np.testing.assert_array_equal(A.rows(index), S[index])


def test_what_is_used_is_kept():
    A = CachedRows(Dense(S), 4 * 30 * 8)
    A.rows([0, 1])
    A.rows([2, 3])
    A.rows([1, 0])
    assert A.computed == 4
    A.rows([4])
    A.rows([0, 1])
    assert A.computed == 5
    A.rows([2, 3])
    assert 6 <= A.computed <= 7


@pytest.mark.parametrize("places", [0, 7, 30])
def test_products_with_blocks_go_by_the_kept_rows(places, rng):
    A = CachedRows(Dense(S), places * 30 * 8)
    rows, columns, V = rng.integers(0, 30, 12), rng.permutation(30)[:9], rng.standard_normal((9, 2))
    for _ in range(2):
        np.testing.assert_allclose(A.block_times(rows, columns, V), S[np.ix_(rows, columns)] @ V, atol=1e-13)
    assert A.computed == (9 if places >= 9 else 18 - places)
    np.testing.assert_array_equal(A.principal(columns).toarray(), S[np.ix_(columns, columns)])


@pytest.mark.parametrize("symmetric", [True, False])
def test_principal_parts_are_those_of_the_array(symmetric):
    A, index = Dense(S if symmetric else S + np.eye(30, k=1)), np.array([3, 17, 4])
    part = A.principal(index)
    np.testing.assert_array_equal(part.toarray(), A.array[np.ix_(index, index)])
    np.testing.assert_array_equal(part.principal([2, 0]).toarray(), A.array[np.ix_([4, 3], [4, 3])])


def test_bad_parts_are_refused():
    with pytest.raises(InvalidInput):
        CachedRows(Dense(S), -1)
    with pytest.raises(InvalidInput):
        Submatrix(Dense(S), [1, 1])
    with pytest.raises(InvalidInput):
        Submatrix(Dense(S[:4]), [1])


def test_products_of_many_kept_rows_are_added_up(rng):
    """More columns than are looked up at once."""
    wide = rng.standard_normal((600, 600))
    wide, columns, v = wide + wide.T, rng.permutation(600)[:590], rng.standard_normal((590, 1))
    A = CachedRows(Dense(wide), 300 * 600 * 8)
    np.testing.assert_allclose(A.block_times(np.arange(50), columns, v), wide[:50, columns] @ v, atol=1e-10)


def test_entries_are_stored_after_as_many_as_that_takes(monkeypatch):
    """Sums by groups of some columns count these alone; the entries of a pass that has begun are not stored."""
    made = []
    monkeypatch.setattr(LowRank, "toarray", lambda self: made.append(1) or S)
    A, labels = StoredLater(LowRank(np.eye(30)[:, :3]), 30 * 33), np.arange(30) % 3
    sums = A.group_sums(labels)
    moved = A.moved_sums(sums, [1, 2], labels[[1, 2]], [0, 0])
    assert not A.stored
    A.moved_sums(moved, [3], labels[[3]], [1])
    assert not A.stored
    np.testing.assert_allclose(A.group_sums(labels), S @ np.eye(3)[labels], atol=1e-13)
    A @ np.ones(30)
    assert A.stored
    assert len(made) == 1
