"""Fits of minutes, of sizes that libraries that store the matrix cannot fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, at_most, benchmark
from mercer.kernels import Gaussian

GROUP = "Large fits"

GAMMA = 0.05
SAMPLE = 1024
"""Rows of K, computed afresh in float64, from which residuals are estimated."""


def target(X: Any) -> Any:
    """A smooth function of three columns, and noise."""
    return np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.1 * data.vector(len(X), np.float64)


def on_one_thread(call: Callable[[], Any]) -> Any:
    with peers.need("threadpoolctl").threadpool_limits(1):
        return call()


def some_rows(n: int) -> Any:
    return np.sort(np.random.default_rng(3).permutation(n)[:SAMPLE])


def sampled_product(X: Any, rows: Any, V: Any) -> Any:
    """(K V)[rows] with K computed afresh, a few rows at a time."""
    return np.concatenate([data.gaussian(X[part], X, GAMMA) @ V for part in np.array_split(rows, 16)])


@benchmark(GROUP)
def ridge_without_the_matrix(setting: Setting) -> Row:
    X = data.normal(setting.size(100_000, 1500), 20, np.float64)
    y, alpha, rows = target(X), 1e-6 * len(X), some_rows(len(X))
    model = peers.ours("KernelRidge")(Gaussian(GAMMA), alpha, solver="cg", tol=1e-6)

    def residual(model: Any) -> float:
        a = model.dual_coef_
        left = y[rows] - sampled_product(X, rows, a) - alpha * a[rows]
        return float(np.linalg.norm(left) / np.linalg.norm(y[rows]))

    return Row(
        f"exact KernelRidge, Gaussian, float64, n = {len(X)}, d = 20, λ = 1e-6 n",
        ours=lambda: model.fit(X, y),
        figure="seconds",
        target=at_most(300),
        error=residual,
        tolerance=1e-6,
        once=True,
        most_megabytes=2000,
        note=f"Errors of large fits: true relative residuals, of {SAMPLE} rows computed afresh unless said otherwise.",
    )


@benchmark(GROUP)
def ridge_against_scikit_learn(setting: Setting) -> Row:
    X = data.normal(setting.size(20_000, 500), 20, np.float64)
    y, alpha, rows = target(X), 1e-6 * len(X), some_rows(min(len(X), 20_000))
    model = peers.ours("KernelRidge")(Gaussian(GAMMA), alpha, tol=1e-6)
    peer = peers.need("sklearn.kernel_ridge").KernelRidge(kernel="rbf", gamma=GAMMA, alpha=alpha)
    seen: dict[str, Any] = {}

    def apart(model: Any) -> float:
        """Ours is fitted first; the peer's predictions give the error of both."""
        seen[type(model).__module__.split(".")[0]] = model.predict(X[rows])
        if len(seen) < 2:
            return float("nan")
        return float(np.abs(seen["mercer"] - seen["sklearn"]).max() / np.abs(seen["sklearn"]).max())

    return Row(
        f"exact KernelRidge, Gaussian, float64, n = {len(X)}, d = 20, λ = 1e-6 n",
        ours=lambda: on_one_thread(lambda: model.fit(X, y)),
        peer=lambda: on_one_thread(lambda: peer.fit(X, y)),
        peer_name="scikit-learn KernelRidge",
        target=at_least(6),
        error=apart,
        tolerance=1e-6,
        once=True,
        note="KernelRidge against scikit-learn: the error is the largest difference of predictions, relative. Both on "
        "one thread: with two, OpenBLAS 0.3.30's `potrf` ends scikit-learn's process at this size.",
    )


@benchmark(GROUP)
def ridge_on_landmarks(setting: Setting) -> Row:
    n, m = setting.size(1_000_000, 2000), setting.size(5000, 100)
    X = data.normal(n, 28, np.float64)
    y = target(X)
    model = peers.ours("KernelRidge")(Gaussian(1 / 56), 1.0, solver="nystroem", n_landmarks=m, tol=1e-6)
    return Row(
        f"KernelRidge on {m} landmarks, Gaussian, float64, n = {n}, d = 28",
        ours=lambda: model.fit(X, y),
        figure="seconds",
        target=at_most(180),
        error=lambda model: model.report_.residual,
        tolerance=1e-6,
        once=True,
        most_megabytes=3000,
        note="On landmarks: the error is the residual of the preconditioned normal equations, in float64.",
    )


def residual_of_components(X: Any, rows: Any) -> Callable[[Any], float]:
    """max ‖K̃v − Nλv‖/(Nλ₁), estimated from some rows of K computed afresh."""

    def residual(model: Any) -> float:
        V, values = model.eigenvectors_, model.eigenvalues_
        left = sampled_product(X, rows, V) - model.column_means_ @ V - V[rows] * values
        return float(np.linalg.norm(left, axis=0).max() * np.sqrt(len(X) / len(rows)) / values[0])

    return residual


@benchmark(GROUP)
def components_without_the_matrix(setting: Setting) -> Row:
    X = data.normal(setting.size(100_000, 2000), 20, np.float64)
    model = peers.ours("KernelPCA")(10, Gaussian(GAMMA), tol=1e-3)
    return Row(
        f"KernelPCA(10), Gaussian, float64, n = {len(X)}, d = 20, tol = 1e-3",
        ours=lambda: model.fit(X),
        figure="seconds",
        target=at_most(120),
        error=residual_of_components(X, some_rows(len(X))),
        tolerance=1e-3,
        once=True,
        most_megabytes=1500,
    )


@benchmark(GROUP, solver=("randomized", "arpack"))
def components_against_scikit_learn(setting: Setting, solver: str) -> Row:
    X = data.normal(setting.size(10_000, 1200), 20, np.float64)
    model = peers.ours("KernelPCA")(10, Gaussian(GAMMA))
    peer = peers.need("sklearn.decomposition").KernelPCA(
        10, kernel="rbf", gamma=GAMMA, eigen_solver=solver, random_state=0
    )
    exact = peers.need("sklearn.decomposition").KernelPCA(10, kernel="rbf", gamma=GAMMA, eigen_solver="arpack")
    reference = exact.fit(X).eigenvalues_
    return Row(
        f"KernelPCA(10), Gaussian, float64, n = {len(X)}, d = 20",
        ours=lambda: model.fit(X),
        peer=lambda: peer.fit(X),
        peer_name=f"scikit-learn KernelPCA, {solver}",
        target=at_least(10),
        error=lambda model: float(np.abs(model.eigenvalues_ / reference - 1).max()),
        tolerance=1e-6,
        rounds=3,
        note="KernelPCA against scikit-learn: the error is that of the eigenvalues, relative to arpack's.",
    )
