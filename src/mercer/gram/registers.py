"""Registers for the values of a program; a register is reused after the last step that reads its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mercer.engine.contract import NOTHING, Code, Operand
from mercer.engine.opcodes import MAX_REGISTERS, OperandKind, Operation
from mercer.errors import InvalidInput, message

__all__ = ["ADVICE", "DoesNotFit", "Step", "allocate"]

ADVICE = "split the kernel into a sum of smaller ones, or override block(X, Z)"


class DoesNotFit(InvalidInput):
    """A formula is too large for the engine, and is evaluated block by block instead."""


@dataclass
class Step:
    """An operation on values. The index of a REGISTER operand is the number of a leaf, or −1 − the number of a step."""

    op: Operation
    operands: tuple[Operand, ...]
    k0: float = 0.0
    k1: float = 0.0


def allocate(steps: Sequence[Step], leaves: int, result: int) -> tuple[tuple[Code, ...], int, int]:
    """(code, number of registers, the result's register). Leaves have the first ones; a step takes the first free one.

    >>> double = Step(Operation.ADD, ((OperandKind.REGISTER, 0), (OperandKind.REGISTER, 0)))
    >>> code, registers, result = allocate([double], leaves=1, result=-1)
    >>> registers, result
    (1, 0)
    """
    register = {leaf: leaf for leaf in range(leaves)}
    last_use = _last_uses(steps, result)
    free: list[int] = []
    count = leaves
    code: list[Code] = []
    for at, step in enumerate(steps):
        operands = [(kind, register[i]) if kind == OperandKind.REGISTER else (kind, i) for kind, i in step.operands]
        read = {i for kind, i in step.operands if kind == OperandKind.REGISTER}
        free += [register[i] for i in read if last_use[i] == at]
        # The target may be the register of an operand, because each entry is read before it is written.
        target = min(free, default=count)
        if target < count:
            free.remove(target)
        count = max(count, target + 1)
        register[-1 - at] = target
        if last_use[-1 - at] == at:
            free.append(target)
        a, b, c, *_ = [*operands, NOTHING, NOTHING, NOTHING]
        code.append((int(step.op), target, a, b, c, step.k0, step.k1))
    if count > MAX_REGISTERS:
        raise DoesNotFit(message("compile_expression", f"a formula that needs {count} registers", ADVICE))
    return tuple(code), count, register[result]


def _last_uses(steps: Sequence[Step], result: int) -> dict[int, int]:
    """The last step that reads each value; the result is read after the last step."""
    last = {-1 - at: at for at in range(len(steps))}
    for at, step in enumerate(steps):
        last |= {index: at for kind, index in step.operands if kind == OperandKind.REGISTER}
    last[result] = len(steps)
    return last
