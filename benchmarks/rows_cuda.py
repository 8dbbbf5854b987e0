"""What NVIDIA devices do: products, beside KeOps on the same device, and large fits. `benchmarks.cuda` runs them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

import mercer
from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, at_most, benchmark
from benchmarks.rows_large import SAMPLE, target
from mercer.kernels import Gaussian

PRODUCTS, FITS, ANSWERS = "Products on the device", "Large fits on the device", "The same answers as the processor's"
RATES = {20: 7e11, 100: 3e11, 784: 5e10}
"""By columns: pairs a second of an H200 at least, half of what its FP32 units could do at d = 20."""
OVER_KEOPS = {20: 1.0, 100: 2.0, 784: 5.0}
KEOPS_ROWS = {20: 1 << 19, 100: 1 << 17, 784: 1 << 16}
"""By columns: the most rows beside KeOps, whose product of a million rows with 784 columns takes three minutes."""


@dataclass
class Sizes:
    """The sizes of all rows; `given` has those of this run."""

    rows: int = 1_000_000
    exact_rows: int = 1_000_000
    landmark_rows: int = 10_000_000
    landmarks: int = 120_000
    answer_rows: int = 2000

    def choose(self, **chosen: int) -> None:
        """Take these instead."""
        for one in fields(self):
            setattr(self, one.name, chosen[one.name])


given = Sizes()


def gamma_of(d: int) -> float:
    """γ at which standard normal rows have entries of about e⁻¹."""
    return 1 / (2 * d)


@benchmark(PRODUCTS, d=tuple(RATES))
def cuda_product(setting: Setting, d: int) -> Row:
    X, v = data.normal(given.rows, d), data.vector(given.rows)
    K = mercer.KernelOperator(Gaussian(gamma_of(d)), X)
    return Row(
        f"Gaussian K v, float32, n = {given.rows}, d = {d}",
        ours=lambda: K @ v,
        figure="rate",
        work=(float(given.rows) ** 2, 1.0),
        target=at_least(RATES[d]),
        error=data.product_error(X, v, gamma_of(d)),
        tolerance=1e-6,
        rounds=3,
        note="Rows are on the device; vectors and results are copied. Errors are relative to the largest entry.",
    )


@benchmark(PRODUCTS, d=tuple(RATES))
def cuda_keops(setting: Setting, d: int) -> Row:
    n = min(given.rows, KEOPS_ROWS[d])
    X, v = data.normal(n, d), data.vector(n)
    K = mercer.KernelOperator(Gaussian(gamma_of(d)), X)
    return Row(
        f"the same beside KeOps, n = {n}, d = {d}",
        ours=lambda: K @ v,
        peer=peers.keops_product(X, v, gamma_of(d)),
        peer_name="KeOps",
        target=at_least(OVER_KEOPS[d]),
        error=data.product_error(X, v, gamma_of(d)),
        tolerance=1e-6,
        rounds=3,
        note="KeOps copies its rows for each product.",
    )


@benchmark(FITS)
def cuda_exact_ridge(setting: Setting) -> Row:
    n = given.exact_rows
    X = data.normal(n, 20)
    model = mercer.KernelRidge(Gaussian(gamma_of(20)), 1e-6 * n, solver="cg", tol=1e-6)
    y = target(X)
    rows = np.sort(np.random.default_rng(3).permutation(n)[:SAMPLE])

    def residual(model: Any) -> float:
        parts = np.array_split(rows, -(-len(rows) * n // 10**8))
        K_a = np.concatenate([data.gaussian(X[some], X, gamma_of(20)) @ model.dual_coef_ for some in parts])
        left = y[rows] - K_a - 1e-6 * n * model.dual_coef_[rows]
        return float(np.linalg.norm(left) / np.linalg.norm(y[rows]))

    return Row(
        f"exact KernelRidge, float32 rows, n = {n}, d = 20, λ = 1e-6 n",
        ours=lambda: model.fit(X, y),
        figure="seconds",
        target=at_most(600),
        error=residual,
        tolerance=1e-6,
        once=True,
        note=f"Error of the exact fit: the true relative residual, of {SAMPLE} rows computed afresh in float64.",
    )


@benchmark(FITS)
def cuda_landmark_ridge(setting: Setting) -> Row:
    n, m = given.landmark_rows, given.landmarks
    X = data.normal(n, 28)
    model = mercer.KernelRidge(
        Gaussian(gamma_of(28)), 1e-7 * n, solver="nystroem", n_landmarks=m, landmarks="uniform", tol=1e-3
    )
    y = target(X)
    return Row(
        f"KernelRidge on {m} landmarks, float32 rows, n = {n}, d = 28, λ = 1e-7 n",
        ours=lambda: model.fit(X, y),
        figure="seconds",
        target=at_most(120),
        error=lambda model: model.report_.residual,
        once=True,
        note="On landmarks: uniform ones, to a residual of 1e-3; the number of steps is not set.",
    )


MODELS = {
    "ridge": lambda: mercer.KernelRidge("gaussian(gamma=0.1)", alpha=0.1),
    "components": lambda: mercer.KernelPCA(3, "gaussian(gamma=0.1)"),
    "svm": lambda: mercer.SVC(kernel="gaussian(gamma=0.1)", tol=1e-6),
    "landmarks": lambda: mercer.KernelRidge("gaussian(gamma=0.1)", alpha=0.1, solver="nystroem", n_landmarks=50),
}


@benchmark(ANSWERS, model=tuple(MODELS))
def cuda_answers(setting: Setting, model: str) -> Row:
    X = data.normal(given.answer_rows, 10)
    y = np.sign(X[:, 0] * X[:, 1] + 0.1) if model == "svm" else target(X)

    def outputs() -> Any:
        fitted = MODELS[model]().fit(X, y)
        out = getattr(fitted, "transform", None) or getattr(fitted, "decision_function", None) or fitted.predict
        return np.asarray(out(X))

    mercer.use("native")
    expected = outputs()
    mercer.use("cuda", devices=chosen.devices, tensor_cores=chosen.tensor_cores)
    return Row(
        f"{model}, float32 rows, n = {given.answer_rows}",
        ours=outputs,
        figure="error",
        target=at_most(1e-5),
        error=lambda found: float(np.abs(found - expected).max() / np.abs(expected).max()),
        note="The largest difference, relative to the largest value.",
    )


@dataclass
class Chosen:
    """The devices of this run."""

    devices: tuple[int, ...] = (0,)
    tensor_cores: bool = True


chosen = Chosen()
