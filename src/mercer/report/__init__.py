"""Reports as pages to hand on: scores, errors, exactness, cost, and the lines that make a model again."""

from mercer.report.page import check_report_place, write

__all__ = ["check_report_place", "write"]


def __dir__() -> list[str]:
    return sorted(__all__)
