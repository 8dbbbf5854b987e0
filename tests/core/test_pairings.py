"""Stage one: the reference against the definitions, one pair at a time, and the compiled pairings against it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.engine import reference
from mercer.engine.opcodes import Pairing

DEFINITIONS = {
    Pairing.DOT: lambda x, z: math.sumprod(x, z) if hasattr(math, "sumprod") else sum(a * b for a, b in zip(x, z)),  # noqa: B905
    Pairing.SQDIST: lambda x, z: math.dist(x, z) ** 2,
    Pairing.L1: lambda x, z: math.fsum(abs(a - b) for a, b in zip(x, z, strict=True)),
    Pairing.MIN_SUM: lambda x, z: math.fsum(map(min, x, z)),
    Pairing.CHI2: lambda x, z: math.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0),
    Pairing.MISMATCHES: lambda x, z: sum(a != b for a, b in zip(x, z, strict=True)),
}
SIZES = [(1, 1), (2, 33), (12, 32), (13, 31), (97, 1), (1, 97), (193, 65)]
"""(1, 1), one more and one less than panels (6 or 12 rows; 4 to 32 columns), more than one row block."""


def rows(kind, n, depth, seed):
    """Non-negative rows with zeros and ties, so that 0/0 and equal coordinates occur."""
    return np.random.default_rng(seed).integers(0, 4, (n, depth)) / 2.0


@pytest.mark.parametrize("kind", Pairing)
def test_the_reference_is_the_definition(kind):
    A, B = rows(kind, 7, 6, 0), rows(kind, 5, 6, 1)
    expected = [[DEFINITIONS[kind](a.tolist(), b.tolist()) for b in B] for a in A]
    np.testing.assert_allclose(reference.PAIRINGS[kind](A, B), expected, rtol=1e-14)


@pytest.mark.parametrize("kind", Pairing)
@pytest.mark.parametrize("depth", [1, 2, 7, 64])
def test_every_pairing_and_size(make_plan, full, isa, dtype, kind, depth):
    for n, m in SIZES:
        A, B = rows(kind, n, depth, n), rows(kind, m, depth, m + 1)
        plan = make_plan(dtype, n, m, program=[], pairings=[(int(kind), A, B)])
        got = full(plan.tiles(isa), n, m, dtype)
        # Halves are exact in binary, and so are all sums of them; quotients are not.
        tolerance = plan.eps if kind is Pairing.CHI2 else 0
        np.testing.assert_allclose(got, full(plan.reference(), n, m, np.float64), rtol=tolerance, err_msg=f"{n} x {m}")


@pytest.mark.parametrize("kind", Pairing)
@pytest.mark.parametrize("depth", [129, 257, 513, 1027])
def test_depths_around_those_that_are_blocked(make_plan, full, isa, dtype, kind, depth):
    """Blocks of depth are 512 or 256 float32 numbers, 256 or 128 float64 ones."""
    n, m = 101, 70
    A, B = rows(kind, n, depth, 2), rows(kind, m, depth, 3)
    plan = make_plan(dtype, n, m, program=[], pairings=[(int(kind), A, B)])
    got = full(plan.tiles(isa), n, m, dtype)
    np.testing.assert_allclose(got, full(plan.reference(), n, m, np.float64), rtol=plan.eps)


def test_shallow_and_blocked_pairings_in_one_plan(make_plan, full, isa, dtype):
    n, m, kinds = 100, 70, list(Pairing)
    depths = [3, 600, 1, 1100, 40, 5]
    pairings = [(int(k), rows(k, n, d, d), rows(k, m, d, d + 1)) for k, d in zip(kinds, depths, strict=True)]
    for result in range(len(kinds)):
        plan = make_plan(dtype, n, m, program=[], pairings=pairings, registers=6, result=result)
        np.testing.assert_allclose(
            full(plan.tiles(isa), n, m, dtype), full(plan.reference(), n, m, np.float64), rtol=plan.eps, atol=plan.eps
        )


@pytest.mark.parametrize("depth", [1, 20, 150, 1100])
@pytest.mark.parametrize("apart", [0.0, 50.0])
def test_distances_by_norms(make_plan, full, isa, dtype, depth, apart):
    """Where these are exact enough they are taken, and differences elsewhere, of the rows that were given."""
    rng, (n, m) = np.random.default_rng(depth), (101, 70)
    A, B = (rng.standard_normal((k, depth)) + apart * (np.arange(k) < k // 2)[:, None] for k in (n, m))
    B[:9] = A[:9]
    rounding = 8 * np.finfo(dtype).eps
    for slow, fast, root in ((0.0, np.inf, 0.0), (0.5, 0.5, 0.0), (1e-9, 1e-9, 0.0), (1.0, 0.5, 0.5), (2.0, 1.0, 0.5)):
        norms = [(0, B.mean(axis=0), rounding, 2 * rounding, slow, fast, root)]
        plan = make_plan(dtype, n, m, program=[], pairings=[(int(Pairing.SQDIST), A, B)], norms=norms)
        exact = reference.PAIRINGS[Pairing.SQDIST](*(rows.astype(dtype).astype(float) for rows in (A, B)))
        for tiles in (plan.tiles(isa), plan.reference(dtype)):
            D = full(tiles, n, m, dtype)
            if not slow:
                np.testing.assert_allclose(D, exact, rtol=4 * rounding)
                assert (np.diag(D)[:9] == 0).all()
            else:
                found, true = (1 / (1 + fast * s) if root else np.exp(-fast * s) for s in (D, exact))
                np.testing.assert_allclose(found, true, rtol=0, atol=4 * rounding)


def test_a_row_is_at_no_distance_from_itself(make_plan, full, isa, dtype):
    """Where a row names its own column; −1 and strangers name none."""
    rng, (n, m) = np.random.default_rng(3), (61, 150)
    A, B, self_pairs = rng.standard_normal((n, 20)), rng.standard_normal((m, 20)), rng.permutation(m)[:n]
    self_pairs[::7] = -1
    parts = {"pairings": [(int(Pairing.SQDIST), A, B)], "norms": [(0, 0.0, 1e-7, 1e-6, 1e-9, 1e-9, 0.0)], "program": []}
    free, pinned = (make_plan(dtype, n, m, self_pairs=given, **parts) for given in (None, self_pairs))
    expected = full(free.tiles(isa), n, m, dtype)
    expected[np.flatnonzero(self_pairs >= 0), self_pairs[self_pairs >= 0]] = 0.0
    np.testing.assert_array_equal(full(pinned.tiles(isa), n, m, dtype), expected)
    np.testing.assert_allclose(full(pinned.reference(), n, m, np.float64), expected, rtol=40 * np.finfo(dtype).eps)


@pytest.mark.parametrize("kind", sorted(set(Pairing) - {Pairing.MISMATCHES}))
def test_long_sums_of_equal_terms(make_plan, full, isa, dtype, kind):
    """All roundings of a sum go one way: e⁻ˢ, whose error is a third of that of s, has to keep what is promised."""
    A, B = (np.full((7, 2000), value) for value in (0.1, 0.3))
    plan = make_plan(dtype, 7, 7, program=[], pairings=[(int(kind), A, B)])
    expected = reference.PAIRINGS[kind](A.astype(dtype).astype(float), B.astype(dtype).astype(float))
    for tiles in (plan.tiles(isa), plan.reference(dtype)):
        np.testing.assert_allclose(full(tiles, 7, 7, dtype), expected, rtol=2e-6 if dtype == np.float32 else 1e-13)


def test_chi2_of_small_numbers_does_not_underflow(make_plan, full, isa, dtype):
    small = 1e-25 if dtype == np.float32 else 1e-200
    A, B = np.array([[3 * small]]), np.array([[small]])
    plan = make_plan(dtype, 1, 1, program=[], pairings=[(int(Pairing.CHI2), A, B)])
    np.testing.assert_allclose(full(plan.tiles(isa), 1, 1, dtype), [[small]], rtol=1e-6)


@pytest.mark.parametrize("layout", ["fortran", "strided", "read-only", "mapped", "reversed"])
def test_rows_in_any_layout(engine, isa, dtype, layout, tmp_path):
    """What a plan borrows it may copy; the values are what counts."""
    rng = np.random.default_rng(0)
    plain = rng.random((50, 9)).astype(dtype)
    given = plain
    if layout == "fortran":
        given = np.asfortranarray(plain)
    elif layout == "strided":
        given = np.repeat(np.repeat(plain, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "read-only":
        given = plain.copy()
        given.flags.writeable = False
    elif layout == "mapped":
        plain.tofile(tmp_path / "rows")
        given = np.memmap(tmp_path / "rows", dtype, mode="r", shape=plain.shape)
    else:
        given = plain[::-1].copy()[::-1]

    def dot(rows):
        tiles = engine.Tiles(
            is_double=dtype == np.float64,
            rows=50,
            columns=50,
            pairings=[(0, rows, rows, None)],
            row_values=[],
            column_values=[],
            constants=[],
            program=[],
            registers=1,
            result=0,
            self_pairs=None,
            isa=isa,
        )
        out = np.empty((50, 50), dtype)
        tiles.block(0, 50, 0, 50, out=out)
        return out

    np.testing.assert_allclose(dot(given), dot(plain), rtol=0 if isa != "numpy" else 1e-6)


@pytest.mark.parametrize("given", ["float32", "float64"])
def test_rows_of_either_type_are_moved_as_they_are_read(engine, full, isa, dtype, given):
    """To the bit what a plan has of rows that were converted, and less an origin, beforehand."""
    rng = np.random.default_rng(0)
    A, B = (rng.normal(7.0, 1.0, (n, 20)).astype(given) for n in (50, 31))
    mean = B.mean(axis=0, dtype=np.float64)

    def entries(a, b, origin):
        pairings = [(int(Pairing.L1), a, b, origin)]
        tiles = engine.Tiles(
            is_double=dtype == np.float64,
            rows=50,
            columns=31,
            pairings=pairings,
            row_values=[],
            column_values=[],
            constants=[],
            program=[],
            registers=1,
            result=0,
            self_pairs=None,
            isa=isa,
        )
        return full(tiles, 50, 31, dtype)

    converted, moved = ([(rows - by).astype(dtype) for rows in (A, B)] for by in (np.zeros(1, given), mean))
    np.testing.assert_array_equal(entries(A, B, None), entries(*converted, None))
    np.testing.assert_array_equal(entries(A, B, mean), entries(*moved, None))
