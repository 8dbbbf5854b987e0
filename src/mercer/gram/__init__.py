"""Kernels × operators: programs, tiles, and the kernel matrix as an operator."""

from mercer.gram.dense import dense
from mercer.gram.operator import KernelOperator
from mercer.gram.remainder import lost_when_centred
from mercer.gram.sharded import ShardedOperator
from mercer.kernels import evaluation

__all__ = ["KernelOperator", "ShardedOperator", "lost_when_centred"]

# Makes kernel(X, Z) run on the tile engine; kernels/ is on a lower floor and cannot import it.
evaluation.set_engine(dense)


def __dir__() -> list[str]:
    return sorted(__all__)
