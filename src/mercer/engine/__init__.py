"""The engine: the compiled module or its NumPy reference, which of the two runs, and how many threads it has."""

from mercer.engine import backend, processors, reference

__all__ = ["backend", "processors", "reference"]


def __dir__() -> list[str]:
    return sorted(__all__)
