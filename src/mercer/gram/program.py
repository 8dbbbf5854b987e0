"""The tile engine's program: pairings of two rows, and the operations that compute a kernel's value from them."""

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
    """A pairing of the rows after a chain of views.

    For a squared distance s that is read only in terms that fall with it, `rates` are the slow, fast and root of
    `mercer.engine.contract.NormAccuracy`.
    """

    pairing: Pairing
    views: Views
    rates: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Program:
    """The program that the engine runs for each tile."""

    leaves: tuple[Leaf, ...]
    row_values: tuple[Expression, ...]
    column_values: tuple[Expression, ...]
    constants: tuple[float, ...]
    code: tuple[Code, ...]
    registers: int
    result: int
