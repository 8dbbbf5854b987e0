"""Alternatives to exact machines: reduced sets, landmarks, and probabilities by logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, at_most, benchmark
from benchmarks.rows_svm import GROUP
from benchmarks.rows_usps import both_halves
from mercer.kernels import Gaussian

RISE = 0.005
"""The share of wrong labels that a reduced set of a tenth of the support vectors may add."""


def smooth_classes(n: int) -> tuple[Any, Any]:
    """Rows of ten columns and two classes with a curved border, 10 % of the labels flipped."""
    rng = np.random.default_rng(7)
    X = data.normal(n, 10)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] > 0
    return X, (y ^ (rng.random(n) < 0.1)).astype(int)


@benchmark(GROUP)
def reduced_set(setting: Setting) -> Row:
    (X, y), (new, truth) = both_halves(setting)
    full = peers.ours("SVC")(10.0, Gaussian(1 / 128)).fit(X.astype(np.float32), y)
    before = float(np.mean(full.predict(new.astype(np.float32)) != truth))
    return Row(
        f"SVC.compress, USPS digits, C = 10, γ = 1/128, a tenth of {len(full.support_)} support vectors",
        ours=lambda: full.compress(0.1),
        figure="error",
        target=at_most(RISE),
        error=lambda model: float(np.mean(model.predict(new.astype(np.float32)) != truth)) - before,
        tolerance=1.0 if setting.quick else RISE,
        note=f"SVC.compress's error: what the share of wrong labels of the test digits rises by, from {before:.4f}.",
    )


@benchmark(GROUP)
def reduced_predict(setting: Setting) -> Row:
    (X, y), (new, truth) = both_halves(setting)
    full = peers.ours("SVC")(10.0, Gaussian(1 / 128)).fit(X.astype(np.float32), y)
    small, new = full.compress(0.1), new.astype(np.float32)
    return Row(
        f"SVC, predict, USPS digits, a tenth of the support vectors, {len(new)} new rows",
        ours=lambda: small.predict(new),
        peer=lambda: full.predict(new),
        peer_name="all of them",
        error=lambda labels: float(np.mean(labels != truth)),
        tolerance=1.0,
    )


@benchmark(GROUP)
def landmark_machine(setting: Setting) -> Row:
    n = setting.size(20_000, 300)
    X, y = smooth_classes(2 * n)
    kernel = Gaussian(0.05)
    ours = peers.ours("SVC")(1.0, kernel, solver="nystroem", n_landmarks=min(500, n // 4))
    exact = peers.ours("SVC")(1.0, kernel, solver="exact")
    return Row(
        f"SVC on 500 landmarks, two classes, C = 1, γ = 0.05, n = {n}, d = 10",
        ours=lambda: ours.fit(X[:n], y[:n]),
        peer=lambda: exact.fit(X[:n], y[:n]),
        peer_name="the exact SVC",
        error=lambda model: float(np.mean(model.predict(X[n:]) != y[n:])),
        tolerance=1.0,
        once=True,
        note="SVC's errors: the share of wrong labels of as many new rows, of which a tenth are flipped.",
    )


@benchmark(GROUP, classes=(2, 10))
def logistic(setting: Setting, classes: int) -> Row:
    """Peer: the same objective by the Laplace approximation of Gaussian processes, f from one or from each class."""
    gaussian_process = peers.need("sklearn.gaussian_process")
    n, gamma = setting.size(2000, 200), 0.05
    X, y = smooth_classes(2 * n)
    if classes > 2:
        y = (5 * (y + np.clip((X[:, 4] + 1) / 2, 0, 0.999))).astype(int)
    X = X.astype(np.float64)
    ours = peers.ours("KernelLogisticRegression")(Gaussian(gamma), 1.0, fit_intercept=False)
    rbf = gaussian_process.kernels.RBF(1 / np.sqrt(2 * gamma))
    theirs = gaussian_process.GaussianProcessClassifier(rbf, optimizer=None)
    return Row(
        f"KernelLogisticRegression, Gaussian, λ = 1, {classes} classes, n = {n}, d = 10",
        ours=lambda: ours.fit(X[:n], y[:n]),
        peer=lambda: theirs.fit(X[:n], y[:n]),
        peer_name="scikit-learn's Gaussian process",
        target=at_least(1),
        error=lambda model: float(np.mean(model.predict(X[n:]) != y[n:])),
        once=True,
        tolerance=1.0,
        note="KernelLogisticRegression's errors: the share of wrong labels of new rows. Its peer takes many classes "
        "one against the rest.",
    )
