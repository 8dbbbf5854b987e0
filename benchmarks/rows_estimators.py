"""Whole fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, benchmark
from mercer.kernels import Gaussian, Linear, Polynomial

GROUP = "Fits"

SAME_EIGENVALUES = 1e-5
SAME_RIDGE = 1e-9


def leading_eigenvalues(X: Any, count: int) -> Any:
    """The `count` largest eigenvalues of H K H, K = (⟨x,z⟩ + 1)², by LAPACK in float64."""
    eigh = peers.need("scipy.linalg").eigh
    K = (X @ X.T + 1.0) ** 2
    mean = K.mean(axis=0)
    K += mean.mean() - mean - mean[:, None]
    largest = [len(X) - count, len(X) - 1]
    return eigh(K, eigvals_only=True, overwrite_a=True, check_finite=False, subset_by_index=largest)[::-1]


def reference_eigenvalues(setting: Setting, U: Any, count: int) -> Any:
    """Computed for small sizes. For all of USPS it is read from a file, which saves a minute of every run."""
    if setting.quick:
        return leading_eigenvalues(U.astype(np.float64), count)
    return np.loadtxt(Path(__file__).with_name("usps_eigenvalues.txt"))[:count]


@benchmark(GROUP, dtype=("float32", "float64"), solver=("arpack", "randomized"))
def pca_usps(setting: Setting, dtype: str, solver: str) -> Row:
    """A row of scikit-learn counts only if its own eigenvalues reach 1e-5."""
    theirs, ours, count = peers.need("sklearn.decomposition").KernelPCA, peers.ours("KernelPCA"), setting.size(64, 8)
    U, kernel = data.usps(setting, np.dtype(dtype)), Polynomial(degree=2, gamma=1.0, coef0=1.0)
    peer = theirs(count, kernel="poly", degree=2, gamma=1.0, coef0=1.0, eigen_solver=solver, random_state=0)
    reference = reference_eigenvalues(setting, U, count)
    return Row(
        f"KernelPCA({count}), polynomial of degree 2, {dtype}, USPS {U.shape[0]} × {U.shape[1]}",
        ours=lambda: ours(count, kernel=kernel).fit(U),
        peer=lambda: peer.fit(U),
        peer_name=f"scikit-learn KernelPCA, {solver}",
        target=at_least(10),
        error=lambda model: float(np.abs(model.eigenvalues_ / reference - 1).max()),
        tolerance=SAME_EIGENVALUES,
        rounds=3,
        note="KernelPCA's error: of the eigenvalues, relative; a peer beyond 1e-5 is shown, but sets no target.",
    )


@benchmark(GROUP, alpha=(1.0, 1e-2))
def ridge(setting: Setting, alpha: float) -> Row:
    return ridge_row(data.normal(setting.size(10_000, 300), 20, np.float64), 0.05, alpha, 3)


@benchmark(GROUP)
def ridge_of_a_smooth_kernel(setting: Setting) -> Row:
    """Float32 has few pivots above rounding, which is ten times α."""
    return ridge_row(data.normal(setting.size(10_000, 300), 6, np.float64), 0.0113, 1e-4, 3)


@benchmark(GROUP)
def ridge_of_many_columns(setting: Setting) -> Row:
    return ridge_row(data.normal(setting.size(7000, 300), 784, np.float64), 1 / 784, 1.0, 2.5)


@benchmark(GROUP)
def linear_ridge(setting: Setting) -> Row:
    X = data.normal(setting.size(12_000, 600), setting.size(123, 10), np.float64)
    y = X[:, 0] + 0.1 * data.vector(len(X), np.float64)
    theirs, ours = peers.need("sklearn.kernel_ridge").KernelRidge, peers.ours("KernelRidge")
    model, peer = ours(kernel=Linear(), alpha=1.0), theirs(kernel="linear", alpha=1.0)
    exact = X[:50] @ np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y)
    return Row(
        f"KernelRidge, linear, float64, n = {len(X)}, d = {X.shape[1]}, α = 1",
        ours=lambda: model.fit(X, y),
        peer=lambda: peer.fit(X, y),
        peer_name="scikit-learn KernelRidge",
        target=at_least(10),
        error=lambda fitted: float(np.abs(fitted.predict(X[:50]) - exact).max() / np.abs(exact).max()),
        tolerance=SAME_RIDGE,
        rounds=3,
        note="Linear KernelRidge's error: of predictions, against the system of the columns.",
    )


def ridge_row(X: Any, gamma: float, alpha: float, wanted: float) -> Row:
    theirs, ours = peers.need("sklearn.kernel_ridge").KernelRidge, peers.ours("KernelRidge")
    y = np.sin(X[:, 0]) + 0.1 * data.vector(len(X), np.float64)
    model, peer = ours(kernel=Gaussian(gamma), alpha=alpha), theirs(kernel="rbf", gamma=gamma, alpha=alpha)
    return Row(
        f"KernelRidge, Gaussian, float64, n = {len(X)}, d = {X.shape[1]}, α = {alpha:g}",
        ours=lambda: model.fit(X, y),
        peer=lambda: peer.fit(X, y),
        peer_name="scikit-learn KernelRidge",
        target=at_least(wanted),
        error=data.ridge_residual(X, y, gamma, alpha),
        tolerance=SAME_RIDGE,
        rounds=3,
        note="KernelRidge's error: ‖y − (K + αI) a‖ / ‖y‖, recomputed; at most 1e-9 is asked.",
    )
