"""Kernels by their textbook's formulas, in extended precision, and rows of all kinds and sizes: see `fuzz.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import kernels as mk

Wide = np.longdouble
EXTENDED = np.finfo(Wide).max > np.finfo(np.float64).max
"""Whether there is an extended precision; long doubles are float64 on some machines."""


@dataclass
class Oracle:
    """k(x, z) and the condition of its formula on all pairs, from rows in extended precision."""

    name: str
    kernel: Any
    value: Callable[[Any, Any], Any]
    condition: Callable[[Any, Any], Any] = lambda X, Z: Wide(1)

    def entries(self, X: Any, Z: Any) -> tuple[Any, Any]:
        """K, and what an error of one rounding may be in each entry."""
        K, left = self.value(X, Z), self.own(X)
        size = np.sqrt(left[:, None] * (left if Z is X else self.own(Z))[None, :])
        return K, np.maximum(size, np.abs(K)) * self.condition(X, Z)

    def own(self, X: Any) -> Any:
        """|k(x, x)| of each row."""
        return np.abs(self.value(X, X).diagonal())


def dot(X: Any, Z: Any) -> Any:
    return (X[:, None, :] * Z[None, :, :]).sum(axis=2)


def sqdist(X: Any, Z: Any) -> Any:
    return ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)


def l1(X: Any, Z: Any) -> Any:
    return np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2)


def chi2(X: Any, Z: Any) -> Any:
    total = X[:, None, :] + Z[None, :, :]
    return ((X[:, None, :] - Z[None, :, :]) ** 2 / np.where(total > 0, total, 1)).sum(axis=2)


def lengths(X: Any, Z: Any) -> Any:
    return np.sqrt(dot(X, X).diagonal()[:, None] * dot(Z, Z).diagonal()[None, :])


def normalized(value: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def cosine(X: Any, Z: Any) -> Any:
        size = np.sqrt(np.outer(value(X, X).diagonal(), value(Z, Z).diagonal()))
        return np.where(size > 0, value(X, Z) / np.where(size > 0, size, 1), 0)

    return cosine


def oracles(rng: np.random.Generator, X: Any) -> Oracle:
    """A kernel with random parameters, most of them fit to the size of the rows."""
    apart = float(np.median(sqdist(X, X)[~np.eye(len(X), dtype=bool)])) if len(X) > 1 else 0.0
    apart = apart if 1e-290 < apart < 1e290 else 1.0
    own = float(np.mean(dot(X, X).diagonal()))
    own = own if 1e-290 < own < 1e290 else 1.0
    fit, degree, c = rng.random() < 0.8, int(rng.integers(1, 11)), float(rng.choice([0.0, 1.0]))
    factor = float(10.0 ** rng.uniform(-2, 1))
    g, gd = (factor / apart, factor / own) if fit else (factor, factor)
    root = float(np.sqrt(g))

    def poly(A: Any, B: Any) -> Any:
        return (Wide(gd) * dot(A, B) + Wide(c)) ** degree

    def gauss(A: Any, B: Any) -> Any:
        return np.exp(-Wide(g) * sqdist(A, B))

    def matern(A: Any, B: Any) -> Any:
        s = np.sqrt(Wide(3)) * Wide(root) * np.sqrt(sqdist(A, B))
        return (1 + s) * np.exp(-s)

    def sums(A: Any, B: Any) -> Any:
        s = dot(A, B)
        return sum(s**j for j in range(degree + 1))

    def steep(A: Any, B: Any) -> Any:
        return 1 + Wide(gd) * lengths(A, B)

    def saturating(A: Any, B: Any) -> Any:
        """The product is rounded relative to the lengths, of which k(x, x) ≤ 1 says little."""
        own = [np.abs(sigmoid(part, part).diagonal()) for part in (A, B)]
        return 1 + Wide(gd) * lengths(A, B) / np.maximum(np.sqrt(np.outer(*own)), np.finfo(Wide).tiny)

    columns = [int(i) for i in rng.choice(X.shape[1], max(1, X.shape[1] // 2), replace=False)]
    scales = [float(s) for s in 10.0 ** rng.uniform(-2, 2, X.shape[1])]
    width = np.array(scales, Wide)

    def rational(A: Any, B: Any) -> Any:
        return (1 + Wide(g) / Wide(2.5) * sqdist(A, B)) ** -Wide(2.5)

    def sigmoid(A: Any, B: Any) -> Any:
        return np.tanh(Wide(gd) * dot(A, B) + Wide(c))

    def exponential(A: Any, B: Any) -> Any:
        return np.exp(Wide(gd) * dot(A, B))

    def some_columns(A: Any, B: Any) -> Any:
        return poly(A[:, columns], B[:, columns])

    def scaled(A: Any, B: Any) -> Any:
        return dot(A / width, B / width)

    P, G = mk.Polynomial(degree, gamma=gd, coef0=c), mk.Gaussian(g)
    some: list[Callable[[], Oracle]] = [
        lambda: Oracle("linear", mk.Linear(), dot),
        lambda: Oracle("polynomial", P, poly, lambda A, B: Wide(degree)),
        lambda: Oracle("gaussian", G, gauss),
        lambda: Oracle("laplace 2", mk.Laplace(root), lambda A, B: np.exp(-Wide(root) * np.sqrt(sqdist(A, B)))),
        lambda: Oracle("laplace 1", mk.Laplace(root, norm=1), lambda A, B: np.exp(-Wide(root) * l1(A, B))),
        lambda: Oracle("cauchy", mk.Cauchy(g), lambda A, B: 1 / (1 + Wide(g) * sqdist(A, B))),
        lambda: Oracle("rational quadratic", mk.RationalQuadratic(gamma=g, alpha=2.5), rational),
        lambda: Oracle("matern", mk.Matern(1.5, 1.0 / root), matern),
        lambda: Oracle("monomial sum", mk.MonomialSum(degree), sums, lambda A, B: Wide(degree)),
        lambda: Oracle("cosine", mk.Cosine(), normalized(dot), lambda A, B: Wide(2)),
        lambda: Oracle("normalized", P.normalized(), normalized(poly), lambda A, B: Wide(2 * degree)),
        lambda: Oracle("sigmoid", mk.Sigmoid(gamma=gd, coef0=c), sigmoid, saturating),
        lambda: Oracle("exponential", mk.Formula(f"exp({gd!r} * dot)"), exponential, steep),
        lambda: Oracle("sum", G + P, lambda A, B: gauss(A, B) + poly(A, B), lambda A, B: Wide(degree)),
        lambda: Oracle("product", G * mk.Linear(), lambda A, B: gauss(A, B) * dot(A, B), lambda A, B: Wide(2)),
        lambda: Oracle("on columns", P.on(columns), some_columns, lambda A, B: Wide(degree)),
        lambda: Oracle("length-scales", mk.Linear().with_length_scales(scales), scaled, lambda A, B: Wide(2)),
    ]  # fmt: skip
    if np.all(X >= 0):
        some += [
            lambda: Oracle("intersection", mk.Intersection(), lambda A, B: np.minimum(A[:, None], B[None]).sum(axis=2)),
            lambda: Oracle("chi2", mk.Chi2(root), lambda A, B: np.exp(-Wide(root) * chi2(A, B))),
        ]
    return some[int(rng.integers(len(some)))]()


# ---- the rows -------------------------------------------------------------------------------------------------------


def rows(rng: np.random.Generator, n: int, d: int) -> Any:
    """n rows of a random kind, in float64."""
    kind = int(rng.integers(8))
    X = rng.standard_normal((n, d))
    if kind == 1:
        X = X * 10.0 ** rng.uniform(-6, 6, (n, 1))
    elif kind == 2:
        X = X * 10.0 ** rng.uniform(-6, 6, d)
    elif kind == 3:
        X = X + rng.choice([-1.0, 1.0], (n, 1)) * 10.0 ** rng.uniform(0, 5)
    elif kind == 4:
        X = X[rng.integers(0, max(1, n // 2), n)]
        X[rng.random(n) < 0.2] = 0
    elif kind == 5:
        X = np.abs(X)
    elif kind == 6:
        X = np.rint(3 * X)
    elif kind == 7:
        X = X * (rng.random((n, d)) < 0.3)
    scale = rng.uniform(-30, 30) if rng.random() < 0.6 else rng.uniform(-3, 3)
    return X * 10.0**scale
