"""The tile engine's program: what it computes of two rows, and the operations that make a kernel's value of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from mercer.engine.opcodes import OperandKind, Pairing
from mercer.kernels.symbolic.expression import Expression

__all__ = ["NOTHING", "Code", "Leaf", "Operand", "Program", "Views"]

Views: TypeAlias = tuple[Any, ...]


Operand: TypeAlias = tuple[int, int]
"""(OperandKind, index)."""
NOTHING: Operand = (int(OperandKind.NOTHING), 0)
Code: TypeAlias = tuple[int, int, Operand, Operand, Operand, float, float]
"""(Operation, target register, a, b, c, k0, k1)."""


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
