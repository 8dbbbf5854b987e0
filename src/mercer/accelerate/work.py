"""Which calls are worth it: few rows take scikit-learn as long as us, and importing our estimators takes time, too."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

__all__ = ["of_call", "of_matrix", "too_little"]

WORTH = 3e6
"""Kernel values times columns of a call from which mercer is faster: of a fit of 550 rows with 10 columns."""
RATE = 5e-9
"""Seconds that scikit-learn takes for one of them."""
IMPORT = 0.3
"""Seconds of scikit-learn's in worthwhile calls from which importing our estimators pays, which takes 0.15."""
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
FEW_ROWS = 500
"""Rows up to which mercer solves a machine to rounding, which takes longer than LIBSVM's fit."""
PROCESSES = {"GaussianProcessRegressor": (250, 500.0), "GaussianProcessClassifier": (150, 1000.0)}
"""Rows of a Gaussian process from which mercer is faster, and kernel values times columns of its search by row².

Medians of scikit-learn's fits on one core (100, 150, 300 rows of 4 or 5 columns, 1 to 5 parameters), which were 80 to
1400 of regressors, and of classifiers 550 to 2100 for each of their machines.
"""
FACTOR = 1e-3
"""Kernel values times columns that take as long as one of the n³ products of a factor, 5 ps."""

KEPT = "support_", "X_fit_", "X_train_", "components_"
"""The attributes with the rows of a model."""

_spent = 0.0
_lock = threading.Lock()


def too_little(size: float) -> str:
    """Why a call of this size is scikit-learn's, or "" if it is worth it."""
    if size < WORTH:
        return "too few kernel values to be faster"
    if _imported() or _spent + RATE * size >= IMPORT:
        return ""
    return "too few kernel values so far to pay for importing mercer"


def _imported() -> bool:
    """Whether an earlier call has paid for the import."""
    return "mercer.sklearn" in sys.modules


def took(size: float, seconds: float) -> None:
    """Count the seconds that scikit-learn took for a call of this size, if it was worth it."""
    global _spent
    with _lock:
        _spent += seconds if size >= WORTH else 0.0


def of_call(method: str, model: Any, X: Any = None, y: Any = None, *_: Any, **__: Any) -> float:
    """The size of a call of this method: kernel values times columns."""
    rows, columns = _shape(X)
    kind = next(one.__name__ for one in type(model).__mro__ if one.__module__.startswith("sklearn."))
    if method.startswith("fit"):
        if kind in PROCESSES:
            fewest, each = PROCESSES[kind]
            searched = rows >= fewest and model.optimizer is not None
            return each * float(rows) ** 2 * (_machines(y) if kind.endswith("Classifier") else 1) if searched else 0.0
        if kind in MACHINES and rows <= FEW_ROWS:
            return 0.0
        others = model.n_components if kind == "Nystroem" else rows
        factor = FACTOR * float(rows) ** 3 if kind == "KernelRidge" else 0.0
        return float(rows) * others * columns + factor
    kept = _kept(model)
    factor = FACTOR * float(rows) * kept**2 if method == "predict_proba" and kind in PROCESSES else 0.0
    return float(rows) * kept * columns + factor


def _machines(y: Any) -> int:
    """One for two classes, and one for each of more."""
    classes = len(np.unique(np.asarray(y)))
    return classes if classes > 2 else 1


def _kept(model: Any) -> int:
    """The number of rows that a model keeps; a Gaussian process of classes keeps them in its machines."""
    machine = getattr(model, "base_estimator_", model)
    machine = getattr(machine, "estimators_", [machine])[0]
    return _shape(next((vars(machine)[name] for name in KEPT if name in vars(machine)), ()))[0]


def of_matrix(X: Any = None, Y: Any = None, *_: Any, **__: Any) -> float:
    """The size of a kernel matrix."""
    rows, columns = _shape(X)
    return float(rows) * (rows if Y is None else _shape(Y)[0]) * columns


def _shape(X: Any) -> tuple[int, int]:
    shape = getattr(X, "shape", None) or (len(X) if hasattr(X, "__len__") else 0, 1)
    return shape[0], shape[1] if len(shape) > 1 else 1
