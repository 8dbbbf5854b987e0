"""A program as CUDA C++: its shape is the text, its numbers are arguments, so that new parameters compile nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import numpy as np

from mercer.engine.contract import Code, TileProgram
from mercer.engine.cuda.distances import Way
from mercer.engine.opcodes import CHUNK_OF_DOUBLES, CHUNK_OF_FLOATS, OperandKind, Operation, Pairing

__all__ = ["DEEP", "FIELDS", "Source"]

DEEP = 16
"""Features of a slice in shared memory: 16 kB for a tile of 128 float32 rows and columns."""
TENSOR_SLICES = 64
"""Slices whose sums on tensor cores are added one after the other; more are sums of such sums."""
WIDE, NARROW = 8, 4
"""Pairs of a thread are WIDE × WIDE if their sums and the entries fit in its registers, else NARROW × NARROW."""

FIELDS = 7
"""Numbers of a pairing in a plan: the rows and columns for norms, the slices, both norms, the rows and columns for
terms."""
AT_TERMS = 5

EXPRESSIONS: dict[int, str] = {
    Operation.ADD: "{a} + {b}",
    Operation.SUB: "{a} - {b}",
    Operation.MUL: "{a} * {b}",
    Operation.DIV: "{a} / {b}",
    Operation.MINIMUM: "least({a}, {b})",
    Operation.MAXIMUM: "most({a}, {b})",
    Operation.LESS: "{a} < {b} ? REAL(1) : REAL(0)",
    Operation.LESS_EQUAL: "{a} <= {b} ? REAL(1) : REAL(0)",
    Operation.WHERE: "{a} != 0 ? {b} : {c}",
    Operation.NEG: "-{a}",
    Operation.ABS: "fabs({a})",
    Operation.EXP: "exp({a})",
    Operation.LOG: "log({a})",
    Operation.SQRT: "sqrt({a})",
    Operation.TANH: "tanh({a})",
    Operation.SIN: "sin({a})",
    Operation.COS: "cos({a})",
    Operation.POW: "pow({a}, {k0})",
    Operation.AFFINE: "{k0} * {a} + {k1}",
    Operation.EXP_AFFINE: "exp({k0} * {a} + {k1})",
    Operation.GAUSS_FROM_SQDIST: "exp2({k0} * {a})",
}
"""Each operation as C++; the power with an integer exponent is written out."""


@dataclass(frozen=True)
class Source:
    """The CUDA C++ of a program for pairs of rows.

    Parameters
    ----------
    program : TileProgram
    slices : tuple of int
        For each pairing, the number of slices of `DEEP` features.
    ways : tuple of Way
        How each pairing is computed.
    row_values, column_values : int
        How many arrays of values of rows and columns there are.
    side : int
        Threads on each side of a block.
    same : bool
        Whether some pairs are one point, at distance 0.
    transposed : bool
        Whether the rows of this kernel are the columns of the program.
    """

    program: TileProgram
    slices: tuple[int, ...]
    ways: tuple[Way, ...]
    row_values: int
    column_values: int
    side: int
    same: bool = False
    transposed: bool = False

    @property
    def chunk(self) -> int:
        """The most features that are summed one after the other."""
        return CHUNK_OF_FLOATS if self.program.dtype == np.float32 else CHUNK_OF_DOUBLES

    @property
    def wide(self) -> int:
        """Pairs of a thread, on each side."""
        light = len(self.slices) <= 1 and not any(self._deep(p) for p in range(len(self.slices)))
        return WIDE if light and self.program.dtype == np.float32 else NARROW

    @property
    def tile(self) -> int:
        """Rows and columns of a tile."""
        return self.side * self.wide

    @cached_property
    def text(self) -> str:
        """The program, and the kernels that use it."""
        pairings = self.program.pairings
        sizes = {
            "SIDE": self.side, "WIDE": self.wide, "TILE": self.tile, "DEEP": DEEP, "CHUNK": self.chunk,
            "TENSOR": int(self.tensor), "TENSOR_SLICES": TENSOR_SLICES, "FIELDS": FIELDS,
            "PAIRINGS": len(pairings), "ROW_VALUES": self.row_values, "COLUMN_VALUES": self.column_values,
            **{kind.name: kind.value for kind in Pairing},
        }  # fmt: skip
        lines = [f"typedef {'float' if self.program.dtype == np.float32 else 'double'} REAL;"]
        lines += [f"constexpr int {name} = {value};" for name, value in sizes.items()]
        lines += [_macro("PAIR_ALL(plan, own, i, j, own_i, own_j, sums)", self._pairings() or ["do { } while (0)"])]
        lines += ["#define EVALUATE evaluate"]
        before, after = _text("tiles.cu").split("// PAIR_ALL, EVALUATE", 1)
        before += _text("tensor.cu") if self.tensor else ""
        return "\n".join([*lines, before, self._evaluate(), "// PAIR_ALL, EVALUATE" + after])

    @property
    def numbers(self) -> list[float]:
        """The arguments: the constants, k0 and k1 of each operation, and the share and the bound of each way."""
        own = [*self.program.constants, *(k for code in self.program.code for k in code[-2:])]
        return [*own, *(number for way in self.ways for number in (way.share, way.bound))] or [0.0]

    @property
    def tensor(self) -> bool:
        """Whether a pairing uses tensor cores, and threads have the pairs that these give them."""
        return any(way.tensor for way in self.ways)

    def _deep(self, p: int) -> bool:
        """Whether the sums of a pairing are sums of sums."""
        return self.slices[p] > TENSOR_SLICES if self.ways[p].tensor else self.slices[p] * DEEP > self.chunk

    def _pairings(self) -> list[str]:
        """The statements that fill the sums of each pairing."""
        lines, number = [], len(self.numbers) - 2 * len(self.ways)
        for p, (pairing, way) in enumerate(zip(self.program.pairings, self.ways, strict=True)):
            tensor = f"tensor_dots<{str(self._deep(p)).lower()}>"
            deep = str(self.slices[p] * DEEP > self.chunk).lower()
            terms = tensor if way.tensor and not way.by_norms else f"paired<{pairing.kind.name}, {deep}>"
            terms = f"{terms}(plan, own, {p}, {AT_TERMS}, i, j, sums[{p}])"
            if way.by_norms:
                dots = tensor if way.tensor else f"paired<DOT, {deep}>"
                lines.append(f"{dots}(plan, own, {p}, 0, i, j, sums[{p}])")
                lines.append(f"by_norms(plan, {p}, own_i, own_j, sums[{p}])")
            if way.by_norms and way.by_terms:
                condition = f"accurate(plan, {p}, own_i, own_j, {number + 2 * p}, sums[{p}])"
                lines.append(f"if (!{condition}) {terms}")
            elif way.by_terms:
                lines.append(terms)
        return lines

    def _evaluate(self) -> str:
        """The entry of a pair of rows: registers are variables, the first hold the pairings."""
        first, last = ("j", "i") if self.transposed else ("i", "j")
        body = [f"REAL r{p} = sums[{p}][m][c];" for p in range(len(self.program.pairings))]
        body += [f"REAL r{k} = 0;" for k in range(len(self.program.pairings), self.program.registers)]
        if self.same:
            zero = [f"r{p} = 0;" for p, one in enumerate(self.program.pairings) if one.norms is not None]
            body.append(f"if (plan.same()[{first}] == {last} + plan.first()) {{ {' '.join(zero)} }}")
        at = len(self.program.constants)
        for code in self.program.code:
            body.append(f"r{code[1]} = {self._expression(code, at)};")
            at += 2
        head = "__device__ inline REAL evaluate(const Plan& plan, Index i, Index j, int m, int c, "
        return "\n".join([
            f"{head}const REAL (&sums)[PAIRINGS ? PAIRINGS : 1][WIDE][WIDE]) {{",
            *(f"    {line}" for line in body),
            f"    return r{self.program.result};",
            "}",
        ])  # fmt: skip

    def _expression(self, code: Code, at: int) -> str:
        operation, _, *operands, k0, _ = code
        if operation == Operation.POW_INTEGER:
            return _power(self._operand(operands[0]), int(k0))
        a, b, c = (self._operand(one) for one in operands)
        return EXPRESSIONS[operation].format(a=a, b=b, c=c, k0=f"plan.numbers[{at}]", k1=f"plan.numbers[{at + 1}]")

    def _operand(self, operand: tuple[int, int]) -> str:
        kind, index = operand
        i, j = ("j", "i") if self.transposed else ("i", "j")
        return {
            OperandKind.REGISTER: f"r{index}",
            OperandKind.ROW: f"plan.row_values({index})[{i}]",
            OperandKind.COLUMN: f"plan.column_values({index})[{j}]",
            OperandKind.CONSTANT: f"plan.numbers[{index}]",
        }.get(OperandKind(kind), "")


def _text(name: str) -> str:
    return files("mercer.engine.cuda").joinpath(name).read_text(encoding="utf-8")


def _power(base: str, exponent: int) -> str:
    """The product of this many factors, by squares.

    >>> _power("x", 5)
    'x * (((x) * (x)) * ((x) * (x)))'
    >>> _power("x", -1)
    'REAL(1) / (x)'
    """
    if exponent < 0:
        return f"REAL(1) / ({_power(base, -exponent)})"
    if exponent <= 1:
        return base if exponent else "REAL(1)"
    half = f"({_power(base, exponent // 2)})"
    return f"{base} * ({half} * {half})" if exponent % 2 else f"{half} * {half}"


def _macro(head: str, lines: list[str]) -> str:
    return f"#define {head} " + "; ".join(lines)
