"""What programs call, with types: mypy reads it as strictly as it can, and a test runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import mercer
from mercer import (
    SVC,
    SVR,
    Cancel,
    EmpiricalKernelMap,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelCCA,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLMS,
    KernelLogisticRegression,
    KernelOperator,
    KernelPCA,
    KernelPerceptron,
    KernelPLS,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    KernelSearchCV,
    KernelSpectralClustering,
    Log,
    MonomialFeatures,
    NuSVC,
    Nystroem,
    OneClassSVM,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
    PolynomialSketch,
    RandomFourierFeatures,
    check_kernel,
    explain,
    herd,
    hsic_test,
    mmd_test,
    repair_kernel,
    thin,
)
from mercer.errors import InvalidInput, MercerError
from mercer.events import Event, SolverStep
from mercer.kernels import Gaussian, Kernel, Linear, Matern, Spectrum, as_kernel
from mercer.kernels.symbolic.pairing import Pair
from mercer.operators import Dense, Operator
from mercer.solvers import ConjugateGradients, LinearSystem, solve

rng = np.random.default_rng(0)
X: NDArray[np.float64] = rng.standard_normal((40, 3))
y: NDArray[np.float64] = np.sin(X[:, 0])
labels = y > 0


@dataclass(frozen=True, repr=False)
class Cauchy(Kernel):
    """k(x, z) = 1 / (1 + γ‖x − z‖²)."""

    gamma: float = 1.0

    def formula(self, pair: Pair) -> object:
        return 1 / (1 + self.gamma * pair.sqdist)


class Watch:
    def __init__(self) -> None:
        self.steps = 0

    def on_event(self, event: Event) -> None:
        if isinstance(event, SolverStep):
            self.steps = event.step


def kernels() -> float:
    kernel = 2.0 * Gaussian(0.5) + Linear() * Matern(nu=1.5).on([0, 1])
    diagonal: NDArray[np.float64] = np.asarray(Cauchy().diagonal(X))
    resolved: Kernel = as_kernel("gaussian").resolve(X)
    parameters: dict[str, object] = resolved.get_params()
    return float(kernel(X, X[:3]).sum() + diagonal.sum() + len(parameters) + Spectrum(3)(["ab"]).size)


def operators() -> NDArray[np.float64]:
    K: Operator = KernelOperator(Gaussian(0.5), X) + 0.5 * Dense(np.eye(len(X)))
    found = solve(ConjugateGradients(tol=1e-8), LinearSystem(K, y[:, None]))
    assert found.converged
    assert found.steps > 0
    return np.asarray(K @ found.x, np.float64)


def regressors() -> list[float]:
    search = KernelSearchCV(KernelRidge("gaussian"), {"alpha": [0.1, 1.0]}).fit(X, y)
    mean, deviation = GaussianProcessRegressor().fit(X, y).predict(X, return_std=True)
    online = OnlineKernelRegressor().partial_fit(X, y)
    return [
        KernelRidge(Gaussian(gamma=0.5), alpha=0.1).fit(X, y).score(X, y),
        float(KernelRidgeCV(["linear", "gaussian"]).fit(X, y).alpha_),
        SVR().fit(X, y).score(X, y),
        float((mean + deviation + online.predict(X) + KernelPLS().fit(X, y).predict(X)).sum()),
        float(KernelLMS(max_iter=5, tol=None).fit(X, y).predict(X).sum() + search.predict(X).sum()),
        search.score(X, y) + search.best_params_["alpha"] + search.best_score_,
    ]


def classifiers() -> list[float]:
    probabilities = KernelLogisticRegression().fit(X, labels).predict_proba(X)
    probabilities += GaussianProcessClassifier().fit(X, labels).predict_proba(X)
    online = OnlineKernelClassifier().partial_fit(X, labels, classes=[False, True])
    scores = [float(probabilities.sum()), float(online.predict(X).sum())]
    for model in (SVC(C=1.0), NuSVC(), KernelDiscriminantAnalysis(), KernelPerceptron(), KernelRidgeClassifier()):
        fitted = model.set_params(memory="1GB").fit(X, labels)
        scores += [fitted.score(X, labels), float(fitted.decision_function(X).sum()), float(len(fitted.classes_))]
    return scores


def transformers() -> int:
    pca = KernelPCA(2, fit_inverse_transform=True).fit(X)
    back: NDArray[np.float64] = np.asarray(pca.inverse_transform(pca.transform(X)))
    columns = back.shape[1] + len(pca.eigenvalues_) + KernelCCA().fit(X, X).transform(X).shape[1]
    for model in (Nystroem(), RandomFourierFeatures(), PolynomialSketch(), EmpiricalKernelMap(), MonomialFeatures()):
        columns += model.fit_transform(X).shape[1] + len(model.get_feature_names_out())
        model.set_output(transform="pandas")
    return columns


def groups() -> int:
    outside = OneClassSVM().fit_predict(X)
    return int(outside.sum()) + len(KernelKMeans(2).fit_predict(X)) + len(KernelSpectralClustering(2).fit(X).labels_)


def statements(folder: Path) -> str:
    report = check_kernel("gaussian(gamma=0.5)")
    p = mmd_test(X, X + 1).p_value + hsic_test(X, y[:, None]).p_value
    repaired = repair_kernel("sigmoid", X)
    chosen = len(herd(X, 3).indices) + len(thin(X, 3).indices)
    with mercer.observe(Log(), Cancel(after_seconds=60), Watch()):
        model = KernelRidge().fit(X, y)
    mercer.save(model, folder / "model")
    try:
        mercer.use(None)
    except InvalidInput as error:
        raise MercerError(str(error)) from error
    parts = [report.verdict, p, repaired, chosen, mercer.load(folder / "model"), explain(model, X[:2])]
    return " ".join([model.report_.method, f"{model.report_.residual:.1e}", *map(str, parts)])
