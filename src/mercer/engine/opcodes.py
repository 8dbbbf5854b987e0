"""The numbers that the parts of an engine share: pairings, operations and kinds of operands, each written here only.

Run as a script, this prints them as a C++ header. CMake does so before it compiles the core.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MAX_REGISTERS", "OperandKind", "Operation", "Pairing"]

MAX_REGISTERS = 64
"""Values that a program may hold at a time."""


class Pairing(IntEnum):
    """What is computed of two rows, feature by feature."""

    DOT = 0
    SQDIST = 1
    L1 = 2
    MIN_SUM = 3
    CHI2 = 4
    MISMATCHES = 5


class Operation(IntEnum):
    """An operation on entries: its number, and how many operands it reads."""

    operands: int

    def __new__(cls, number: int, operands: int) -> Operation:
        """Of this number, with so many operands."""
        found = int.__new__(cls, number)
        found._value_, found.operands = number, operands
        return found

    ADD = 0, 2
    SUB = 1, 2
    MUL = 2, 2
    DIV = 3, 2
    MINIMUM = 4, 2
    MAXIMUM = 5, 2
    LESS = 6, 2
    LESS_EQUAL = 7, 2
    WHERE = 8, 3
    NEG = 9, 1
    ABS = 10, 1
    EXP = 11, 1
    LOG = 12, 1
    SQRT = 13, 1
    TANH = 14, 1
    SIN = 15, 1
    COS = 16, 1
    POW = 17, 1
    """a^k0. A negative a has a power if k0 is an integer."""
    POW_INTEGER = 18, 1
    """a^k0 for a small integer k0."""
    AFFINE = 19, 1
    """k0·a + k1."""
    EXP_AFFINE = 20, 1
    """exp(k0·a + k1)."""
    GAUSS_FROM_SQDIST = 21, 1
    """2^(k0·a) for k0 < 0 ≤ a."""


class OperandKind(IntEnum):
    """What an operand is: one value for each pair, for each row, for each column, or for all of them."""

    NOTHING = -1
    REGISTER = 0
    ROW = 1
    COLUMN = 2
    CONSTANT = 3


def header() -> str:
    """The numbers in C++, POW_INTEGER as kPowInteger.

    >>> header().splitlines()[-2]
    'constexpr int kMaxRegisters = 64;'
    """
    lines = ["// Generated from src/mercer/engine/opcodes.py.", "#pragma once", "namespace mercer {"]
    for kind in (Pairing, Operation, OperandKind):
        members = ", ".join(f"k{member.name.title().replace('_', '')} = {member.value}" for member in kind)
        lines.append(f"enum {kind.__name__} : int {{ {members} }};")
    lines.append(f"constexpr int kPairings = {len(Pairing)}, kOperations = {len(Operation)};")
    lines.append(f"constexpr int kOperandsRead[] = {{ {', '.join(str(one.operands) for one in Operation)} }};")
    lines += [f"constexpr int kMaxRegisters = {MAX_REGISTERS};", "}  // namespace mercer"]
    return "\n".join(lines)


if __name__ == "__main__":
    print(header())  # noqa: T201
