"""K v, never stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, at_most, benchmark
from mercer import KernelOperator
from mercer.kernels import Gaussian, Kernel, Linear, Polynomial

GROUP = "Products with the kernel matrix"


def size(setting: Setting) -> int:
    return setting.size(8192, 300)


def width(setting: Setting, d: int) -> int:
    return min(d, setting.size(d, 20))


@benchmark(GROUP, d=(3, 20, 100))
def product_sklearn(setting: Setting, d: int) -> Row:
    rbf_kernel = peers.need("sklearn.metrics.pairwise").rbf_kernel
    X, v, gamma = data.normal(size(setting), d), data.vector(size(setting)), 1 / d
    return Row(
        f"Gaussian K v, float32, n = {len(X)}, d = {d}",
        ours=lambda: KernelOperator(Gaussian(gamma), X) @ v,
        peer=lambda: rbf_kernel(X, X, gamma=gamma) @ v,
        peer_name="scikit-learn `rbf_kernel(X, X) @ v`",
        target=at_least({3: 25, 20: 25, 100: 6}[d]),
        error=data.product_error(X, v, gamma),
        memory=d == 20,
    )


@benchmark(GROUP)
def product_sklearn_float64(setting: Setting) -> Row:
    rbf_kernel = peers.need("sklearn.metrics.pairwise").rbf_kernel
    X, v = data.normal(size(setting), 20, np.float64), data.vector(size(setting), np.float64)
    return Row(
        f"Gaussian K v, float64, n = {len(X)}, d = 20",
        ours=lambda: KernelOperator(Gaussian(0.05), X) @ v,
        peer=lambda: rbf_kernel(X, X, gamma=0.05) @ v,
        peer_name="scikit-learn `rbf_kernel(X, X) @ v`",
        target=at_least(15),
        error=data.product_error(X, v, 0.05),
    )


@benchmark(GROUP, columns=(4, 10))
def product_of_columns(setting: Setting, columns: int) -> Row:
    """As many right-hand sides as there are classes: beside one vector, each takes little."""
    rbf_kernel = peers.need("sklearn.metrics.pairwise").rbf_kernel
    X, gamma = data.normal(size(setting), 20), 0.05
    V = np.stack([data.vector(len(X)) * np.float32(q + 1) for q in range(columns)], axis=1)
    return Row(
        f"Gaussian K V, {columns} vectors, float32, n = {len(X)}, d = 20",
        ours=lambda: KernelOperator(Gaussian(gamma), X) @ V,
        peer=lambda: rbf_kernel(X, X, gamma=gamma) @ V,
        peer_name="scikit-learn `rbf_kernel(X, X) @ V`",
        error=data.product_error(X, V, gamma),
    )


@benchmark(GROUP, d=(3, 20, 100, 784))
def product_torch(setting: Setting, d: int) -> Row:
    X, v, gamma = data.normal(size(setting), width(setting, d)), data.vector(size(setting)), 1 / d
    return Row(
        f"Gaussian K v, float32, n = {len(X)}, d = {X.shape[1]}",
        ours=lambda: KernelOperator(Gaussian(gamma), X) @ v,
        peer=peers.torch_product(setting, X, v, gamma),
        peer_name="PyTorch, tuned row tiles",
        target=at_least({3: 4, 20: 4, 100: 1.5, 784: 0.95}[d]),
        error=data.product_error(X, v, gamma),
    )


@benchmark(GROUP, d=(3, 20, 100, 784))
def product_torch_symmetric(setting: Setting, d: int) -> Row:
    X, v, gamma = data.normal(size(setting), width(setting, d)), data.vector(size(setting)), 1 / d
    return Row(
        f"Gaussian K v, float32, n = {len(X)}, d = {X.shape[1]}",
        ours=lambda: KernelOperator(Gaussian(gamma), X) @ v,
        peer=peers.torch_product(setting, X, v, gamma, symmetric=True),
        peer_name="PyTorch, tuned square tiles, each pair once",
        error=data.product_error(X, v, gamma),
        note="The symmetric PyTorch rows have no target: they show what visiting each pair once is worth.",
    )


@benchmark(GROUP, d=(3, 20, 100))
def product_keops(setting: Setting, d: int) -> Row:
    X, v, gamma = data.normal(size(setting), d), data.vector(size(setting)), 1 / d
    return Row(
        f"Gaussian K v, float32, n = {len(X)}, d = {d}",
        ours=lambda: KernelOperator(Gaussian(gamma), X) @ v,
        peer=peers.keops_product(X, v, gamma),
        peer_name="KeOps `LazyTensor`",
        error=data.product_error(X, v, gamma),
        rounds=2,
    )


# ---- the micro-kernel against the machine's own matrix product -----------------------------------------------------


@benchmark(GROUP, way=("symmetric", "visited", "rectangular"))
def share_of_sgemm(setting: Setting, way: str) -> Row:
    """2d operations a pair; a symmetric sweep visits n(n + 1)/2 of them and delivers n²."""
    n, m = size(setting), setting.size(4096, 200)
    X, v, gamma = data.normal(n, width(setting, 784)), data.vector(n), 1 / 784
    Z = data.normal(n, X.shape[1], seed=3) if way == "rectangular" else None
    A, B, C = data.normal(m, m), data.normal(m, m, seed=4), np.empty((m, m), np.float32)
    pairs = n * (n + 1) // 2 if way == "visited" else n * n
    what = {
        "symmetric": "K(X, X) v, over the n² pairs delivered",
        "visited": "K(X, X) v, over the n(n + 1)/2 pairs visited",
        "rectangular": "K(X, Z) v, where there is no symmetry to use",
    }
    return Row(
        f"Gaussian {what[way]}, float32, n = {n}, d = {X.shape[1]}",
        ours=lambda: KernelOperator(Gaussian(gamma), X, Z) @ v,
        peer=lambda: np.matmul(A, B, out=C),
        peer_name=f"NumPy sgemm, {m} × {m} × {m}",
        figure="share",
        work=(2.0 * pairs * X.shape[1], 2.0 * m**3),
        target=at_least(0.75) if way == "symmetric" else None,
        error=data.product_error(X, v, gamma, Z),
        note="Share: our 2d operations a pair over our time, against the sgemm's operations over its time.",
    )


@benchmark(GROUP, d=(20, 100, 784))
def clusters_far_apart(setting: Setting, d: int) -> Row:
    """Two clusters, in which distances by norms are too inexact for float32."""
    X, v = data.normal(size(setting), width(setting, d)), data.vector(size(setting))
    apart = X + 100 * (2 * (np.arange(len(X)) % 2) - 1)[:, None].astype(np.float32)
    kernel = Gaussian(0.5 / X.shape[1])
    return Row(
        f"Gaussian K v of two clusters 200 standard deviations apart, float32, n = {len(X)}, d = {X.shape[1]}",
        ours=lambda: KernelOperator(kernel, apart) @ v,
        peer=lambda: KernelOperator(kernel, X) @ v,
        peer_name="standardised rows",
        figure="cost",
        target=at_most(2.5),
        error=data.product_error(apart, v, kernel.gamma),
    )


# ---- other kernels, against our own Gaussian -----------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class UsersCauchy(Kernel):
    """k(x, z) = 1 / (1 + γ‖x − z‖²), as a user writes it."""

    gamma: float = 1.0

    def formula(self, pair: Any) -> Any:
        return 1 / (1 + self.gamma * pair.sqdist)


@benchmark(GROUP, kernel=("cauchy", "composed"))
def user_kernel(setting: Setting, kernel: str) -> Row:
    X, v, gaussian = data.normal(size(setting), 20), data.vector(size(setting)), Gaussian(0.05)
    composed = 0.5 * gaussian + Linear() * Polynomial(degree=2, gamma=0.05, coef0=1.0)
    chosen = {"cauchy": UsersCauchy(0.05), "composed": composed}[kernel]
    user, composition = "a user's `1 / (1 + γ * pair.sqdist)`", "`0.5*Gaussian() + Linear()*Polynomial(2)`"
    return Row(
        f"K v of {user if kernel == 'cauchy' else composition}, float32, n = {len(X)}, d = 20",
        ours=lambda: KernelOperator(chosen, X) @ v,
        peer=lambda: KernelOperator(gaussian, X) @ v,
        peer_name="our own Gaussian",
        figure="cost",
        target=at_most({"cauchy": 1.5, "composed": 2.5}[kernel]),
    )


# ---- memory --------------------------------------------------------------------------------------------------------


@benchmark(GROUP)
def memory_of_a_large_product(setting: Setting) -> Row:
    X, v = data.normal(setting.size(200_000, 2000), 10), data.vector(setting.size(200_000, 2000))
    return Row(
        f"Gaussian K v, float32, n = {len(X)}, d = 10: peak memory above the data",
        ours=lambda: KernelOperator(Gaussian(0.1), X) @ v,
        figure="memory",
        target=at_most(200),
        memory=True,
        note=f"n = {len(X)}: the matrix would take {4e-9 * len(X) ** 2:.3g} GB.",
    )
