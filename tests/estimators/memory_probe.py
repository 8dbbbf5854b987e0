"""Fits every estimator on rows of one size, and says what memory each took: run by test_memory.py as a process.

The peak is that of the resident memory: NumPy's arrays and the engine's.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import mercer

ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "SVC": ("SVC", {}),
    "SVC on landmarks": ("SVC", {"solver": "nystroem", "n_landmarks": 100}),
    "SVR": ("SVR", {}),
    "NuSVC": ("NuSVC", {"nu": 0.2}),
    "NuSVR": ("NuSVR", {}),
    "OneClassSVM": ("OneClassSVM", {}),
    "KernelRidge": ("KernelRidge", {}),
    "KernelRidge, cg": ("KernelRidge", {"solver": "cg"}),
    "KernelRidge on landmarks": ("KernelRidge", {"solver": "nystroem", "n_landmarks": 100}),
    "KernelRidgeClassifier": ("KernelRidgeClassifier", {}),
    "KernelRidgeCV": ("KernelRidgeCV", {}),
    "KernelRidgeClassifierCV": ("KernelRidgeClassifierCV", {}),
    "KernelLogisticRegression": ("KernelLogisticRegression", {}),
    "KernelPerceptron": ("KernelPerceptron", {"max_iter": 5}),
    "KernelLMS": ("KernelLMS", {"max_iter": 20}),
    "OnlineKernelClassifier": ("OnlineKernelClassifier", {"budget": 100}),
    "OnlineKernelRegressor": ("OnlineKernelRegressor", {"budget": 100}),
    "KernelPCA": ("KernelPCA", {"n_components": 5}),
    "KernelPCA, krylov": ("KernelPCA", {"n_components": 3, "solver": "krylov"}),
    "KernelPCA on landmarks": ("KernelPCA", {"n_components": 5, "solver": "nystroem", "n_landmarks": 100}),
    "KernelPLS": ("KernelPLS", {}),
    "KernelCCA": ("KernelCCA", {}),
    "KernelDiscriminantAnalysis": ("KernelDiscriminantAnalysis", {}),
    "KernelDiscriminantAnalysis on landmarks": (
        "KernelDiscriminantAnalysis",
        {"solver": "nystroem", "n_landmarks": 100},
    ),
    "KernelKMeans": ("KernelKMeans", {"n_clusters": 3, "n_init": 1}),
    "KernelKMeans, matrix-free": ("KernelKMeans", {"n_clusters": 3, "n_init": 1, "solver": "matrix_free"}),
    "KernelKMeans on landmarks": ("KernelKMeans", {"n_clusters": 3, "solver": "nystroem", "n_landmarks": 100}),
    "KernelSpectralClustering": ("KernelSpectralClustering", {"n_clusters": 3}),
    "Nystroem": ("Nystroem", {}),
    "RandomFourierFeatures": ("RandomFourierFeatures", {}),
    "PolynomialSketch": ("PolynomialSketch", {"kernel": "polynomial(degree=2)"}),
    "EmpiricalKernelMap": ("EmpiricalKernelMap", {}),
}
"""All classes that take `memory`, but for those that test_memory.py names."""
CLASSES = ("KernelPerceptron", "KernelDiscriminantAnalysis")


def status(key: str) -> int:
    """A number of bytes of the process, from the system."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) * 1024


def data(n: int, d: int, dtype: str) -> tuple[Any, ...]:
    """Rows, a target with some noise, two classes, and half of the columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    signal = X[:, :5].astype(np.float64).sum(axis=1)
    return X, signal + 0.1 * rng.normal(size=n), (signal > 0).astype(int), X[:, : d // 2].copy()


def fit(name: str, rows: tuple[Any, ...], budget: float) -> Any:
    """The fitted estimator."""
    kind, parameters = ESTIMATORS[name]
    model = getattr(mercer, kind)(**parameters, memory=budget)
    X, y, classes, half = rows
    target = classes if "Class" in kind or kind.endswith("SVC") or kind in CLASSES else y
    target = classes if kind == "KernelLogisticRegression" else target
    return model.fit(X, half if kind == "KernelCCA" else target)


def main(n: int, d: int, dtype: str, budget: float) -> None:
    """One line of JSON for each estimator: its name, the peak and the plan, or what it was refused with."""
    warnings.simplefilter("ignore")
    rows, small = data(n, d, dtype), data(120, 6, dtype)
    for name in ESTIMATORS:
        fit(name, small, 1e9)  # imports, and the pools of threads
        before = status("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        try:
            report = fit(name, rows, budget).report_
        except mercer.errors.MemoryExceeded as error:
            found = [name, 0, 0, str(error)]
        else:
            found = [name, status("VmHWM") - before, report.memory_planned, ""]
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
