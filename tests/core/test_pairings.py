"""Stage one: the twin against the definitions, one pair at a time, and the compiled pairings against the twin."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer import _twin
from mercer.gram.program import Pairing

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
def test_the_twin_is_the_definition(kind):
    A, B = rows(kind, 7, 6, 0), rows(kind, 5, 6, 1)
    expected = [[DEFINITIONS[kind](a.tolist(), b.tolist()) for b in B] for a in A]
    np.testing.assert_allclose(_twin.PAIRINGS[kind](A, B), expected, rtol=1e-14)


@pytest.mark.parametrize("kind", Pairing)
@pytest.mark.parametrize("depth", [1, 2, 7, 64])
def test_every_pairing_and_size(make_plan, full, isa, dtype, kind, depth):
    for n, m in SIZES:
        A, B = rows(kind, n, depth, n), rows(kind, m, depth, m + 1)
        plan = make_plan(dtype, n, m, program=[], pairings=[(int(kind), A, B)])
        got = full(plan.tiles(isa), n, m, dtype)
        # Halves are exact in binary, and so are all sums of them; quotients are not.
        tolerance = plan.eps if kind is Pairing.CHI2 else 0
        np.testing.assert_allclose(got, full(plan.twin(), n, m, np.float64), rtol=tolerance, err_msg=f"{n} x {m}")


@pytest.mark.parametrize("kind", Pairing)
@pytest.mark.parametrize("depth", [129, 257, 513, 1027])
def test_depths_around_those_that_are_blocked(make_plan, full, isa, dtype, kind, depth):
    """Blocks of depth are 512 or 256 float32 numbers, 256 or 128 float64 ones."""
    n, m = 101, 70
    A, B = rows(kind, n, depth, 2), rows(kind, m, depth, 3)
    plan = make_plan(dtype, n, m, program=[], pairings=[(int(kind), A, B)])
    got = full(plan.tiles(isa), n, m, dtype)
    np.testing.assert_allclose(got, full(plan.twin(), n, m, np.float64), rtol=plan.eps)


def test_shallow_and_blocked_pairings_in_one_plan(make_plan, full, isa, dtype):
    n, m, kinds = 100, 70, list(Pairing)
    depths = [3, 600, 1, 1100, 40, 5]
    pairings = [(int(k), rows(k, n, d, d), rows(k, m, d, d + 1)) for k, d in zip(kinds, depths, strict=True)]
    for result in range(len(kinds)):
        plan = make_plan(dtype, n, m, program=[], pairings=pairings, registers=6, result=result)
        np.testing.assert_allclose(
            full(plan.tiles(isa), n, m, dtype), full(plan.twin(), n, m, np.float64), rtol=plan.eps, atol=plan.eps
        )


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
        tiles = engine.Tiles(dtype == np.float64, 50, 50, [(0, rows, rows)], [], [], [], [], 1, 0, None, isa)
        out = np.empty((50, 50), dtype)
        tiles.block(0, 50, 0, 50, out)
        return out

    np.testing.assert_allclose(dot(given), dot(plain), rtol=0 if isa != "numpy" else 1e-6)
