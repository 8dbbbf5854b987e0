"""``mercer demo``: a model of handwritten digits, then mercer beside scikit-learn in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.output.show import section, table_lines
from mercer.cli.scores import Score, guess, score
from mercer.estimators import KernelPCA, KernelRidge, KernelRidgeClassifier
from mercer.kernels import Gaussian, Polynomial
from mercer.numerals import ratio
from mercer.select import cross_validate_ridge, default_alphas, default_kernels
from mercer.tables.targets import holdout_rows

__all__ = ["Race", "race", "run_demo"]

Floats = NDArray[np.float64]
ROUNDS = 3


@dataclass(frozen=True)
class Race:
    """Seconds of mercer and of scikit-learn for the same work (medians), and how far apart the results are."""

    name: str
    ours: float
    theirs: float
    difference: float

    @property
    def row(self) -> tuple[str, ...]:
        """As text: name, times, ratio, difference."""
        ratio = f"{self.theirs / self.ours:.1f} times"
        return self.name, f"{self.ours:.2f} s", f"{self.theirs:.2f} s", ratio, f"{self.difference:.0e}"


def race(name: str, ours: Callable[[], Floats], theirs: Callable[[], Floats], rounds: int | None = None) -> Race:
    """Run the two in turn, so that both meet the same load, and compare their results.

    >>> race("nothing", lambda: np.ones(2), lambda: np.ones(2), rounds=1).difference
    0.0
    """
    seconds: tuple[list[float], list[float]] = [], []
    results: list[Any] = [None, None]
    for _ in range(ROUNDS if rounds is None else rounds):
        for place, work in enumerate((ours, theirs)):
            start = perf_counter()
            results[place] = np.asarray(work())
            seconds[place].append(perf_counter() - start)
    difference = float(np.max(np.abs(results[0] - results[1])) / np.max(np.abs(results[1])))
    return Race(name, median(seconds[0]), median(seconds[1]), difference)


def run_demo() -> dict[str, Any]:
    """Run the demo and show its results; the result as a JSON object."""
    found = _digits()
    races = [_pca_race(), _ridge_race()]
    header = ("the same fit by", "mercer", "scikit-learn", "faster", "results differ by")
    lines = table_lines(header, [one.row for one in races])
    section(f"Beside scikit-learn (medians of {ROUNDS} runs in turn, on this machine)", lines)
    section("Next", ["mercer fit TABLE.csv --target COLUMN"])
    names = ("name", "mercer_seconds", "sklearn_seconds", "difference")
    as_results = [dict(zip(names, (one.name, one.ours, one.theirs, one.difference), strict=True)) for one in races]
    return {"command": "demo", "score": found.values, "races": as_results}


def _digits() -> Score:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    held = holdout_rows(y, "classification", seed=0)
    start = perf_counter()
    search = cross_validate_ridge(
        X[~held], y[~held], default_kernels(X[~held]), default_alphas(), task="classification", screen=600
    )
    seconds = perf_counter() - start
    model = KernelRidgeClassifier(search.best_kernel, search.best_alpha).fit(X[~held], y[~held])
    section("Digits", [f"{len(y)} images of 8 × 8 grey values, 10 classes; {int(held.sum())} are held out"])
    best = f"{search.best_kernel!r}, α = {search.best_alpha:.4g}"
    found = f"accuracy {ratio(search.best_score)} by {search.folds}-fold cross-validation, in {seconds:.1f} s"
    section("Kernel and α", [best, found, *search.notes])
    predicted = model.predict(X[held])
    own = score(y[held], predicted, "classification")
    lines = [f"mercer    {own}"]
    lines.append(f"guessing  {guess(y[~held], y[held], 'classification')}  (the most frequent class)")
    section("Score on the images held out", lines)
    section("Report", str(model.report_).splitlines()[1:])
    return own


def _pca_race() -> Race:
    """A polynomial kernel of degree 2 on data with a few strong directions, as images have."""
    from sklearn.decomposition import KernelPCA as Peer

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 24)) * np.logspace(0, -1, 24) @ rng.normal(size=(24, 64))
    X /= np.sqrt((X**2).sum(axis=1).mean())
    kernel = Polynomial(degree=2, gamma=1.0, coef0=1.0)
    # scikit-learn's fastest exact solver for this task.
    options = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0, "eigen_solver": "arpack", "random_state": 0}
    return race(
        f"KernelPCA(32), {len(X)} × {X.shape[1]}, polynomial of degree 2",
        lambda: KernelPCA(32, kernel).fit(X).eigenvalues_,
        lambda: Peer(32, **options).fit(X).eigenvalues_,
    )


def _ridge_race() -> Race:
    from sklearn.kernel_ridge import KernelRidge as Peer

    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 20))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=len(X))
    new = rng.normal(size=(500, 20))
    return race(
        f"KernelRidge, {len(X)} × {X.shape[1]}, Gaussian",
        lambda: KernelRidge(Gaussian(gamma=0.05), alpha=0.1).fit(X, y).predict(new),
        lambda: Peer(kernel="rbf", gamma=0.05, alpha=0.1).fit(X, y).predict(new),
    )
