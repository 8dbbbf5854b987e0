"""The engine that evaluates kernels: the compiled module, its NumPy reference, or CUDA; and the threads of the host."""

from mercer.engine import backend, processors, reference
from mercer.engine.backend import use
from mercer.engine.versions import show_versions

__all__ = ["backend", "processors", "reference", "show_versions", "use"]


def __dir__() -> list[str]:
    return sorted(__all__)
