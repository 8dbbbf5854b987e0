"""USPS digits: what the classifiers get wrong."""

from __future__ import annotations

from typing import Any

from benchmarks import peers
from benchmarks.harness import Missing, Row, Setting, at_most, benchmark
from benchmarks.usps_table import digits
from mercer.kernels import Gaussian

GROUP = "Test errors on USPS"


@benchmark(GROUP, method=("discriminant", "ridge"))
def usps(setting: Setting, method: str) -> Row:
    if setting.data is None or not (setting.data / "zip.test.gz").exists():
        raise Missing("needs --data DIR with zip.train.gz and zip.test.gz (USPS)")
    few = slice(0, 300 if setting.quick else None)
    (X, y), (new, truth) = digits(setting.data, "zip.train.gz"), digits(setting.data, "zip.test.gz")
    X, y, kernel = X[few], y[few], Gaussian(1 / 128)
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
