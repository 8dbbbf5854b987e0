"""Weighted sums of kernels: optimality conditions, brute force, and what the confidence means."""

import numpy as np
import pytest

from mercer import KernelPCA, KernelRidge
from mercer.errors import InvalidInput
from mercer.kernels import Function, Gaussian, Linear
from mercer.select import alignment_weights, column_kernels, combine_kernels
from mercer.select.alignment import centred
from mercer.testing import assert_close


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=120)


def test_alignment_weights_are_those_of_the_matrices(data):
    X, y = data
    kernels = column_kernels(X, ["gaussian"])
    found = combine_kernels(kernels, X, y, bootstrap=0)
    np.testing.assert_allclose(found.weights, alignment_weights([k(X) for k in kernels], y), rtol=1e-9, atol=1e-12)
    expected = sum(w * k(X) for w, k in zip(found.weights, kernels, strict=True))
    assert_close(found.kernel(X), expected, rtol=2e-3)


def test_ridge_weights_meet_the_conditions_of_the_group_lasso(data):
    X, y = data
    kernels = column_kernels(X, ["gaussian", "linear"])
    found = combine_kernels(kernels, X, y, method="ridge", alpha=1.0, bootstrap=0)
    y = y - y.mean()
    matrices = [centred(k(X)) for k in kernels]
    matrices = [K * 120 / np.trace(K) for K in matrices]

    def objective(shares):
        return y @ np.linalg.solve(sum(w * K for w, K in zip(shares, matrices, strict=True)) + np.eye(120), y)

    K = sum(w * K for w, K in zip(found.shares, matrices, strict=True))
    a = np.linalg.solve(K + np.eye(120), y)
    slopes = np.array([a @ K @ a for K in matrices])  # equal where the weight is positive, no larger elsewhere
    on = found.shares > 1e-3
    assert np.ptp(slopes[on]) < 0.02 * slopes.max()
    assert slopes[~on].max() <= 1.02 * slopes[on].min()
    for other in np.random.default_rng(1).dirichlet(np.ones(len(kernels)), 200):
        assert objective(found.shares) <= objective(other) * (1 + 1e-6)


@pytest.mark.parametrize("method", ["alignment", "ridge"])
def test_the_columns_that_matter_are_found_with_confidence(data, method):
    X, y = data
    found = combine_kernels(column_kernels(X, ["gaussian"])[:4], X, y, method=method, alpha=1.0, sparse=0.1)
    assert set(np.flatnonzero(found.weights)) == {0, 1}
    assert np.all(found.low <= found.shares + 0.2)
    assert found.low[0] > found.high[2]
    assert "Gaussian" in str(found)
    again = combine_kernels(column_kernels(X, ["gaussian"])[:4], X, y, method=method, alpha=1.0, sparse=0.1)
    np.testing.assert_array_equal(found.weights, again.weights)


def test_the_sum_is_a_kernel_for_every_estimator(data):
    X, y = data
    kernels = column_kernels(X)
    found = combine_kernels(kernels, X, y, method="ridge", bootstrap=2)
    assert KernelRidge(found.kernel, found.alpha, fit_intercept=True).fit(X, y).score(X, y) > 0.95
    assert KernelPCA(2, kernel=found.kernel).fit_transform(X).shape == (120, 2)
    from mercer.kernels import as_kernel

    assert as_kernel(repr(found.kernel)) == found.kernel


def test_classes_groups_and_objects(data):
    X, _ = data
    kernels = column_kernels(X, ["gaussian"], groups=[[0, 1], [2, 3]])
    assert [k.columns for k in kernels[:2]] == [(0, 1), (2, 3)]
    labels = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
    assert combine_kernels(kernels, X, labels, bootstrap=0).weights.argmax() == 0
    words = ["ab", "abc", "xyz", "xy"] * 5
    shared = Function(lambda x, z: float(len(set(x) & set(z))), mode="pair")
    assert combine_kernels([shared], words, [0.0, 0.1, 1.0, 0.9] * 5, bootstrap=0).weights.tolist() == [1.0]


def test_a_sample_of_many_rows(data):
    X, y = data
    assert combine_kernels(column_kernels(X), X, y, sample=50, bootstrap=0).sample_size == 50


@pytest.mark.parametrize(
    ("change", "says"),
    [({"kernels": []}, "at least one kernel"), ({"method": "svm"}, "alignment"), ({"y": np.ones(3)}, "one target")],
)
def test_refusals(data, change, says):
    with pytest.raises(InvalidInput, match=says):
        combine_kernels(**{"kernels": [Linear(), Gaussian(1.0)], "X": data[0], "y": data[1], **change})


@pytest.mark.parametrize("method", ["alignment", "ridge"])
def test_neither_far_rows_nor_small_targets_change_the_weights(data, method):
    X, y = data
    kernels = ["gaussian(gamma=0.4)", "linear"]
    near = combine_kernels(kernels, X, y, method=method, bootstrap=2)
    far = combine_kernels(kernels, X + 1e8, y, method=method, bootstrap=2)
    small = combine_kernels(kernels, X, y * 1e-200, method=method, bootstrap=2)
    np.testing.assert_allclose(far.weights, near.weights, rtol=1e-4)
    np.testing.assert_allclose(small.weights, near.weights, rtol=1e-9)


@pytest.mark.parametrize("alpha", [None, 0.1])
def test_values_without_digits_are_told(data, alpha):
    X, y = data
    kernels = ["gaussian(gamma=0.4)", 2.0 * Linear()]
    with (
        pytest.warns(UserWarning, match=r"combine_kernels with 2.0 \* Linear\(\): .* keeps no digit"),
        pytest.raises(InvalidInput, match=r"combine_kernels: kernels for which float64 cannot .* give .*alpha"),
    ):
        combine_kernels(kernels, X + 1e8, y, method="ridge", alpha=alpha)
