"""One kernel of every kind with its definition in plain floats, and data that all of them accept."""

from __future__ import annotations

import math

import mpmath
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


def dot(x, z):
    return math.fsum(a * b for a, b in zip(x, z, strict=True))


def sqdist(x, z):
    return math.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True))


def chi2(x, z):
    return math.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def cosine(x, z):
    lengths = math.sqrt(dot(x, x)) * math.sqrt(dot(z, z))
    return dot(x, z) / lengths if lengths else 0.0


def periodic(k, x, z):
    waves = math.fsum(math.sin(math.pi * (a - b) / k.period) ** 2 for a, b in zip(x, z, strict=True))
    return math.exp(-2 * waves / k.length_scale**2)


def matern(k, x, z):
    r, nu = mpmath.sqrt(sqdist(x, z)), k.nu
    if math.isinf(nu):
        return mpmath.exp(-(r**2) / (2 * k.length_scale**2))
    if r == 0:
        return mpmath.mpf(1)
    s = mpmath.sqrt(2 * nu) * r / k.length_scale
    return mpmath.mpf(2) ** (1 - nu) / mpmath.gamma(nu) * s**nu * mpmath.besselk(nu, s)


def laplace(k, x, z):
    distance = math.fsum(abs(a - b) for a, b in zip(x, z, strict=True)) if k.norm == 1 else math.sqrt(sqdist(x, z))
    return math.exp(-k.gamma * distance)


KERNELS = {
    Linear: (lambda k, x, z: dot(x, z), Linear()),
    Polynomial: (
        lambda k, x, z: (k.gamma * dot(x, z) + k.coef0) ** k.degree,
        *(Polynomial(degree=2), Polynomial(degree=5, gamma=0.3, coef0=0.5)),
    ),
    MonomialSum: (
        lambda k, x, z: math.fsum(dot(x, z) ** i for i in range(k.degree + 1)),
        *(MonomialSum(degree=1), MonomialSum(degree=4)),
    ),
    Gaussian: (lambda k, x, z: math.exp(-k.gamma * sqdist(x, z)), Gaussian(gamma=0.3)),
    Laplace: (laplace, Laplace(gamma=0.4), Laplace(gamma=0.4, norm=1)),
    Matern: (
        matern,
        *(Matern(nu=p + 0.5, length_scale=1.7) for p in range(10)),
        Matern(nu=inf, length_scale=0.8),
    ),
    RationalQuadratic: (
        lambda k, x, z: (1 + k.gamma * sqdist(x, z) / k.alpha) ** -k.alpha,
        RationalQuadratic(alpha=1.5, gamma=0.2),
    ),
    Cauchy: (lambda k, x, z: 1 / (1 + k.gamma * sqdist(x, z)), Cauchy(gamma=0.5)),
    Periodic: (periodic, Periodic(period=1.3, length_scale=0.9)),
    Sigmoid: (lambda k, x, z: math.tanh(k.gamma * dot(x, z) + k.coef0), Sigmoid(gamma=0.2, coef0=-0.1)),
    Cosine: (lambda k, x, z: cosine(x, z), Cosine()),
    Chi2: (lambda k, x, z: math.exp(-k.gamma * chi2(x, z)), Chi2(gamma=0.5)),
    AdditiveChi2: (
        lambda k, x, z: math.fsum(2 * a * b / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0),
        AdditiveChi2(),
    ),
    Intersection: (lambda k, x, z: math.fsum(map(min, x, z)), Intersection()),
    Tanimoto: (
        lambda k, x, z: math.fsum(map(min, x, z)) / math.fsum(map(max, x, z)) if any(x) or any(z) else 1.0,
        Tanimoto(),
    ),
    Dice: (lambda k, x, z: 2 * math.fsum(map(min, x, z)) / math.fsum((*x, *z)) if any(x) or any(z) else 1.0, Dice()),
    Hamming: (
        lambda k, x, z: math.exp(-k.gamma * sum(a != b for a, b in zip(x, z, strict=True))),
        Hamming(gamma=0.7),
    ),
    Constant: (lambda k, x, z: k.value, Constant(value=2.5)),
}
"""A formula in plain Python floats for each kernel, and kernels with parameters, from which the suites run."""
PLAIN = [kernel for _, *kernels in KERNELS.values() for kernel in kernels]
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


@pytest.fixture(params=PLAIN, ids=repr)
def plain(request):
    return request.param


@pytest.fixture(params=PLAIN + COMPOSED, ids=repr)
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
def by_definition():
    """The kernel matrix by the formula in plain floats."""

    def matrix(k, X, Z):
        value = KERNELS[type(k)][0]
        return np.array([[float(value(k, x, z)) for z in Z.tolist()] for x in X.tolist()])

    return matrix


@pytest.fixture
def draw_rows():
    return draw
