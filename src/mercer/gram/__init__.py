"""Kernels × operators: programs, tiles, and the kernel matrix as an operator."""

from mercer.gram.operator import KernelOperator
from mercer.gram.remainder import lost_when_centred
from mercer.gram.sharded import ShardedOperator

__all__ = ["KernelOperator", "ShardedOperator", "lost_when_centred"]


def __dir__() -> list[str]:
    return sorted(__all__)
