"""The cost of each method: operations and bytes, counted in symbols, over the rates of the machine."""

from mercer.planning.machine import Machine

__all__ = ["Machine"]


def __dir__() -> list[str]:
    return sorted(__all__)
