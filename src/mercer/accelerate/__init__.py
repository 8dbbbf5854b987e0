"""``python -m mercer.accelerate script.py``: an unchanged script for scikit-learn, computed by mercer."""

from __future__ import annotations

from mercer.accelerate.imports import install, uninstall
from mercer.accelerate.ledger import summary

__all__ = ["install", "summary", "uninstall"]


def __dir__() -> list[str]:
    return sorted(__all__)
