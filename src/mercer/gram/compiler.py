"""From a traced formula to the tile engine's program.

Shared subexpressions are computed once. What depends on one row only is hoisted out and computed once per row, in
float64. The rest becomes a list of operations over registers, each register a strip of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from mercer.errors import message
from mercer.gram.program import Leaf, Op, Operand, Pairing, Program, RowValue, Views, Where
from mercer.gram.registers import ADVICE, DoesNotFit, Step, allocate
from mercer.kernels.expression import Expression, constant, node

__all__ = ["compile_expression", "structure"]

DIRECT_DEPTH = 16
"""Up to this many columns, differences cost no more than norms and a dot product, and are exact."""
MAX_POWER = 1024
"""Beyond this, repeated multiplication loses to exp(a log x) in both speed and error."""


def compile_expression(expression: Expression, depth: Callable[[Views], int]) -> Program:
    """The program of a traced formula.

    Parameters
    ----------
    expression : Expression
        What `mercer.kernels.trace` returned.
    depth : callable
        views ↦ how many columns the rows have after these views; squared distances are computed by differences up to
        `DIRECT_DEPTH` of them, and through norms and a dot product beyond.

    Raises
    ------
    DoesNotFit
        For a formula that needs more registers than the engine has, or is nested too deeply to be walked.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> from mercer.kernels.pairing import trace
    >>> program = compile_expression(trace(Gaussian(gamma=0.5)), lambda views: 100)
    >>> [Op(code[0]).name for code in program.code], [leaf.pairing.name for leaf in program.leaves]
    (['GAUSS_FROM_DOT'], ['DOT'])
    """
    compiler = _Compiler(depth, _vanishing_roots(expression))
    compiler.centered = {e.value[1] for e in _walk(expression) if _is_pairing(e, "sqdist") and compiler.by_norms(e)}
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


def structure(expression: Expression) -> tuple[Hashable, ...]:
    """The distinct nodes with the numbers of their arguments: equal where formulas are, and compared in linear time.

    >>> s = Expression("pairing", (), ("sqdist", ()))
    >>> structure(s * s + 1.0)
    (('const', 1.0, ()), ('pairing', ('sqdist', ()), ()), ('mul', None, (1, 1)), ('add', None, (2, 0)))
    """
    nodes = _walk(expression)
    number = {e: i for i, e in enumerate(nodes)}
    return tuple((e.op, e.value, tuple(number[arg] for arg in e.args)) for e in nodes)


# ---- where a square root is taken of a distance ---------------------------------------------------------------------


def _walk(expression: Expression) -> list[Expression]:
    """Every distinct node, arguments before the nodes that use them."""
    seen: dict[Expression, None] = {}
    waiting = [expression]
    while waiting:
        e = waiting[-1]
        ahead = [arg for arg in e.args if arg not in seen]
        waiting.extend(ahead)
        if not ahead:
            seen[waiting.pop()] = None
    return list(seen)


def _vanishing_roots(expression: Expression) -> frozenset[Expression]:
    """The squared distances under a root that is taken of zero where the rows coincide.

    A rounding error ε in the distance is √ε in the root, so these distances must be exact near zero. √(1 + s) is not
    among them: its argument is 1 there.
    """
    found: frozenset[Expression] = frozenset()
    value: dict[Expression, Expression] = {}
    distances: dict[Expression, frozenset[Expression]] = {}
    for e in _walk(expression):
        value[e] = _at_coincidence(e, [value[arg] for arg in e.args])
        own = [e] if _is_pairing(e, "sqdist") else []
        distances[e] = frozenset(own).union(*(distances[arg] for arg in e.args))
        root = e.op == "sqrt" or (e.op == "pow" and not float(e.value).is_integer()) or e.op == "log"
        if root and not _is_positive_constant(value[e.args[0]]):
            found |= distances[e.args[0]]
    return found


def _at_coincidence(e: Expression, args: list[Expression]) -> Expression:
    """The expression where x = z, of its arguments there: distances are zero."""
    if e.op == "pairing" and e.value[0] in ("sqdist", "l1", "chi2", "mismatches"):
        return constant(0.0)
    if e.op == "pow":
        return args[0] ** e.value
    return node(e.op, *args) if args else e


def _is_positive_constant(e: Expression) -> bool:
    return e.op == "const" and e.value > 0


def _is_pairing(e: Expression, kind: str) -> bool:
    return e.op == "pairing" and e.value[0] == kind


# ---- instructions in single-assignment form --------------------------------------------------------------------------

SIDES = {"self_x": "row", "self_z": "column"}


@dataclass
class _Compiler:
    """Values before they have registers: a REGISTER operand's index is a leaf's number, or as `Step` has it."""

    depth: Callable[[Views], int]
    direct: frozenset[Expression]
    leaves: dict[Leaf, int] = field(default_factory=dict)
    rows: dict[RowValue, int] = field(default_factory=dict)
    columns: dict[RowValue, int] = field(default_factory=dict)
    constants: dict[float, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    known: dict[Expression, Operand] = field(default_factory=dict)
    sides: dict[Expression, str] = field(default_factory=dict)
    centered: set[Views] = field(default_factory=set)
    """Views whose centred dot product is needed anyway."""

    def side(self, e: Expression) -> str:
        """Which rows a value depends on: "const", "row", "column" or "pair"."""
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
            return self.row(RowValue("expression", expression=e))
        if side == "column":
            return self.column(RowValue("expression", expression=e))
        if e.op == "pairing":
            return self.pairing(e)
        return self.operation(e)

    # -- operands

    def constant(self, value: float) -> Operand:
        return int(Where.CONSTANT), self.constants.setdefault(value, len(self.constants))

    def row(self, value: RowValue) -> Operand:
        return int(Where.ROW), self.rows.setdefault(value, len(self.rows))

    def column(self, value: RowValue) -> Operand:
        return int(Where.COLUMN), self.columns.setdefault(value, len(self.columns))

    def leaf(self, leaf: Leaf) -> Operand:
        return int(Where.REGISTER), self.leaves.setdefault(leaf, len(self.leaves))

    def step(self, op: Op, *operands: Operand, k0: float = 0.0, k1: float = 0.0) -> Operand:
        self.steps.append(Step(op, operands, k0, k1))
        return int(Where.REGISTER), -len(self.steps)

    def register(self, operand: Operand) -> Operand:
        """The operand as a register: the result must be one."""
        if operand[0] == Where.REGISTER:
            return operand
        return self.step(Op.ADD, operand, self.constant(0.0))

    # -- pairings

    def by_norms(self, e: Expression) -> bool:
        return e not in self.direct and self.depth(e.value[1]) > DIRECT_DEPTH

    def pairing(self, e: Expression) -> Operand:
        kind, views = e.value
        if kind == "sqdist" and self.by_norms(e):
            norms = RowValue("sqnorm", views)
            return self.step(Op.SQDIST_FROM_DOT, self.centered_dot(views), self.row(norms), self.column(norms))
        if kind == "dot" and views in self.centered:
            # One reduction serves both; the sum of the offsets first, so that the result is exactly symmetric.
            offset = RowValue("offset", views)
            offsets = self.step(Op.ADD, self.row(offset), self.column(offset))
            return self.step(Op.ADD, self.centered_dot(views), offsets)
        return self.leaf(Leaf(Pairing[kind.upper()], views))

    def centered_dot(self, views: Views) -> Operand:
        return self.leaf(Leaf(Pairing.DOT, views, centered=True))

    # -- operations

    def operation(self, e: Expression) -> Operand:
        if e.op == "exp":
            return self.exponential(e)
        if e.op == "pow":
            return self.power(e)
        scale, inner, shift = affine(e)
        if inner is not e:
            return self.step(Op.AFFINE, self.value(inner), k0=scale, k1=shift)
        return self.step(Op[e.op.upper()], *map(self.value, e.args))

    def exponential(self, e: Expression) -> Operand:
        scale, inner, shift = affine(e.args[0])
        if _is_pairing(inner, "sqdist") and scale < 0 and shift == 0:
            return self.gaussian(inner, -scale * math.log2(math.e))
        return self.step(Op.EXP_AFFINE, self.value(inner), k0=scale, k1=shift)

    def gaussian(self, sqdist: Expression, gamma2: float) -> Operand:
        """2^(−γ₂‖x − z‖²)."""
        if self.by_norms(sqdist):
            halves = RowValue("sqnorm", sqdist.value[1], scale=0.5)
            dot = self.centered_dot(sqdist.value[1])
            return self.step(Op.GAUSS_FROM_DOT, dot, self.row(halves), self.column(halves), k0=2 * gamma2)
        return self.step(Op.GAUSS_FROM_SQDIST, self.value(sqdist), k0=-gamma2)

    def power(self, e: Expression) -> Operand:
        exponent, base = float(e.value), self.value(e.args[0])
        if exponent == 0.5:
            return self.step(Op.SQRT, base)
        if exponent.is_integer() and abs(exponent) <= MAX_POWER:
            return self.step(Op.POW_INTEGER, base, k0=exponent)
        return self.step(Op.POW, base, k0=exponent)


def affine(e: Expression) -> tuple[float, Expression, float]:
    """(k0, inner, k1) with e = k0·inner + k1, as deep as constants go; (1, e, 0) where e is something else."""
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
