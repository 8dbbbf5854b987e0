"""Which calls are worth it: few rows take scikit-learn as long as us, and importing our estimators takes time, too."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["of_call", "of_matrix", "too_little"]

WORTH = 3e6
"""Kernel values times columns of a call from which mercer is faster: of a fit of 550 rows with 10 columns."""
IMPORT = 2e8
"""The same of all calls, from which importing our estimators pays: what scikit-learn does in that time."""
PREDICTED = 4.0
"""A kernel value of a prediction counts for so many of a fit, which does not need all of them."""

_done = 0.0
_lock = threading.Lock()


def too_little(size: float) -> str:
    """Why a call of this size is scikit-learn's, or "" if it is worth it."""
    global _done
    with _lock:
        _done += size
    if size < WORTH:
        return "too few kernel values to be faster"
    return "" if _done >= IMPORT else "too few kernel values so far to pay for importing mercer"


def of_call(method: str, model: Any, X: Any = None, *_: Any, **named: Any) -> float:
    """The size of a call of this method: kernel values times columns."""
    rows, columns = _shape(named.get("X", X))
    if method.startswith("fit"):
        others = model.n_components if type(model).__name__ == "Nystroem" else rows
        return float(rows) * others * columns
    kept = next((vars(model)[name] for name in ("support_", "X_fit_", "components_") if name in vars(model)), ())
    return PREDICTED * rows * _shape(kept)[0] * columns


def of_matrix(X: Any = None, Y: Any = None, *_: Any, **__: Any) -> float:
    """The size of a kernel matrix."""
    rows, columns = _shape(X)
    return PREDICTED * rows * (rows if Y is None else _shape(Y)[0]) * columns


def _shape(X: Any) -> tuple[int, int]:
    shape = getattr(X, "shape", None) or (len(X) if hasattr(X, "__len__") else 0, 1)
    return shape[0], shape[1] if len(shape) > 1 else 1
