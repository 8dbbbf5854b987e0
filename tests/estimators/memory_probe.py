"""Fits every estimator on rows of one size, or does other work, and says what memory each took: run by test_memory.py.

The peak is that of the resident memory: NumPy's arrays and the engine's.
"""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import mercer
from mercer.select import choose_n_clusters

WITHOUT_A_FIT = {"KernelSearchCV", "MonomialFeatures"}
"""A search plans what its estimator does, and monomials are made by `transform` alone."""
DEFAULTS = [
    name
    for name in mercer.__all__
    if isinstance(one := getattr(mercer, name), type) and "memory" in inspect.signature(one).parameters
]
ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (name, {}) for name in DEFAULTS if name not in WITHOUT_A_FIT
} | {
    "SVC on landmarks": ("SVC", {"solver": "nystroem", "n_landmarks": 100}),
    "NuSVC": ("NuSVC", {"nu": 0.2}),
    "KernelRidge, cg": ("KernelRidge", {"solver": "cg"}),
    "KernelRidge on landmarks": ("KernelRidge", {"solver": "nystroem", "n_landmarks": 100}),
    "GaussianProcessRegressor": ("GaussianProcessRegressor", {"optimize": False}),
    "GaussianProcessClassifier": ("GaussianProcessClassifier", {"optimize": False}),
    "KernelPerceptron": ("KernelPerceptron", {"max_iter": 5}),
    "KernelLMS": ("KernelLMS", {"max_iter": 20}),
    "OnlineKernelClassifier": ("OnlineKernelClassifier", {"budget": 100}),
    "OnlineKernelRegressor": ("OnlineKernelRegressor", {"budget": 100}),
    "KernelPCA": ("KernelPCA", {"n_components": 5}),
    "KernelPCA, krylov": ("KernelPCA", {"n_components": 3, "solver": "krylov"}),
    "KernelPCA on landmarks": ("KernelPCA", {"n_components": 5, "solver": "nystroem", "n_landmarks": 100}),
    "KernelDiscriminantAnalysis on landmarks": (
        "KernelDiscriminantAnalysis",
        {"solver": "nystroem", "n_landmarks": 100},
    ),
    "KernelKMeans": ("KernelKMeans", {"n_clusters": 3, "n_init": 1}),
    "KernelKMeans, matrix-free": ("KernelKMeans", {"n_clusters": 3, "n_init": 1, "solver": "matrix_free"}),
    "KernelKMeans on landmarks": ("KernelKMeans", {"n_clusters": 3, "solver": "nystroem", "n_landmarks": 100}),
    "KernelSpectralClustering": ("KernelSpectralClustering", {"n_clusters": 3}),
    "PolynomialSketch": ("PolynomialSketch", {"kernel": "polynomial(degree=2)"}),
}
"""All classes that take `memory`, by their defaults, by parameters that suit the rows, and by other ways."""


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
    return model.fit(X, half if kind == "KernelCCA" else classes if is_classifier(model) else y)


def work(rows: tuple[Any, ...], budget: float) -> dict[str, Callable[[], object]]:
    """What else has a budget: tests, choices, and what fitted models are asked for."""
    X, y, classes, half = rows
    ridge = mercer.KernelRidge(memory=budget).fit(X, y)
    pca = {
        method: mercer.KernelPCA(
            3, "gaussian(gamma=0.01)", preimage=method, fit_inverse_transform=method != "kwok_tsang", memory=budget
        ).fit(X)
        for method in ("ridge", "fixed_point", "kwok_tsang")
    }
    grid, known = {"C": [1.0, 2.0]}, "gaussian(gamma=0.05)"  # the median of distances takes some 25 MB of its own
    return {
        "mmd_test": lambda: mercer.mmd_test(X[::2], X[1::2], known, n_permutations=200, memory=budget),
        "hsic_test": lambda: mercer.hsic_test(X[::2], half[::2], known, known, n_permutations=20, memory=budget),
        "choose_n_clusters": lambda: choose_n_clusters(X, counts=[2, 3], n_init=1, memory=budget),
        "posterior": lambda: ridge.predict(X, return_std=True),
        "covariance": lambda: ridge.predict(X[:50], return_cov=True),
        "search": lambda: mercer.KernelSearchCV(
            mercer.KernelRidge(memory=budget), {"alpha": [0.1, 1.0]}, cv=2, memory=budget
        ).fit(X, y),
        "search, fit by fit": lambda: mercer.KernelSearchCV(mercer.SVC(memory=budget), grid, cv=2).fit(X, classes),
        **{method: lambda m=model: m.inverse_transform(m.transform(X)) for method, model in pca.items()},
    }


def measured(call: Callable[[], object]) -> list[Any]:
    """The peak above what there was, and the plan; or what the call was refused with."""
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    try:
        found = call()
    except mercer.errors.MemoryExceeded as error:
        return [0, 0, str(error)]
    return [status("VmHWM") - before, getattr(getattr(found, "report_", None), "memory_planned", 0), ""]


def main(n: int, d: int, dtype: str, budget: float, what: str = "fits") -> None:
    """One line of JSON for each estimator: its name, the peak and the plan, or what it was refused with."""
    warnings.simplefilter("ignore")
    rows, small = data(n, d, dtype), data(120, 6, dtype)
    for call in work(small, 1e9).values() if what == "work" else ():
        call()  # imports, and the pools of threads
    for name, call in work(rows, budget).items() if what == "work" else ():
        sys.stdout.write(json.dumps([name, *measured(call)]) + "\n")
    for name in ESTIMATORS if what == "fits" else ():
        fit(name, small, 1e9)  # imports, and the pools of threads
        found = measured(lambda name=name: fit(name, rows, budget))  # type: ignore[misc]
        sys.stdout.write(json.dumps([name, *found]) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), *sys.argv[5:])
