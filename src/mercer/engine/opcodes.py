"""Numbers that Python and C++ share: operations, states, and sizes of blocks. They are written only here.

Run as a script, this module prints them as a C++ header; CMake does so before it compiles the core.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "BAND", "CHUNK_OF_DOUBLES", "CHUNK_OF_FLOATS", "FARTHEST_PARTNER", "LEAST_CURVATURE", "LONGEST_COMPARED_WINDOW",
    "LONGEST_SUBSEQUENCE", "LONGEST_WINDOW", "MATCH_LEVELS", "MAX_REGISTERS", "QUANTISED_GROUP", "QUANTISED_MOST",
    "QUANTISED_ROWS", "QUANTISED_STRIP", "ROW_BLOCK", "MatrixPart", "OperandKind", "Operation", "Pairing",
    "SmoStatus",
]  # fmt: skip

MAX_REGISTERS = 64
"""How many values a program may hold at a time."""

CHUNK_OF_FLOATS, CHUNK_OF_DOUBLES = 64, 128
"""The most features whose products are summed one after the other; longer sums are sums of such sums."""

ROW_BLOCK = 192
"""Rows of a block of tiles: a multiple of the height and the width of every instruction set's panels."""

QUANTISED_ROWS = 192
"""Rows of a block of entries in 16 bits; a block has the columns from its first row's number on."""

QUANTISED_STRIP = 8
"""The number of rows in a strip. A block consists of strips."""

QUANTISED_GROUP = 16
"""The number of columns in a group. A strip consists of groups."""

QUANTISED_MOST = 32767
"""The largest entry in 16 bits."""

BAND = 48
"""Diagonals on each side of a band matrix, and the side of its tiles: whole panels of every instruction set."""

LONGEST_SUBSEQUENCE = 8
"""The longest subsequences, in symbols, for which the loops are compiled."""

LONGEST_WINDOW = 4095
"""The longest windows, in symbols, whose patterns can be counted."""

LONGEST_COMPARED_WINDOW = 127
"""The longest windows, in symbols, that can be compared: matches are counted in a signed byte."""

MATCH_LEVELS = 32
"""How many different numbers of matches may have a weight: two tables of 16 bytes."""

LEAST_CURVATURE = 1e-12
"""The curvature that sequential minimal optimisation uses for a step whose own curvature is not positive."""

FARTHEST_PARTNER = 2.0
"""γ‖x − z‖² of two vectors that may merge: beyond it a merger keeps less than a fifth of the smaller one."""


class Pairing(IntEnum):
    """A sum over the features of two rows."""

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
        """The operation with this number, which reads this many operands."""
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
    """a^k0; for negative a, k0 must be an integer."""
    POW_INTEGER = 18, 1
    """a^k0 for a small integer k0."""
    AFFINE = 19, 1
    """k0·a + k1."""
    EXP_AFFINE = 20, 1
    """exp(k0·a + k1)."""
    GAUSS_FROM_SQDIST = 21, 1
    """2^(k0·a) for k0 < 0 ≤ a."""


class OperandKind(IntEnum):
    """The kind of an operand: one value for each pair, each row, each column, or one for all pairs."""

    NOTHING = -1
    REGISTER = 0
    ROW = 1
    COLUMN = 2
    CONSTANT = 3


class SmoStatus(IntEnum):
    """The state of a problem of sequential minimal optimisation."""

    RUNNING = 0
    SETTLED = 1
    STUCK = 2
    CAPPED = 3


class MatrixPart(IntEnum):
    """The entries to compute: all, those on and above the diagonal of a symmetric matrix, or those on the diagonal."""

    WHOLE = 0
    UPPER = 1
    DIAGONAL = 2


def header() -> str:
    """The numbers in C++, POW_INTEGER as kPowInteger.

    >>> header().splitlines()[-2]
    'constexpr double kFarthestPartner = 2.0;'
    """
    lines = ["// Generated from src/mercer/engine/opcodes.py.", "#pragma once", "namespace mercer {"]
    for kind in (Pairing, Operation, OperandKind, SmoStatus, MatrixPart):
        members = ", ".join(f"{_constant(member.name)} = {member.value}" for member in kind)
        lines.append(f"enum {kind.__name__} : int {{ {members} }};")
    lines.append(f"constexpr int kPairings = {len(Pairing)}, kOperations = {len(Operation)};")
    lines.append(f"constexpr int kOperandsRead[] = {{ {', '.join(str(one.operands) for one in Operation)} }};")
    lines += [
        f"constexpr {'double' if isinstance(value, float) else 'int'} {_constant(name)} = {value};"
        for name, value in globals().items()
        if name.isupper()
    ]
    return "\n".join([*lines, "}  // namespace mercer"])


def _constant(name: str) -> str:
    return f"k{name.title().replace('_', '')}"


if __name__ == "__main__":
    print(header())  # noqa: T201
