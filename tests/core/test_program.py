"""Stage two: every operation, operands of every kind, many registers, plans without any pairing."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gram.program import NOTHING, Op, Pairing, Where

R, ROW, COLUMN, CONST = Where.REGISTER, Where.ROW, Where.COLUMN, Where.CONSTANT

DEFINITIONS = {
    Op.ADD: lambda a, b, c: a + b,
    Op.SUB: lambda a, b, c: a - b,
    Op.MUL: lambda a, b, c: a * b,
    Op.DIV: lambda a, b, c: a / b,
    Op.MINIMUM: lambda a, b, c: np.minimum(a, b),
    Op.MAXIMUM: lambda a, b, c: np.maximum(a, b),
    Op.LESS: lambda a, b, c: (a < b) * 1.0,
    Op.LESS_EQUAL: lambda a, b, c: (a <= b) * 1.0,
    Op.WHERE: lambda a, b, c: np.where(a != 0, b, c),
    Op.NEG: lambda a, b, c: -a,
    Op.ABS: lambda a, b, c: np.abs(a),
    Op.EXP: lambda a, b, c: np.exp(a),
    Op.LOG: lambda a, b, c: np.log(a),
    Op.SQRT: lambda a, b, c: np.sqrt(a),
    Op.TANH: lambda a, b, c: np.tanh(a),
    Op.SIN: lambda a, b, c: np.sin(a),
    Op.COS: lambda a, b, c: np.cos(a),
    Op.POW: lambda a, b, c: a**1.5,
    Op.POW_INTEGER: lambda a, b, c: a**3,
    Op.AFFINE: lambda a, b, c: 1.5 * a + 0.25,
    Op.EXP_AFFINE: lambda a, b, c: np.exp(1.5 * a + 0.25),
    Op.GAUSS_FROM_SQDIST: lambda a, b, c: np.exp2(-1.5 * a),
}
ARITY = dict.fromkeys(Op, 1) | dict.fromkeys((Op.ADD, Op.SUB, Op.MUL, Op.DIV), 2)
ARITY |= dict.fromkeys((Op.MINIMUM, Op.MAXIMUM, Op.LESS, Op.LESS_EQUAL), 2)
ARITY |= {Op.WHERE: 3}
K0 = {Op.POW_INTEGER: 3.0, Op.GAUSS_FROM_SQDIST: -1.5}


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_every_operation_with_operands_from_everywhere(make_plan, full, isa, dtype, op):
    rng = np.random.default_rng(7)
    n, m = 27, 71
    A, B = rng.random((n, 3)) + 0.3, rng.random((m, 3)) + 0.3
    row, column, constant = rng.random(n) + 0.5, rng.random(m) + 0.5, 0.75
    if op == Op.WHERE:
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
        operands = [(where, 0) for where in places[: ARITY[op]]] + [NOTHING] * (3 - ARITY[op])
        plan = make_plan(
            dtype, n, m, program=[(op, 1, *operands, K0.get(op, 1.5), 0.25)], registers=2, result=1,
            pairings=[(int(Pairing.DOT), A, B)], row_values=[row], column_values=[column], constants=[constant],
        )  # fmt: skip
        a, b, c = (values[where] for where in places)
        expected = np.broadcast_to(DEFINITIONS[op](a, b, c), (n, m))
        for tiles in (plan.tiles(isa), plan.twin(dtype)):
            np.testing.assert_allclose(full(tiles, n, m, dtype), expected, rtol=4 * plan.eps, atol=4 * plan.eps)


@pytest.mark.parametrize("op", [Op.MINIMUM, Op.MAXIMUM, Op.WHERE, Op.LESS, Op.GAUSS_FROM_SQDIST])
def test_nan_goes_the_way_it_goes_in_numpy(make_plan, full, isa, dtype, op):
    """A number that is none must never become a plausible one."""
    special = np.array([1.0, np.nan, 2.0, np.nan, 0.5])
    operands = [(ROW, 0), (COLUMN, 0), (R, 0)][: ARITY[op]] + [NOTHING] * (3 - ARITY[op])
    plan = make_plan(
        dtype, 5, 5, program=[(op, 0, *operands, 1.0, 0.0)], registers=1,
        pairings=[(int(Pairing.DOT), np.ones((5, 1)), np.ones((5, 1)))],
        row_values=[special], column_values=[special[::-1]],
    )  # fmt: skip
    with np.errstate(invalid="ignore"):
        expected = full(plan.twin(), 5, 5, np.float64)
    np.testing.assert_allclose(full(plan.tiles(isa), 5, 5, dtype), expected, rtol=plan.eps, atol=plan.eps)


@pytest.mark.parametrize("registers", [1, 5, 16, 33, 64])
def test_many_registers(make_plan, full, isa, dtype, registers):
    """Σ (s + i)·i, each term in a register of its own until the end: more registers, shorter strips."""
    n, m = 25, 140
    program = [(Op.AFFINE, i, (R, 0), NOTHING, NOTHING, float(i), float(i)) for i in range(1, registers)]
    program += [(Op.ADD, 0, (R, 0), (R, i), NOTHING, 0.0, 0.0) for i in range(1, registers)]
    plan = make_plan(dtype, n, m, program=program, registers=registers)
    expected = full(plan.twin(), n, m, np.float64)
    np.testing.assert_allclose(full(plan.tiles(isa), n, m, dtype), expected, rtol=plan.eps)


def test_no_pairing_at_all(make_plan, full, engine, isa, dtype):
    """A constant; and a product of a row's and a column's value."""
    n, m = 200, 37
    program = [(Op.ADD, 0, (CONST, 0), (CONST, 1), NOTHING, 0.0, 0.0)]
    plan = make_plan(dtype, n, m, program=program, pairings=[], constants=[2.0, 0.5])
    np.testing.assert_array_equal(full(plan.tiles(isa), n, m, dtype), np.full((n, m), 2.5, dtype))
    rng = np.random.default_rng(0)
    row, column = rng.random(n), rng.random(m)
    program = [(Op.MUL, 0, (ROW, 0), (COLUMN, 0), NOTHING, 0.0, 0.0)]
    plan = make_plan(dtype, n, m, program=program, pairings=[], row_values=[row], column_values=[column])
    np.testing.assert_allclose(full(plan.tiles(isa), n, m, dtype), np.outer(row, column), rtol=plan.eps)
