"""Reduced sets: greedy choice, best coefficients, derivatives of kernels, and moves."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.approx.reduced_set import moved_vectors, pairing_slopes, projection, select_vectors
from mercer.gram import KernelOperator
from mercer.kernels import Cauchy, Function, Gaussian, Laplace, Linear, Matern, Periodic, Polynomial
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
A = RNG.standard_normal((40, 2))
K = Gaussian(0.3)(X)


def left(places):
    """Σ‖f − Pf‖² for the span of some vectors, written out."""
    S = list(places)
    B = np.linalg.solve(K[np.ix_(S, S)], K[S] @ A)
    return np.sum(A * (K @ A)) - np.sum(B * (K[S] @ A))


def test_each_vector_is_the_one_that_takes_the_most():
    found = select_vectors(KernelOperator(Gaussian(0.3), X), A, 6)
    for m in range(6):
        before = list(found.places[:m])
        best = min((p for p in range(40) if p not in before), key=lambda p: left([*before, p]))
        assert best == found.places[m]
    whole = np.sum(A * (K @ A))
    assert_close(found.losses, [left(found.places[: m + 1]) / whole for m in range(6)], rtol=1e-8)


def test_coefficients_are_least_squares_in_feature_space():
    found = select_vectors(KernelOperator(Gaussian(0.3), X), A, 6)
    S = found.places
    assert_close(found.coefficients, np.linalg.solve(K[np.ix_(S, S)], K[S] @ A), rtol=1e-9)
    B, (losses, wholes) = projection(Gaussian(0.3), X, A, X[S])
    assert_close(B, found.coefficients, rtol=1e-8)
    assert_close(losses.sum() / wholes.sum(), found.losses[-1], rtol=1e-8)


def test_it_ends_at_the_tolerance_at_the_rank_and_with_all():
    found = select_vectors(KernelOperator(Gaussian(0.3), X), A, 40, 0.1)
    assert found.losses[-1] <= 0.01 < found.losses[-2]
    linear = select_vectors(KernelOperator(Linear(), X), A, 40)
    assert len(linear.places) == 3  # the rank of K
    twice = select_vectors(KernelOperator(Gaussian(0.3), np.vstack([X, X])), np.vstack([A, A]), 80)
    assert len(twice.places) <= 40
    assert len(np.unique(twice.places % 40)) == len(twice.places)
    assert len(select_vectors(KernelOperator(Gaussian(0.3), X), 0 * A, 5).places) == 0


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.3),
        Cauchy(0.4),
        Polynomial(3),
        Laplace(0.3),
        Matern(nu=1.5),
        2 * Gaussian(0.2) + Linear() * Cauchy(0.1),
        Polynomial(2).normalized(),
    ],
    ids=repr,
)
def test_derivatives_against_differences(kernel, rng):
    Z, W = rng.standard_normal((4, 3)), rng.standard_normal((4, 40))
    slopes, h = pairing_slopes(kernel)(Z, X, W), 1e-5
    for i in range(4):
        for j in range(3):
            step = np.zeros_like(Z)
            step[i, j] = h
            expected = np.sum(W * (kernel(Z + step, X) - kernel(Z - step, X))) / (2 * h)
            np.testing.assert_allclose(slopes[i, j], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", [Gaussian(0.3).on([0, 1]), Periodic(period=2.0), Function(lambda a, b: a @ b.T)])
def test_kernels_without_such_a_derivative(kernel):
    assert pairing_slopes(kernel) is None
    assert moved_vectors(kernel, X, A, X[:3], 3) is None


def test_a_vector_on_a_row_has_a_finite_slope():
    assert np.all(np.isfinite(pairing_slopes(Laplace(0.5))(X, X, np.ones((40, 40)))))


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(2), Matern(nu=1.5)], ids=repr)
def test_vectors_move_downhill(kernel):
    start = select_vectors(KernelOperator(kernel, X), A, 5)
    moved = moved_vectors(kernel, X, A, X[start.places], 20)
    _, (losses, wholes) = projection(kernel, X, A, moved)
    assert losses.sum() / wholes.sum() < 0.97 * start.losses[-1]


def test_two_gaussians_at_one_place_become_one():
    pair, coefficients = np.array([[0.0], [1e-3]]), np.array([[1.0], [1.0]])
    found = moved_vectors(Gaussian(1.0), pair, coefficients, pair[:1], 50)
    np.testing.assert_allclose(found, [[5e-4]], atol=1e-5)
