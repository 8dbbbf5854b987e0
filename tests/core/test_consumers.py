"""Stage three: every consumer against the reference's whole block, at sizes around all borders of blocks and panels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mercer.engine.contract import NOTHING
from mercer.engine.opcodes import OperandKind, Operation, Pairing

SIZES = [1, 2, 11, 12, 13, 33, 191, 192, 193, 385, 600]
SHAPES = [(1, 1), (1, 600), (600, 1), (5, 191), (193, 192), (192, 513), (250, 1100)]
COLUMNS = [1, 2, 3, 4, 5, 8, 9, 16, 17, 33]
"""Up to half a panel, of 4 to 32 columns, vectors are multiplied one at a time."""


def vectors(m, r, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal((m, r)).astype(dtype)


def test_block_of_any_ranges(make_plan, full, isa, dtype):
    n, m = 401, 1203
    plan = make_plan(dtype, n, m)
    tiles, whole = plan.tiles(isa), full(plan.reference(), n, m, np.float64)
    rng = np.random.default_rng(5)
    cuts = [(0, n, 0, m), (n - 1, n, m - 1, m), (0, 1, 0, 1), (5, 6, 7, 1200), (11, 13, 31, 33), (190, 194, 510, 514)]
    for _ in range(20):
        i, j = np.sort(rng.choice(n + 1, 2, replace=False)), np.sort(rng.choice(m + 1, 2, replace=False))
        cuts.append((*i, *j))
    for i0, i1, j0, j1 in cuts:
        out = np.full((i1 - i0, j1 - j0), np.nan, dtype)
        tiles.block(i0, i1, j0, j1, out=out)
        np.testing.assert_allclose(out, whole[i0:i1, j0:j1], rtol=plan.eps, err_msg=f"{i0, i1, j0, j1}")


def test_entries_do_not_depend_on_the_block(make_plan, full, isa, dtype):
    plan = make_plan(dtype, 300, 700)
    tiles = plan.tiles(isa)
    whole = full(tiles, 300, 700, dtype)
    part = np.empty((101, 333), dtype)
    tiles.block(100, 201, 300, 633, out=part)
    if isa == "numpy":
        np.testing.assert_allclose(part, whole[100:201, 300:633], rtol=plan.eps)
    else:
        np.testing.assert_array_equal(part, whole[100:201, 300:633])


@pytest.mark.parametrize("n", SIZES)
def test_gram_is_exactly_symmetric(make_plan, full, isa, dtype, n):
    plan = make_plan(dtype, n)
    tiles, out = plan.tiles(isa), np.full((n, n), np.nan, dtype)
    for i in range(0, n, tiles.row_block):
        tiles.gram(i, min(i + tiles.row_block, n), out)
    np.testing.assert_array_equal(out, out.T)
    np.testing.assert_allclose(out, full(plan.reference(), n, n, np.float64), rtol=plan.eps)


@pytest.mark.parametrize("n", [5, 12, 13, 30, 200, 401])
def test_gram_takes_what_is_right_of_the_diagonal(make_plan, isa, dtype, n):
    """A program that tells (i, j) from (j, i) shows which of the two an entry came from."""
    program = [(Operation.ADD, 0, (OperandKind.ROW, 0), (OperandKind.COLUMN, 0), NOTHING, 0.0, 0.0)]
    number = np.arange(n, dtype=np.float64)
    plan = make_plan(dtype, n, n, program=program, row_values=[number], column_values=[1000 * number])
    tiles, out = plan.tiles(isa), np.full((n, n), np.nan, dtype)
    tiles.gram(0, n, out)
    i, j = np.sort(np.indices((n, n)), axis=0)
    np.testing.assert_array_equal(out, i + 1000.0 * j)


@pytest.mark.parametrize(("n", "depth"), [(401, 300), (205, 2100)])
@pytest.mark.parametrize("program", [None, []])
def test_gram_of_many_features(make_plan, full, isa, dtype, n, depth, program):
    """Columns left of the diagonal are left out of the depth-blocked buffer, too."""
    plan = make_plan(dtype, n, depth=depth, program=program)
    tiles, out = plan.tiles(isa), np.full((n, n), np.nan, dtype)
    for i in range(0, n, tiles.row_block):
        tiles.gram(i, min(i + tiles.row_block, n), out)
    np.testing.assert_array_equal(out, out.T)
    np.testing.assert_allclose(out, full(plan.reference(), n, n, np.float64), rtol=20 * plan.eps)


def block_rows(tiles, n, dtype, step):
    """All block rows from the diagonal on, so many at a time, as a matrix; what is left of the blocks is zero."""
    height, whole = tiles.row_block, np.zeros((n, n), dtype)
    tops = range(0, n, height)
    out = np.full(sum(min(height, n - i) * (n - i) for i in tops), np.nan, dtype)
    for i in range(0, n, step * height):
        tiles.upper(i, min(i + step * height, n), out)
    start = 0
    for i in tops:
        rows = min(height, n - i)
        whole[i : i + rows, i:] = out[start : start + rows * (n - i)].reshape(rows, n - i)
        start += rows * (n - i)
    return whole


@pytest.mark.parametrize(("n", "depth"), [*((n, 5) for n in SIZES), (401, 300), (401, 3000), (1350, 5)])
@pytest.mark.parametrize("step", [1, 3])
def test_block_rows_are_those_of_gram(make_plan, full, isa, dtype, n, depth, step):
    plan = make_plan(dtype, n, depth=depth)
    tiles, gram = plan.tiles(isa), np.empty((n, n), dtype)
    tiles.gram(0, n, gram)
    block = np.arange(n) // tiles.row_block
    expected = np.where(block[:, None] <= block, gram, 0)
    found = block_rows(tiles, n, dtype, step)
    if isa == "numpy":
        np.testing.assert_allclose(found, expected, rtol=20 * plan.eps)
    else:
        np.testing.assert_array_equal(found, expected)


def test_block_rows_are_whole(native, make_plan, dtype):
    n = 401
    tiles, out = make_plan(dtype, n).tiles(""), np.empty(192 * 401 + 192 * 209 + 17 * 17, dtype)
    tiles.upper(192, n, out)
    for i0, i1 in ((0, 191), (12, n), (192, 400)):
        with pytest.raises(ValueError, match="whole ones"):
            tiles.upper(i0, i1, out)
    with pytest.raises(ValueError, match="symmetric matrix"):
        make_plan(dtype, n, n + 1).tiles("").upper(0, n, out)


def test_gram_of_a_matrix_larger_than_the_cache(make_plan, isa):
    """Whole lines that bypass the cache, rows that begin anywhere in a line, a last block that is not full."""
    n = 3001
    tiles, out = make_plan(np.float32, n).tiles(isa), np.full((n, n), np.nan, np.float32)
    for i in range(0, n, 7 * tiles.row_block):
        tiles.gram(i, min(i + 7 * tiles.row_block, n), out)
    np.testing.assert_array_equal(out, out.T)
    direct = np.empty((n, n), np.float32)
    tiles.block(0, n, 0, n, out=direct)
    np.testing.assert_allclose(out, direct, rtol=1e-5)


@pytest.mark.parametrize("r", COLUMNS)
def test_symmetric_products(make_plan, full, isa, dtype, r):
    for n in SIZES:
        plan = make_plan(dtype, n)
        V, out = vectors(n, r, dtype), np.zeros((n, r))
        plan.tiles(isa).multiply(0, n, 0, n, v=V, out=out, symmetric=True)
        whole = full(plan.reference(), n, n, np.float64)
        bound = 4 * plan.eps * (whole @ np.abs(V))
        assert (np.abs(out - whole @ V.astype(np.float64)) <= bound).all(), n


@pytest.mark.parametrize("r", COLUMNS)
def test_rectangular_products(make_plan, full, isa, dtype, r):
    for n, m in SHAPES:
        plan = make_plan(dtype, n, m)
        V, out = vectors(m, r, dtype), np.ones((n, r))
        plan.tiles(isa).multiply(0, n, 0, m, v=V, out=out, symmetric=False)
        whole = full(plan.reference(), n, m, np.float64)
        bound = 4 * plan.eps * (whole @ np.abs(V) + 1)
        assert (np.abs(out - 1 - whole @ V.astype(np.float64)) <= bound).all(), (n, m)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("r", [1, 6, 17])
def test_products_piece_by_piece(make_plan, full, isa, dtype, symmetric, r):
    """Any cover of the square by pieces gives the product, with symmetry those left of the diagonal left out."""
    n, block = 600, 192
    plan = make_plan(dtype, n)
    tiles, V = plan.tiles(isa), vectors(n, r, dtype)
    expected = full(plan.reference(), n, n, np.float64) @ V
    for height, width in ((block, block), (2 * block, 3 * block), (block, n), (n, block)):
        out = np.zeros((n, r))
        for i0 in range(0, n, height):
            i1 = min(i0 + height, n)
            for j0 in range(i0 // width * width if symmetric else 0, n, width):
                tiles.multiply(
                    i0, i1, j0, min(j0 + width, n), v=V, out=out if symmetric else out[i0:i1], symmetric=symmetric
                )
        np.testing.assert_allclose(out, expected, atol=4 * plan.eps * n)


# Runs are of up to 192 rows, in panels of 6 or 12; tiles have up to 512 columns, in panels of 4 to 32.
NORMAL_SHAPES = [(1, 1), (1, 600), (600, 1), (11, 13), (12, 31), (13, 33), (193, 192), (385, 511), (250, 1100)]


def normal_product(tiles, V, weights, n, height=None):
    out = np.ones(V.shape)
    for i in range(0, n, height or n):
        tiles.normal_product(i, min(i + (height or n), n), v=V, weights=weights, out=out)
    return out - 1


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("r", [1, 5])
def test_normal_products(make_plan, full, isa, dtype, r, weighted):
    for n, m in NORMAL_SHAPES:
        plan = make_plan(dtype, n, m)
        V, weights = vectors(m, r, dtype), np.random.default_rng(1).standard_normal(n) if weighted else None
        whole, w = full(plan.reference(), n, m, np.float64), np.ones((n, 1)) if weights is None else weights[:, None]
        expected = whole.T @ (w * (whole @ V))
        bound = 4 * plan.eps * (whole.T @ (np.abs(w) * (whole @ np.abs(V))) + 1)
        for height in (None, 192):
            got = normal_product(plan.tiles(isa), V, weights, n, height)
            assert (np.abs(got - expected) <= bound).all(), (n, m, height)


@pytest.mark.parametrize(("m", "depth"), [(530, 300), (270, 2100)])
def test_normal_products_of_many_features(make_plan, full, isa, dtype, m, depth):
    """Deep rows are paired block by block in a buffer of their own; a program without operations leaves them there."""
    n, r = 205, 3
    for program in (None, []):
        plan = make_plan(dtype, n, m, depth=depth, program=program)
        V, whole = np.abs(vectors(m, r, dtype)), full(plan.reference(), n, m, np.float64)
        got = normal_product(plan.tiles(isa), V, None, n)
        np.testing.assert_allclose(got, whole.T @ (whole @ V), rtol=20 * plan.eps)


@pytest.mark.parametrize(("size", "weight"), [(1e-30, 1e-30), (1e-30, 1e200), (1.0, 1e200), (1e30, 1e30)])
def test_normal_products_of_any_size(make_plan, full, isa, dtype, size, weight):
    """What is between the two products is in double: float32 could hold none of it."""
    n, m, r = 30, 50, 3
    plan = make_plan(dtype, n, m)
    V = (size * (1 + np.abs(vectors(m, r, np.float64)))).astype(dtype)
    V[:, 0] *= 1e-4
    weights, whole = np.full(n, weight), full(plan.reference(), n, m, np.float64)
    expected = whole.T @ (weights[:, None] * (whole @ V.astype(np.float64)))
    np.testing.assert_allclose(normal_product(plan.tiles(isa), V, weights, n), expected, rtol=20 * plan.eps, atol=1)


def test_normal_products_of_nan_and_infinity(make_plan, isa, dtype):
    """They reach every column of their vector, and no other vector."""
    plan, V = make_plan(dtype, 40, 70), np.ones((70, 3), dtype)
    for bad in (np.nan, np.inf):
        V[7, 0] = bad
        got = normal_product(plan.tiles(isa), V, None, 40)
        assert not np.isfinite(got[:, 0]).any()
        assert np.isfinite(got[:, 1:]).all()
    weights = np.ones(40)
    weights[3] = np.nan
    assert np.isnan(normal_product(plan.tiles(isa), np.ones((70, 2), dtype), weights, 40)).all()


def test_normal_products_with_foreign_rows(make_plan, isa, dtype):
    """A run ends with the piece: the rows after it may be infinite."""
    A, B = np.ones((385, 1)), np.ones((40, 1))
    A[192:] = np.inf
    plan = make_plan(dtype, 385, 40, program=[], pairings=[(int(Pairing.DOT), A, B)])
    out = np.zeros((40, 2))
    plan.tiles(isa).normal_product(0, 192, v=np.ones((40, 2), dtype), weights=None, out=out)
    np.testing.assert_array_equal(out, 192 * 40)


def test_normal_products_compute_each_entry_once():
    from mercer.engine import reference

    n, m, seen = 2000, 300, []

    def evaluate(i0, i1, j0, j1):
        seen.append((i1 - i0) * (j1 - j0))
        return np.ones((i1 - i0, j1 - j0))

    out = np.zeros((m, 1))
    reference.BlockTiles(n, m, evaluate).normal_product(0, n, v=np.ones((m, 1)), weights=None, out=out)
    np.testing.assert_array_equal(out, n * m)
    assert sum(seen) == n * m


def test_infinite_entries_stay_where_they_are(make_plan, isa, dtype):
    """Padding and foreign rows must not turn them into NaN elsewhere."""
    n = 300
    A = np.ones((n, 1))
    A[7] = np.inf
    plan = make_plan(dtype, n, program=[], pairings=[(int(Pairing.MIN_SUM), A, A)])
    for r in (1, 5, 17):
        out = np.zeros((n, r))
        plan.tiles(isa).multiply(0, n, 0, n, v=np.ones((n, r), dtype), out=out, symmetric=True)
        assert np.isinf(out[7]).all()
        np.testing.assert_array_equal(np.delete(out, 7, axis=0), n)


def group_sums(tiles, ranges, start, weights, groups):
    parts = []
    for i0, i1 in ranges:
        out = np.full((i1 - i0, groups), 10.0)
        tiles.group_sums(i0, i1, start=start, weights=weights, out=out)
        parts.append(out - 10)
    return np.vstack(parts)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_group_sums(make_plan, full, isa, dtype, n, m, weighted):
    plan = make_plan(dtype, n, m)
    rng = np.random.default_rng(n + m)
    weights = rng.standard_normal(m).astype(dtype) if weighted else None
    whole = full(plan.reference(), n, m, np.float64) * (1 if weights is None else weights)
    middle = np.sort(rng.integers(0, m + 1, 40))
    for start in ([0, m], [0, 0, m, m, m], [0, *middle, m], np.arange(m + 1)):
        start = np.asarray(start, np.int64)
        expected = np.stack([whole[:, a:b].sum(axis=1) for a, b in itertools.pairwise(start)], axis=1)
        # The second range begins beyond the first block and on no panel: the outputs are those of its own rows.
        ranges = [(0, n)] if n < 196 else [(0, 195), (195, n)]
        got = group_sums(plan.tiles(isa), ranges, start, weights, len(start) - 1)
        np.testing.assert_allclose(got, expected, atol=4 * plan.eps * m)


def test_symmetric_visits_compute_half_of_the_entries():
    from mercer.engine import reference

    n, seen = 2000, []

    def evaluate(i0, i1, j0, j1):
        seen.append((i1 - i0) * (j1 - j0))
        return np.ones((i1 - i0, j1 - j0))

    tiles = reference.BlockTiles(n, n, evaluate)
    # Half, and half of the squares on the diagonal.
    most = n * (n + tiles.row_block) / 2
    out = np.zeros((n, 1))
    tiles.multiply(0, n, 0, n, v=np.ones((n, 1)), out=out, symmetric=True)
    np.testing.assert_array_equal(out, n)
    assert n * (n + 1) / 2 <= sum(seen) <= most
    seen.clear()
    tiles.gram(0, n, np.empty((n, n)))
    assert n * (n + 1) / 2 <= sum(seen) <= most
