"""The compiled engine, the reference and a kernel's own block agree: all kernels, and random compositions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import KernelOperator
from mercer.kernels import (
    AdditiveChi2,
    Cauchy,
    Chi2,
    Cosine,
    Dice,
    Gaussian,
    Hamming,
    Intersection,
    Kernel,
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
    where,
)

VECTORS = [
    Linear(),
    Polynomial(degree=3, gamma=0.1, coef0=0.5),
    MonomialSum(degree=3),
    Gaussian(gamma=0.3),
    Laplace(gamma=0.4),
    Laplace(gamma=0.4, norm=1),
    *(Matern(nu=nu, length_scale=1.7) for nu in (0.5, 1.5, 2.5, 3.5, inf)),
    RationalQuadratic(alpha=1.5, gamma=0.2),
    Cauchy(gamma=0.5),
    Periodic(period=1.3, length_scale=0.9),
    Sigmoid(gamma=0.02, coef0=-0.1),
    Cosine(),
    Hamming(gamma=0.7),
]
HISTOGRAMS = [Chi2(gamma=0.5), AdditiveChi2(), Intersection(), Tanimoto(), Dice()]
TOLERANCE = {"float32": 4e-6, "float64": 1e-13}


def rows(n, d, dtype, seed=0, mean=0.0):
    X = np.abs(np.random.default_rng(seed).standard_normal((n, d))) + mean
    X[n // 2] = X[0]  # equal rows
    X[-1, 0] = 0.0
    return X.astype(dtype)


def close(got, expected, dtype, scale=1.0):
    assert got.shape == expected.shape
    bound = scale * TOLERANCE[np.dtype(dtype).name] * max(1.0, float(np.abs(expected).max(initial=0)))
    assert np.abs(got - expected).max(initial=0) <= bound


def agree(kernel, X, Z, scale=1.0):
    """The engine in use, its reference, and `block` in float64."""
    wide, other = X.astype(np.float64), Z.astype(np.float64)
    square, cross = kernel.block(wide, wide), kernel.block(wide, other)
    for core in ("", "off"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MERCER_CORE", core)
            K, C = KernelOperator(kernel, X), KernelOperator(kernel, X, Z)
            entries = K.toarray()
            np.testing.assert_array_equal(entries, entries.T)
            assert entries.dtype == X.dtype
            close(entries, square, X.dtype, scale)
            close(C.toarray(), cross, X.dtype, scale)
            for r in (1, 5):
                V = np.random.default_rng(r).random((len(X), r)) / len(X)
                close(K @ V, square @ V, X.dtype, scale)
                close(C.T @ V, cross.T @ V, X.dtype, scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("kernel", [*VECTORS, *HISTOGRAMS], ids=repr)
def test_every_kernel(kernel, d, dtype):
    agree(kernel, rows(230, d, dtype), rows(41, d, dtype, seed=1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [16, 17, 100])
@pytest.mark.parametrize("kernel", [Gaussian, Laplace, Matern, Cauchy], ids=lambda kind: kind.__name__)
def test_rows_far_from_the_origin(kernel, d, dtype):
    """At mean 1000, norms and dot products in float32 alone would give an error of 0.2."""
    X = rows(200, d, dtype, mean=1000.0)
    X[-1, 0] = 1000.0
    exact = kernel(**({"length_scale": d**0.5} if kernel is Matern else {"gamma": 1 / d}))
    expected = exact.block(X.astype(np.float64), X.astype(np.float64))
    K = KernelOperator(exact, X)
    tolerance = 1e-5 if dtype == "float32" else 1e-10
    assert np.abs(K.toarray() - expected).max() <= tolerance
    assert np.abs(K @ np.full(200, 1 / 200) - expected.mean(axis=1)).max() <= tolerance
    np.testing.assert_array_equal(np.diagonal(K.toarray()), 1.0)


@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.05), Laplace(gamma=0.3), Laplace(gamma=0.05, norm=1), Linear()], ids=repr
)
def test_float32_entries_of_float64_rows(kernel):
    """Means are subtracted before anything is rounded: differences of 1 at 10⁶ would be lost otherwise."""
    X = rows(150, 20, np.float64) + (0 if isinstance(kernel, Linear) else 1e6)
    expected = kernel.block(X, X)
    K = KernelOperator(kernel, X, dtype=np.float32)
    assert K.dtype == np.float32
    close(K.toarray(), expected, np.float32, 10)
    close(K.astype(np.float64).toarray(), expected, np.float64, 1e4)


def test_float64_entries_of_float32_rows():
    X = rows(100, 20, np.float32)
    for kernel in (Gaussian(gamma=0.1), Matern(nu=1.2)):  # one that is traced, one that is not
        K = KernelOperator(kernel, X).astype(np.float64)
        close(K.toarray(), kernel.block(X.astype(np.float64), X.astype(np.float64)), np.float64)


@pytest.mark.parametrize("gamma", [1e-30, 1e30, 1e45])
@pytest.mark.parametrize("d", [3, 30])
def test_bandwidths_beyond_float32(gamma, d):
    """0 and infinity must not meet: the kernel is 1 on equal rows and 0 or 1 on others."""
    X = rows(50, d, np.float32) * 1e3
    expected = KernelOperator(Gaussian(gamma=gamma), X.astype(np.float64)).toarray()
    np.testing.assert_array_equal(KernelOperator(Gaussian(gamma=gamma), X).toarray(), expected)


# ---- kernels that users write ---------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Multiquadric(Kernel):
    """k(x, z) = 1/√(1 + c‖x − z‖²)."""

    c: float = 0.5

    def formula(self, pair: Any) -> Any:
        return 1 / np.sqrt(1 + self.c * pair.sqdist)


@dataclass(frozen=True, repr=False)
class Wendland(Kernel):
    """k(x, z) = max(0, 1 − r)⁴ (4r + 1), r = ‖x − z‖: compactly supported."""

    def formula(self, pair: Any) -> Any:
        r = np.sqrt(pair.sqdist)
        return np.maximum(0, 1 - r) ** 4 * (4 * r + 1)


@dataclass(frozen=True, repr=False)
class Arccosine(Kernel):
    """A conditional, norms of single rows, and NumPy's functions."""

    def formula(self, pair: Any) -> Any:
        norms = np.sqrt(pair.xx * pair.zz)
        angle = where(norms > 0, pair.dot / where(norms > 0, norms, 1.0), 0.0)
        return norms * np.clip(angle, -1, 1) + np.cos(np.minimum(pair.l1, 1.0)) * np.abs(np.sin(pair.mismatches))


@dataclass(frozen=True, repr=False)
class ByBlock(Kernel):
    """No formula at all."""

    def block(self, X: Any, Z: Any) -> Any:
        return np.floor(X @ Z.T) + 1


@dataclass(frozen=True, repr=False)
class Flat(Kernel):
    """No pairing at all."""

    def formula(self, pair: Any) -> Any:
        return 0.25


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize(
    "kernel", [Multiquadric(), Wendland(), Arccosine(), Flat(), Wendland() + Multiquadric(2.0)], ids=repr
)
def test_kernels_of_users(kernel, d, dtype):
    assert kernel.traceable
    agree(kernel, rows(210, d, dtype) / d, rows(33, d, dtype, seed=2) / d, scale=4)


def test_a_kernel_without_a_formula():
    X, Z = rows(250, 3, np.float64), rows(20, 3, np.float64, seed=1)
    agree(ByBlock() + Gaussian(gamma=0.3), X, Z)


def test_more_kernels_than_registers():
    """A sum over so many columns does not fit the engine, and is computed block by block."""
    X = rows(60, 80, np.float64)
    kernel = sum((Gaussian(gamma=0.1 * (c + 1)).on([c]) for c in range(1, 80)), Gaussian(gamma=0.1).on([0]))
    agree(kernel, X, rows(10, 80, np.float64, seed=1))


# ---- random compositions --------------------------------------------------------------------------------------------

BASE = st.sampled_from([kernel for kernel in VECTORS if not isinstance(kernel, Hamming)] + HISTOGRAMS)


def composed(kernels):
    return st.one_of(
        st.tuples(kernels, kernels).map(lambda pair: pair[0] + pair[1]),
        st.tuples(kernels, kernels).map(lambda pair: pair[0] * pair[1]),
        st.tuples(st.floats(0.1, 3), kernels).map(lambda pair: pair[0] * pair[1]),
        st.tuples(kernels, st.integers(2, 3)).map(lambda pair: pair[0] ** pair[1]),
        kernels.map(lambda kernel: kernel + 1.0),
        kernels.map(lambda kernel: kernel.on([1, 0])),
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.recursive(BASE, composed, max_leaves=6), st.sampled_from(["float32", "float64"]), st.sampled_from([2, 20]))
def test_compositions(kernel, dtype, d):
    X, Z = rows(60, d, dtype, seed=3) / 4, rows(25, d, dtype, seed=4) / 4
    agree(kernel, X, Z, scale=20)
