"""Data, and references in float64 that share no code with what is measured."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Missing, Setting

SAMPLE = 512
"""A product's error is measured on this many of its rows."""


def normal(n: int, d: int, dtype: Any = np.float32, mean: float = 0.0, seed: int = 0) -> Any:
    """n standard normal rows of d columns, moved to `mean`."""
    X = np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)
    X += np.float32(mean)
    return X.astype(dtype, copy=False)


def vector(n: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(1).standard_normal(n).astype(dtype)


def usps(setting: Setting, dtype: Any) -> Any:
    """The 7291 × 256 training images of zip.train.gz (Le Cun et al. 1990)."""
    if setting.quick:
        return normal(200, 256, dtype)
    if setting.data is None or not (setting.data / "zip.train.gz").exists():
        raise Missing("needs --data DIR with zip.train.gz (USPS)")
    with gzip.open(setting.data / "zip.train.gz", "rt") as lines:
        return np.loadtxt(lines)[:, 1:].astype(dtype)


def housing(setting: Setting) -> tuple[Any, Any]:
    """California housing: log value by 8 standardised columns, the counts by their logarithms; in a seeded order."""
    if setting.quick:
        X = normal(200, 8, np.float64)
        return X, np.sin(X[:, 0]) + 0.1 * vector(200, np.float64)
    if setting.data is None or not (setting.data / "housing.csv.gz").exists():
        raise Missing("needs --data DIR with housing.csv.gz (California housing)")
    import pandas as pd

    frame = pd.read_csv(setting.data / "housing.csv.gz").dropna().sample(frac=1.0, random_state=0)
    y = np.log(frame.pop("median_house_value").to_numpy(np.float64))
    X = frame.drop(columns=["ocean_proximity"]).to_numpy(np.float64)
    X[:, 3:] = np.log(X[:, 3:])
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def gaussian(X: Any, Z: Any, gamma: float) -> Any:
    """exp(−γ‖x − z‖²) in float64, columns centred first."""
    mean = Z.mean(axis=0, dtype=np.float64)
    X, Z = X - mean, Z - mean
    squares = np.einsum("ij,ij->i", X, X)[:, None] + np.einsum("ij,ij->i", Z, Z) - 2 * (X @ Z.T)
    return np.exp(-gamma * np.maximum(squares, 0.0))


def product_error(X: Any, v: Any, gamma: float, Z: Any = None) -> Callable[[Any], float]:
    """max |K v − reference| / max |reference| over a sample of the rows."""
    rows = np.random.default_rng(2).permutation(len(X))[:SAMPLE]
    reference = gaussian(X[rows], X if Z is None else Z, gamma) @ v.astype(np.float64)
    return lambda result: float(np.abs(np.asarray(result)[rows] - reference).max() / np.abs(reference).max())


def entry_error(X: Any, gamma: float) -> Callable[[Any], float]:
    """max |K − reference| over a sample of the rows, each against all columns."""
    rows = np.random.default_rng(2).permutation(len(X))[:SAMPLE]
    reference = gaussian(X[rows], X, gamma)
    reference[np.arange(len(rows)), rows] = 1.0
    return lambda K: float(np.abs(K[rows] - reference).max())


def ridge_residual(X: Any, y: Any, gamma: float, alpha: float) -> Callable[[Any], float]:
    """‖y − (K + αI) a‖ / ‖y‖ in float64, with K computed afresh, of a fitted model's dual coefficients."""

    def residual(model: Any) -> float:
        a = np.asarray(model.dual_coef_, np.float64).reshape(-1)
        Ka = np.concatenate([gaussian(X[i : i + SAMPLE], X, gamma) @ a for i in range(0, len(X), SAMPLE)])
        return float(np.linalg.norm(y - Ka - alpha * a) / np.linalg.norm(y))

    return residual
