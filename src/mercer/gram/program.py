"""The tile engine's program: what it computes of two rows, and the operations that make a kernel's value of that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

from mercer.kernels.symbolic.expression import Expression

__all__ = ["NOTHING", "Code", "Leaf", "Op", "Operand", "Pairing", "Program", "Views", "Where"]

Views: TypeAlias = tuple[Any, ...]


class Pairing(IntEnum):
    """The micro-kernels of the core, in its order."""

    DOT = 0
    SQDIST = 1
    L1 = 2
    MIN_SUM = 3
    CHI2 = 4
    MISMATCHES = 5


class Op(IntEnum):
    """The operations of the core, in its order."""

    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    MINIMUM = 4
    MAXIMUM = 5
    LESS = 6
    LESS_EQUAL = 7
    WHERE = 8
    NEG = 9
    ABS = 10
    EXP = 11
    LOG = 12
    SQRT = 13
    TANH = 14
    SIN = 15
    COS = 16
    POW = 17
    POW_INTEGER = 18
    AFFINE = 19
    """k0·a + k1."""
    EXP_AFFINE = 20
    """exp(k0·a + k1)."""
    GAUSS_FROM_SQDIST = 21
    """2^(k0·a) for k0 < 0 ≤ a."""


class Where(IntEnum):
    """Where an operand lives."""

    NOWHERE = -1
    REGISTER = 0
    ROW = 1
    COLUMN = 2
    CONSTANT = 3


Operand: TypeAlias = tuple[int, int]
"""(Where, index)."""
NOTHING: Operand = (int(Where.NOWHERE), 0)
Code: TypeAlias = tuple[int, int, Operand, Operand, Operand, float, float]
"""(op, target register, a, b, c, k0, k1)."""


@dataclass(frozen=True)
class Leaf:
    """A pairing to compute: which one, of which views of the rows.

    `rates` are the smallest and the largest γ of a squared distance that is read in e^(−γs) only; None for all others.
    """

    pairing: Pairing
    views: Views
    rates: tuple[float, float] | None = None


@dataclass(frozen=True)
class Program:
    """What the engine runs over every tile."""

    leaves: tuple[Leaf, ...]
    row_values: tuple[Expression, ...]
    column_values: tuple[Expression, ...]
    constants: tuple[float, ...]
    code: tuple[Code, ...]
    registers: int
    result: int
