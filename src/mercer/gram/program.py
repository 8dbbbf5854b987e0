"""The tile engine's program: what it computes of two rows, and the operations that make a kernel's value of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from mercer.engine.contract import Code
from mercer.engine.opcodes import Pairing
from mercer.kernels.symbolic.expression import Expression

__all__ = ["Leaf", "Program", "Views"]

Views: TypeAlias = tuple[Any, ...]


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
