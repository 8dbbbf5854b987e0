"""From a formula to a program: what is hoisted, shared, folded, how exact distances are, and in how many registers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from mercer.engine.opcodes import MAX_REGISTERS, OperandKind, Operation, Pairing
from mercer.errors import InvalidInput
from mercer.gram import KernelOperator, tiles
from mercer.gram.compiler import canonical_form, compile_expression
from mercer.gram.registers import DoesNotFit, Step, allocate
from mercer.kernels import (
    Cauchy,
    Chi2,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    SymbolPair,
    exp,
    log,
    sqrt,
    trace,
)
from mercer.kernels.symbolic.expression import Expression
from mercer.testing import assert_close

PAIR = SymbolPair()


def compiled(formula):
    return compile_expression(formula if isinstance(formula, Expression) else trace(formula))


def ops(program):
    return [Operation(code[0]).name for code in program.code]


def leaves(program):
    return [leaf.pairing.name for leaf in program.leaves]


def test_what_depends_on_one_row_leaves_the_program():
    program = compiled(Polynomial(degree=2).normalized())
    assert leaves(program) == ["DOT"]
    assert len(program.row_values) == len(program.column_values) >= 1
    assert "SQRT" not in ops(program)
    program = compiled(exp(PAIR.xx) * (PAIR.dot + log(1 + PAIR.zz) * 2))
    assert ops(program) == ["ADD", "MUL"]
    assert [str(value) for value in program.row_values] == ["exp(dot_x)"]
    assert len(program.column_values) == 1


def test_a_formula_without_pairs_is_still_a_register():
    for formula, kind in (
        (Expression("const", (), 2.0), OperandKind.CONSTANT),
        (PAIR.xx + 1, OperandKind.ROW),
        (2 * PAIR.zz, OperandKind.COLUMN),
    ):
        program = compiled(formula)
        assert ops(program) == ["ADD"]
        assert program.code[0][2][0] == kind
        assert (program.leaves, program.registers, program.result) == ((), 1, 0)


def test_shared_pairings_are_computed_once():
    program = compiled(0.5 * Gaussian(gamma=0.1) + Gaussian(gamma=0.2) * Cauchy() + Linear() * Polynomial(degree=2))
    assert sorted(leaves(program)) == ["DOT", "SQDIST"]
    program = compiled(Gaussian(gamma=0.1) + Linear().on([0]) + Gaussian(gamma=0.2).on([0]))
    assert sorted(leaves(program)) == ["DOT", "SQDIST", "SQDIST"]


def test_shared_subexpressions_are_computed_once():
    s = PAIR.dot
    t = exp(s)
    assert ops(compiled(t * t + t)).count("EXP_AFFINE") == 1


@pytest.mark.parametrize(
    ("formula", "rates"),
    [
        (Gaussian(gamma=0.1), (0.1, 0.1, 0.0)),
        (Gaussian(gamma=0.1) + 3 * Gaussian(gamma=2.0) ** 2, (0.1, 2.0, 0.0)),
        (Gaussian(gamma=0.1) * Linear() + Polynomial(degree=2).normalized(), (0.1, 0.1, 0.0)),
        (2 * exp(-PAIR.sqdist) / 3 - 1, (1.0, 1.0, 0.0)),
        (Gaussian(gamma=0.1) + Cauchy(), (0.1, 1.0, 0.5)),
        (3 / (2 + PAIR.sqdist), (1.0, 0.5, 0.5)),
        (Laplace(gamma=1.0), None),
        (Matern(nu=1.5), None),
        (RationalQuadratic(alpha=3.0, gamma=0.75), (1.0, 0.75, 0.25)),
        (1 / (PAIR.sqdist - 1), None),
        (1 / (1 - PAIR.sqdist), None),
        (1 / PAIR.sqdist, None),
        (PAIR.dot / (1 + PAIR.sqdist), None),
        (PAIR.sqdist, None),
        (exp(-PAIR.sqdist) ** 0.5, None),
        (exp(1 - PAIR.sqdist), None),
        (exp(PAIR.sqdist), None),
        (PAIR.dot / exp(-PAIR.sqdist), None),
        (exp(-exp(-PAIR.sqdist)), None),
        (exp(-sqrt(2 * PAIR.sqdist + PAIR.dot * 0.0)), None),
    ],
    ids=str,
)
def test_distances_read_in_gaussians_only_are_known(formula, rates):
    """The others may be needed to the last digit."""
    assert [leaf.rates for leaf in compiled(formula).leaves if leaf.pairing == Pairing.SQDIST] == [rates]


def test_constants_fold():
    program = compiled(2 * (3 - PAIR.l1 / 4) + 1)
    assert ops(program) == ["AFFINE"]
    assert program.code[0][5:] == (-0.5, 7.0)
    program = compiled(exp(-(0.5 * PAIR.l1 + 1)))
    assert ops(program) == ["EXP_AFFINE"]
    assert program.code[0][5:] == (-0.5, -1.0)
    assert ops(compiled(PAIR.dot * 1 + 0)) == []
    assert ops(compiled(Chi2(gamma=1.0))) == ["EXP_AFFINE"]
    assert ops(compiled(Gaussian(gamma=2.0))) == ["GAUSS_FROM_SQDIST"]
    assert ops(compiled(PAIR.dot**0.5)) == ["SQRT"]
    assert ops(compiled(PAIR.dot**3)) == ["POW_INTEGER"]
    assert ops(compiled(PAIR.dot**2000)) == ["POW"]


def test_registers_are_given_away_again():
    s, t = PAIR.dot, PAIR.l1
    value = s
    for i in range(50):
        value = sqrt(value + i) * t
    program = compiled(value)
    assert program.registers == 2
    assert len(program.code) == 150 - 1  # the first + 0 folds away


def test_what_is_read_later_keeps_its_register():
    """Run the code symbolically, register by register: the result is the formula's value."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        steps, size = [], 3
        for at in range(12):
            known = [*range(size), *range(-1, -at - 1, -1)]
            steps.append(
                Step(Operation.ADD, tuple((int(OperandKind.REGISTER), int(rng.choice(known))) for _ in range(2)))
            )
        code, registers, result = allocate(steps, size, -len(steps))
        values = {i: float(i + 1) for i in range(size)}
        for at, step in enumerate(steps):
            values[-1 - at] = sum(values[i] for _, i in step.operands)
        held = {i: values[i] for i in range(size)}
        for _, target, a, b, *_ in code:
            held[target] = held[a[1]] + held[b[1]]
            assert target < registers
        assert held[result] == values[-len(steps)]


def test_too_many_registers_are_refused():
    def held(count):
        """As many values as that, none of which can be given away before the last is there."""
        parts = [sqrt(PAIR.dot + i) for i in range(1, count + 1)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        for part in parts:
            total = total * part
        return total

    assert compiled(held(MAX_REGISTERS - 2)).registers <= MAX_REGISTERS
    with pytest.raises(DoesNotFit, match="registers"):
        compiled(held(MAX_REGISTERS + 1))
    assert issubclass(DoesNotFit, InvalidInput)


def test_a_formula_of_many_levels_does_not_fit():
    value = PAIR.dot
    for _ in range(3000):
        value = sqrt(value)
    with pytest.raises(DoesNotFit, match="levels"):
        compiled(value)


def test_shared_subexpressions_cost_no_exponential_time():
    value = PAIR.sqdist
    for _ in range(100):
        value = sqrt(1 + value * value)
    assert len(compiled(value).code) <= 301


def test_kept_programs_follow_parameters_and_what_a_formula_reads():
    X = np.random.default_rng(0).standard_normal((9, 3))
    kernel = Sigmoid(gamma=0.5, coef0=-1.0)
    assert_close(KernelOperator(kernel, X).fill(np.empty((9, 9))), np.tanh(0.5 * X @ X.T - 1), rtol=1e-12)
    kernel.set_params(coef0=-2.0)  # whose hash is that of -1.0
    assert_close(KernelOperator(kernel, X).fill(np.empty((9, 9))), np.tanh(0.5 * X @ X.T - 2), rtol=1e-12)
    factor = [2.0]

    @dataclass(frozen=True, repr=False)
    class Reader(Kernel):
        def formula(self, pair):
            return factor[0] * pair.dot

    for factor[0] in (2.0, 3.0):
        filled = KernelOperator(Reader(), X).fill(np.empty((9, 9)))
        assert_close(filled, factor[0] * X @ X.T, rtol=1e-12)


def test_a_program_is_compiled_once_for_a_formula(monkeypatch):
    compiled_for = []

    def counting(expression):
        compiled_for.append(expression)
        return compile_expression(expression)

    monkeypatch.setattr(tiles, "compile_expression", counting)
    rng = np.random.default_rng(0)
    kernels = [Gaussian(gamma=0.731), Gaussian(gamma=0.731), Gaussian(gamma=0.732)]
    for d, kernel in [(3, kernels[0]), (3, kernels[1]), (40, kernels[0]), (3, kernels[2]), (40, kernels[1])]:
        X = rng.standard_normal((9, d))
        reference = np.exp(-kernel.gamma * np.square(X[:, None] - X).sum(axis=2))
        assert_close(KernelOperator(kernel, X).fill(np.empty((9, 9))), reference, rtol=1e-12)
    assert compiled_for == [trace(kernels[0]), trace(kernels[2])]


def test_programs_follow_the_parameters_of_kernels_within():
    X = np.random.default_rng(0).standard_normal((9, 3))
    kernel = 0.5 * Gaussian(gamma=0.3) + Polynomial(degree=2, gamma=0.1, coef0=1.0)
    for gamma, degree in ((0.3, 2), (0.9, 2), (0.9, 3), (0.3, 2)):
        kernel.set_params(left__kernel__gamma=gamma, right__degree=degree)
        expected = 0.5 * np.exp(-gamma * np.square(X[:, None] - X).sum(axis=2)) + (0.1 * X @ X.T + 1) ** degree
        assert_close(KernelOperator(kernel, X).toarray(), expected, rtol=1e-12)


def test_structures_are_those_of_formulas():
    e = trace(Gaussian(gamma=0.5) * Linear() + Polynomial(degree=3, gamma=1.0))
    same = trace(Gaussian(gamma=0.5) * Linear() + Polynomial(degree=3, gamma=1.0))
    assert canonical_form(e) == canonical_form(same)
    value, other = PAIR.sqdist, PAIR.sqdist
    for _ in range(200):  # equal, nothing shared between them, 2^200 paths
        value, other = value * value, other * other
    assert canonical_form(value) == canonical_form(other) != canonical_form(value + 1)
