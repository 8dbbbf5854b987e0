"""From a traced formula to the tile engine's program.

Shared subexpressions are computed once. Subexpressions that depend on one row only are computed once for each row, in
float64. The rest becomes a list of operations on registers; a register holds the values of a strip of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field

from mercer.engine.contract import Operand
from mercer.engine.opcodes import OperandKind, Operation, Pairing
from mercer.errors import message
from mercer.gram.program import Leaf, Program
from mercer.gram.registers import ADVICE, DoesNotFit, Step, allocate
from mercer.kernels.symbolic.expression import Expression

__all__ = ["canonical_form", "compile_expression"]

MAX_POWER = 1024
"""Above this exponent, exp(a log x) is faster and more accurate than repeated multiplication."""


def compile_expression(expression: Expression) -> Program:
    """The program of a traced formula.

    Parameters
    ----------
    expression : Expression
        The result of `mercer.kernels.trace`.

    Raises
    ------
    DoesNotFit
        If the formula needs more registers than the engine has, or is nested too deeply.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> from mercer.kernels.symbolic.pairing import trace
    >>> program = compile_expression(trace(Gaussian(gamma=0.5)))
    >>> [Operation(code[0]).name for code in program.code], [leaf.pairing.name for leaf in program.leaves]
    (['GAUSS_FROM_SQDIST'], ['SQDIST'])
    """
    compiler = _Compiler(_rates(expression))
    try:
        result = compiler.register(compiler.value(expression))
    except RecursionError:
        raise DoesNotFit(message("compile_expression", "a formula of many levels", ADVICE)) from None
    return Program(
        tuple(compiler.leaves),
        tuple(compiler.rows),
        tuple(compiler.columns),
        tuple(compiler.constants),
        *allocate(compiler.steps, len(compiler.leaves), result[1]),
    )


def canonical_form(expression: Expression) -> tuple[Hashable, ...]:
    """The distinct nodes with the indices of their arguments. Equal formulas have equal forms.

    Examples
    --------
    >>> s = Expression("pairing", (), ("sqdist", ()))
    >>> canonical_form(s * s + 1.0)
    (('const', 1.0, ()), ('pairing', ('sqdist', ()), ()), ('mul', None, (1, 1)), ('add', None, (2, 0)))
    """
    nodes = _walk(expression)
    number = {e: i for i, e in enumerate(nodes)}
    return tuple((e.op, e.value, tuple(number[arg] for arg in e.args)) for e in nodes)


def _walk(expression: Expression) -> list[Expression]:
    """All distinct nodes, each after its arguments."""
    seen: dict[Expression, None] = {}
    waiting = [expression]
    while waiting:
        e = waiting[-1]
        ahead = [arg for arg in e.args if arg not in seen]
        waiting.extend(ahead)
        if not ahead:
            seen[waiting.pop()] = None
    return list(seen)


# ---- the accuracy that squared distances need -----------------------------------------------------------------------


def _rates(expression: Expression) -> dict[Expression, tuple[float, float, float]]:
    """Slow, fast and root for each squared distance s that the formula reads only in terms e^(−γs) and (1 + γs)^(−a).

    An error δ of s changes such a term by at most fast·δ·(1 + root·slow·s)^(−1/root), and sums and products with other
    kernels by no more. Other functions of s, such as a root, may need all its digits.
    """
    found: dict[Expression, list[tuple[float, float, float]]] = {}
    exact: set[Expression] = set()
    seen: set[Expression] = set()
    waiting = [expression]
    while waiting:
        e = waiting.pop()
        if e in seen:
            continue
        seen.add(e)
        inner, bound = _falling(e)
        if bound:
            found.setdefault(inner, []).append(bound)
        elif e.op in POLYNOMIAL or (e.op == "pow" and float(e.value).is_integer() and e.value > 0):
            waiting += e.args
        elif e.op == "div" and all(node.op != "pairing" for node in _walk(e.args[1])):
            waiting.append(e.args[0])
        else:
            exact |= {node for node in _walk(e) if _is_pairing(node, "sqdist")}
    bounds = {e: tuple(zip(*rates, strict=True)) for e, rates in found.items() if e not in exact}
    return {e: (min(slow), max(fast), max(root)) for e, (slow, fast, root) in bounds.items()}


def _falling(e: Expression) -> tuple[Expression, tuple[float, float, float] | None]:
    """s and its bound, if e is e^(−γs), or c/(b + as) or (b + as)^(−m) in units of its value at s = 0."""
    power = -float(e.value) if e.op == "pow" else 1.0 if e.op == "div" and e.args[0].op == "const" else 0.0
    if e.op != "exp" and not power > 0:
        return e, None
    scale, inner, shift = affine(e.args[-1])
    if not _is_pairing(inner, "sqdist"):
        return e, None
    if e.op == "exp":
        return inner, (-scale, -scale, 0.0) if scale < 0 and shift == 0 else None
    gamma = scale / shift if scale > 0 and shift > 0 else 0.0
    return inner, (gamma * (power + 1), gamma * power, 1 / (power + 1)) if gamma else None


def _is_pairing(e: Expression, kind: str) -> bool:
    return e.op == "pairing" and e.value[0] == kind


# ---- instructions in single-assignment form --------------------------------------------------------------------------

POLYNOMIAL = {"add", "sub", "mul", "neg", "const", "self_x", "self_z"}
SIDES = {"self_x": "row", "self_z": "column"}


@dataclass
class _Compiler:
    """Builds the steps of a program; the operands of a step are numbered as in `Step`."""

    rates: dict[Expression, tuple[float, float, float]]
    leaves: dict[Leaf, int] = field(default_factory=dict)
    rows: dict[Expression, int] = field(default_factory=dict)
    columns: dict[Expression, int] = field(default_factory=dict)
    constants: dict[float, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    known: dict[Expression, Operand] = field(default_factory=dict)
    sides: dict[Expression, str] = field(default_factory=dict)

    def side(self, e: Expression) -> str:
        """What a value depends on: "const" for no row, "row", "column", or "pair" for both."""
        if e not in self.sides:
            if e.op in SIDES:
                found = SIDES[e.op]
            elif e.op == "pairing":
                found = "pair"
            else:
                below = {self.side(arg) for arg in e.args} - {"const"}
                found = "const" if not below else below.pop() if len(below) == 1 else "pair"
            self.sides[e] = found
        return self.sides[e]

    def value(self, e: Expression) -> Operand:
        if e not in self.known:
            self.known[e] = self._value(e)
        return self.known[e]

    def _value(self, e: Expression) -> Operand:
        side = self.side(e)
        if side == "const":
            return self.constant(float(e.value))
        if side == "row":
            return int(OperandKind.ROW), self.rows.setdefault(e, len(self.rows))
        if side == "column":
            return int(OperandKind.COLUMN), self.columns.setdefault(e, len(self.columns))
        if e.op == "pairing":
            leaf = Leaf(Pairing[e.value[0].upper()], e.value[1], self.rates.get(e))
            return int(OperandKind.REGISTER), self.leaves.setdefault(leaf, len(self.leaves))
        return self.operation(e)

    # -- operands

    def constant(self, value: float) -> Operand:
        return int(OperandKind.CONSTANT), self.constants.setdefault(value, len(self.constants))

    def step(self, op: Operation, *operands: Operand, k0: float = 0.0, k1: float = 0.0) -> Operand:
        self.steps.append(Step(op, operands, k0, k1))
        return int(OperandKind.REGISTER), -len(self.steps)

    def register(self, operand: Operand) -> Operand:
        """The operand, copied to a register if it is not in one, because the result must be."""
        if operand[0] == OperandKind.REGISTER:
            return operand
        return self.step(Operation.ADD, operand, self.constant(0.0))

    # -- operations

    def operation(self, e: Expression) -> Operand:
        if e.op == "exp":
            return self.exponential(e)
        if e.op == "pow":
            return self.power(e)
        scale, inner, shift = affine(e)
        if inner is not e:
            return self.step(Operation.AFFINE, self.value(inner), k0=scale, k1=shift)
        return self.step(Operation[e.op.upper()], *map(self.value, e.args))

    def exponential(self, e: Expression) -> Operand:
        scale, inner, shift = affine(e.args[0])
        if _is_pairing(inner, "sqdist") and scale < 0 and shift == 0:
            return self.step(Operation.GAUSS_FROM_SQDIST, self.value(inner), k0=scale * math.log2(math.e))
        return self.step(Operation.EXP_AFFINE, self.value(inner), k0=scale, k1=shift)

    def power(self, e: Expression) -> Operand:
        exponent, base = float(e.value), self.value(e.args[0])
        if exponent == 0.5:
            return self.step(Operation.SQRT, base)
        if exponent.is_integer() and abs(exponent) <= MAX_POWER:
            return self.step(Operation.POW_INTEGER, base, k0=exponent)
        return self.step(Operation.POW, base, k0=exponent)


def affine(e: Expression) -> tuple[float, Expression, float]:
    """(k0, inner, k1) with e = k0·inner + k1 and an `inner` that is not of this form itself."""
    scale, shift = 1.0, 0.0
    while True:
        if e.op == "neg":
            scale, e = -scale, e.args[0]
        elif e.op == "mul" and e.args[0].op == "const":
            scale, e = scale * e.args[0].value, e.args[1]
        elif e.op in ("add", "sub") and e.args[1].op == "const":
            sign = 1.0 if e.op == "add" else -1.0
            shift, e = shift + scale * sign * e.args[1].value, e.args[0]
        elif e.op in ("add", "sub") and e.args[0].op == "const":
            shift += scale * e.args[0].value
            scale, e = (scale if e.op == "add" else -scale), e.args[1]
        else:
            return scale, e, shift
