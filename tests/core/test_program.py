"""Stage two: every operation, operands of every kind, many registers, plans without any pairing."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.engine.contract import NOTHING
from mercer.engine.opcodes import OperandKind, Operation, Pairing
from mercer.testing.engines import FACTORS, FORMULAS

R, ROW, COLUMN, CONST = OperandKind.REGISTER, OperandKind.ROW, OperandKind.COLUMN, OperandKind.CONSTANT


@pytest.mark.parametrize("op", Operation, ids=lambda op: op.name)
def test_every_operation_with_operands_from_everywhere(make_plan, full, isa, dtype, op):
    rng = np.random.default_rng(7)
    n, m = 27, 71
    A, B = rng.random((n, 3)) + 0.3, rng.random((m, 3)) + 0.3
    row, column, constant = rng.random(n) + 0.5, rng.random(m) + 0.5, 0.75
    if op == Operation.WHERE:
        row, column = row * (row > 0.9), column * (column > 0.9)

    def rounded(x):
        return x.astype(dtype).astype(np.float64)

    values = {
        R: rounded(A) @ rounded(B).T,
        ROW: rounded(row)[:, None],
        COLUMN: rounded(column)[None, :],
        CONST: constant,
    }
    for places in ((R, ROW, COLUMN), (COLUMN, R, ROW), (ROW, COLUMN, CONST), (CONST, ROW, R)):
        operands = [(where, 0) for where in places[: op.operands]] + [NOTHING] * (3 - op.operands)
        plan = make_plan(
            dtype, n, m, program=[(op, 1, *operands, FACTORS.get(op, 1.5), 0.25)], registers=2, result=1,
            pairings=[(int(Pairing.DOT), A, B)], row_values=[row], column_values=[column], constants=[constant],
        )  # fmt: skip
        a, b, c = (values[where] for where in places)
        expected = np.broadcast_to(FORMULAS[op](a, b, c), (n, m))
        for tiles in (plan.tiles(isa), plan.reference(dtype)):
            np.testing.assert_allclose(full(tiles, n, m, dtype), expected, rtol=4 * plan.eps, atol=4 * plan.eps)


@pytest.mark.parametrize(
    "op", [Operation.MINIMUM, Operation.MAXIMUM, Operation.WHERE, Operation.LESS, Operation.GAUSS_FROM_SQDIST]
)
def test_nan_goes_the_way_it_goes_in_numpy(make_plan, full, isa, dtype, op):
    """A number that is none must never become a plausible one."""
    special = np.array([1.0, np.nan, 2.0, np.nan, 0.5])
    operands = [(ROW, 0), (COLUMN, 0), (R, 0)][: op.operands] + [NOTHING] * (3 - op.operands)
    plan = make_plan(
        dtype, 5, 5, program=[(op, 0, *operands, 1.0, 0.0)], registers=1,
        pairings=[(int(Pairing.DOT), np.ones((5, 1)), np.ones((5, 1)))],
        row_values=[special], column_values=[special[::-1]],
    )  # fmt: skip
    with np.errstate(invalid="ignore"):
        expected = full(plan.reference(), 5, 5, np.float64)
    np.testing.assert_allclose(full(plan.tiles(isa), 5, 5, dtype), expected, rtol=plan.eps, atol=plan.eps)


@pytest.mark.parametrize("registers", [1, 5, 16, 33, 64])
def test_many_registers(make_plan, full, isa, dtype, registers):
    """Σ (s + i)·i, each term in a register of its own until the end: more registers, shorter strips."""
    n, m = 25, 140
    program = [(Operation.AFFINE, i, (R, 0), NOTHING, NOTHING, float(i), float(i)) for i in range(1, registers)]
    program += [(Operation.ADD, 0, (R, 0), (R, i), NOTHING, 0.0, 0.0) for i in range(1, registers)]
    plan = make_plan(dtype, n, m, program=program, registers=registers)
    expected = full(plan.reference(), n, m, np.float64)
    np.testing.assert_allclose(full(plan.tiles(isa), n, m, dtype), expected, rtol=plan.eps)


def test_no_pairing_at_all(make_plan, full, engine, isa, dtype):
    """A constant; and a product of a row's and a column's value."""
    n, m = 200, 37
    program = [(Operation.ADD, 0, (CONST, 0), (CONST, 1), NOTHING, 0.0, 0.0)]
    plan = make_plan(dtype, n, m, program=program, pairings=[], constants=[2.0, 0.5])
    np.testing.assert_array_equal(full(plan.tiles(isa), n, m, dtype), np.full((n, m), 2.5, dtype))
    rng = np.random.default_rng(0)
    row, column = rng.random(n), rng.random(m)
    program = [(Operation.MUL, 0, (ROW, 0), (COLUMN, 0), NOTHING, 0.0, 0.0)]
    plan = make_plan(dtype, n, m, program=program, pairings=[], row_values=[row], column_values=[column])
    np.testing.assert_allclose(full(plan.tiles(isa), n, m, dtype), np.outer(row, column), rtol=plan.eps)
