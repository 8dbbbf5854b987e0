"""A program as CUDA C++: its shape is the text, its numbers are arguments, so that new parameters compile nothing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from mercer.engine.contract import Code, TileProgram
from mercer.engine.cuda.distances import Way
from mercer.engine.opcodes import CHUNK_OF_DOUBLES, CHUNK_OF_FLOATS, OperandKind, Operation, Pairing

__all__ = ["BEYOND", "DEEP", "FIELDS", "Source"]

DEEP, STAGES = 16, 3
"""Features of a slice in shared memory, and slices there: one in use, and two that are copied there. A tile of 128
float32 rows and columns takes 48 kB, all that a block gets."""
WHOLE = 32
"""The most features of which that memory holds one slice of a tile's rows and two of columns; one of these is in use
while the other is copied."""
TENSOR_SLICES = 64
"""Slices whose sums on tensor cores are added one after the other; more are sums of such sums."""
WIDE, NARROW = 8, 4
"""Pairs of a thread are WIDE × WIDE if their sums and the entries fit in its registers, else NARROW × NARROW."""

FIELDS = 9
"""Numbers of a pairing in a plan: the rows and columns for norms, the features, both norms, the rows and columns for
terms, both scales."""
AT_TERMS = 5
BEYOND = 1e30
"""The squared norm of the padding, so that its distances are large, and not an obstacle to distances by norms."""

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
    Operation.GAUSS_FROM_SQDIST: "power_of_two({k0} * {a})",
}
"""Each operation as C++; the power with an integer exponent is written out."""


@dataclass(frozen=True)
class Source:
    """The CUDA C++ of a program for pairs of rows.

    Parameters
    ----------
    program : TileProgram
    features : tuple of int
        For each pairing.
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
    apart : bool
        Whether entries are dot products, and the sums of long ones on tensor cores are added where they are written.
    """

    program: TileProgram
    features: tuple[int, ...]
    ways: tuple[Way, ...]
    row_values: int
    column_values: int
    side: int
    same: bool = False
    transposed: bool = False
    apart: bool = False

    @property
    def chunk(self) -> int:
        """The most features that are summed one after the other."""
        return CHUNK_OF_FLOATS if self.program.dtype == np.float32 else CHUNK_OF_DOUBLES

    @property
    def wide(self) -> int:
        """Pairs of a thread, on each side."""
        light = len(self.features) <= 1 and not any(self._deep(p) for p in range(len(self.features)))
        return WIDE if light and self.program.dtype == np.float32 else NARROW

    @property
    def tile(self) -> int:
        """Rows and columns of a tile."""
        return self.side * self.wide

    def text(self, vectors: int) -> str:
        """The program, and the kernel `multiply` for so many vectors, or `entries` if there are none."""
        pairings, (deep, stages) = self.program.pairings, self._slices
        sizes = {
            "SIDE": self.side, "WIDE": self.wide, "TILE": self.tile, "DEEP": deep, "STAGES": stages,
            "ONE_SLICE": int(self._one_slice),
            "CHUNK": self.chunk, "TENSOR": int(self.tensor), "TENSOR_SLICES": TENSOR_SLICES, "FIELDS": FIELDS,
            "TRANSPOSED": int(self.transposed), "SAME": int(self.same), "APART": int(self.apart and self.tensor),
            "PAIRINGS": len(pairings),
            "ROW_VALUES": self.row_values, "COLUMN_VALUES": self.column_values, "R": vectors,
            **{kind.name: kind.value for kind in Pairing},
        }  # fmt: skip
        lines = [f"typedef {'float' if self.program.dtype == np.float32 else 'double'} REAL;"]
        lines += [f"constexpr int {name} = {value};" for name, value in sizes.items()]
        lines += [f"constexpr double BEYOND = {BEYOND};"]
        lines += [_macro("PAIR_ALL(plan, own, flow, i, j, sums)", self._pairings() or ["do { } while (0)"])]
        lines += ["#define EVALUATE evaluate"]
        before, after = _text("tiles.cu").split("// PAIR_ALL, EVALUATE", 1)
        before += _text("tensor.cu") if self.tensor else ""
        after += _text("multiply.cu" if vectors else "entries.cu")
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

    @property
    def _slices(self) -> tuple[int, int]:
        """Features of a slice, and slices of columns in shared memory: of few features two, each with all of them."""
        return (-(-self.features[0] // 4) * 4, STAGES - 1) if self._one_slice else (DEEP, STAGES)

    @property
    def _one_slice(self) -> bool:
        return len(self.features) == 1 and not self.tensor and DEEP < self.features[0] <= WHOLE

    def _deep(self, p: int) -> bool:
        """Whether the sums of a pairing are sums of sums."""
        if self.ways[p].tensor:
            return self.features[p] > TENSOR_SLICES * DEEP and not self.apart
        return self.features[p] > self.chunk

    def _pairings(self) -> list[str]:
        """The statements that fill the sums of each pairing."""
        lines, number = [], len(self.numbers) - 2 * len(self.ways)
        ahead = _flag(len(self.ways) == 1)
        for p, (pairing, way) in enumerate(zip(self.program.pairings, self.ways, strict=True)):
            same = f"set_same(plan, flow, i, j, {{}}, sums[{p}])" if self.same and pairing.norms is not None else ""
            deep, tensor_deep = _flag(self.features[p] > self.chunk), _flag(self._deep(p))
            arguments = f"(plan, own, flow, {p}, {{}}, i, j, sums[{p}])"
            dots = f"tensor_dots<{tensor_deep}, {ahead}>" if way.tensor else f"paired<DOT, {deep}, {ahead}>"
            if not way.by_norms:
                sums = dots if way.tensor else f"paired<{pairing.kind.name}, {deep}, {ahead}>"
                lines.append(sums + arguments.format(AT_TERMS))
            else:
                lines.append(dots + arguments.format(0))
                if same and way.by_terms:  # as if they were far from each other
                    lines.append(same.format("REAL(-BEYOND)"))
                there = self._one_slice and way.copies == 1  # in shared memory, for each thread
                terms = f"drop(flow), paired<{pairing.kind.name}, {deep}, false>" + arguments.format(AT_TERMS)
                again = f"paired_again<{pairing.kind.name}>(own, flow, sums[{p}])" if there else terms
                asked = f"{_flag(way.by_terms)}, {_flag(not there)}"
                by_norms = f"by_norms<{asked}>(plan, {p}, i, j, {number + 2 * p}, sums[{p}])"
                lines.append(f"if (!{by_norms}) {again}" if way.by_terms else by_norms)
            if same:
                lines.append(same.format("REAL(0)"))
        return lines

    def _evaluate(self) -> str:
        """The entry of a pair of rows: registers are variables, the first hold the pairings."""
        body = [f"REAL r{p} = sums[{p}][m][c];" for p in range(len(self.program.pairings))]
        body += [f"REAL r{k} = 0;" for k in range(len(self.program.pairings), self.program.registers)]
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


def _flag(value: bool) -> str:
    return str(value).lower()


def _macro(head: str, lines: list[str]) -> str:
    return f"#define {head} " + "; ".join(lines)
