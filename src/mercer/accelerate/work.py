"""Which calls are worth it: few rows take scikit-learn as long as us, and importing our estimators takes time, too.

How long a machine takes depends on its data: LIBSVM computes only the columns of K that it needs. So what calls of a
kind and size have taken on either side decides about the next ones.
"""

from __future__ import annotations

import threading
from math import frexp, inf
from typing import Any

__all__ = ["of_call", "of_matrix", "too_little", "took"]

WORTH = 3e6
"""Kernel values times columns of a call from which mercer is faster: of a fit of 550 rows with 10 columns."""
RATE = 5e-9
"""Seconds that scikit-learn takes for one of them."""
IMPORT = 1.0
"""Seconds of scikit-learn's in worthwhile calls from which importing our estimators pays, which takes 0.7."""
PROCESS = 250, 300.0
"""Rows of a Gaussian process from which mercer is faster, and kernel values times columns of its search by row²."""

KEPT = "support_", "X_fit_", "X_train_", "components_"
"""The attributes with the rows of a model."""

TRIES = 2
"""Calls of ours before they are compared with scikit-learn's: the first one starts threads."""

_spent = 0.0
"""Seconds of scikit-learn's worthwhile calls; ∞ once our estimators are imported."""
_taken: dict[tuple[str, int, bool], tuple[int, float]] = {}
"""By what was called, the size's power of 4, and whether by us: calls, and the fewest seconds per unit of size."""
_lock = threading.Lock()


def too_little(what: str, size: float) -> str:
    """Why a call of this size is scikit-learn's, or "" if it is worth it."""
    if size < WORTH:
        return "too few kernel values to be faster"
    if _spent + RATE * size < IMPORT:
        return "too few kernel values so far to pay for importing mercer"
    (calls, ours), (_, theirs) = (_taken.get(_key(what, size, one), (0, inf)) for one in (True, False))
    return "scikit-learn's calls of this size were faster" if calls >= TRIES and ours > theirs else ""


def took(what: str, size: float, seconds: float, ours: bool) -> None:
    """Remember the seconds of a call, if it was worth it."""
    global _spent
    if size < WORTH:
        return
    with _lock:
        calls, least = _taken.get(_key(what, size, ours), (0, inf))
        _taken[_key(what, size, ours)] = calls + 1, min(least, seconds / max(size, 1.0))
        _spent = inf if ours else _spent + seconds


def _key(what: str, size: float, ours: bool) -> tuple[str, int, bool]:
    return what, frexp(size)[1] // 2, ours


def of_call(method: str, model: Any, X: Any = None, *_: Any, **named: Any) -> float:
    """The size of a call of this method: kernel values times columns."""
    rows, columns = _shape(named.get("X", X))
    if method.startswith("fit"):
        if type(model).__name__.startswith("GaussianProcess"):
            fewest, each = PROCESS
            return each * float(rows) ** 2 if rows >= fewest and model.optimizer is not None else 0.0
        others = model.n_components if type(model).__name__ == "Nystroem" else rows
        return float(rows) * others * columns
    kept = next((vars(model)[name] for name in KEPT if name in vars(model)), ())
    return float(rows) * _shape(kept)[0] * columns


def of_matrix(X: Any = None, Y: Any = None, *_: Any, **__: Any) -> float:
    """The size of a kernel matrix."""
    rows, columns = _shape(X)
    return float(rows) * (rows if Y is None else _shape(Y)[0]) * columns


def _shape(X: Any) -> tuple[int, int]:
    shape = getattr(X, "shape", None) or (len(X) if hasattr(X, "__len__") else 0, 1)
    return shape[0], shape[1] if len(shape) > 1 else 1
