"""``python -m mercer.accelerate script.py``: an unchanged script for scikit-learn, computed by mercer."""

from __future__ import annotations

import gc

# What importing scikit-learn makes stays, some 200 000 objects, so looking for garbage among them finds nothing.
_collects = gc.isenabled()
gc.disable()
try:
    from mercer.accelerate.imports import install, uninstall
    from mercer.accelerate.ledger import summary
finally:
    if _collects:
        gc.enable()

__all__ = ["install", "summary", "uninstall"]


def __dir__() -> list[str]:
    return sorted(__all__)
