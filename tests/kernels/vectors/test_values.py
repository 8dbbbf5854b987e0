"""Kernels are values: text, equality, hash, copies, parameters."""

from __future__ import annotations

import copy
import pickle
from contextlib import suppress
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import mercer.kernels
from mercer import SVC, RepairedKernel
from mercer.errors import InvalidInput, NotAKernel
from mercer.kernels import (
    AllSubstrings,
    Cauchy,
    Constant,
    Function,
    GappedKmer,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Mismatch,
    Normalized,
    Polynomial,
    Power,
    Precomputed,
    Product,
    Scaled,
    SetKernel,
    Sigmoid,
    Spectrum,
    Subsequence,
    Sum,
    as_kernel,
    inf,
    parse,
)

NAMES = {name: getattr(mercer.kernels, name) for name in mercer.kernels.__all__}
G, L, P = Gaussian(gamma=0.1), Linear(), Polynomial(degree=2)
SHAPES = [
    G,
    Gaussian(),
    Gaussian(gamma="median"),
    Matern(nu=inf),
    Precomputed() + 0.5 * Precomputed(),
    Constant(),
    (G + L) + P,
    G + (L + P),
    (G * L) * P,
    G * (L * P),
    2.0 * (G * L),
    (2.0 * G) * L,
    G * (2.0 * L),
    2.0 * (3.0 * G),
    1.0 * G,
    0.0 * G,
    (G + L) * P,
    (G + L) ** 2,
    (G**2) ** 3,
    (2.0 * G) ** 0.5,
    1e-30 * G,
    (G + L).normalized(),
    G.normalized() ** 2,
    (G**2).normalized().normalized(),
    G.on("age"),
    G.on(["a b", 'c"d', "e'f"]),
    (G * L).on([3, 0]).with_length_scales([1, 2.5]),
    1 + G,
    G + 1,
    G / 3,
]


@pytest.fixture(params=SHAPES, ids=repr)
def shape(request):
    return request.param


def test_repr_evaluates_back(shape):
    assert eval(repr(shape), NAMES) == shape


def test_repr_is_parsed_back(shape):
    assert parse(repr(shape)) == shape


def test_repr_of_every_kernel(kernel):
    assert eval(repr(kernel), NAMES) == kernel
    assert parse(repr(kernel)) == kernel
    assert parse(repr(kernel).lower()) == kernel


def test_repr_has_no_needless_brackets():
    text = "0.5 * Gaussian(gamma=0.1) + Linear() * Polynomial(degree=2) ** 2"
    assert repr(0.5 * Gaussian(gamma=0.1) + Linear() * Polynomial(degree=2) ** 2) == text
    assert repr(Gaussian(gamma=1).on([0]).normalized() * 2) == "2.0 * Gaussian(gamma=1.0).on([0]).normalized()"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k)), clone])
def test_copies_are_equal(copied, shape):
    other = copied(shape)
    assert other == shape
    assert hash(other) == hash(shape)
    assert other is not shape
    assert type(other) is type(shape)
    assert repr(other) == repr(shape)


WITH_CHOICES = [
    AllSubstrings(), GappedKmer(), Mismatch(), Spectrum(2), Spectrum(2, unit="word"), Subsequence(), Laplace(norm=1),
    SetKernel(G), SetKernel(G, aggregate="sum"), Function(max), Function(max, mode="pair"),
    RepairedKernel(Sigmoid(), "flip"),
]  # fmt: skip


def test_unpickled_kernels_with_choices_are_cloned():
    """In a worker of a search with n_jobs; scikit-learn asks for the very object that was given."""
    for kernel in WITH_CHOICES:
        assert clone(pickle.loads(pickle.dumps(kernel))) == kernel
    for name in mercer.kernels.__all__:  # those whose parameters have defaults
        with suppress(TypeError, InvalidInput):
            kernel = getattr(mercer.kernels, name)()
            if isinstance(kernel, Kernel):
                assert clone(pickle.loads(pickle.dumps(kernel))) == kernel


def test_shapes_differ_from_each_other():
    for i, a in enumerate(SHAPES):
        assert [j for j, b in enumerate(SHAPES) if a == b] == [i]
    assert len(set(SHAPES)) == len(SHAPES)


def test_equal_by_type_and_parameters():
    assert Gaussian(gamma=1) == Gaussian(gamma=1.0) == Gaussian(gamma=np.float32(1))
    assert Gaussian(gamma=1.0) != Cauchy(gamma=1.0)
    assert Gaussian(gamma=1.0) != Gaussian(gamma=2.0)
    assert Gaussian() != "gaussian"


def test_frozen():
    with pytest.raises(FrozenInstanceError):
        G.gamma = 2.0


def test_a_mutable_kernel_class_is_not_possible():
    with pytest.raises(TypeError, match="frozen"):

        @dataclass
        class Loose(Kernel):
            gamma: float = 1.0


def test_parameters_are_python_numbers(dtype):
    k = Gaussian(gamma=np.float64(0.5))
    assert type(k.gamma) is float
    assert k(np.ones((2, 1), dtype)).dtype == dtype
    assert (np.float64(2.0) * k)(np.ones((2, 1), dtype)).dtype == dtype
    assert type(Polynomial(degree=np.int64(2)).degree) is int


def test_numbers_and_kernels():
    assert Sum(G, L) == G + L
    assert Product(G, L) == G * L
    assert 2 * G == G * 2 == np.float64(2) * G == G * np.float64(2) == Scaled(2.0, G)
    assert Sum(G, Constant(1.0)) == G + 1
    assert Sum(Constant(1.0), G) == 1 + G
    assert G + 0 == 0 + G == G
    assert Scaled(0.5, G) == G / 2
    assert G**2.0 == G**2 == Power(G, 2)
    assert sum([G, L, P]) == (G + L) + P


@pytest.mark.parametrize("combine", [lambda k: k + "1", lambda k: k * None, lambda k: [1] * k, lambda k: k + True])
def test_kernels_do_not_mix_with_anything_else(combine):
    with pytest.raises(TypeError):
        combine(G)


def test_algebra_identities(rows):
    X, Z = rows
    for a, b in [
        (G + L, L + G),
        ((G + L) * P, G * P + L * P),
        (2 * (G + L), 2 * G + 2 * L),
        (P**2, P * P),
        ((2 * G).normalized(), G.normalized()),
        (G**0.5 * G**0.5, G),
        (Gaussian(gamma=0.3) ** 2, Gaussian(gamma=0.6)),
        ((G * L).on([0, 1]), G.on([0, 1]) * L.on([0, 1])),
        (L.on([1]).on([2, 0]), L.on([0])),
        (Gaussian(gamma=0.25), Gaussian(gamma=1.0).with_length_scales([2, 2, 2])),
        (L.on([0]) + L.on([1]) + L.on([2]), L),
    ]:
        np.testing.assert_allclose(a(X, Z), b(X, Z), rtol=1e-12, atol=1e-13)


def test_get_params():
    k = 0.5 * (Gaussian(gamma=2.0) + Linear()).on([1])
    assert k.get_params(deep=False) == {"scale": 0.5, "kernel": k.kernel}
    deep = k.get_params()
    assert deep["kernel__kernel__left__gamma"] == 2.0
    assert deep["kernel__columns"] == (1,)


def test_set_params_is_nested_and_in_place():
    k = 0.5 * Gaussian(gamma=2.0) + Linear()
    assert k.set_params(left__kernel__gamma=3.0, left__scale=1.0) is k
    assert k == 1.0 * Gaussian(gamma=3.0) + Linear()
    k.set_params(left=Cauchy(), left__gamma=7)
    assert k == Cauchy(gamma=7.0) + Linear()
    assert k.set_params() is k


def test_set_params_leaves_shared_kernels_alone():
    g = Gaussian(gamma=2.0)
    a, b = g + Linear(), g + g
    a.set_params(left__gamma=1.0)
    b.set_params(left__gamma=1.0)
    assert g.gamma == b.right.gamma == 2.0


def test_set_params_validates_and_then_changes_nothing():
    k = 0.5 * Gaussian(gamma=2.0)
    with pytest.raises(NotAKernel, match=r"gamma=-1\.0"):
        k.set_params(scale=1.0, kernel__gamma=-1.0)
    assert k == 0.5 * Gaussian(gamma=2.0)
    with pytest.raises(InvalidInput, match=r"no parameter 'sigma'.*gamma"):
        Gaussian().set_params(sigma=1.0)
    with pytest.raises(InvalidInput, match="scale"):
        k.set_params(scale__gamma=1.0)
    with pytest.raises(ValueError, match="kernel__gamma"):
        k.set_params(gamma=1.0)


def test_replace_returns_another():
    k = 2.0 * Gaussian(gamma=1.0)
    assert k.replace(kernel__gamma=5.0) == 2.0 * Gaussian(gamma=5.0)
    assert k == 2.0 * Gaussian(gamma=1.0)


def test_as_a_parameter_of_an_estimator():
    class Machine(BaseEstimator):
        def __init__(self, kernel=None):
            self.kernel = kernel

    first = Machine(0.5 * Gaussian(gamma=2.0).on([0, 1]) + Linear())
    second = clone(first).set_params(kernel__left__kernel__kernel__gamma=9.0)
    assert first.kernel.left.kernel.kernel.gamma == 2.0
    assert second.kernel.left.kernel.kernel.gamma == 9.0
    assert "kernel__left__scale" in first.get_params()


def test_function_round_trips():
    k = Function(np.dot, mode="pair") + Gaussian(gamma=1.0)
    assert clone(k) == pickle.loads(pickle.dumps(k)) == k
    assert k.left.func is np.dot
    assert repr(Function(np.dot, mode="pair", symmetric=False)) == "Function(dot, mode='pair', symmetric=False)"


def test_a_kernel_written_by_a_user_is_a_kernel(rows):
    @dataclass(frozen=True, repr=False)
    class Own(Kernel):
        gamma: float | str = "scale"
        c: float = 1.0

        def formula(self, pair):
            return self.c / (1 + self.gamma * pair.sqdist)

    X, Z = rows
    own = Own(gamma=0.5)
    assert own.traceable
    assert clone(own) == own
    assert repr(own) == "Own(gamma=0.5)"
    np.testing.assert_allclose((2 * own)(X, Z), 2 * Cauchy(gamma=0.5)(X, Z))
    assert Own().resolve(X).gamma == Gaussian().resolve(X).gamma


def test_a_kernel_without_parameters_needs_no_decorator(rows):
    class Twice(Kernel):
        def formula(self, pair):
            return 2 * pair.dot

    X, Z = rows
    assert Twice() == Twice()
    assert repr(Twice()) == "Twice()"
    assert isinstance(Twice().normalized(), Normalized)
    np.testing.assert_allclose(Twice()(X, Z), 2 * X @ Z.T)


def test_as_kernel():
    assert as_kernel(G) is G
    assert as_kernel("0.5*rbf(gamma=1)") == 0.5 * Gaussian(gamma=1.0)
    assert as_kernel(np.dot) == Function(np.dot)
    for wrong in (None, 3, Gaussian, b"rbf"):
        with pytest.raises(InvalidInput, match=r"give an instance, Gaussian\(\)" if wrong is Gaussian else "gaussian"):
            as_kernel(wrong)


class ByHand(Kernel):
    def __init__(self, gamma=1.0):
        object.__setattr__(self, "gamma", gamma)

    def formula(self, pair):
        return np.exp(-self.gamma * pair.sqdist)


class Stretched(Gaussian):
    def __init__(self, gamma=1.0, scale=1.0):
        super().__init__(gamma)
        object.__setattr__(self, "scale", scale)


@dataclass(frozen=True, eq=False, repr=False)
class Uncompared(Kernel):
    gamma: float = 1.0

    def formula(self, pair):
        return np.exp(-self.gamma * pair.sqdist)


class Below(Uncompared):
    """Nothing of its own, but what it has is not compared."""


@pytest.mark.parametrize("kind", [ByHand, Stretched, Uncompared, Below])
def test_classes_whose_kernels_would_all_be_equal_are_refused(kind):
    with pytest.raises(InvalidInput, match=r"@dataclass\(frozen=True, repr=False\)"):
        kind(2.0)


def test_classes_without_parameters_of_their_own_need_no_decorator():
    class Twice(Gaussian):
        def formula(self, pair):
            return 2 * super().formula(pair)

    class Constantly(Kernel):
        def formula(self, pair):
            return 1.0

    assert Twice(2.0) == Twice(2.0) != Twice(3.0)
    assert Twice(2.0) != Gaussian(2.0)
    assert clone(Twice(2.0)).gamma == 2.0
    assert Constantly() == Constantly()


@dataclass(frozen=True, repr=False)
class Weighted(Kernel):
    weights: object = None

    def formula(self, pair):
        return float(self.weights[0]) * pair.dot


@pytest.mark.parametrize("weights", [np.array([2.0, 1.0]), [2.0, 1.0], (2.0, 1.0)])
def test_parameters_may_be_arrays_and_lists(weights):
    """Which are never compared: a kernel matrix is by the formula, and the text says what they are."""
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20) % 2
    kernel = Weighted(weights)
    assert repr(kernel) == f"Weighted(weights={weights!r})"
    np.testing.assert_allclose(SVC(kernel=kernel).fit(X, y).kernel_(X), 2 * X @ X.T, rtol=1e-12)
    np.testing.assert_allclose(kernel.set_params(weights=np.array([3.0]))(X), 3 * X @ X.T, rtol=1e-12)
    assert repr(Weighted()) == "Weighted()"
