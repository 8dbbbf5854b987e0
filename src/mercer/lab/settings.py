"""What the controls of the lab say: a method, a kernel as text, and the numbers that its names stand for."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.estimators import (
    SVC,
    SVR,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeClassifier,
)
from mercer.tables.targets import Task

__all__ = ["METHODS", "NAMES", "OPERATIONS", "PARTS", "Method", "Settings", "kernel_of_parts"]

MOST_LETTERS = 300
"""Of the text of a kernel."""

NAMES = {"gamma": (1e-6, 1e6), "gamma2": (1e-6, 1e6), "degree": (1, 20), "coef0": (-100, 100), "weight": (1e-6, 1e6)}
"""The names that the text of a kernel may have for a slider, and the range of each."""

_NAME = re.compile(rf"(?<![\w.'\"])({'|'.join(sorted(NAMES, key=len, reverse=True))})(?!\w|\s*=)")

PARTS = {
    "gaussian": "gaussian(gamma={gamma})",
    "laplace": "laplace(gamma={gamma})",
    "cauchy": "cauchy(gamma={gamma})",
    "rational quadratic": "rationalquadratic(gamma={gamma})",
    "matern": "matern(nu=1.5)",
    "linear": "linear()",
    "polynomial": "polynomial(degree=degree, coef0=coef0)",
    "cosine": "cosine()",
    "sigmoid": "sigmoid(gamma={gamma}, coef0=coef0)",
}
"""Kernels that others are built of."""

OPERATIONS = {"alone": "", "plus": "+", "times": "*"}


def kernel_of_parts(first: str, operation: str = "alone", second: str = "linear", scaled: bool = False) -> str:
    """The text of a kernel of one or two parts; the names of the sliders stand for their values.

    >>> kernel_of_parts("gaussian"), kernel_of_parts("gaussian", "plus", "laplace", scaled=True)
    ('gaussian(gamma=gamma)', 'gaussian(gamma=gamma) + weight*laplace(gamma=gamma2)')
    """
    one = PARTS[first].format(gamma="gamma")
    if operation == "alone":
        return f"weight*{one}" if scaled else one
    other = PARTS[second].format(gamma="gamma2" if "{gamma}" in PARTS[first] else "gamma")
    return f"{one} {OPERATIONS[operation]} {'weight*' if scaled else ''}{other}"


@dataclass(frozen=True)
class Method:
    """A method of the lab: its estimator for each task, and what its slider sets.

    Parameters
    ----------
    title : str
    estimators : dict of task to class
    parameter : str
        Of the estimator, set by the slider; empty if there is none.
    symbol : str
        Of that parameter.
    fixed : dict
        Further arguments.
    """

    title: str
    estimators: dict[Task, Any]
    parameter: str = ""
    symbol: str = ""
    fixed: tuple[tuple[str, Any], ...] = ()

    @property
    def supervised(self) -> bool:
        """Whether it predicts the target, and so is scored on the rows held out."""
        return KernelPCA not in self.estimators.values() and KernelKMeans not in self.estimators.values()


def _both(estimator: Any) -> dict[Task, Any]:
    return {"regression": estimator, "classification": estimator}


MARGIN, TOL = 0.1, 1e-3
"""ε and the tolerance of a support vector regression, and its C, are in standard deviations of the target."""

METHODS = {
    "ridge": Method(
        "ridge regression",
        {"regression": KernelRidge, "classification": KernelRidgeClassifier},
        "alpha",
        "α (λ in the chapters)",
        (("fit_intercept", True),),
    ),
    "svm": Method("support vector machine", {"regression": SVR, "classification": SVC}, "C", "C"),
    "logistic": Method("logistic regression", {"classification": KernelLogisticRegression}, "alpha", "α"),
    "discriminant": Method("discriminant analysis", {"classification": KernelDiscriminantAnalysis}, "delta", "δ"),
    "perceptron": Method(
        "perceptron, by gradient descent", {"classification": KernelPerceptron}, "max_iter", "steps", (("tol", None),)
    ),
    "pca": Method("kernel PCA", _both(KernelPCA)),
    "kmeans": Method("k-means", _both(KernelKMeans), "n_clusters", "clusters", (("random_state", 0),)),
}
"""The methods of the lab, by name."""


@dataclass(frozen=True)
class Settings:
    """The settings that the user gave to the lab.

    Parameters
    ----------
    method : str
        A name of `METHODS`.
    kernel : str
        A kernel or a formula as text, of at most 300 characters; the names gamma (or γ), gamma2, degree, coef0 and
        weight stand for the numbers below.
    gamma, gamma2, degree, coef0, weight : float
    penalty : float
        The α, C or δ of the method.
    clusters, steps : int
        Clusters of k-means; steps of the perceptron's gradient descent, all of which are made.
    axes : (int, int)
        The two columns over which the surface is drawn.
    only_axes : bool
        Whether these columns alone are used.

    Examples
    --------
    >>> Settings(kernel="exp(-γ*sqdist**degree)", gamma=0.5, degree=2).text
    'exp(-0.5*sqdist**2)'
    >>> Settings(kernel="gaussian(gamma=gamma) + weight*linear()", weight=2.0).text
    'gaussian(gamma=0.1) + 2.0*linear()'
    """

    method: str = "ridge"
    kernel: str = "gaussian(gamma=gamma)"
    gamma: float = 0.1
    gamma2: float = 1.0
    degree: int = 3
    coef0: float = 1.0
    weight: float = 1.0
    penalty: float = 0.1
    clusters: int = 3
    steps: int = 50
    axes: tuple[int, int] = (0, 1)
    only_axes: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            self._refuse(f"the method {self.method!r} is unknown", f"choose one of {', '.join(METHODS)}")
        if not isinstance(self.kernel, str) or not 0 < len(self.kernel.strip()) <= MOST_LETTERS:
            self._refuse("the text of the kernel is empty or too long", f"write 1 to {MOST_LETTERS} characters")
        for name, (low, high) in {**NAMES, "penalty": (1e-12, 1e12), "clusters": (1, 50), "steps": (1, 1000)}.items():
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and low <= value <= high):
                self._refuse(f"{name}={value!r}", f"give a number from {low:g} to {high:g}")

    def _refuse(self, given: str, do: str) -> None:
        raise InvalidInput(message("lab", given, do))

    @property
    def used(self) -> tuple[str, ...]:
        """The names of sliders that are in the text of the kernel."""
        return tuple(name for name in NAMES if name in _NAME.findall(_latin(self.kernel)))

    @property
    def text(self) -> str:
        """The kernel with numbers in place of the names."""
        return _NAME.sub(lambda found: repr(getattr(self, found[1])), _latin(self.kernel)).strip()

    def arguments(self, task: Task, unit: float = 1.0) -> dict[str, Any]:
        """The parameters of the estimator, its kernel included; those of a support vector regression in this unit."""
        method = METHODS[self.method]
        if task not in method.estimators:
            self._refuse(f"{method.title} needs classes", "choose another method, or a table with classes")
        given: dict[str, Any] = {"kernel": self.text}
        if method.parameter:
            counts = {"n_clusters": self.clusters, "max_iter": self.steps}
            given[method.parameter] = counts.get(method.parameter, self.penalty)
        if self.method == "svm" and task == "regression":
            given |= {"C": _short(self.penalty * unit), "epsilon": _short(MARGIN * unit), "tol": _short(TOL * unit)}
        return {**given, **dict(method.fixed)}


def _short(number: float) -> float:
    """A number in four digits, to be read in the code."""
    return float(f"{number:.4g}")


def _latin(text: str) -> str:
    return text.replace("γ", "gamma")
