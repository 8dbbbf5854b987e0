"""The engine that evaluates kernels: the compiled module or its NumPy reference, and the threads that they use."""

from mercer.engine import backend, processors, reference

__all__ = ["backend", "processors", "reference"]


def __dir__() -> list[str]:
    return sorted(__all__)
