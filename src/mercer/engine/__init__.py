"""The engine that evaluates kernels: the compiled module, its NumPy reference, or CUDA; and the threads of the host."""

from mercer.engine import backend, processors, reference
from mercer.engine.backend import use

__all__ = ["backend", "processors", "reference", "use"]


def __dir__() -> list[str]:
    return sorted(__all__)
