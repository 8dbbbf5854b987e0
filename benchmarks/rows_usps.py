"""The errors of classifiers on USPS digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Missing, Row, Setting, at_most, benchmark
from benchmarks.usps_table import digits
from mercer.kernels import Gaussian

GROUP = "Fits"


def both_halves(setting: Setting) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The training and the test digits with their labels; toy rows in a quick run."""
    if setting.quick:
        X = data.normal(300, 256, np.float64)
        y = X[:, :10].argmax(axis=1)
        return (X[:200], y[:200]), (X[200:], y[200:])
    if setting.data is None or not (setting.data / "zip.test.gz").exists():
        raise Missing("needs --data DIR with zip.train.gz and zip.test.gz (USPS)")
    return digits(setting.data, "zip.train.gz"), digits(setting.data, "zip.test.gz")


@benchmark(GROUP, method=("discriminant", "ridge"))
def usps(setting: Setting, method: str) -> Row:
    (X, y), (new, truth) = both_halves(setting)
    kernel = Gaussian(1 / 128)
    if method == "ridge":
        model = peers.ours("KernelRidgeClassifier")(kernel, 0.1)
        name = "KernelRidgeClassifier, λ = 0.1"
    else:
        nearest = peers.need("sklearn.neighbors").NearestCentroid
        pipeline = peers.need("sklearn.pipeline").make_pipeline
        model = pipeline(peers.ours("KernelDiscriminantAnalysis")(kernel), nearest())
        name = "KernelDiscriminantAnalysis, then the nearest class mean"

    def error(model: Any) -> float:
        return float((model.predict(new) != truth).mean())

    return Row(
        f"{name}, Gaussian(1/128), {len(X)} training digits",
        ours=lambda: model.fit(X, y),
        figure="error",
        target=at_most(0.05),
        error=error,
    )
