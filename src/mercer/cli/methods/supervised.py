"""The methods that predict a target: ridge regression, support vector machines, and others by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score

from mercer.errors import InvalidInput, message
from mercer.estimators import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelDiscriminantAnalysis,
    KernelLogisticRegression,
    KernelRidge,
    KernelRidgeClassifier,
)
from mercer.kernels import Kernel
from mercer.numerals import ratio
from mercer.tables.targets import Task, random_folds, stratified_order

__all__ = ["METHODS", "RIDGE", "Method", "Penalty", "best_penalty", "method_named", "regularisation"]

FOLDS, SAMPLE = 3, 2000
LOWER = 1e-3
"""While the smallest α is the best, smaller ones are tried, down to this share of those of the method."""
MARGIN = 0.1
"""ε of a support vector regression, in standard deviations of the target."""


@dataclass(frozen=True)
class Method:
    """A method: the estimator of each task, by kernel, α and target, and the α to try, the largest first.

    Without α to try, the search over kernels chooses it (`shares_alpha`), or the fit itself.
    """

    name: str
    make: Mapping[Task, Callable[[Kernel, float | None, NDArray[Any]], Any]]
    alphas: tuple[float, ...] = ()
    shares_alpha: bool = False
    compares_kernels: bool = False
    """Whether fits are quick enough to choose among kernels that the search cannot tell apart."""
    rough: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the fits that only compare α."""

    def estimator(self, task: Task, kernel: Kernel, alpha: float | None, y: NDArray[Any], memory: Any) -> Any:
        """The estimator, not fitted, with a memory budget."""
        return self.make[task](kernel, alpha, y).set_params(memory=memory)


@dataclass(frozen=True)
class Penalty:
    """The kernel and the α that a cross-validation chose, and their mean score."""

    kernel: Kernel
    alpha: float
    score: float
    metric: str
    tried: int
    rows: int

    def __str__(self) -> str:
        how = f"the best of {self.tried} by {FOLDS}-fold cross-validation on {self.rows} rows"
        return f"{self.kernel!r}, α = {self.alpha:.4g}, {how}: {self.metric} {ratio(self.score)}"


def _svc(kernel: Kernel, alpha: float | None, y: NDArray[Any]) -> Any:
    return SVC(1 / (2 * (alpha or 0.05)), kernel, break_ties=True)


def _svr(kernel: Kernel, alpha: float | None, y: NDArray[Any]) -> Any:
    unit = float(np.std(y))  # the optimum for a·y is a times that for y
    return SVR(unit / (2 * (alpha or 0.05)), MARGIN * unit, kernel, tol=1e-3 * unit)


def _gp(kernel: Kernel, alpha: float | None, y: NDArray[Any]) -> Any:
    return GaussianProcessRegressor(kernel, noise=alpha, fixed=("noise",) if alpha else (), normalize_y=True)


RIDGE = Method(
    "ridge",
    {
        "regression": lambda kernel, alpha, y: KernelRidge(kernel, alpha, fit_intercept=True),
        "classification": lambda kernel, alpha, y: KernelRidgeClassifier(kernel, float(alpha or 1.0)),
    },
    shares_alpha=True,
)
METHODS = {
    one.name: one
    for one in (
        RIDGE,
        Method("svm", {"regression": _svr, "classification": _svc}, (5.0, 0.5, 0.05, 0.005), compares_kernels=True),
        Method(
            "logistic",
            {"classification": lambda kernel, alpha, y: KernelLogisticRegression(kernel, alpha or 0.1)},
            (1.0, 0.1, 0.01),
            rough={"tol": 1e-4},
        ),
        Method(
            "discriminant",
            {"classification": lambda kernel, alpha, y: KernelDiscriminantAnalysis(kernel, delta=alpha or "auto")},
        ),
        Method("gp", {"regression": _gp}),
    )
}
"""Methods by name, the one that is usually cheapest first."""


def method_named(name: str, task: Task, option: str = "--method") -> Method:
    """The method of a name, if it can do the task.

    >>> method_named("svm", "regression").name
    'svm'
    """
    able = [one.name for one in METHODS.values() if task in one.make]
    if name in able:
        return METHODS[name]
    known = name in METHODS
    given = f"{name} is not for a {task}" if known else f"{name!r} is not a method"
    raise InvalidInput(message(option, given, f"for a {task} choose {', '.join(able[:-1])} or {able[-1]}"))


def best_penalty(
    method: Method, task: Task, kernels: Sequence[Kernel], X: Any, y: NDArray[Any], seed: int
) -> Penalty | None:
    """The kernel and α of the best mean score over random folds; None if the method has no α to try.

    Of equals the first kernel and its largest α.
    """
    if not method.alphas:
        return None
    if len(y) > SAMPLE:
        chosen = np.sort(stratified_order(y, task, seed)[np.linspace(0, len(y) - 1, SAMPLE).round().astype(np.intp)])
        X, y = X[chosen], y[chosen]
    folds = random_folds(y, task, seed, FOLDS)
    scorer = r2_score if task == "regression" else accuracy_score

    def mean(kernel: Kernel, alpha: float) -> float:
        scores = []
        for train, test in folds:
            estimator = method.make[task](kernel, alpha, y[train]).set_params(**method.rough)
            scores.append(scorer(y[test], estimator.fit(X[train], y[train]).predict(X[test])))
        return float(np.mean(scores))

    metric, found = "R²" if task == "regression" else "accuracy", list[Penalty]()
    for kernel in kernels:
        scores = {alpha: mean(kernel, alpha) for alpha in method.alphas}
        while (best := max(scores, key=scores.__getitem__)) == min(scores) > LOWER * method.alphas[-1]:
            scores[best / 10] = mean(kernel, best / 10)
        found.append(Penalty(kernel, best, scores[best], metric, len(scores), len(y)))
    best_of = max(found, key=lambda one: one.score)
    return replace(best_of, tried=sum(one.tried for one in found))


def regularisation(estimator: Any) -> str:
    """The regularisation of a fitted estimator, by the letter of its parameter.

    >>> from mercer.estimators import SVC
    >>> regularisation(SVC(C=2.0))
    'C = 2'
    """
    for name, letter in (("noise_", "σ²"), ("delta_", "δ"), ("C", "C"), ("nu", "ν"), ("alpha", "α")):
        value = getattr(estimator, name, None)
        if isinstance(value, int | float):
            return f"{letter} = {value:.4g}"
    return ""
