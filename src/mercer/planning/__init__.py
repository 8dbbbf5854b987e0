"""What a way to an answer costs: operations and bytes, counted in symbols, and the rates of the machine."""

from mercer.planning.machine import Machine

__all__ = ["Machine"]


def __dir__() -> list[str]:
    return sorted(__all__)
