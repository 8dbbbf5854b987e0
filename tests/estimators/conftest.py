"""One table of all estimators: `example` in a test's arguments is each of them, with two sets of rows to fit to.

`FIXTURES` has further arguments, which are some of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from mercer import (
    SVC,
    SVR,
    EmpiricalKernelMap,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelCCA,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLMS,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelPLS,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    KernelSearchCV,
    KernelSpectralClustering,
    MonomialFeatures,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
    PolynomialSketch,
    RandomFourierFeatures,
)
from mercer.io import SequenceEncoder, TableEncoder, TableModel

GRID = {"alpha": [0.1, 1.0], "kernel": ["gaussian(gamma=0.3)"]}


def rows(seed: int, width: int, n: int = 24) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n + seed, width))


def regression(seed: int, width: int) -> tuple[Any, ...]:
    X = rows(seed, width)
    return X, X[:, 0] + np.sin(X[:, 1])


def classes(seed: int, width: int) -> tuple[Any, ...]:
    X = rows(seed, width)
    return X, np.arange(len(X)) % 3


def sparse(seed: int, width: int) -> tuple[Any, ...]:
    X, y = classes(seed, width)
    return sp.csr_array(np.where(X > 0, X, 0.0)), y


def matrix(seed: int, width: int) -> tuple[Any, ...]:
    X, y = regression(seed, width)
    return X @ X.T, y


def words(seed: int, width: int) -> tuple[Any, ...]:
    draws = np.random.default_rng(seed).integers(0, 2, (12 + seed, 4 + width))
    return ["".join("ab"[one] for one in line) for line in draws], np.arange(12 + seed) % 2


def frames(seed: int, width: int) -> tuple[Any, ...]:
    X, y = regression(seed, width)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(width)]), y


def sequences(seed: int, width: int) -> tuple[Any, ...]:
    texts, y = words(seed, width)
    return pd.DataFrame({"sequence": texts}), y


def two_views(seed: int, width: int) -> tuple[Any, ...]:
    X = rows(seed, width)
    return X, X[:, :2] ** 2


@dataclass(frozen=True)
class Example:
    """An estimator, and `data(seed, width)`, what its `fit` takes."""

    name: str
    estimator: Any
    data: Any

    @property
    def first(self) -> tuple[Any, ...]:
        return self.data(0, 3)

    @property
    def second(self) -> tuple[Any, ...]:
        """Other rows, of another width."""
        return self.data(1, 5)

    @property
    def new(self) -> Any:
        """Unfitted."""
        return clone(self.estimator)

    @property
    def vectors(self) -> bool:
        return self.table or self.data is sparse

    @property
    def table(self) -> bool:
        """An array, for which the estimator has a kernel of vectors."""
        return self.data in (regression, classes, two_views)


EXAMPLES = {
    "ridge": (KernelRidge(), regression),
    "ridge, matrix-free": (KernelRidge(solver="cg", alpha=0.1), regression),
    "ridge, landmarks": (KernelRidge(solver="nystroem", n_landmarks=8), regression),
    "ridge, a precomputed kernel": (KernelRidge("precomputed"), matrix),
    "ridge, sequences": (KernelRidge("spectrum(k=2)"), words),
    "ridge classifier": (KernelRidgeClassifier(), classes),
    "ridge classifier, sparse rows": (KernelRidgeClassifier("linear"), sparse),
    "validated ridge": (KernelRidgeCV(["linear", "gaussian"], [0.1, 1.0], cv=3), regression),
    "validated ridge classifier": (KernelRidgeClassifierCV(), classes),
    "logistic regression": (KernelLogisticRegression(), classes),
    "Gaussian process": (GaussianProcessRegressor(), regression),
    "Gaussian process, sequences": (GaussianProcessRegressor("subsequence(length=2)"), words),
    "Gaussian process classifier": (GaussianProcessClassifier(), classes),
    "discriminant": (KernelDiscriminantAnalysis(), classes),
    "discriminant, eigenvalues": (KernelDiscriminantAnalysis(solver="eigen"), classes),
    "discriminant, landmarks": (KernelDiscriminantAnalysis(solver="nystroem", n_landmarks=10), classes),
    "SVC": (SVC(), classes),
    "SVC, probabilities": (SVC(probability=True), classes),
    "SVC, warm start": (SVC(warm_start=True), classes),
    "SVC, landmarks": (SVC(solver="nystroem", n_landmarks=8), classes),
    "NuSVC": (NuSVC(0.3), classes),
    "SVR": (SVR(), regression),
    "SVR, landmarks": (SVR(solver="nystroem", n_landmarks=8), regression),
    "NuSVR": (NuSVR(), regression),
    "one class": (OneClassSVM(), regression),
    "PCA": (KernelPCA(2), regression),
    "PCA, Krylov": (KernelPCA(2, solver="krylov"), regression),
    "PCA, decoder": (KernelPCA(2, fit_inverse_transform=True), regression),
    "PCA, landmarks": (KernelPCA(2, solver="nystroem", n_landmarks=8), regression),
    "PLS": (KernelPLS(), regression),
    "CCA": (KernelCCA(), two_views),
    "k-means": (KernelKMeans(3, keep_history=True), regression),
    "k-means, landmarks": (KernelKMeans(3, solver="nystroem", n_landmarks=8), regression),
    "k-means, batches": (KernelKMeans(3, solver="nystroem", n_landmarks=8, batch_size=10), regression),
    "spectral clustering": (KernelSpectralClustering(3), regression),
    "perceptron": (KernelPerceptron(max_iter=20), classes),
    "perceptron, voted": (KernelPerceptron(method="voted", max_iter=5, keep_history=True), classes),
    "least mean squares": (KernelLMS(max_iter=20), regression),
    "least mean squares, stochastic": (KernelLMS(mode="stochastic", max_iter=5), regression),
    "online regressor": (OnlineKernelRegressor(budget=10, alpha=0.1), regression),
    "online regressor, quantised": (OnlineKernelRegressor(method="qklms", budget=10), regression),
    "online classifier, mergers": (OnlineKernelClassifier(budget=10), classes),
    "online classifier, projections": (OnlineKernelClassifier(budget=10, strategy="project"), classes),
    "Nystroem": (Nystroem(n_components=8), regression),
    "Fourier features": (RandomFourierFeatures(n_components=10), regression),
    "polynomial sketch": (PolynomialSketch(n_components=20), regression),
    "empirical map": (EmpiricalKernelMap(), regression),
    "monomials": (MonomialFeatures(2), regression),
    "search": (KernelSearchCV(KernelRidge(), GRID, cv=3), regression),
    "search, fit by fit": (KernelSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2), classes),
    "table encoder": (TableEncoder(), frames),
    "table model": (TableModel(TableEncoder(), KernelRidge()), frames),
    "sequence encoder": (SequenceEncoder(), sequences),
}


def one_of_each() -> list[Example]:
    """The first example of each class."""
    first = {type(example.estimator): example for example in reversed(examples())}
    return list(first.values())[::-1]


def examples() -> list[Example]:
    return [Example(name, *row) for name, row in EXAMPLES.items()]


def tables() -> list[Example]:
    return [one for one in one_of_each() if one.table]


FIXTURES = {
    "example": examples,
    "of_each_class": one_of_each,
    "each_of_arrays": tables,
    "each_transformer": lambda: [one for one in tables() if hasattr(one.estimator, "set_output")],
    "each_weighted": lambda: [one for one in tables() if has_fit_parameter(one.estimator, "sample_weight")],
}
"""Arguments of tests, and the examples that they are."""


@pytest.fixture
def each_class() -> list[Example]:
    return one_of_each()


def pytest_generate_tests(metafunc):
    for name, chosen in FIXTURES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, chosen(), ids=lambda one: one.name)
