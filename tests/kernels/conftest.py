"""One kernel of every kind, and data that all of them accept."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import (
    AdditiveChi2,
    Cauchy,
    Chi2,
    Constant,
    Cosine,
    Dice,
    Gaussian,
    Hamming,
    Intersection,
    Laplace,
    Linear,
    Matern,
    MonomialSum,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Tanimoto,
    inf,
)

KERNELS = [
    Linear(),
    Polynomial(degree=2),
    Polynomial(degree=5, gamma=0.3, coef0=0.5),
    MonomialSum(degree=1),
    MonomialSum(degree=4),
    Gaussian(gamma=0.3),
    Laplace(gamma=0.4),
    Laplace(gamma=0.4, norm=1),
    *(Matern(nu=p + 0.5, length_scale=1.7) for p in range(10)),
    Matern(nu=inf, length_scale=0.8),
    RationalQuadratic(alpha=1.5, gamma=0.2),
    Cauchy(gamma=0.5),
    Periodic(period=1.3, length_scale=0.9),
    Sigmoid(gamma=0.2, coef0=-0.1),
    Cosine(),
    Chi2(gamma=0.5),
    AdditiveChi2(),
    Intersection(),
    Tanimoto(),
    Dice(),
    Hamming(gamma=0.7),
    Constant(value=2.5),
]
COMPOSED = [
    0.5 * Gaussian(gamma=0.1) + Linear() * Polynomial(degree=2) ** 2,
    Polynomial(degree=2).normalized(),
    (Linear() + 1.0).normalized() * Laplace(gamma=0.2),
    Gaussian(gamma=0.4).on([2, 0]),
    Periodic(period=0.7).on([1]) + Linear().with_length_scales([1.0, 2.0, 0.5]),
    Gaussian(gamma=0.4).with_length_scales([2.0, 1.0]).on([0, 2]) ** 0.5,
    Chi2(gamma=0.3) * Hamming(gamma=0.1) + Intersection() / 4 + Cosine(),
    (Matern(nu=2.5) ** 3).normalized(),
    2 * (Linear() + Gaussian(gamma=0.5)) * (Cauchy() + 0.25),
]


@pytest.fixture(params=KERNELS, ids=repr)
def plain(request):
    return request.param


@pytest.fixture(params=KERNELS + COMPOSED, ids=repr)
def kernel(request):
    return request.param


def draw(dtype=np.float64, seed=0):
    """Two small sets of non-negative rows with exact zeros, ties between the sets, and one row of zeros."""
    rng = np.random.default_rng(seed)
    X, Z = rng.random((6, 3)).round(2) * 2, rng.random((4, 3)).round(2) * 2
    X[0], X[1, 2], Z[1, 2], Z[0] = 0.0, 0.0, 0.0, X[2]
    Z[2, 0] = X[4, 0]
    return X.astype(dtype), Z.astype(dtype)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture
def rows():
    return draw()


@pytest.fixture
def no_engine():
    """The formula on arrays, whatever engine is there."""
    from mercer.kernels import set_engine

    previous = set_engine(None)
    yield
    set_engine(previous)


@pytest.fixture
def draw_rows():
    return draw
