"""The ways to solve a problem: tables that choose one, and the report that gives the choice and its reason."""

from mercer.ways.report import Report

__all__ = ["Report"]


def __dir__() -> list[str]:
    return sorted(__all__)
