"""Centred alignment and its best mixtures, by the definition and by brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.select import alignment_weights, centered_alignment
from mercer.testing import assert_close


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)


def by_definition(K, T):
    n = len(K)
    H = np.eye(n) - 1 / n
    A, B = H @ K @ H, H @ T @ H
    return np.sum(A * B) / np.linalg.norm(A) / np.linalg.norm(B)


def test_is_the_definition(data):
    X, y = data
    K = Gaussian(0.3)(X)
    expected = by_definition(K, np.outer(y, y))
    assert centered_alignment(Gaussian(0.3), X, y) == pytest.approx(expected, rel=1e-12)
    assert centered_alignment(Precomputed(), K, y) == pytest.approx(expected, rel=1e-12)
    labels = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 1)]
    onehot = 2.0 * (labels[:, None] == np.unique(labels)) - 1
    assert centered_alignment("linear", X, labels) == pytest.approx(
        by_definition(X @ X.T, onehot @ onehot.T), rel=1e-12
    )


def test_a_constant_added_to_the_kernel_changes_nothing(data):
    X, y = data
    assert centered_alignment(Gaussian(0.3) + 1e4, X, y + 1e4) == pytest.approx(
        centered_alignment(Gaussian(0.3), X, y), rel=1e-6
    )


@pytest.mark.parametrize("unit", [1e-300, 1e-90, 1e80, 1e300])
def test_the_unit_of_the_targets_changes_nothing(data, unit):
    X, y = data
    matrices = [Gaussian(0.3)(X), Linear()(X)]
    assert centered_alignment(Gaussian(0.3), X, y * unit) == pytest.approx(centered_alignment(Gaussian(0.3), X, y))
    assert_close(alignment_weights(matrices, y * unit), alignment_weights(matrices, y), rtol=1e-9)


def test_rows_far_from_the_origin(data):
    X, y = data
    assert centered_alignment("linear", X + 1e8, y) == pytest.approx(centered_alignment("linear", X, y), rel=1e-6)
    with pytest.warns(UserWarning, match=r"centered_alignment with 2.0 \* Linear.* keeps no digit"):
        centered_alignment(2.0 * Linear(), X + 1e8, y)


def test_targets_that_are_all_equal_align_with_nothing(data):
    X, _ = data
    assert centered_alignment("linear", X, np.full(60, 0.1)) == 0.0
    assert alignment_weights([Linear()(X), Gaussian(0.3)(X)], np.full(60, 0.1)).tolist() == [0.5, 0.5]


def test_degenerate_inputs(data):
    X, y = data
    assert centered_alignment("linear", np.ones((60, 2)), y) == 0.0
    assert centered_alignment("linear", X, np.ones(60)) == 0.0
    assert 0 < centered_alignment("gaussian", X, y, sample=20) < 1
    for wrong in (y[:5], np.full(60, np.nan), np.full(60, "a")):
        with pytest.raises(InvalidInput):
            centered_alignment("linear", X, wrong)


def test_weights_are_the_best_of_all_mixtures(data):
    X, y = data
    matrices = [Gaussian(0.5).on([j])(X) for j in range(4)] + [Linear()(X)]
    w = alignment_weights(matrices, y)
    T = np.outer(y, y)

    def lost(v):
        return -by_definition(sum(a * K for a, K in zip(v, matrices, strict=True)), T)

    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    best = min(minimize(lost, s, bounds=[(0, None)] * 5).fun for s in np.random.default_rng(0).uniform(0.1, 1, (5, 5)))
    assert lost(w) == pytest.approx(best, abs=1e-6)


def test_sparse_weights_and_useless_kernels(data):
    X, y = data
    matrices = [Gaussian(0.5).on([j])(X) for j in range(4)]
    w = alignment_weights(matrices, y, sparse=0.15)
    assert w[0] == w.max()
    assert np.count_nonzero(w) < 4
    assert alignment_weights([np.ones((60, 60)), matrices[0]], y)[0] == 0
    assert_close(alignment_weights([np.ones((60, 60))] * 2, y), 0.5)
    assert_close(alignment_weights([matrices[0]] * 2, y).sum(), 1.0)
    with pytest.raises(InvalidInput):
        alignment_weights([], y)
    for others in (matrices[1][:50, :50], matrices[1][:50], np.ones(60)):
        with pytest.raises(InvalidInput, match="60 targets; give n × n matrices"):
            alignment_weights([matrices[0], others], y)
